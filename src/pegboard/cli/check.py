"""`pegboard check`: everything that is wrong with a configuration, each with its place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard import mcp_extra
from pegboard.accepted_grants import waiting_problems, without_opening
from pegboard.assembly import Pegboard, is_store_in_memory, keeps_something, processes_of, trial
from pegboard.board.catalog.loader import IN_PROCESS, PluginRequest, named_requests
from pegboard.board.discover import discover_loaded, unknown_at_start
from pegboard.cli import plain_in_files, plugin_problems
from pegboard.cli.common import (
    Options,
    accepted_now,
    listed_plugins,
    problem_json,
    run_guarded,
    wait_for_plugins,
    warnings_to,
)
from pegboard.cli.exit_codes import DONE, FAILED, NEEDS_PERSON
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.person import NotAgreedError
from pegboard.cli.pin_answers import accept_pins, print_accepted
from pegboard.cli.rendering import Printer, plural
from pegboard.config.acceptance import text_digest, texts_of
from pegboard.config.accepted_files import accepted_files
from pegboard.config.documents.document import display_path
from pegboard.config.inspection import inspect
from pegboard.config.location import find, users
from pegboard.config.problem_codes import PROBLEM_CODES
from pegboard.configuration_source import choose, keep, packages, registered_plugins
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import agents_named, did_you_mean
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import NotAcceptedError, PegboardError, UsageError
from pegboard.operators import known_problems
from pegboard.operators.known_problems import absent_commands
from pegboard.operators.pins import OperatorPins
from pegboard.problems import Problem
from pegboard.sources.lazy import local_sources
from pegboard.support.installed import install_hint
from pegboard.support.made_folders import without_made_folders

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.board.catalog.loader import CatalogLoader
    from pegboard.config.schema.configuration import Configuration
    from pegboard.operators.pins import PinView

SAID = 50
"""How much of what tools say to models is printed."""
EXAMPLE = "pegboard check --probe --strict"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What was found: the configuration, unless it cannot be used, its problems, what was accepted, what to know."""

    path: Path
    configuration: Configuration | None
    problems: Sequence[Problem]
    accepted: Sequence[PinView] = ()
    notes: Sequence[str] = ()
    seen: int = 0

    def without_seen(self, codes: Sequence[str]) -> CheckReport:
        """Return it with the warnings of these codes counted alone; an error cannot be overlooked.

        Raises:
            UsageError: one of the codes is that of an error, or of no problem that there can be.
        """
        for code in codes:
            if code not in PROBLEM_CODES:
                raise UsageError(f"No warning has the code '{code[:60]}'.", hint=did_you_mean(code, PROBLEM_CODES))
        for problem in self.problems:
            if problem.severity == "error" and problem.code in codes:
                message = f"'{problem.code}' is an error, which no `--seen` lets pass: {problem}"
                raise UsageError(message, hint="Correct it, and check again.")
        known = {problem.code for problem in self.problems}
        unmet = [f"no warning has the code '{c}'. {did_you_mean(c, known)}".rstrip() for c in codes if c not in known]
        left = [problem for problem in self.problems if problem.code not in codes]
        notes = (*self.notes, *unmet)
        return replace(self, problems=left, seen=len(self.problems) - len(left), notes=notes)

    def count(self, severity: str) -> int:
        """Return how many problems are that severe."""
        return sum(problem.severity == severity for problem in self.problems)


def check(
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Start every server and plugin, and report which fail.")
    ] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Accept all changed tool definitions, as `pegboard pins accept --all`."),
    ] = False,
    seen: Annotated[
        list[str] | None,
        typer.Option(
            "--seen", metavar="CODE", help="Warnings that you know of: counted, not printed, no failure of --strict."
        ),
    ] = None,
    digest: Annotated[
        bool,
        typer.Option("--digest", help="Print the digest of its text for `pegboard serve --accept`, and check nothing."),
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Report everything that is wrong with the configuration."""

    async def check_file(printer: Printer) -> int:
        try:
            found = await _examine_file(config, printer, probe=probe, accept=accept)
        except NotAcceptedError as waits:
            if await accepted_now(waits, printer):
                return await check_file(printer)
            return _report_waiting(waits, printer)
        found = found.without_seen(seen or ())
        ok = not found.count("error") and not (strict and found.problems)
        if as_json:
            _print_json(found, printer, ok=ok, accept=accept)
        else:
            _print(found, printer, ok=ok, accept=accept)
        return DONE if ok else FAILED

    async def print_digest(printer: Printer) -> int:
        path = config or find(Path.cwd()) or users()
        texts = texts_of(path) if path is not None else {}
        if str(path) not in texts:
            raise UsageError("No configuration was found.", hint="Name it: --config PATH.")
        found = text_digest(texts)
        if printer.as_json:
            printer.document({"digest": found})
        else:
            printer.say(found)
        return DONE

    return run_guarded(Options(config=config, as_json=as_json), print_digest if digest else check_file)


def _report_waiting(waits: NotAcceptedError, printer: Printer) -> int:
    """Say what a configuration that is not accepted would run; nothing of it is checked."""
    if printer.as_json:
        hint = waits.message.partition(". ")[2]
        problems = [
            Problem(severity="error", code="not_accepted", message=f"{line}: this waits.", hint=hint)
            for line in waits.would or ("only the tools that come with Pegboard",)
        ]
        printer.document({"ok": False, "problems": [problem_json(problem) for problem in problems]})
        return NEEDS_PERSON
    for line in waits.would:
        printer.say(f"waits: {line}")
    printer.note(f"pegboard: {waits}")
    return NEEDS_PERSON


async def _examine_file(config: Path | None, printer: Printer, *, probe: bool, accept: bool) -> CheckReport:
    """Return what the file shows, and where it can be used, what its plugins show."""
    path, _ = choose(config)
    configuration, problems = inspect(path, registered=registered_plugins(), additions=packages(), as_written=True)
    if configuration is not None and accepted_files(path) is not None:  # what waits is read, and not run
        configuration, _ = inspect(path, registered=registered_plugins(), additions=packages())
    if configuration is None:
        # No plugin is asked: what may be a tool of one is no problem yet.
        problems = [problem for problem in problems if problem.code != "unresolved_tool"]
    found = CheckReport(path=path, configuration=configuration, problems=problems)
    if configuration is None:
        return found
    printer.masker = Masker(configuration.secrets)
    keep(path)
    configuration, waiting = without_opening(configuration)
    if accept and is_store_in_memory(configuration):
        raise UsageError(
            "Nothing can be accepted with `store: memory:`, which keeps nothing.",
            hint="Write sqlite:///FILE to store the definitions of the tools.",
        )
    try:
        with warnings_to(printer), without_made_folders():
            found = await _examine_plugins(config, found, configuration, printer, probe=probe, accept=accept)
            unfounded = await plugin_problems.unfounded_conditions(configuration)
            absent = () if probe else (*_absent_commands(configuration), *_mcp(configuration))
            beyond, known = plugin_problems.out_of_reach(configuration)
            plain = (*plain_in_files.warnings_of(path), *plain_in_files.without_keyring(configuration))
            untaken = await _unsendable_hooks(configuration) if probe and configuration.notify else ()
            more = (*waiting_problems(waiting), *absent, *unfounded, *beyond, *untaken, *plain)
            unread = () if probe else plain_in_files.unread(configuration)
            return replace(
                found,
                problems=[*found.problems, *more],
                notes=(*found.notes, *_dialects(configuration), *known, *unread),
            )
    except (NotAgreedError, NotAcceptedError):
        raise
    except PegboardError as error:
        failed = Problem(
            severity="error", code=error.code, message=error.message, hint=error.hint, place=error.location
        )
        return replace(found, problems=[*problems, failed])


async def _unsendable_hooks(configuration: Configuration) -> tuple[Problem, ...]:
    """Return the hooks that do not take a message."""
    if mcp_extra.missing_requirements():
        return ()
    from pegboard.console.hooks.http_messenger import HttpMessenger, untaken

    messenger = HttpMessenger()
    try:
        return await untaken(configuration.notify, messenger)
    finally:
        await messenger.aclose()


def _dialects(configuration: Configuration) -> Iterator[str]:
    """Yield the one line on the dialects of agents that state none, where their toolkits decide it (T4)."""
    chosen: dict[tuple[str, str], list[str]] = {}
    for agent in configuration.agents.values():
        if agent.dialect_reason:
            chosen.setdefault((agent.dialect, agent.dialect_reason), []).append(agent.name)
    parts = [
        f"{agents_named(names)[0]} {'has' if len(names) == 1 else 'have'} dialect '{dialect}', since {reason}"
        for (dialect, reason), names in chosen.items()
    ]
    if parts:
        yield f"{'; '.join(parts)}. Set `dialect:` to change that."


def _mcp(configuration: Configuration) -> Iterator[Problem]:
    """Yield what servers lack, where there are any; with ``--probe`` each of them reports it (P6)."""
    server = next((spec for spec in configuration.specs.values() if isinstance(spec, ServerSpec)), None)
    if server is not None and (missing := mcp_extra.missing_requirements()):
        yield Problem(
            severity="warning",
            code="mcp_missing",
            message=f"servers need the extra mcp: {missing}.",
            hint=install_hint(extra="mcp"),
            place=server.place,
        )


# -- printing --------------------------------------------------------------------------------------


def _print_json(found: CheckReport, printer: Printer, *, ok: bool, accept: bool) -> None:
    document: dict[str, object] = {"ok": ok, "problems": [problem_json(problem) for problem in found.problems]}
    if found.seen:
        document["seen"] = found.seen
    if accept:
        document["accepted"] = [{"plugin": one.plugin, "name": one.name} for one in found.accepted]
    printer.document(document)


def _print(found: CheckReport, printer: Printer, *, ok: bool, accept: bool) -> None:
    if accept:
        print_accepted(found.accepted, printer)
    for problem in found.problems:
        printer.say(f"{problem}{f' (warning: {problem.code})' if problem.severity == 'warning' else ''}")
    for note in dict.fromkeys(found.notes):
        printer.say(f"note: {note}")
    counts = [plural(count, kind) for kind in ("error", "warning") if (count := found.count(kind))]
    counts += [f"{plural(found.seen, 'warning')} seen"] if found.seen else []
    counted = f" {' and '.join(counts)}." if counts else ""
    usable = None if found.count("error") else found.configuration
    summary = f" {_summary(usable)}" if usable is not None else ""
    printer.say(f"{display_path(found.path)}: {'ok' if ok else 'not ok'}.{counted}{summary}")


def _summary(configuration: Configuration) -> str:
    counts = (
        plural(len(configuration.agents), "agent"),
        plural(len(configuration.toolkits), "toolkit"),
        plural(len(configuration.specs), "plugin"),
    )
    return f"{', '.join(counts)}."


# -- asking plugins --------------------------------------------------------------------------------


async def _examine_plugins(
    config: Path | None,
    found: CheckReport,
    configuration: Configuration,
    printer: Printer,
    *,
    probe: bool,
    accept: bool,
) -> CheckReport:
    """Return what was found, with what only the plugins themselves and the store show."""
    stored = probe or accept or _needs_store(configuration)
    if not stored and not _has_local(configuration):
        return found
    async with _board(config, configuration, stored=stored) as board:
        printer.masker = board.services.masker
        wants = await _requests_to_make(board, probe=probe)
        await _load_plugins(board.services.loader, wants, printer, probe=probe)
        problems = await _problems(board, configuration, wants, probe=probe)
        found = replace(found, notes=tuple(plugin_problems.notes(board)))
        if not stored:
            return replace(found, problems=problems)
        taken = await accept_pins(board.services, configuration.tokens, printer, (), by=None) if accept else ()
        if taken:
            problems = await _problems(board, configuration, wants, probe=probe)
        services = board.services
        problems += [
            *known_problems.waiting_tools(services),
            *known_problems.undeclared_capabilities(services),
            *known_problems.claims(services),
            *known_problems.harmless_claims(services),
            *(await _budget_warnings(board)),
        ]
        notes = [*found.notes, *(await _said_to_models(board))]
        return replace(found, problems=problems, accepted=taken, notes=tuple(notes))


async def _said_to_models(board: Board) -> list[str]:
    """Return what tools of servers say to models that people should know; it blocks nothing (A4)."""
    pins, found, seen = OperatorPins(board.services), list[str](), dict[str, None]()
    for plugin in board.world.catalog.plugins.values():
        for one in await pins.tools_with_findings(plugin.name) if plugin.kind == "server" else ():
            if not one.by:  # a person has seen it
                found += [f"'{one.name}' {said.text} ({said.place}): {said.excerpt}" for said in one.findings]
                seen |= {plugin.name: None}
    accept = f"`pegboard pins accept {' '.join(seen)}` once you have read them: they are not reported again."
    more = [f"{len(found) - SAID:,} more things that tools say to models."] if len(found) > SAID else []
    return [*found[:SAID], *more, *([accept] if found else [])]


def _needs_store(configuration: Configuration) -> bool:
    """Return whether something is to be reported that only an open store shows; none is made for it.

    Its manifests have the names of tools that switches may mean, and it has the pins of servers.
    """
    if any(agent.budget for agent in configuration.agents.values()):
        return True
    switched = any(agent.switches for agent in configuration.agents.values())
    servers = any(isinstance(spec, ServerSpec) for spec in configuration.specs.values())
    return (servers or switched) and keeps_something(configuration)


def _has_local(configuration: Configuration) -> bool:
    return not all(isinstance(spec, ServerSpec) for spec in configuration.specs.values())


@asynccontextmanager
async def _board(config: Path | None, configuration: Configuration, *, stored: bool) -> AsyncGenerator[Board]:
    """Open the board of the configuration, or one in memory over the plugins of this process alone."""
    if stored:
        async with Pegboard.open(config) as opened:
            yield opened
        return
    masker = Masker(configuration.secrets)
    board = trial((processes_of(configuration, masker, os.environ), *local_sources(None)), masker)
    try:
        specs = {name: spec for name, spec in configuration.specs.items() if not isinstance(spec, ServerSpec)}
        await board.adopt(configuration.world(Catalog()), specs, masker=masker)
        yield board
    finally:
        await board.aclose()


async def _requests_to_make(board: Board, *, probe: bool) -> list[PluginRequest]:
    """Return plugins under all the overrides with which something names them.

    Without ``probe`` those that are cheap to ask, and the registered ones that an agent has from the start.
    """
    world = board.world
    wants = named_requests(world, world.catalog)
    named = {plugin for plugin, _ in wants}
    every = [*wants.values(), *(PluginRequest(plugin=name) for name in world.catalog.plugins if name not in named)]
    if probe:
        return every
    cheap, starting = (*IN_PROCESS, "missing"), await _loaded_from_start(board)
    kinds = {name: plugin.kind for name, plugin in world.catalog.plugins.items()}
    return [want for want in every if kinds[want.plugin] in cheap or want.key in starting]


async def _loaded_from_start(board: Board) -> set[tuple[str, str]]:
    """Return what agents have from the start, but for servers."""
    found: set[tuple[str, str]] = set()
    for agent in board.world.agents:
        session = await board.session(agent=agent, session_id="check")
        found |= {want.key for want in unknown_at_start((await session.snapshot()).permissions)}
    return {key for key in found if board.world.catalog.plugins[key[0]].kind != "server"}


async def _load_plugins(
    loader: CatalogLoader, wants: Sequence[PluginRequest], printer: Printer, *, probe: bool
) -> None:
    names = ", ".join(dict.fromkeys(want.plugin for want in wants))
    if probe:
        with printer.working(f"Starting {names or 'nothing'}", lasting=True) as say:
            asking = asyncio.ensure_future(loader.refresh(wants))
            while not (await asyncio.wait({asking}, timeout=1))[0]:
                say(listed_plugins(loader, [want for want in wants if loader.missing(want)]))
            await asking
        return
    with printer.working(f"Importing {names}") as say:
        await wait_for_plugins(loader, wants, printer, say)


async def _problems(
    board: Board, configuration: Configuration, wants: Sequence[PluginRequest], *, probe: bool
) -> list[Problem]:
    """Return the problems of the file, now that the tools of plugins are known, and those of plugins."""
    plugins = board.world.catalog.plugins.values()
    known = {plugin.name: [tool.name for tool in plugin.tools] for plugin in plugins if plugin.tools}
    misfits = [misfit for want in wants for misfit in await plugin_problems.misfits_of(board, want)]
    _, problems = inspect(
        configuration.path, registered=registered_plugins(), additions=packages(), tools=known, misfits=misfits
    )
    services, asked = board.services, {want.plugin for want in wants}
    unfit = {(misfit.plugin, misfit.key) for misfit in misfits}
    found = [*problems, *known_problems.shared_names(services, asked), *known_problems.faults(services, asked, unfit)]
    found += [*known_problems.not_tools(services, asked), *known_problems.excluded_tools(services)]
    for agent in services.world.agents.values():
        found += known_problems.many_tools(services, agent)
    return [*found, *(known_problems.requirements(services) if probe else ())]


async def _budget_warnings(board: Board) -> list[Problem]:
    """Return a warning for every agent whose start takes more than its budget, once that has been asked for."""
    found: list[Problem] = []
    for agent in board.world.agents.values():
        if agent.budget:
            session = await board.session(agent=agent.name, session_id="check")
            await discover_loaded(board.services, await session.snapshot())
            found += known_problems.over_budget(board.services, agent)
    return found


def _absent_commands(configuration: Configuration) -> Iterator[Problem]:
    return absent_commands(configuration.world(Catalog()), configuration.specs)
