"""Where plugins come from, and what runs their tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import CallResult, JsonObject, Manifest, Tool
from pegboard.ports.calls import CallContext


class Source(Protocol):
    """A source of plugins of one kind, which runs their tools."""

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether this source brings a plugin in.

        Args:
            spec: The plugin as the configuration has it.

        Returns:
            Whether it does; of several sources the first has it.
        """
        ...

    def fingerprint(self, spec: PluginSpec) -> str:
        """Return a text that changes when a stored manifest no longer counts.

        Args:
            spec: The plugin.

        Returns:
            The text; "" where no manifest is to be stored.
        """
        ...

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Start or construct the plugin and return what it offers (P6).

        Args:
            spec: The plugin.
            overrides: What the configuration sets inline; empty for the plugin as it is.

        Returns:
            Its tools, the overrides that it takes, and its instructions.

        Raises:
            ToolUnavailableError: It cannot run now; the hint says what to do.
            UpstreamError: A server failed or went away meanwhile.
        """
        ...

    async def call(
        self,
        spec: PluginSpec,
        overrides: JsonObject,
        tool: Tool,
        arguments: JsonObject,
        context: CallContext,
    ) -> CallResult:
        """Run one tool.

        Args:
            spec: The plugin.
            overrides: Those of the variant that is called.
            tool: The tool, by its own name.
            arguments: Valid already under its schema.
            context: On whose behalf, and the ways back.

        Returns:
            The result; a failure of the tool itself is one with ``is_error``.

        Raises:
            ToolUnavailableError: Nothing could run.
            UpstreamError: Nothing came back.
        """
        ...

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back when the tools of a plugin have changed by themselves.

        Args:
            callback: Takes the plugin's name.
        """
        ...

    async def aclose(self) -> None:
        """Stop whatever was started."""
        ...


ConnectionPhase = Literal["idle", "starting", "up", "down", "backing_off"]
"""What a connection does; one that backs off waits before its next start, after several that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """Something that a server offers and that is not listed, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionState:
    """One connection of a server, for operators; times are in seconds since the epoch.

    ``scope`` says who uses it: nothing where it was only asked for its tools. ``since`` is when its state last
    changed, ``starts`` how often it came up, ``error`` why it last failed, at ``failed_at``, also where it is up again.
    ``one_at_a_time``: calls wait for one another, since the server asks and nothing says for which call.
    ``dropped`` are tools, ``excluded`` other items and lists.
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
    error: str = ""
    failed_at: float | None = None
    dropped: tuple[Excluded, ...] = ()
    excluded: tuple[Excluded, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
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
class Restartable(Protocol):
    """A source whose plugins are servers: with connections and a log, and started anew where an operator wants it."""

    def connections(self, spec: PluginSpec) -> Sequence[ConnectionState]:
        """Return the connections of a server.

        Args:
            spec: The server.

        Returns:
            Their states; none where it was never needed.
        """
        ...

    def printed(self, spec: PluginSpec) -> Sequence[PrintedLine]:
        """Return the newest lines that a server printed, also those of processes that have ended.

        Args:
            spec: The server.

        Returns:
            The lines, the newest last; a bounded number.
        """
        ...

    def activity(self) -> Activity:
        """Return what tells whether :meth:`connections` and :meth:`printed` return something new, at next to no cost.

        Returns:
            Counts over all servers.
        """
        ...

    async def restart(self, spec: PluginSpec) -> None:
        """Stop the connections of a server, and start those anew that were in use, without any pause.

        Calls under way fail as where a server dies. It returns before they are up again.

        Args:
            spec: The server.

        Raises:
            ToolUnavailableError: It cannot be started as it is configured.
        """
        ...
