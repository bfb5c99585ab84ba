"""What no confinement and no instance separates: globals of modules (G9), and ways around the guard on paths (P10)."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pegboard.config.check.python_names import names_offered, source_of
from pegboard.config.compile import UncheckedConfig
from pegboard.config.problem_codes import warning_problem
from pegboard.core.access.decisions import Decision
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import agents_named, some_of
from pegboard.core.model.specs import PluginSpec, PythonSpec, RegisteredSpec
from pegboard.core.model.toolkits import UNCONFINED
from pegboard.core.model.tools import Plugin, Tool
from pegboard.problems import Place, Problem

_CHANGES: Final = frozenset(
    {
        *("add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem"),
        *("popleft", "push", "put", "remove", "reverse", "rotate", "set", "setdefault", "sort", "update", "write"),
    }
)
"""Methods that change what they are called on."""


def check_globals(config: UncheckedConfig, specs: Mapping[str, PluginSpec]) -> Iterator[Problem]:
    """Yield the plugins of a module with globals that its functions change, by agents that work apart."""
    apart = [agent for agent in config.agents.values() if agent.isolating]
    if not apart:
        return
    python = [spec for spec in specs.values() if isinstance(spec, PythonSpec) and spec.instance != "all"]
    found = {spec.name: names for spec in python if (names := changed_globals(spec.target, Path(spec.folder or ".")))}
    plugins = {spec.name: stand_in(spec, _names(spec)) for spec in python if spec.name in found}
    world = config.world(plugins.values())
    permissions = [CompiledPermissions(world, agent) for agent in apart]
    for plugin in plugins.values():
        reaching = [
            one.agent.name
            for one in permissions
            if any(map(one.permits, plugin.tools)) or one.decide_unseen(plugin).permitted
        ]
        if reaching:
            agents, they = agents_named(reaching)
            kept = some_of([f"'{name}'" for name in found[plugin.name]])
            work = "works" if they == "it" else "work"
            message = f"{agents} {work} apart, and all users share {kept} in the module of plugin '{plugin.name}'."
            hint = "Keep it in a class, one object for each user, or write `instance: all` if that is meant."
            yield warning_problem("shared_globals", message, plugin.place, hint)


def changed_globals(target: str, folder: Path) -> tuple[str, ...]:
    """Return the globals of a module beside the configuration that its functions change, by name.

    Nothing is imported. What a function changes by way of another module, or of an object of its own, does not show.
    """
    tree = source_of(target.partition(":")[0], folder)
    if tree is None:
        return ()
    bound = {name for node in tree.body for name in _bound_by(node)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return tuple(sorted(bound & {name for function in functions for name in _names_assigned_in(function)}))


def _bound_by(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return


def _names_assigned_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the names that a function changes and does not bind itself."""
    stated = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
    own = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)} | {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    yield from stated
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _CHANGES:
                changed = name
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed = name
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                changed = name
            case _:
                continue
        if changed not in own - stated:
            yield changed


def _names(spec: PythonSpec) -> list[str]:
    return sorted(names_offered(spec.target, Path(spec.folder or ".")) or ())


def check_confined(config: UncheckedConfig, specs: Mapping[str, PluginSpec]) -> Iterator[Problem]:
    """Yield the agents that may use a plugin that writes or runs in ways that no guard on paths sees."""
    registered = [spec for name, spec in specs.items() if name in UNCONFINED and isinstance(spec, RegisteredSpec)]
    found = [spec for spec in registered if spec.confine is None or spec.confine.if_possible]
    if not found:
        return
    plugins = [stand_in(spec, UNCONFINED[spec.name][1]) for spec in found]
    world = config.world(plugins)
    permissions = [CompiledPermissions(world, agent) for agent in config.agents.values()]
    for plugin in plugins:
        reached = dict(_agents_reaching(plugin, permissions))
        if reached:
            how, tools = UNCONFINED[plugin.name]
            agents, they = agents_named(reached)
            message = f"'{plugin.name}' {how}: {agents} could change with it what {they} may."
            off = f"`permissions: {{{plugin.name}: false}}`"
            on = f"`plugins: {{{plugin.name}: {{confine: true}}}}`"
            hint = f"Confine it ({on}), switch it off ({off}), or exclude these tools: {', '.join(tools)}."
            yield warning_problem("unconfined", message, next(iter(reached.values())), hint)


def _agents_reaching(plugin: Plugin, permissions: Iterable[CompiledPermissions]) -> Iterator[tuple[str, Place | None]]:
    """Yield the agents that may use some of a plugin, each with the place that grants it."""
    for one in permissions:
        decisions = map(one.decide, plugin.tools)
        permitted = next((decision for decision in decisions if decision.permitted), None)
        if permitted is not None:
            yield one.agent.name, _place_of_decision(permitted) or one.agent.place


def _place_of_decision(decision: Decision) -> Place | None:
    return next((reason.where for reason in decision.reasons if reason.where is not None), None)


def stand_in(spec: PythonSpec | RegisteredSpec, names: Iterable[str]) -> Plugin:
    """Return a plugin with tools of these names, for the question who may use it."""
    return Plugin(
        name=spec.name,
        kind="python" if isinstance(spec, PythonSpec) else "agno",
        category=spec.category,
        tools=tuple(Tool(plugin=spec.name, name=name, wire=name) for name in names),
        shared_only=spec.shared_only,
        default_on=spec.default_on,
        by_category=isinstance(spec, RegisteredSpec) and spec.by_category,
        place=spec.place,
    )
