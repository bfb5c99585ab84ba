"""Why a server cannot be reached, in words that may be shown (P6, X5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError

if TYPE_CHECKING:
    from pegboard.sources.mcp.wire.observed import ConnectionRecord

_LAST_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Hold why a connection ended or never came up; nothing in it is secret.

    ``reason`` is a clause ("it exited with code 3"), ``said`` what the server printed at last.
    """

    reason: str
    hint: str = ""
    said: str = ""

    @property
    def text(self) -> str:
        """Return reason and last words."""
        return f"{self.reason}; {self.said}" if self.said else self.reason

    def error(self, spec: ServerSpec, *, again_in: float | None = None) -> ToolUnavailableError:
        """Return the error that says so to whoever asked."""
        place = f"the server's command in `servers: {spec.name}`" if spec.url is None else f"`servers: {spec.name}`"
        hint = self.hint or f"See {place}."
        if again_in is not None:
            hint = f"{hint} It is tried again in {max(1, round(again_in))} s."
        where = f" at {_shown(spec.url)}" if spec.url else ""
        message = f"Server {spec.name!r}{where} is not available: {self.text}."
        return ToolUnavailableError(message, hint=hint, location=spec.place)


def start_fault(link: ConnectionRecord, reason: str, hint: str, mask: Callable[[str], str]) -> Fault:
    """Return why a connection ended, with the server's last words; without a reason, as the link saw it."""
    reason = reason or link.exit or link.reason or "it closed the connection"
    if link.exit and link.exit not in reason and not link.up:
        reason = f"{reason}; {link.exit}"
    lines = list(link.stderr)[-_LAST_LINES:]
    said: list[str] = []
    if lines:
        said.append("its last lines on standard error: " + " | ".join(lines))
    if link.strays and not link.heard:
        said.append(f"it printed what is not MCP: {link.strays[0]!r}")
    return Fault(reason=mask(reason), hint=mask(hint), said=mask("; ".join(said)))


def _shown(url: str) -> str:
    """Return a URL without userinfo, query and fragment, which may hold secrets."""
    bare = url.split("?", 1)[0].split("#", 1)[0]
    scheme, marks, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{marks}{host.rpartition('@')[2]}{slash}{path}" if marks else bare
