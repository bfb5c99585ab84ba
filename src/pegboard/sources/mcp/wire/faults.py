"""Why a server cannot be reached, in words that may be shown (P6, X5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError

if TYPE_CHECKING:
    from pegboard.sources.mcp.wire.open_connection import OpenConnection

_STDERR_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a connection ended or never came up; nothing in it is secret.

    ``reason`` is a clause ("it exited with code 3"), ``printed`` what the server printed at last.
    """

    reason: str
    hint: str = ""
    printed: str = ""

    @property
    def text(self) -> str:
        """Return the reason, and what was printed."""
        return f"{self.reason}; {self.printed}" if self.printed else self.reason

    def error(self, spec: ServerSpec, *, again_in: float | None = None) -> ToolUnavailableError:
        """Return the error for whoever needs the server."""
        place = f"the server's command in `{spec.section}`" if spec.url is None else f"`{spec.section}`"
        hint = self.hint or f"See {place}."
        if again_in is not None:
            hint = f"{hint} It is tried again in {max(1, round(again_in))} s."
        where = f" at {_without_secrets(spec.url)}" if spec.url else ""
        message = f"Server {spec.name!r}{where} is not available: {self.text}."
        return ToolUnavailableError(message, hint=hint, location=spec.place)


def fault_of(live: OpenConnection, reason: str, hint: str, mask: Callable[[str], str]) -> Fault:
    """Return why a connection ended, with what the server printed last; without a reason, as is known of it."""
    reason = reason or live.exit or live.reason or "it closed the connection"
    if live.exit and live.exit not in reason and not live.up:
        reason = f"{reason}; {live.exit}"
    lines = list(live.stderr)[-_STDERR_LINES:]
    printed: list[str] = []
    if lines:
        printed.append("its last lines on standard error: " + " | ".join(lines))
    if live.invalid_lines and not live.any_message:
        printed.append(f"it printed what is not MCP: {live.invalid_lines[0]!r}")
    return Fault(reason=mask(reason), hint=mask(hint), printed=mask("; ".join(printed)))


def _without_secrets(url: str) -> str:
    """Return a URL without userinfo, query and fragment, which may hold secrets."""
    bare = url.split("?", 1)[0].split("#", 1)[0]
    scheme, marks, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{marks}{host.rpartition('@')[2]}{slash}{path}" if marks else bare
