"""What servers do, and starting them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from pegboard.core.model.specs import PluginSpec

ConnectionPhase = Literal["idle", "starting", "up", "down", "backing_off"]
"""What a connection does; one that backs off waits before its next start, after several that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """Something that a server offers and that is not listed, and why."""

    name: str
    reason: str


RefusedKind = Literal["write", "read", "port", "socket"]
"""What a confined process was refused: to change or make a path, to read one, a TCP port, a socket of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedAccess:
    """Something that a confined process says it was refused, and that its confinement does not grant (A7).

    ``what`` is a path or a port. ``line`` is what to write so that it is granted; where nothing is, ``why`` says so.
    ``by`` is who names it: the process, or an argument of a call that failed.
    """

    kind: RefusedKind
    what: str
    line: str = ""
    why: str = ""
    by: Literal["process", "call"] = "process"

    @property
    def text(self) -> str:
        """Return it in words: what was refused, and the line that would allow it."""
        doing = {"write": "write ", "read": "read ", "port": "use port ", "socket": "use the socket "}[self.kind]
        what = self.what if self.kind == "port" else repr(self.what)
        helps = f": {self.line} would allow it" if self.line else f". {self.why}"
        if self.by == "call":
            return f"it cannot {doing}{what}, which the call names{helps}".rstrip(".")
        return f"it says that it could not {doing}{what}{helps}".rstrip(".")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionState:
    """One connection of a server, for operators; times are in seconds since the epoch.

    ``scope`` says who uses it: nothing where it was only asked for its tools. ``since`` is when its state last
    changed, ``starts`` how often it came up, ``failures`` how often it did not, or ended by itself; ``error`` is why
    it last failed, at ``failed_at``, also where it is up again. ``one_at_a_time``: calls wait for one another, since
    the server asks and nothing says for which call. ``dropped`` are tools, ``excluded`` other items and lists.
    ``refused`` is what its processes, being confined, say they were refused: the first 20.
    """

    scope: str
    state: ConnectionPhase
    since: float | None = None
    started_at: float | None = None
    era: str = ""
    pid: int | None = None
    in_flight: int = 0
    one_at_a_time: bool = False
    starts: int = 0
    failures: int = 0
    error: str = ""
    failed_at: float | None = None
    dropped: tuple[Excluded, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    refused: tuple[RefusedAccess, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerActivity:
    """How much has happened to servers: where ``states`` is another one, a connection changed its state.

    Where ``lines`` is another one, a line was printed. Requests count in neither.
    """

    states: int
    lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedLine:
    """One line of the log of a server, without secrets; what cannot be printed is written as an escape.

    ``kind`` is where it comes from: standard error, a line on standard output that is no message (``invalid``), or
    what became of the server (``event``). ``at`` is in seconds since the epoch; ``pid`` is that of the process.
    """

    at: float
    kind: Literal["stderr", "invalid", "event"]
    text: str
    scope: str = ""
    pid: int | None = None


@runtime_checkable
class ConfiningSource(Protocol):
    """A source that starts what is confined, and knows what was refused to it (A7)."""

    def refused(self, spec: PluginSpec) -> Sequence[RefusedAccess]:
        """Return what the processes of a plugin say they were refused, also those of other processes of Pegboard."""
        ...


@runtime_checkable
class Restartable(Protocol):
    """A source whose plugins are servers: with connections and a log, and started again where an operator wants it."""

    def connections(self, spec: PluginSpec) -> Sequence[ConnectionState]:
        """Return the states of the connections of a server; none where it was never needed."""
        ...

    def printed(self, spec: PluginSpec) -> Sequence[PrintedLine]:
        """Return the newest lines that a server printed, the newest last, also those of processes that have ended."""
        ...

    def activity(self) -> ServerActivity:
        """Return counts that grow once :meth:`connections` or :meth:`printed` have something new; it costs nothing."""
        ...

    async def restart(self, spec: PluginSpec) -> None:
        """Stop the connections of a server, and start those again that were in use, without any pause.

        Calls under way fail as where a server dies. It returns before they are up again.

        Raises:
            ToolUnavailableError: It cannot be started as it is configured.
        """
        ...
