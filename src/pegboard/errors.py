"""The errors that Pegboard raises, one tree.

::

    PegboardError
    ├── ConfigError          a configuration that cannot be used
    │   └── NotAcceptedError     it was found in a folder, and this user has not accepted it (P11)
    ├── UnknownAgentError    an agent that does not exist, or that the principal may not use
    ├── StoreError           state that cannot be read or written
    │   ├── StoreBusyError       other writers kept it locked for longer than the deadline
    │   ├── StoreUnavailableError its server cannot be reached now, and is tried again
    │   └── StoreSchemaError     a database that is damaged, or newer than this version
    ├── ToolUnavailableError a plugin that is granted but cannot run now (P6)
    │   ├── OverrideError        one of its inline overrides does not fit (T1)
    │   └── NeedsLoginError      its server answers only to someone who has logged in (G11)
    ├── UpstreamError        a server that failed, hung or went away
    │   └── UpstreamTimeoutError it did not answer in time
    └── UsageError           a call of the library or the command that cannot mean anything

A refused load or call is not an exception: it is an ``Outcome`` or a ``CallAnswer`` with a status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pegboard.problems import Place, Problem

__all__ = [
    "ConfigError",
    "NeedsLoginError",
    "NotAcceptedError",
    "OverrideError",
    "PegboardError",
    "StoreBusyError",
    "StoreError",
    "StoreSchemaError",
    "StoreUnavailableError",
    "ToolUnavailableError",
    "UnknownAgentError",
    "UpstreamError",
    "UpstreamTimeoutError",
    "UsageError",
    "agent_required",
    "store_unavailable",
]


class PegboardError(Exception):
    """The root of all errors: what went wrong, where, and what would be right.

    ``code`` is stable and listed in ``docs/errors.md``; ``message`` is one sentence; ``hint`` is
    what to do; ``location`` is the place in a file where the cause stands, if it is in one.
    """

    code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str = "",
        location: Place | None = None,
    ) -> None:
        """Describe the error.

        Args:
            message: What went wrong, in one sentence.
            code: In place of the class's own.
            hint: What to do.
            location: The place in a file.
        """
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location
        if code is not None:
            self.code = code

    @property
    def text(self) -> str:
        """Return message and hint as sentences of their own."""
        if not self.hint:
            return self.message
        end = "" if self.message.endswith((".", "!", "?", ":")) else "."
        return f"{self.message}{end} {self.hint}"

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        return f"{where}{self.text}"


class ConfigError(PegboardError):
    """A configuration that cannot be used; ``problems`` has every one of its problems."""

    code = "config_invalid"

    def __init__(
        self,
        message: str,
        *,
        problems: Sequence[Problem] = (),
        code: str | None = None,
        hint: str = "",
        location: Place | None = None,
    ) -> None:
        """Describe the error.

        Args:
            message: What went wrong, in one sentence.
            problems: Every problem of the configuration, with its place.
            code: In place of ``config_invalid``.
            hint: What to do.
            location: The place in a file.
        """
        super().__init__(message, code=code, hint=hint, location=location)
        self.problems = tuple(problems)


class NotAcceptedError(ConfigError):
    """A configuration that was found in a folder, and that this user has not accepted: nothing of it runs (P11).

    ``would`` is what it would run, import, read and connect to, one line each; ``digest`` is that of the text which
    says so.
    """

    code = "not_accepted"

    def __init__(self, name: str, *, path: Path, digest: str, would: Sequence[str], can_be_named: bool = True) -> None:
        """Describe the error.

        Args:
            name: The configuration, as messages name it.
            path: Where it lies.
            digest: That of its text.
            would: What it would do.
            can_be_named: Whether the command takes it with `--config`.
        """
        how = (
            f"{name} was found in this folder and you have not accepted it. "
            f"`pegboard accept --config {name}` shows what it would run and asks you."
        )
        super().__init__(f"{how} `--config {name}` takes it without asking." if can_be_named else how)
        self.path = path
        self.digest = digest
        self.would = tuple(would)


class UnknownAgentError(PegboardError):
    """An agent that does not exist; one that a token does not list looks the same (G2)."""

    code = "unknown_agent"


class StoreError(PegboardError):
    """State that cannot be read or written."""

    code = "store_failed"


class StoreBusyError(StoreError):
    """A store that other writers kept locked past the deadline."""

    code = "store_busy"


class StoreUnavailableError(StoreError):
    """A store that cannot be reached now; it is tried again, and nothing has to be done here when it is back."""

    code = "store_unavailable"


class StoreSchemaError(StoreError):
    """A database that is damaged, or newer than this version understands."""

    code = "store_schema"


class ToolUnavailableError(PegboardError):
    """A plugin that is granted but cannot run now; the hint is what to do (P6)."""

    code = "tool_unavailable"


class OverrideError(ToolUnavailableError):
    """A plugin that cannot be constructed since one of its inline overrides does not fit (T1)."""

    def __init__(self, message: str, *, override: str, hint: str = "") -> None:
        """Describe the error.

        Args:
            message: What does not fit, in one sentence.
            override: The name of the override.
            hint: What would fit.
        """
        super().__init__(message, hint=hint)
        self.override = override


class NeedsLoginError(ToolUnavailableError):
    """A server that answers only to someone who has logged in, or who may do more (G11)."""

    code = "needs_login"

    def __init__(self, message: str, *, plugin: str, scopes: tuple[str, ...] = (), hint: str = "") -> None:
        """Describe the error.

        Args:
            message: Who wants a login, in one sentence.
            plugin: The name of the server.
            scopes: What the login has to allow, where the server said so.
            hint: How to log in.
        """
        super().__init__(message, hint=hint)
        self.plugin = plugin
        self.scopes = scopes


class UpstreamError(PegboardError):
    """A server that failed or went away in the middle of a request.

    ``answer`` is the error that it answered with, as it stood on the wire, where it gave one.
    """

    code = "upstream_failed"
    answer: Mapping[str, Any] | None = None


class UpstreamTimeoutError(UpstreamError):
    """A server or a plugin that did not answer in time."""

    code = "upstream_timeout"


class UsageError(PegboardError):
    """A call of the library or the command that cannot mean anything."""

    code = "usage"


def board_closed(opened_with: str = "Pegboard.open") -> UsageError:
    """Return the error that a board is asked for something after it was closed, or is closed meanwhile."""
    return UsageError("The board is closed.", hint=f"Open it again with `{opened_with}`.")


def agent_required(agents: Iterable[str]) -> UsageError:
    """Return the error that no agent is named where several are defined and none is the default."""
    names = ", ".join(agents)
    hint = f"Name one with `agent=` or --agent: {names}." if names else "Define one under 'agents:'."
    return UsageError("No agent is named and there is no default.", code="agent_required", hint=hint)


def store_unavailable(store: str, reason: str) -> StoreUnavailableError:
    """Return the error that a store cannot be reached now.

    Args:
        store: What it is called, without anything secret.
        reason: Why, without a full stop.
    """
    hint = "It is tried again automatically."
    return StoreUnavailableError(f"{store} cannot be reached now: {reason}.", hint=hint)
