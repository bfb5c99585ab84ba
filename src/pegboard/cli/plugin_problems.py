"""What plugins show of a configuration once they were asked: overrides, faults, names, requirements, costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.core.model.catalog import split_kind
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import OverrideError
from pegboard.problems import Place, Problem

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.board.catalog.loader import PluginRequest
    from pegboard.config.check.override_checks import Misfit
    from pegboard.config.schema.configuration import Configuration


async def misfits_of(board: Board, want: PluginRequest) -> list[Misfit]:
    """Return the overrides of a request that its plugin does not take; a server takes none."""
    from pegboard.config.check.override_checks import Misfit

    loader, (name, key) = board.services.loader, want.key
    plugin = board.world.catalog.plugins[name]
    if plugin.kind == "server":
        message, hint = f"'{name}' is a server and takes no overrides.", "Write its settings under `servers`."
        return [Misfit(plugin=name, key=key, override=one, message=message, hint=hint) for one in want.overrides]
    if not want.overrides or not plugin.variant(key).unavailable:
        return []
    spec = loader.specs[name]
    try:
        await loader.source_of(spec).describe(spec, want.overrides)
    except OverrideError as error:
        return [Misfit(plugin=name, key=key, override=error.override, message=error.message, hint=error.hint)]
    except Exception:  # a plugin's own code may raise anything; it is reported with its faults
        return []
    return []


def faults(
    board: Board, configuration: Configuration, asked: set[str], misfits: set[tuple[str, str]]
) -> Iterator[Problem]:
    """Yield what cannot run now (P6), of plugins that were asked: a warning, since everything else works."""
    for plugin in board.world.catalog.plugins.values():
        if plugin.name not in asked or getattr(configuration.specs[plugin.name], "unavailable", ""):
            continue  # the file says so itself
        for reason in plugin.faults(without={key for name, key in misfits if name == plugin.name}):
            place = plugin.place or _named_at(board, plugin.name)
            message = (
                reason
                if plugin.place is not None or reason.startswith("plugin ")
                else f"plugin '{plugin.name}': {reason}"
            )
            yield Problem(severity="warning", code="unavailable", message=message, place=place)


def absent_commands(configuration: Configuration) -> Iterator[Problem]:
    """Yield servers that agents have from the start, or tools of theirs, and whose command is not there (P6)."""
    from shutil import which

    for name, spec in configuration.specs.items():
        if not isinstance(spec, ServerSpec) or spec.unavailable or spec.command is None:
            continue
        place = _named_from_start(configuration, {name, spec.prefix or name})
        beside = spec.cwd is not None and Path(spec.cwd, spec.command).is_file()
        if place is not None and not beside and which(spec.command, path=spec.env.get("PATH")) is None:
            message = f"server '{name}' cannot be started: there is no command '{spec.command}'."
            yield Problem(severity="warning", code="unavailable", message=message, place=spec.place or place)


def _named_from_start(configuration: Configuration, names: AbstractSet[str]) -> Place | None:
    """Return where an agent first lists a plugin of these names, or a tool of it, among what it has from the start."""
    for agent in configuration.agents.values():
        kits = (configuration.toolkits[kit].members for kit in agent.initial_toolkits if kit in configuration.toolkits)
        for item in chain(agent.essential, agent.static, *kits):
            bare = split_kind(item.name)[1]
            if not names.isdisjoint((bare, bare.partition("/")[0], bare.partition("__")[0])):
                return item.place
    return None


async def unfounded_conditions(configuration: Configuration) -> Sequence[Problem]:
    """Return the predicates that cannot be imported, so that what they stand for can never run (T12)."""
    from pegboard.core.access.settings.predicates import fault_of_error
    from pegboard.core.model.masking import Masker
    from pegboard.core.model.naming import one_line
    from pegboard.sources.late import LateHooks

    masker, found = Masker(configuration.secrets), list[Problem]()
    hooks = LateHooks(configuration.path.absolute().parent)
    try:
        for spec in configuration.specs.values():
            for tool, condition in spec.when.items():
                try:
                    await hooks.prepare(condition)
                except Exception as error:  # a module may raise anything
                    of = f"tool '{tool}': " if tool else ""
                    message = masker.text(one_line(f"plugin '{spec.name}': {of}{fault_of_error(error)}", limit=400))
                    hint = f"Correct `when: {condition}`, or provide the function."
                    found.append(
                        Problem(severity="warning", code="unavailable", message=message, hint=hint, place=spec.place)
                    )
    finally:
        hooks.close()
    return found


def _named_at(board: Board, plugin: str) -> Place | None:
    """Return where a list of tools first names a plugin."""
    world = board.world
    groups = [group for agent in world.agents.values() for group in (agent.essential, agent.static)]
    members = (item for group in (*groups, *(kit.members for kit in world.toolkits.values())) for item in group)
    return next((item.place for item in members if split_kind(item.name)[1].partition("/")[0] == plugin), None)


def clashes(board: Board, asked: set[str]) -> Iterator[Problem]:
    """Yield tools that have one name on the wire (G10), of plugins that were asked."""
    catalog = board.world.catalog

    def owner(tool: str) -> str:
        return max((name for name in catalog.plugins if tool.startswith(f"{name}/")), key=len, default="")

    for clash in catalog.clashes:
        if not {owner(clash.first), owner(clash.second)} <= asked:
            continue
        plugin = catalog.plugins.get(owner(clash.second))
        yield Problem(
            severity="error",
            code="name_clash",
            message=f"'{clash.first}' and '{clash.second}' are both called '{clash.wire}'; the later one is excluded.",
            hint="Give one of the two plugins another prefix.",
            place=plugin.place if plugin else None,
        )


def claims(board: Board) -> Iterator[Problem]:
    """Yield what a trusted server claims of its tools only since it was first seen (G6)."""
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


def requirements(board: Board, configuration: Configuration) -> Iterator[Problem]:
    """Yield what tools require and nothing can meet (T8), but for what the file itself names wrongly."""
    from pegboard.core.state.requirements import unresolved_requirements

    for tool, name, why in unresolved_requirements(board.world):
        spec = configuration.specs.get(tool.plugin)
        written = spec.requires.get(tool.name, ()) if spec is not None else ()
        several = why.startswith("it may be")
        if name not in written or several:
            yield Problem(
                severity="error",
                code="unknown_tool",
                message=f"'{tool.wire}' requires '{name}', and {why}.",
                hint="Write plugin/tool." if several else "Correct the name; until then the tool cannot be loaded.",
                place=board.world.catalog.plugins[tool.plugin].place,
            )


async def over_budget(board: Board) -> Sequence[Problem]:
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
        permissions = (await session.snapshot()).permissions
        terms = command_context(board.services, session.info, permissions)
        over = excess(permissions, fit_to_budget(permissions, DEFAULT, terms), terms)
        if over:
            message = f"what is loaded from the start exceeds the budget: {over}."
            hint = "Raise it, or have less loaded from the start."
            smaller = fitting(permissions, DEFAULT, terms)
            if smaller is not None:
                hint += f" It would fit with loadout '{smaller}': write `shrink: true` in the budget to let it step in."
            found.append(Problem(severity="warning", code="over_budget", message=message, hint=hint, place=agent.place))
    return found
