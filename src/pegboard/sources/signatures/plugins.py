"""The functions that a module, class, factory, object or list of functions stands for."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast, get_args, get_origin

from pegboard.core.model.tools import EMPTY, JsonObject, Manifest
from pegboard.errors import ToolUnavailableError
from pegboard.marks import ATTRIBUTE, mark_of
from pegboard.sources.signatures.docs import summary
from pegboard.sources.signatures.functions import Described, described, hints_of, is_record
from pegboard.sources.signatures.parameters import Parameters, construct, parameters_of, refused_override

_LIFE_CYCLE = frozenset({"close", "aclose"})
CONDITION: Final = "is_available"
"""The name of a method or module function that says whether a plugin can run now (T12)."""
NO_PARAMETERS = Parameters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A plugin that is ready to be called; ``tools`` by their names."""

    tools: Mapping[str, Described] = field(default=EMPTY)
    parameters: Parameters = NO_PARAMETERS
    description: str = ""
    owner: object = None
    condition: Callable[..., Any] | None = None

    def predicate(self, name: str) -> Callable[..., Any] | None:
        """Return the predicate of this name: the plugin's own, or ``is_available TOOL`` of a tool's mark (T12)."""
        _, _, tool = name.partition(" ")
        described = self.tools.get(tool)
        return described.mark.is_available if described is not None else self.condition if not tool else None

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the plugin."""
        return Manifest(
            tools=tuple(replace(tool.tool(plugin, self.tools), when=self._when(tool)) for tool in self.tools.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
            description=self.description,
        )

    def _when(self, tool: Described) -> tuple[str, ...]:
        own = (f"{CONDITION} {tool.name}",) if tool.mark.is_available is not None else ()
        return (*own, CONDITION) if self.condition is not None else own

    async def aclose(self) -> None:
        """Call the ``aclose`` or ``close`` of what was constructed."""
        for name in ("aclose", "close"):
            method = getattr(self.owner, name, None)
            if method is not None and _takes_nothing(method):
                outcome = method()
                if inspect.isawaitable(outcome):
                    await outcome
                return


def built(target: object, overrides: JsonObject, *, plugin: str) -> Built:
    """Return the plugin that a target stands for: modules, functions, classes, factories, objects, lists.

    Blocks while a class or factory constructs. Raises ``ToolUnavailableError``.
    """
    if inspect.isclass(target) or (inspect.isroutine(target) and is_factory(target, overrides)):
        maker = cast("Callable[..., Any]", target)
        parameters = parameters_of(maker)
        owner = _made(maker, parameters, overrides, plugin)
        tools = as_tools(owner, plugin=plugin)
        condition = condition_of(owner)
        return Built(tools=tools, parameters=parameters, description=summary(target), owner=owner, condition=condition)
    for name in overrides:
        raise refused_override(plugin, name, ())
    text = "" if inspect.isroutine(target) else summary(target)
    return Built(tools=as_tools(target, plugin=plugin), description=text, condition=condition_of(target))


def condition_of(target: object) -> Callable[..., Any] | None:
    """Return the predicate of a module or object; a function of that name that is marked as a tool is none."""
    found = None if isinstance(target, Mapping) else getattr(cast("Any", target), CONDITION, None)
    return found if inspect.isroutine(found) and not hasattr(found, ATTRIBUTE) else None


def _made(maker: Callable[..., Any], parameters: Parameters, overrides: JsonObject, plugin: str) -> Any:
    try:
        owner = construct(maker, parameters, overrides, plugin=plugin)
        if inspect.iscoroutine(owner):
            import asyncio

            owner = asyncio.run(owner)
    except (ToolUnavailableError, ImportError):
        raise
    except Exception as error:  # whatever a constructor raises means that the plugin cannot run
        name = getattr(maker, "__name__", "constructor")
        raise ToolUnavailableError(
            f"plugin '{plugin}' could not be constructed: {name} raised {type(error).__name__}: {error}"
        ) from error
    return owner


def as_tools(target: object, *, plugin: str) -> dict[str, Described]:
    """Return the tools of something that is constructed already; raises where it has none."""
    tools: dict[str, Described] = {}
    condition = condition_of(target)
    for name, function in _functions(target, plugin):
        if function == condition:
            continue
        tool = described(function, name=name)
        if tool.name in tools:
            raise ToolUnavailableError(f"plugin '{plugin}' has two functions named '{tool.name}'.")
        tools[tool.name] = tool
    if not tools:
        raise ToolUnavailableError(
            f"plugin '{plugin}' has no public functions.",
            hint="Tools are functions without a leading underscore that the module defines or lists in '__all__'.",
        )
    return tools


def _functions(target: object, plugin: str) -> Iterable[tuple[str, Callable[..., Any]]]:
    if inspect.ismodule(target):
        return _of_module(target)
    if inspect.isroutine(target):
        return [("", target)]
    if isinstance(target, Mapping):
        return [(str(k), _checked(v, plugin)) for k, v in cast("Mapping[Any, Any]", target).items()]
    if isinstance(target, (list, tuple, set, frozenset)):
        return [("", _checked(item, plugin)) for item in cast("Iterable[Any]", target)]
    return _of_object(target)


def _of_module(module: types.ModuleType) -> list[tuple[str, Callable[..., Any]]]:
    """Return the functions in ``__all__``, else the public ones that the module itself defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        found = [(name, getattr(module, name, None)) for name in listed]
        return [(name, value) for name, value in found if inspect.isroutine(value)]
    return [
        (name, value)
        for name, value in vars(module).items()
        if not name.startswith("_")
        and inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not mark_of(value).factory
    ]


def _of_object(target: object) -> list[tuple[str, Callable[..., Any]]]:
    """Return the public methods of an object in the order of their definition, parents first."""
    names = dict.fromkeys(
        name for owner in reversed(type(target).__mro__) if owner is not object for name in owner.__dict__
    )
    found: list[tuple[str, Callable[..., Any]]] = []
    for name in names:
        raw = inspect.getattr_static(type(target), name)
        if name.startswith("_") or not isinstance(raw, (types.FunctionType, staticmethod, classmethod)):
            continue
        method = getattr(target, name)
        if not (name in _LIFE_CYCLE and _takes_nothing(method)):
            found.append((name, method))
    return found or ([("", target)] if callable(target) else [])


def _checked(value: object, plugin: str) -> Callable[..., Any]:
    if callable(value) and not inspect.isclass(value):
        return value
    raise ToolUnavailableError(f"plugin '{plugin}': {value!r} stands among its tools but is not a function.")


def _takes_nothing(method: object) -> bool:
    try:
        parameters = inspect.signature(cast("Callable[..., Any]", method)).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)


def is_factory(function: Callable[..., Any], overrides: JsonObject) -> bool:
    """Return whether a function returns tools rather than being one; it is not called to find out.

    So it is where it is marked, where overrides are given, where its return annotation is a
    callable, a list of callables or a class of its own, or where it returns functions that it
    defines itself.
    """
    if mark_of(function).factory or overrides:
        return True
    try:
        annotation = hints_of(function).get("return", inspect.Parameter.empty)
    except (NameError, TypeError):
        annotation = inspect.Parameter.empty
    return _returns_functions(function) if annotation is inspect.Parameter.empty else _callables(annotation, function)


def _callables(annotation: Any, function: Callable[..., Any]) -> bool:
    origin = get_origin(annotation)
    if annotation is Callable or origin in (Callable, types.FunctionType) or annotation is types.FunctionType:
        return True
    if origin is not None:
        args = [arg for arg in get_args(annotation) if arg is not Ellipsis]
        return bool(args) and _callables(args[-1], function)
    if annotation in (list, tuple, dict, object, Any):
        return _returns_functions(function)
    return (
        isinstance(annotation, type)
        and annotation.__module__ != "builtins"
        and not is_record(annotation)
        and any(inspect.isfunction(v) and not k.startswith("_") for k, v in vars(annotation).items())
        and annotation.__module__ == function.__module__
    )


def _returns_functions(function: Callable[..., Any]) -> bool:
    """Return whether the source returns functions that it defines: one, or a list, tuple or dict of them."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return False
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    inner = {n.name for n in ast.walk(tree) if n is not tree and isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            match node.value:
                case ast.List(elts=items) | ast.Tuple(elts=items):
                    parts: list[Any] = list(items)
                case ast.Dict(values=items):
                    parts = list(items)
                case value:
                    parts = [value]
            known = getattr(function, "__globals__", {})
            if parts and all(
                isinstance(part, ast.Name) and (part.id in inner or inspect.isfunction(known.get(part.id)))
                for part in parts
            ):
                return True
    return False
