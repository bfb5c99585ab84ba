"""`pegboard check`: everything that is wrong with a configuration, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.common import DONE, REFUSED, ConfigOption, JsonOption, Options, guarded, problem_json, warnings_to
from pegboard.cli.rendering import Printer, plural
from pegboard.core.model.tools import Tool
from pegboard.errors import PegboardError, UsageError
from pegboard.problems import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.assembly import Pegboard
    from pegboard.board.catalog.loader import PluginRequest
    from pegboard.config.schema.configuration import Configuration

EXAMPLE = "pegboard check --probe --strict"


def check(
    strict: Annotated[bool, typer.Option("--strict", help="Take warnings for errors.")] = False,
    probe: Annotated[bool, typer.Option("--probe", help="Start every server and plugin, and say which fail.")] = False,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Let tools count as read-only of which a server says so only since later."),
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Say everything that is wrong with the configuration.

    Each problem comes with its place and with what would be right.
    """

    async def checked(printer: Printer) -> int:
        from pegboard.assembly import choose, in_memory, registered
        from pegboard.config.documents.document import shown
        from pegboard.config.loading import inspect
        from pegboard.core.model.masking import Masker

        path, _ = choose(config)
        configuration, problems = inspect(path, registered=registered())
        accepted: Sequence[Tool] = ()
        if configuration is not None:
            printer.masker = Masker(configuration.secrets)
            if accept and in_memory(configuration):
                raise UsageError(
                    "Nothing can be accepted with `store: memory:`, which keeps nothing.",
                    hint="Write sqlite:///FILE to keep what servers said.",
                )
            if probe or accept or _needs_board(configuration):
                problems, accepted = await _opened(config, problems, printer, probe=probe, accept=accept)
        errors = sum(problem.severity == "error" for problem in problems)
        warnings = len(problems) - errors
        ok = not errors and not (strict and warnings)
        if printer.as_json:
            told = {"accepted": [{"plugin": tool.plugin, "name": tool.wire} for tool in accepted]} if accept else {}
            printer.document({"ok": ok, "problems": [problem_json(problem) for problem in problems], **told})
            return DONE if ok else REFUSED
        if accept:
            _say_accepted(accepted, printer)
        for problem in problems:
            printer.say(f"{problem}{' (warning)' if problem.severity == 'warning' else ''}")
        counted = [plural(errors, "error")] * bool(errors) + [plural(warnings, "warning")] * bool(warnings)
        found = f" {' and '.join(counted)}." if counted else ""
        what = f" {_summary(configuration)}" if configuration is not None and not errors else ""
        printer.say(f"{shown(path)}: {'ok' if ok else 'not ok'}.{found}{what}")
        return DONE if ok else REFUSED

    return guarded(Options(config=config, as_json=as_json), checked)


def _summary(configuration: Configuration) -> str:
    counts = (
        plural(len(configuration.agents), "agent"),
        plural(len(configuration.toolkits), "toolkit"),
        plural(len(configuration.specs), "plugin"),
    )
    return f"{', '.join(counts)}."


def _needs_board(configuration: Configuration) -> bool:
    """Return whether something is to be said that the file alone does not tell; a store is not made for it."""
    from pegboard.assembly import keeps_something
    from pegboard.core.model.specs import ServerSpec

    if any(agent.budget for agent in configuration.agents.values()):
        return True
    trusted = any(isinstance(spec, ServerSpec) and spec.trust_annotations for spec in configuration.specs.values())
    return trusted and keeps_something(configuration)


def _say_accepted(accepted: Sequence[Tool], printer: Printer) -> None:
    for tool in accepted:
        printer.say(f"accepted: '{tool.wire}' of server '{tool.plugin}' counts as read-only from the next call on.")
    if not accepted:
        printer.say("There is nothing to accept.")


async def _opened(
    config: Path | None, before: list[Problem], printer: Printer, *, probe: bool, accept: bool
) -> tuple[list[Problem], Sequence[Tool]]:
    """Return the problems with those that only an open board can see, and what was accepted."""
    from pegboard.assembly import Pegboard, registered
    from pegboard.config.loading import inspect

    try:
        with warnings_to(printer):
            async with Pegboard.open(config) as board:
                printer.masker = board.services.masker
                found = before
                if probe:
                    await _start(board, printer)
                    plugins = board.world.catalog.plugins.values()
                    known = {plugin.name: [tool.name for tool in plugin.tools] for plugin in plugins if plugin.tools}
                    _, problems = inspect(board.configuration.path, registered=registered(), tools=known)
                    found = [*problems, *_faults(board), *_clashes(board), *_requirements(board)]
                accepted = await board.permissions.accept_claims() if accept else ()
                return [*found, *_claims(board), *(await _over_budget(board))], accepted
    except PegboardError as error:
        said = Problem(severity="error", code=error.code, message=error.message, hint=error.hint, place=error.location)
        return [*before, said], ()


async def _start(board: Pegboard, printer: Printer) -> None:
    wants = _wants(board)
    names = list(dict.fromkeys(want.plugin for want in wants))
    with printer.working(f"Starting {', '.join(names) or 'nothing'}", lasting=True):
        await board.services.loader.ask_anew(wants)


def _wants(board: Pegboard) -> list[PluginRequest]:
    """Return every plugin under all the overrides with which something names it."""
    from pegboard.board.catalog.loader import PluginRequest
    from pegboard.core.model.selectors import entries

    world = board.world
    groups = [toolkit.members for toolkit in world.toolkits.values()]
    groups += [group for agent in world.agents.values() for group in (agent.static, agent.essential)]
    wants = {
        want.key: want
        for group in groups
        for entry in entries(group, world.catalog)
        for want in (PluginRequest(plugin=entry.plugin, overrides=entry.overrides),)
    }
    named = {plugin for plugin, _ in wants}
    return [*wants.values(), *(PluginRequest(plugin=name) for name in world.catalog.plugins if name not in named)]


def _faults(board: Pegboard) -> Iterator[Problem]:
    """Yield what cannot run now (P6): a warning, since everything else works."""
    for plugin in board.world.catalog.plugins.values():
        if getattr(board.configuration.specs[plugin.name], "unavailable", ""):
            continue  # the file says so itself
        reasons = [variant.unavailable for variant in plugin.variants.values()]
        reasons += [f"tool '{tool.name}': {tool.unavailable}" for tool in plugin.tools if tool.unavailable]
        for reason in dict.fromkeys(filter(None, reasons)):
            message = reason if plugin.place is not None else f"plugin '{plugin.name}': {reason}"
            yield Problem(severity="warning", code="unavailable", message=message, place=plugin.place)


def _claims(board: Pegboard) -> Iterator[Problem]:
    """Yield what a trusted server says of its tools only since it was first seen (G6)."""
    for plugin in board.world.catalog.plugins.values():
        for tool in board.services.trust.pending(plugin):
            yield Problem(
                severity="warning",
                code="read_only_later",
                message=f"'{tool.wire}' says now that it only reads, which server '{plugin.name}' did not say of it"
                " when it was first seen; it does not count as read-only.",
                hint="Look at what it does, then run `pegboard check --accept`.",
                place=plugin.place,
            )


def _clashes(board: Pegboard) -> Iterator[Problem]:
    catalog = board.world.catalog
    for clash in catalog.clashes:
        plugin = catalog.plugins.get(clash.second.partition("/")[0])
        yield Problem(
            severity="error",
            code="name_clash",
            message=f"'{clash.first}' and '{clash.second}' are both called '{clash.wire}'; the later one is left out.",
            hint="Give one of the two plugins another prefix.",
            place=plugin.place if plugin else None,
        )


def _requirements(board: Pegboard) -> Iterator[Problem]:
    """Yield what tools require and nothing can meet (T8), but for what the file itself names wrongly."""
    from pegboard.core.model.specs import PythonSpec
    from pegboard.core.state.requirements import unresolved_requirements

    for tool, name, why in unresolved_requirements(board.world):
        spec = board.configuration.specs.get(tool.plugin)
        written = spec.requires.get(tool.name, ()) if isinstance(spec, PythonSpec) else ()
        several = why.startswith("it may be")
        if name not in written or several:
            yield Problem(
                severity="error",
                code="unknown_tool",
                message=f"'{tool.wire}' requires '{name}', and {why}.",
                hint="Write plugin/tool." if several else "Correct the name; until then the tool cannot be loaded.",
                place=board.world.catalog.plugins[tool.plugin].place,
            )


async def _over_budget(board: Pegboard) -> Sequence[Problem]:
    """Return a warning for every agent whose start takes more than its budget (S9)."""
    from pegboard.board.meta_tools import command_context
    from pegboard.core.state.sessions import DEFAULT
    from pegboard.core.state.shrinking import excess, fit_to_budget, fitting

    found: list[Problem] = []
    for agent in board.world.agents.values():
        if not agent.budget:
            continue
        session = await board.session(agent=agent.name, session_id="check")
        await session.surface(loaded=False)
        access = (await session.snapshot()).access
        terms = command_context(board.services, session.info, access)
        over = excess(access, fit_to_budget(access, DEFAULT, terms), terms)
        if over:
            message = f"what is out from the start exceeds the budget: {over}."
            hint = "Raise it, or have less out from the start."
            smaller = fitting(access, DEFAULT, terms)
            if smaller is not None:
                hint += f" It would fit with loadout '{smaller}': write `shrink: true` in the budget to let it step in."
            found.append(Problem(severity="warning", code="over_budget", message=message, hint=hint, place=agent.place))
    return found
