"""Modules whose globals agents share that work apart: no instance of a plugin separates those (G9)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pegboard.config.check.python_names import offered, source_of
from pegboard.config.check.stand_ins import stand_in
from pegboard.config.compile import UncheckedConfig
from pegboard.config.problem_codes import warning
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import agents_named, some_of
from pegboard.core.model.specs import PluginSpec, PythonSpec
from pegboard.problems import Problem

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
            message = f"{agents} {work} apart, and all users share {kept} in the module of '{plugin.name}'."
            hint = "Keep it in a class, which each has for itself, or write `instance: all` where it is meant."
            yield warning("shared_globals", message, plugin.place, hint)


def changed_globals(target: str, folder: Path) -> tuple[str, ...]:
    """Return the globals of a module beside the configuration that its functions change, by name.

    Nothing is imported. What a function changes by way of another module, or of an object of its own, does not show.
    """
    tree = source_of(target.partition(":")[0], folder)
    if tree is None:
        return ()
    bound = {name for node in tree.body for name in _bound_by(node)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return tuple(sorted(bound & {name for function in functions for name in _changed_in(function)}))


def _bound_by(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return


def _changed_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
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
    return sorted(offered(spec.target, Path(spec.folder or ".")) or ())
