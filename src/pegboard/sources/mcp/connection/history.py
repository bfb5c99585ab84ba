"""What became of the connection to a server: why it is down, when it is tried again, what its processes printed."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pegboard import ports
from pegboard.core.model.naming import visible
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import NeedsLoginError, ToolUnavailableError
from pegboard.support.backoff import Backoff
from pegboard.support.tasks import detached_context

if TYPE_CHECKING:
    from pegboard.ports import PrintedLine, RefusedAccess
    from pegboard.sources.mcp.wire.open_connection import OpenConnection

log = logging.getLogger("pegboard.sources.mcp")

MOST_LINES: Final = 200
MOST_BYTES: Final = 64 * 1024
MOST_REFUSED: Final = 20
"""Of what the processes of a connection were refused."""
_SAID_REFUSALS: Final = 3
"""How many of them are said where a server cannot be started."""
_LONGEST: Final = 1000
"""Characters of a line that are kept."""
_STDERR_LINES: Final = 5
"""Lines on standard error that an error shows."""
_PATIENCE: Final = 3
"""Failures in a row before starts are spaced out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a connection ended or never came up; nothing in it is secret.

    ``reason`` is a clause ("it exited with code 3"), ``printed`` what the server printed at last. ``scopes`` is what a
    login has to allow, where that is why; empty is what the issuer gives, None where no login is missing.
    ``status`` is that of HTTP by which its first requests were refused, 0 where they were not; ``timed_out``: it took
    longer than a start may. ``refused`` is what its process was refused that is confined.
    """

    reason: str
    hint: str = ""
    printed: str = ""
    scopes: tuple[str, ...] | None = None
    status: int = 0
    timed_out: bool = False
    refused: tuple[RefusedAccess, ...] = ()

    @property
    def text(self) -> str:
        """Return the reason, and what was printed."""
        return f"{self.reason}; {self.printed}" if self.printed else self.reason

    def error(self, spec: ServerSpec, *, again_in: float | None = None) -> ToolUnavailableError:
        """Return the error for anyone who needs the server."""
        place = (
            f"the server's command in `{spec.section}`"
            if spec.noun == "server" and spec.url is None
            else f"`{spec.section}`"
        )
        lines = _refused_lines(spec, self.refused[:_SAID_REFUSALS])
        hint = " ".join(filter(None, (self.hint, lines))) or f"See {place}."
        if again_in is not None:
            hint = f"{hint} It is tried again in {max(1, round(again_in))} s."
        where = f" at {_without_secrets(spec.url)}" if spec.url else ""
        message = f"{spec.label}{where} is not available: {self.text}."
        if self.scopes is not None:
            return NeedsLoginError(message, plugin=spec.name, scopes=self.scopes, hint=self.hint)
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
        printed.append(f"it printed text that is not MCP: {live.invalid_lines[0]!r}")
    live.read_refusals(mask(reason))
    return Fault(reason=mask(reason), hint=mask(hint), printed=mask("; ".join(printed)), refused=tuple(live.refused))


def _refused_lines(spec: ServerSpec, refused: Sequence[RefusedAccess]) -> str:
    if not refused:
        return ""
    from pegboard.sources.confinement import refusal_lines  # no start needs it

    return " ".join(refusal_lines(spec.label, refused))


def _without_secrets(url: str) -> str:
    """Return a URL without userinfo, query and fragment, which may hold secrets."""
    bare = url.split("?", 1)[0].split("#", 1)[0]
    scheme, marks, rest = bare.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{marks}{host.rpartition('@')[2]}{slash}{path}" if marks else bare


class ConnectionHistory:
    """What is known of a connection over all of its starts; times are in seconds since the epoch.

    ``fault`` is why it is not up, None once it has answered again; ``error`` is the last failure, at ``failed_at``,
    also where it is up again. ``since`` is when its state last changed, ``started_at`` when it last came up.
    ``changes`` counts all that operators see change, ``starts`` how often it came up, ``failures`` how often it did
    not, or ended by itself. ``refused`` is what its processes were refused, by kind and what it is.
    """

    def __init__(self, spec: ServerSpec, mask: Callable[[str], str], monotonic: Callable[[], float]) -> None:
        self._spec = spec
        self._logged = ""
        self.fault: Fault | None = None
        self.since: float | None = None
        self.started_at: float | None = None
        self.changes = 0
        self.starts = 0
        self.failures = 0
        self.error = ""
        self.failed_at: float | None = None
        self.refused: dict[tuple[str, str], RefusedAccess] = {}
        self.printed = PrintedLines(mask)
        self._reported: object = None
        self._monotonic = monotonic
        self._failures = 0
        self._backoff = Backoff(first=1.0, longest=30.0)
        self._retry_at = 0.0

    @property
    def failing(self) -> bool:
        """Return whether it is not up for another reason than that a login is missing, for which nothing is broken."""
        return self.fault is not None and self.fault.scopes is None

    def changed(self) -> None:
        """Note that the state is another one from now on."""
        self.since = time.time()
        self.changes += 1

    def note_started(self, pid: int | None) -> None:
        """Note that it is up."""
        self.starts += 1
        self.changed()
        self.started_at = self.since
        self.printed.add("event", "it is up", pid)
        self.fault = None

    def note_failure(self, fault: Fault, start: OpenConnection | None) -> None:
        """Note why it ended or did not come up, and report it once for each start that no one stopped."""
        self.fault = fault
        if start is not None and not start.stopped:
            self._report(fault, start, start.pid)

    def not_begun(self, fault: Fault) -> None:
        """Note why it could not even begin to start: a value that it needs cannot be read."""
        if self.fault is None or self.fault.text != fault.text:
            self._report(fault, object(), None)
        self.fault = fault

    def note_unreached(self, error: str) -> None:
        """Note that a request did not reach a server that has no connection to lose: each request makes its own."""
        fault = Fault(reason=error)
        if self.fault is None:
            self.changed()
            self._report(fault, object(), None)
        self.fault = fault

    def _report(self, fault: Fault, start: object, pid: int | None) -> None:
        self.error = fault.text
        self.changes += 1
        if fault.scopes is None and fault.reason != self._logged:
            message = fault.error(self._spec).message
            detached_context().run(log.warning, "%s", message)  # it is about more than the call that has met it
            self._logged = fault.reason
        if start is not self._reported:
            self._reported, self.failed_at = start, time.time()
            self.failures += 1
            self.printed.add("event", fault.reason, pid)

    def note_refused(self, found: Iterable[RefusedAccess], pid: int | None) -> None:
        """Note what a confined process was refused, once each, as far as there is room."""
        for one in found:
            if len(self.refused) >= MOST_REFUSED:
                return
            if (one.kind, one.what) not in self.refused:
                self.refused[one.kind, one.what] = one
                self.changes += 1
                self.printed.add("event", one.text, pid)

    def count_failure(self) -> None:
        """Count a failure: from the third on the next start has to wait."""
        self._failures += 1
        if self._failures >= _PATIENCE:
            self._retry_at = self._monotonic() + self._backoff.next()

    @property
    def pause(self) -> float:
        """Return how long the next start has to wait, in seconds."""
        return max(self._retry_at - self._monotonic(), 0.0)

    def note_answered(self) -> None:
        """Note that a request was answered: the next failure is the first again."""
        self._logged = ""
        if self._failures or self.fault is not None:
            self.forget_failures()
            self.changed()

    def forget_failures(self) -> None:
        """Let the next failure be the first again."""
        self._failures, self._retry_at, self.fault = 0, 0.0, None
        self._backoff.reset()


class PrintedLines:
    """The newest lines of a server, whichever of its processes printed them, within 200 lines and 64 KiB.

    ``mask`` takes the secrets out of a line while it is whole: half of one would no longer be found.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self.mask = mask
        self._lines: deque[_HistoryLine] = deque()
        self._size = 0
        self.count = 0
        """How many lines there were, those not kept included."""

    def add(self, kind: Literal["stderr", "invalid", "event"], text: str, pid: int | None) -> str:
        """Keep a line, and return it without secrets."""
        text = self.mask(text.rstrip())
        line = _HistoryLine(time.time(), kind, visible(text, limit=_LONGEST), pid)
        self._lines.append(line)
        self.count += 1
        self._size += line.size
        while len(self._lines) > MOST_LINES or self._size > MOST_BYTES:
            self._size -= self._lines.popleft().size
        return text

    def of_scope(self, scope: str) -> tuple[PrintedLine, ...]:
        """Return the lines, the newest last."""
        return tuple(
            ports.PrintedLine(at=line.at, kind=line.kind, text=line.text, scope=scope, pid=line.pid)
            for line in self._lines
        )


class _HistoryLine(NamedTuple):
    at: float
    kind: Literal["stderr", "invalid", "event"]
    text: str
    pid: int | None

    @property
    def size(self) -> int:
        return len(self.text.encode(errors="surrogatepass"))
