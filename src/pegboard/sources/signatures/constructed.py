"""Plugins of this process that are ready to be called: their functions are run."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, Manifest, text_result
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.signatures.functions import DescribedFunction
from pegboard.sources.signatures.parameters import Parameters
from pegboard.sources.signatures.results import as_result, failure, takes_time
from pegboard.sources.signatures.thread_bound import ObjectThreads
from pegboard.sources.stdout import IN_PLUGIN
from pegboard.support.threads import run_in_thread, settle_awaitable

T = TypeVar("T")
LIFE_CYCLE: Final = frozenset({"close", "aclose"})
NO_PARAMETERS: Final = Parameters()
ANY_THREAD: Final = ObjectThreads()
CONDITION: Final = "is_available"
"""The name of a method or module function that says whether a plugin can run now (T12)."""


class LocalPlugin(Protocol):
    """A plugin of this process that is ready to be called."""

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the plugin."""
        ...

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run a tool; what it raises is an error result."""
        ...

    async def ask_hooks(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> HookAnswer:
        """Return what guard and approval hook of a tool say to a call, before it runs."""
        ...

    def predicate(self, name: str) -> Callable[..., Any] | None:
        """Return the predicate of this name, as ``Tool.when`` has it; None where there is none (T12)."""
        ...

    async def aclose(self) -> None:
        """Close what was constructed."""
        ...


class WithoutHooks:
    """A plugin whose tools come from another framework, so that they have no hooks of ours."""

    __slots__ = ()

    async def ask_hooks(
        self,
        plugin: str,  # noqa: ARG002
        name: str,  # noqa: ARG002
        arguments: JsonObject,  # noqa: ARG002
        context: CallContext,  # noqa: ARG002
    ) -> HookAnswer:
        """Return that nothing speaks against a call."""
        return HookAnswer()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPlugin:
    """A plugin that is ready to be called; ``tools`` by their names, and why what is public besides is none."""

    tools: Mapping[str, DescribedFunction] = field(default=EMPTY)
    parameters: Parameters = NO_PARAMETERS
    not_tools: Mapping[str, str] = field(default=EMPTY)
    description: str = ""
    owner: object = None
    condition: Callable[..., Any] | None = None
    threads: ObjectThreads = field(default_factory=ObjectThreads)

    def predicate(self, name: str) -> Callable[..., Any] | None:
        """Return the predicate of this name: the plugin's own, or ``is_available TOOL`` of a tool's mark (T12)."""
        _, _, tool = name.partition(" ")
        described = self.tools.get(tool)
        found = described.mark.is_available if described is not None else self.condition if not tool else None
        return found if found is None or self.threads.kept is None else partial(self.threads.run, found)

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the plugin."""
        return Manifest(
            tools=tuple(
                replace(tool.tool(plugin, self.tools), when=self._conditions_of(tool)) for tool in self.tools.values()
            ),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
            description=self.description,
            not_tools=self.not_tools,
        )

    def _conditions_of(self, tool: DescribedFunction) -> tuple[str, ...]:
        own = (f"{CONDITION} {tool.name}",) if tool.mark.is_available is not None else ()
        return (*own, CONDITION) if self.condition is not None else own

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run a function; what it raises is an error result."""
        return await run_tool(
            find_tool(self.tools, plugin, name), arguments, principal=context.principal, threads=self.threads
        )

    async def ask_hooks(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> HookAnswer:
        """Return what guard and approval hook of a function say to a call, before it runs."""
        return await hook_answer(
            find_tool(self.tools, plugin, name), arguments, principal=context.principal, threads=self.threads
        )

    async def aclose(self) -> None:
        """Call the ``aclose`` or ``close`` of what was constructed."""
        try:
            for name in ("aclose", "close"):
                method = getattr(self.owner, name, None)
                if method is not None and takes_nothing(method):
                    outcome = await self.threads.run(method)
                    if inspect.isawaitable(outcome):
                        await outcome
                    return
        finally:
            self.threads.end()


def find_tool(tools: Mapping[str, T], plugin: str, name: str) -> T:
    """Return the tool of this name; raises ``ToolUnavailableError`` where it has gone."""
    if name not in tools:
        raise ToolUnavailableError(f"plugin '{plugin}' no longer has the tool '{name}'.")
    return tools[name]


def takes_nothing(method: object) -> bool:
    """Return whether a method can be called without arguments."""
    try:
        parameters = inspect.signature(cast("Callable[..., Any]", method)).parameters.values()
    except (TypeError, ValueError):
        return False
    return all(p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)


# -- calls of functions ----------------------------------------------------------


_MAKES_TOOLS: Final = (
    "It returned functions, so it makes tools and is none. Mark it with `@tool(factory=True)`, and name it as a plugin."
)
HOOK_SECONDS: Final = 2.0
"""How long a hook that judges a call may take."""


async def run_tool(
    tool: DescribedFunction, arguments: JsonObject, *, principal: str, threads: ObjectThreads = ANY_THREAD
) -> CallResult:
    """Return what the function returned; what it raised, or its guard's refusal, is an error result.

    Functions that are not coroutines run in one of the ``threads``. A refusal of the guard has
    ``{"pegboard/refused_by": "guard"}`` in its ``meta`` (T10).
    """
    token = IN_PLUGIN.set(True)
    try:
        positional, named = tool.bind_arguments(arguments)
        if tool.mark.guard is not None:
            refusal = await threads.run(tool.mark.guard, principal, arguments)
            if refusal:
                return _refusal_result(tool.name, refusal)
        return await _return_value(tool, positional, named, threads)
    except BaseException as error:  # whatever user code raises is the tool's own failure
        if is_abandoned(error):
            raise
        return failure(error)
    finally:
        IN_PLUGIN.reset(token)


async def hook_answer(
    tool: DescribedFunction, arguments: JsonObject, *, principal: str, threads: ObjectThreads = ANY_THREAD
) -> HookAnswer:
    """Return what the guard and the approval hook of a function say to a call; one that fails demands an approval."""
    token = IN_PLUGIN.set(True)
    try:
        async with asyncio.timeout(HOOK_SECONDS):
            if tool.mark.guard is not None and (refusal := await threads.run(tool.mark.guard, principal, arguments)):
                return HookAnswer(refused=_refusal(tool.name, refusal))
            hook = tool.mark.requires_confirmation
            if not callable(hook):
                return HookAnswer()
            answer = await threads.run(hook, principal, arguments)
        return HookAnswer(approval=answer if isinstance(answer, str) else "its hook says so" if answer else "")
    except BaseException as error:  # whatever user code raises
        if is_abandoned(error):
            raise
        return HookAnswer(approval=f"its hook failed with {type(error).__name__}")
    finally:
        IN_PLUGIN.reset(token)


def is_abandoned(error: BaseException) -> bool:
    """Return whether an exception means that no one waits any longer, and was not raised by the tool itself."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _return_value(
    tool: DescribedFunction, positional: list[Any], named: dict[str, Any], threads: ObjectThreads
) -> CallResult:
    match tool.runs:
        case "coroutine":
            value = await tool.function(*positional, **named)
        case "generator":
            value = tool.function(*positional, **named)
        case "thread":
            value = await threads.run(_call_function, tool.function, positional, named)
    if isinstance(value, str | CallResult):  # nothing is left to be awaited, and it is no function
        return await run_in_thread(as_result, value) if takes_time(value) else as_result(value)
    if inspect.isawaitable(value):
        value = await settle_awaitable(value)
    if inspect.isasyncgen(value):
        value = await settle_awaitable(_collect_parts(value))
    if _are_functions(value):
        return text_result(_MAKES_TOOLS, is_error=True)
    return await run_in_thread(as_result, value) if takes_time(value) else as_result(value)


def blocks(tool: DescribedFunction) -> bool:
    """Return whether a function runs in a thread."""
    return tool.runs == "thread"


def _call_function(function: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    """Return the result of a blocking function, or what it returned to be awaited in the loop."""
    value = function(*positional, **named)
    if inspect.isgenerator(value):
        value = _join_parts(list(cast("Iterator[Any]", value)))
    pending = inspect.isawaitable(value) or inspect.isasyncgen(value) or _are_functions(value)
    return value if pending else as_result(value)


def _are_functions(value: object) -> bool:
    """Return whether a result is a function, or a collection of nothing but functions: what a factory returns."""
    if isinstance(value, Mapping):
        value = list(value.values())  # pyright: ignore
    if isinstance(value, list | tuple | set | frozenset):
        return bool(value) and all(inspect.isroutine(one) for one in value)
    return inspect.isroutine(value)


async def _collect_parts(parts: AsyncIterator[Any]) -> Any:
    return _join_parts([part async for part in parts])


def _join_parts(parts: list[Any]) -> Any:
    return "".join(parts) if parts and all(isinstance(part, str) for part in parts) else parts


def _refusal_result(name: str, reason: str) -> CallResult:
    block = {"type": "text", "text": _refusal(name, reason)}
    return CallResult(content=(block,), is_error=True, meta={"pegboard/refused_by": "guard"})


def _refusal(name: str, reason: str) -> str:
    return f"{name} was refused by its guard: {reason}"
