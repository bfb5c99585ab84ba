"""The functions that a module, class, factory, object or list of functions stands for."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, cast, get_args, get_origin

from pegboard.core.model.tools import JsonObject
from pegboard.errors import ToolUnavailableError
from pegboard.marks import ATTRIBUTE, mark_of
from pegboard.sources.signatures.constructed import CONDITION, LIFE_CYCLE, Built, LocalPlugin, takes_nothing
from pegboard.sources.signatures.functions import Described, described, hints_of, is_record, summary
from pegboard.sources.signatures.parameters import Parameters, construct, parameters_of, refused_override
from pegboard.sources.signatures.thread_bound import ObjectThreads, module_threads


class Adopt(Protocol):
    """A function that knows the toolkits of another framework."""

    def __call__(
        self, target: object, overrides: JsonObject, *, plugin: str, parameters: Parameters | None = None
    ) -> LocalPlugin | None:
        """Return the plugin that a toolkit, or its class, stands for; None for what is neither.

        A class is constructed with the overrides. ``parameters`` are those of the factory that made a toolkit.
        """
        ...


def nothing_adopted(
    target: object,
    overrides: JsonObject,
    *,
    plugin: str,
    parameters: Parameters | None = None,
) -> None:
    """Return None: no other framework is known."""


def adopted(target: object, overrides: JsonObject, *, plugin: str, adopt: Adopt) -> LocalPlugin:
    """Return the plugin that a target stands for: a toolkit of another framework, else what :func:`built` takes.

    Blocks while a class or factory constructs. Raises ``ToolUnavailableError``.
    """
    theirs = adopt(target, overrides, plugin=plugin)
    if theirs is not None:
        return theirs
    if not constructs(target, overrides):
        return built(target, overrides, plugin=plugin)
    parameters = parameters_of(cast("Callable[..., Any]", target))
    owner = _made(cast("Callable[..., Any]", target), parameters, overrides, plugin)
    theirs = adopt(owner, {}, plugin=plugin, parameters=parameters)
    return theirs or _of_owner(owner, parameters, target, plugin)


def built(target: object, overrides: JsonObject, *, plugin: str) -> Built:
    """Return the plugin that a target stands for: modules, functions, classes, factories, objects, lists.

    Blocks while a class or factory constructs. Raises ``ToolUnavailableError``.
    """
    if constructs(target, overrides):
        maker = cast("Callable[..., Any]", target)
        parameters = parameters_of(maker)
        return _of_owner(_made(maker, parameters, overrides, plugin), parameters, target, plugin)
    for name in overrides:
        raise refused_override(plugin, name, ())
    text = "" if inspect.isroutine(target) else summary(target)
    threads = ObjectThreads(module=module_threads(target))
    return Built(
        tools=as_tools(target, plugin=plugin), description=text, condition=condition_of(target), threads=threads
    )


def condition_of(target: object) -> Callable[..., Any] | None:
    """Return the predicate of a module or object; a function of that name that is marked as a tool is none."""
    found = None if isinstance(target, Mapping) else getattr(cast("Any", target), CONDITION, None)
    return found if inspect.isroutine(found) and not hasattr(found, ATTRIBUTE) else None


def constructs(target: object, overrides: JsonObject) -> bool:
    """Return whether a target is a class or factory, and no plugin by itself: whatever it makes belongs to somebody."""
    return inspect.isclass(target) or (inspect.isroutine(target) and is_factory(target, overrides))


def _of_owner(owner: Any, parameters: Parameters, target: object, plugin: str) -> Built:
    tools, condition = as_tools(owner, plugin=plugin), condition_of(owner)
    threads = ObjectThreads(lambda: owner, module=module_threads(target))
    threads.look()
    return Built(
        tools=tools,
        parameters=parameters,
        description=summary(target),
        owner=owner,
        condition=condition,
        threads=threads,
    )


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
        and _is_function(value)
        and value.__module__ == module.__name__
        and not mark_of(value).factory
    ]


def _is_function(value: object) -> bool:
    """Return whether something is a function, or wraps one as ``functools.cache`` does."""
    return inspect.isfunction(value) or (
        hasattr(value, "__wrapped__")
        and not inspect.isclass(value)
        and inspect.isfunction(inspect.unwrap(cast("Any", value)))
    )


def _of_object(target: object) -> list[tuple[str, Callable[..., Any]]]:
    """Return the public methods of an object in the order of their definition, parents first.

    Methods that it inherits from classes of another package are not its tools.
    """
    package = _package(type(target))
    names = dict.fromkeys(
        name for owner in reversed(type(target).__mro__) if _package(owner) == package for name in owner.__dict__
    )
    found: list[tuple[str, Callable[..., Any]]] = []
    for name in names:
        raw = inspect.getattr_static(type(target), name)
        if name.startswith("_") or not (isinstance(raw, (staticmethod, classmethod)) or _is_function(raw)):
            continue
        method = getattr(target, name)
        if not (name in LIFE_CYCLE and takes_nothing(method)):
            found.append((name, method))
    return found or ([("", target)] if callable(target) else [])


def _package(owner: type) -> str:
    return owner.__module__.partition(".")[0]


def _checked(value: object, plugin: str) -> Callable[..., Any]:
    if callable(value) and not inspect.isclass(value):
        return value
    raise ToolUnavailableError(f"plugin '{plugin}': {value!r} stands among its tools but is not a function.")


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
