"""Real starts of the servers of a configuration before a client is given it: which come up, and why others do not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard.cli.plugin_problems import own_paths
from pegboard.cli.rendering import SAID_EVERY, Printer, plural
from pegboard.config.schema.fetched import is_fetched
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import NeedsLoginError, PegboardError
from pegboard.stores.sql import MemoryStore

if TYPE_CHECKING:
    from pegboard.config.schema.configuration import Configuration
    from pegboard.core.access.named_paths import OwnPaths

AT_ONCE: Final = 4
PATIENCE: Final = 30.0
"""For how many seconds a server may start, and then list its tools: as long as under `pegboard serve`."""
INSTALLING: Final = 180.0
"""The same for one that a package runner may have to install first."""
STOP: Final = 10.0
"""For how many seconds the end of a server is awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What became of the start of one server: ``fault`` says why it did not come up, nothing where it did."""

    name: str
    tools: int = 0
    wants_login: bool = False
    fault: str = ""

    @property
    def result(self) -> str:
        """Return in a few words what became of it."""
        if self.fault:
            return "did not come up"
        return "login required" if self.wants_login else plural(self.tools, "tool")


async def start_servers(
    configuration: Configuration, folder: Path | None, printer: Printer, *, leave_out: Collection[str] = ()
) -> tuple[Start, ...]:
    """Start servers, four at a time, ask each for its tools and stop it; return what became of each.

    What is switched off is not started. Whatever happens, none is left running.

    Args:
        folder: where those are started that name no folder; None is the current one.
    """
    specs = [
        spec if folder is None or spec.cwd or not spec.command else replace(spec, cwd=str(folder))
        for spec in configuration.specs.values()
        if isinstance(spec, ServerSpec) and spec.name not in leave_out
    ]
    if not specs:
        return ()
    free, masker, own = asyncio.Semaphore(AT_ONCE), Masker(configuration.secrets), own_paths(configuration)
    missing = [spec.name for spec in specs]

    async def started(spec: ServerSpec) -> Start:
        async with free:
            found = await _start(spec, masker, own)
        missing.remove(spec.name)
        printer.note(f"pegboard: {len(specs) - len(missing)} of {len(specs)} servers: {spec.name}: {found.result}")
        return found

    slow = f"; a package that is installed first may take {INSTALLING:g} s" if any(map(_is_fetched, specs)) else ""
    printer.note(
        f"pegboard: starting {plural(len(specs), 'server')} to see whether each comes up: {', '.join(missing)}{slow}"
    )
    async with asyncio.TaskGroup() as group:
        starts = [group.create_task(started(spec)) for spec in specs]
        while pending := [start for start in starts if not start.done()]:
            finished, _ = await asyncio.wait(pending, timeout=SAID_EVERY)
            if not finished:
                printer.note(f"pegboard: still waiting for {', '.join(missing)}")
    return tuple(start.result() for start in starts)


async def _start(spec: ServerSpec, masker: Masker, own: OwnPaths) -> Start:
    """Start one server, ask it for its tools, and stop it."""
    from pegboard.sources.mcp import McpSource

    if spec.unavailable:
        return Start(name=spec.name, fault=masker.text(spec.unavailable))
    limit = INSTALLING if _is_fetched(spec) else PATIENCE
    source = McpSource(
        mask=masker.text,
        learn=masker.learn,
        start_timeout=limit,
        asks=False,
        store=MemoryStore(),  # with one it is known what wants a login
    )
    source.keep_from(lambda: own)
    began = time.monotonic()
    try:
        manifest = await source.describe(replace(spec, timeout=min(spec.timeout, limit)), {})
    except NeedsLoginError:
        return Start(name=spec.name, wants_login=True)
    except PegboardError as error:
        late = spec.command is not None and time.monotonic() - began >= limit
        more = " It gets no terminal: if it asks a person for something, give it that by its settings." if late else ""
        reason = error.text.partition(" is not available: ")[2] or error.text
        return Start(name=spec.name, fault=f"{masker.text(reason)}{more}")
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP):
                await source.aclose()
    return Start(name=spec.name, tools=len(manifest.tools))


def _is_fetched(spec: ServerSpec) -> bool:
    return is_fetched({"command": spec.command, "args": [*spec.args]})


def faults_of(starts: Sequence[Start]) -> str:
    """Return a line for each server that did not come up, with the reason and what to do; nothing where all did."""
    return "\n".join(f"  {start.name}: {start.fault}" for start in starts if start.fault)
