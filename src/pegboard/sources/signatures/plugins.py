"""The functions that a module, class, factory, object or list of functions stands for."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, partialmethod
from typing import Any, Protocol, cast

from pegboard.core.model.tools import Frozen, JsonObject
from pegboard.errors import ToolUnavailableError
from pegboard.marks import ATTRIBUTE, Mark, mark_of
from pegboard.sources.signatures.constructed import CONDITION, LIFE_CYCLE, BuiltPlugin, LocalPlugin, takes_nothing
from pegboard.sources.signatures.factories import is_factory
from pegboard.sources.signatures.functions import DescribedFunction, describe_function, summary
from pegboard.sources.signatures.parameters import Parameters, construct, parameters_of, refused_override
from pegboard.sources.signatures.thread_bound import ObjectThreads, module_threads
from pegboard.sources.signatures.tool_objects import is_tool_object, tool_object_mark
from pegboard.support.threads import run_in_waiting_loop


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


def adopt_plugin(target: object, overrides: JsonObject, *, plugin: str, adopt: Adopt) -> LocalPlugin:
    """Return the plugin that a target stands for: a toolkit of another framework, else what :func:`built` takes.

    Blocks while a class or factory constructs. Raises ``ToolUnavailableError``.
    """
    theirs = adopt(target, overrides, plugin=plugin)
    if theirs is not None:
        return theirs
    if not constructs(target, overrides):
        return build_plugin(target, overrides, plugin=plugin)
    parameters = parameters_of(cast("Callable[..., Any]", target))
    owner = _make_owner(cast("Callable[..., Any]", target), parameters, overrides, plugin)
    theirs = adopt(owner, {}, plugin=plugin, parameters=parameters)
    return theirs or _built_of_owner(owner, parameters, target, plugin)


def build_plugin(target: object, overrides: JsonObject, *, plugin: str) -> BuiltPlugin:
    """Return the plugin that a target stands for: modules, functions, classes, factories, objects, lists.

    Blocks while a class or factory constructs. Raises ``ToolUnavailableError``.
    """
    if constructs(target, overrides):
        maker = cast("Callable[..., Any]", target)
        parameters = parameters_of(maker)
        return _built_of_owner(_make_owner(maker, parameters, overrides, plugin), parameters, target, plugin)
    for name in overrides:
        raise refused_override(plugin, name, ())
    text = "" if inspect.isroutine(target) else summary(target)
    public = public_functions(target, plugin=plugin)
    return BuiltPlugin(
        tools=public.tools,
        not_tools=public.not_tools,
        description=text,
        condition=condition_of(target),
        threads=ObjectThreads(module=module_threads(target)),
    )


def condition_of(target: object) -> Callable[..., Any] | None:
    """Return the predicate of a module or object; a function of that name that is marked as a tool is none."""
    found = None if isinstance(target, Mapping) else getattr(cast("Any", target), CONDITION, None)
    return found if inspect.isroutine(found) and not hasattr(found, ATTRIBUTE) else None


def constructs(target: object, overrides: JsonObject) -> bool:
    """Return whether a target is a class or factory, and no plugin by itself: whatever it makes belongs to someone."""
    return inspect.isclass(target) or (inspect.isroutine(target) and is_factory(target, overrides))


def _built_of_owner(owner: Any, parameters: Parameters, target: object, plugin: str) -> BuiltPlugin:
    public, condition = public_functions(owner, plugin=plugin), condition_of(owner)
    threads = ObjectThreads(lambda: owner, module=module_threads(target))
    threads.look()
    return BuiltPlugin(
        tools=public.tools,
        not_tools=public.not_tools,
        parameters=parameters,
        description=owner.simple_description if is_tool_object(owner) else summary(target),
        owner=owner,
        condition=condition,
        threads=threads,
    )


def _make_owner(maker: Callable[..., Any], parameters: Parameters, overrides: JsonObject, plugin: str) -> Any:
    try:
        owner = construct(maker, parameters, overrides, plugin=plugin)
        if inspect.isgenerator(owner):
            owner = list(cast("Iterator[Any]", owner))
        elif inspect.isawaitable(owner) or inspect.isasyncgen(owner):
            owner = run_in_waiting_loop(_await_factory(owner))
    except (ToolUnavailableError, ImportError):
        raise
    except Exception as error:  # whatever a constructor raises means that the plugin cannot run
        name = getattr(maker, "__name__", "constructor")
        raise ToolUnavailableError(
            f"plugin '{plugin}' could not be constructed: {name} raised {type(error).__name__}: {error}"
        ) from error
    return owner


async def _await_factory(owner: Any) -> Any:
    """Return what a factory comes to that is asynchronous, or yields."""
    return [one async for one in owner] if inspect.isasyncgen(owner) else await owner


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFunctions:
    """What is public in something that is constructed already: the tools, and why the rest is none, by names."""

    tools: Mapping[str, DescribedFunction]
    not_tools: Mapping[str, str]


def public_functions(target: object, *, plugin: str) -> PublicFunctions:
    """Return the tools of something that is constructed already; raises ``ToolUnavailableError`` where it has none.

    What cannot be a tool takes no other with it.
    """
    tools: dict[str, DescribedFunction] = {}
    errors: dict[str, ToolUnavailableError] = {}
    condition = condition_of(target)
    for name, function in _public(target):
        if condition is not None and function == condition:
            continue
        try:
            if inspect.ismodule(target) and _is_factory_by_source(function):
                raise _makes_tools(name, target)
            tool = _describe_function(function, name, tool_object_mark(target) if is_tool_object(target) else None)
            if tool.name in tools:
                raise ToolUnavailableError(f"plugin '{plugin}' has two functions named '{tool.name}'.")
            tools[tool.name] = tool
        except ToolUnavailableError as error:
            errors[name or getattr(function, "__name__", repr(function))] = error
    if not tools:
        raise next(iter(errors.values()), _no_public_functions_error(plugin))
    return PublicFunctions(tools=Frozen(tools), not_tools=Frozen({name: error.text for name, error in errors.items()}))


def _makes_tools(name: str, module: types.ModuleType) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"function '{name}' returns functions, so it is a factory of tools.",
        hint=f"Name it as a plugin: `python: {module.__name__}:{name}`.",
    )


def _no_public_functions_error(plugin: str) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"plugin '{plugin}' has no public functions.",
        hint="Tools are functions without a leading underscore that the module defines or lists in '__all__'.",
    )


def _describe_function(function: object, name: str, mark: Mark | None = None) -> DescribedFunction:
    """Return what is public as a tool; raises ``ToolUnavailableError`` for what cannot be one."""
    if not callable(function) or inspect.isclass(function):
        raise ToolUnavailableError(f"{function!r} is among the tools but is not a function.")
    try:
        return describe_function(function, name=name, mark=mark)
    except ToolUnavailableError:
        raise
    except Exception as error:  # whatever an annotation, a default or a mark raises when it is read
        called = name or getattr(function, "__name__", type(function).__name__)
        raise ToolUnavailableError(f"function '{called}' cannot be a tool: {type(error).__name__}: {error}") from error


def _public(target: object) -> Iterable[tuple[str, object]]:
    """Return what is public in a target, in its order: functions, and what else looks like one."""
    if inspect.ismodule(target):
        return _functions_of_module(target)
    if inspect.isroutine(target):
        return [("", target)]
    if isinstance(target, Mapping):
        return [(str(name), value) for name, value in cast("Mapping[Any, Any]", target).items()]
    if isinstance(target, (list, tuple, set, frozenset)):
        return [("", item) for item in cast("Iterable[Any]", target)]
    return [("", target.run)] if is_tool_object(target) else _functions_of_object(target)


def _functions_of_module(module: types.ModuleType) -> list[tuple[str, object]]:
    """Return what is in ``__all__`` and can be called, else what is public, defined here and can be called."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        found = [(name, getattr(module, name, _AbsentName(name))) for name in map(str, listed)]
        return [(name, value) for name, value in found if callable(value) and not inspect.isclass(value)]
    return [
        (name, value)
        for name, value in list(vars(module).items())
        if not name.startswith("_") and _is_own(value, module) and not _is_marked_factory(value)
    ]


class _AbsentName:
    """What ``__all__`` names and the module does not have; it cannot be a tool."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self) -> None:
        """Return nothing: it is never called."""

    @property
    def __signature__(self) -> inspect.Signature:
        """Raise ``TypeError``: there is nothing that could have a signature."""
        raise TypeError(f"'__all__' names '{self._name}', which the module does not have")


def _is_own(value: object, module: types.ModuleType) -> bool:
    """Return whether a value of a module is a function that it defines, or a partial or an object that acts as one."""
    if _is_function(value):
        return getattr(value, "__module__", None) == module.__name__
    if isinstance(value, partial):
        return True
    kind = type(value)
    return callable(value) and not inspect.isclass(value) and kind.__module__ == module.__name__


def _is_marked_factory(value: object) -> bool:
    try:
        return mark_of(value).factory
    except TypeError:  # a mark that is none: the function is described, and says so
        return False


def _is_factory_by_source(value: object) -> bool:
    try:
        return inspect.isroutine(value) and is_factory(value, {})
    except TypeError:  # a mark that is none
        return False


def _is_function(value: object) -> bool:
    """Return whether something is a function, or wraps one as ``functools.cache`` does."""
    return inspect.isfunction(value) or (
        hasattr(value, "__wrapped__")
        and not inspect.isclass(value)
        and inspect.isfunction(inspect.unwrap(cast("Any", value)))
    )


def _functions_of_object(target: object) -> list[tuple[str, object]]:
    """Return the public methods of an object in the order of their definition, parents first.

    Methods that it inherits from classes of another package are not its tools.
    """
    package = _package(type(target))
    names = dict.fromkeys(
        name for owner in reversed(type(target).__mro__) if _package(owner) == package for name in owner.__dict__
    )
    found: list[tuple[str, object]] = []
    for name in names:
        raw = inspect.getattr_static(type(target), name)
        if name.startswith("_") or not (
            isinstance(raw, (staticmethod, classmethod, partialmethod)) or _is_function(raw)
        ):
            continue
        method = getattr(target, name)
        if not (name in LIFE_CYCLE and takes_nothing(method)):
            found.append((name, method))
    return found or ([("", target)] if callable(target) else [])


def _package(owner: type) -> str:
    return owner.__module__.partition(".")[0]
