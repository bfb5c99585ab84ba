"""What a client asks of the daemon, and what runs its commands."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pegboard.thin.wire import Message, WireError

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFront:
    """A client of the daemon: the folder and the environment of its process, and what it asks for besides."""

    kind: str
    cwd: str
    env: Mapping[str, str]
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def root(self) -> str:
        """Return the folder that it works in: the one root that its client has named, else that of its process."""
        return self.text("root") or self.cwd

    def text(self, name: str) -> str | None:
        """Return a text that it gives, None where it gives none; raises ``WireError`` for anything else."""
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise WireError(f"{name} is no text")
        return value


def front_of(message: Message) -> ClientFront:
    """Return the client of a hello; raises ``WireError``."""
    kind, cwd, env = message.get("kind"), message.get("cwd"), message.get("env")
    if not isinstance(kind, str) or not isinstance(cwd, str) or not isinstance(env, dict):
        raise WireError("this is not a hello message")
    fields = {name: value for name, value in message.items() if name not in ("kind", "cwd", "env", "secret", "version")}
    return ClientFront(kind=kind, cwd=cwd, env={str(name): str(value) for name, value in env.items()}, fields=fields)


class CommandOutput(Protocol):
    """Where the output of a command goes, in order: the messages that ``thin/wire.py`` lists."""

    async def send(self, message: Message) -> None:
        """Send a message to the client; waits while the client does not read."""
        ...


RunCommand = Callable[[ClientFront, "Pegboard", CommandOutput], Awaitable[int]]
"""Run a command of a client over the board of its configuration, and return its exit code.

The fields of the client are ``argv``, ``stdin`` (base64), ``columns``, ``file``, ``config``, ``token`` and ``agreed``.
It is cancelled when the client ends.
An error that it raises is shown to the client without its text, and logged.
"""
