"""Real starts of servers before Pegboard takes their place in a client: as the client starts them, and through it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard.cli.plugin_problems import own_paths
from pegboard.cli.rendering import SAID_EVERY, Printer, plural
from pegboard.config.compile import INSTALLED_WITHIN
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY, Frozen
from pegboard.errors import NeedsLoginError, PegboardError
from pegboard.stores.sql import MemoryStore

if TYPE_CHECKING:
    from pegboard.config.schema.configuration import Configuration
    from pegboard.core.access.named_paths import OwnPaths
    from pegboard.sources.mcp.transports.process_watch import ProcessWatch

AT_ONCE: Final = 4
PATIENCE: Final = 180.0
"""For how many seconds a server may start, and then list its tools, unless it says that its start takes longer."""
STOP: Final = 10.0
"""For how many seconds the end of a server is awaited."""
_NAMED: Final = 5
"""How many tools are named that only one of two starts has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPair:
    """The two ways in which one server is started; a text says why it is not started at all.

    Without a client it is started through Pegboard alone.
    """

    name: str
    as_client: ServerSpec | str | None
    through: ServerSpec | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What became of the starts of one server: ``fault`` says why it stays with its client, nothing where it moves."""

    name: str
    tools: int = 0
    wants_login: bool = False
    fault: str = ""

    @property
    def result(self) -> str:
        """Return in a few words what became of it."""
        if self.fault:
            return "not moved"
        return "login required" if self.wants_login else plural(self.tools, "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class _StartAnswer:
    """What one start came to."""

    tools: frozenset[str] = frozenset()
    wants_login: bool = False
    fault: str = ""


async def compare_starts(
    pairs: Sequence[StartPair], configuration: Configuration, folder: Path | None, printer: Printer, title: str
) -> tuple[Start, ...]:
    """Start each server twice, ask it for its tools and stop it; return what became of each.

    Four are started at a time. Whatever happens, none is left running, also where this process is killed.

    Args:
        pairs: how each is started.
        configuration: the configuration that they are to be in.
        folder: where those are started that name no folder; None is the current one.
        printer: where it is said how far it is.
        title: the name of the client, nothing where there is none.
    """
    from pegboard.sources.mcp.transports.process_watch import ProcessWatch

    if not pairs:
        return ()
    free, missing = asyncio.Semaphore(AT_ONCE), [pair.name for pair in pairs]
    ways = f" as {title} does and through Pegboard" if title else ""
    printer.note(f"pegboard: starting {plural(len(pairs), 'server')}{ways}: {', '.join(missing)}")
    with ProcessWatch() as watch:
        starter = _Starter(Masker(configuration.secrets), own_paths(configuration), folder, watch)

        async def start_one(pair: StartPair) -> Start:
            async with free:
                found = await starter.compare_start(pair, title)
            missing.remove(pair.name)
            done = f"{len(pairs) - len(missing)} of {plural(len(pairs), 'server')}"
            printer.note(f"pegboard: {done}: {pair.name}: {found.result}")
            return found

        async with asyncio.TaskGroup() as group:
            starts = [group.create_task(start_one(pair)) for pair in pairs]
            while pending := [start for start in starts if not start.done()]:
                finished, _ = await asyncio.wait(pending, timeout=SAID_EVERY)
                if not finished:
                    printer.note(f"pegboard: still waiting for {', '.join(missing)}")
    return tuple(start.result() for start in starts)


def as_client_starts(spec: ServerSpec) -> ServerSpec:
    """Return a server with the whole environment of this process, which many clients give to what they start."""
    return replace(spec, env=Frozen({**os.environ, **spec.env})) if spec.command else spec


@dataclass(frozen=True, slots=True)
class _Starter:
    masker: Masker
    own: OwnPaths
    folder: Path | None
    watch: ProcessWatch = field(repr=False)

    async def compare_start(self, pair: StartPair, title: str) -> Start:
        """Start one server in both ways, one after the other."""
        if pair.as_client is None:
            found = await self._start_and_list(pair.through)
            return Start(name=pair.name, tools=len(found.tools), wants_login=found.wants_login, fault=found.fault)
        by_client = await self._start_and_list(pair.as_client)
        if by_client.fault:
            fault = f"it does not start when {title} starts it: {by_client.fault}"
            return Start(name=pair.name, fault=fault)
        behind = await self._start_and_list(pair.through)
        fault = _difference(by_client, behind, title)
        return Start(name=pair.name, tools=len(behind.tools), wants_login=behind.wants_login and not fault, fault=fault)

    async def _start_and_list(self, spec: ServerSpec | str) -> _StartAnswer:
        """Start a server, ask it for its tools, and stop it."""
        from pegboard.sources.mcp import McpSource

        if isinstance(spec, str):
            return _StartAnswer(fault=self.masker.text(spec))
        if spec.unavailable:
            return _StartAnswer(fault=self.masker.text(spec.unavailable))
        if self.folder is not None and not spec.cwd and spec.command:
            spec = replace(spec, cwd=str(self.folder))
        limit = spec.start if spec.start > INSTALLED_WITHIN else PATIENCE
        source = McpSource(
            mask=self.masker.text,
            learn=self.masker.learn,
            start_timeout=limit,
            asks=False,
            resolves=True,
            store=MemoryStore(),  # with one it is known what wants a login
        )
        source.keep_from(lambda: self.own)
        processes: list[int] = []

        def note_process(pid: int) -> None:
            processes.append(pid)
            self.watch.add(pid)

        source.on_started(note_process)
        began = time.monotonic()
        try:
            manifest = await source.describe(replace(spec, timeout=min(spec.timeout, PATIENCE)), EMPTY)
        except NeedsLoginError:
            return _StartAnswer(wants_login=True)
        except PegboardError as error:
            late = bool(spec.command) and time.monotonic() - began >= limit
            return _StartAnswer(fault=self._fault(error, late=late))
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP):
                    await source.aclose()
                for pid in processes:
                    self.watch.remove(pid)
        return _StartAnswer(tools=frozenset(tool.name for tool in manifest.tools))

    def _fault(self, error: PegboardError, *, late: bool) -> str:
        more = " It has no terminal: if it asks a person for something, put that into its settings." if late else ""
        reason = error.text.partition(" is not available: ")[2] or error.text
        return f"{self.masker.text(reason)}{more}"


def _difference(by_client: _StartAnswer, behind: _StartAnswer, title: str) -> str:
    """Return why a server that comes up with its client is not moved, or nothing."""
    if behind.fault:
        refused = "is confined, and" in behind.fault  # then it says what would allow what it needs
        cause = "" if refused else " If it needs a variable of your environment, name it under its `env`."
        return f"it starts when {title} starts it, but not through Pegboard: {behind.fault}{cause}"
    if by_client.wants_login != behind.wants_login:
        who = title if by_client.wants_login else "Pegboard"
        return f"it needs a login that only {who} has"
    lost, new = sorted(by_client.tools - behind.tools), sorted(behind.tools - by_client.tools)
    parts = [f"without {_list_tool_names(lost)}"] if lost else []
    parts += [f"with {_list_tool_names(new)}"] if new else []
    return f"it has other tools through Pegboard than {title} sees: {' and '.join(parts)}" if parts else ""


def _list_tool_names(tools: Sequence[str]) -> str:
    more = len(tools) - _NAMED
    return ", ".join(tools[:_NAMED]) + (f" and {more} more" if more > 0 else "")
