"""Toolsets of pydantic-ai as plugins: a `FunctionToolset`, or what filters, renames or combines some.

A plugin is described without a run: by all that its toolset may have. Where the toolset asks a run what it has, each
tool is unavailable but in a run that is given it, and what one run was given counts for no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from inspect import isawaitable
from typing import Any, Final, cast

from pydantic_ai import BinaryContent, RunContext, RunUsage, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    ApprovalRequiredToolset,
    CombinedToolset,
    DeferredLoadingToolset,
    DynamicToolset,
    ExternalToolset,
    FilteredToolset,
    FunctionToolset,
    IncludeReturnSchemasToolset,
    PrefixedToolset,
    PreparedToolset,
    RenamedToolset,
    SetMetadataToolset,
    ToolsetTool,
    WrapperToolset,
)

from pegboard.core.access.settings.predicates import OF_RUN
from pegboard.core.model.tools import CallResult, Confirmation, Frozen, JsonObject, Manifest, Tool
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, HookAnswer
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkResult
from pegboard.sources.signatures import Parameters, as_result, failure, find_tool, is_abandoned, refused_override
from pegboard.sources.stdout import plugin_output

_LOG: Final = logging.getLogger("pegboard.sources")
_KINDS: Final = {"unapproved": Confirmation(kind="confirm"), "external": Confirmation(kind="external")}
_ASKS: Final = Confirmation(kind="confirm", hook=True)
_FOR_EVERY_RUN: Final = (SetMetadataToolset, IncludeReturnSchemasToolset, DeferredLoadingToolset)
"""What prepares definitions alike for every run."""
_DECIDING: Final = (FilteredToolset.get_tools, PreparedToolset.get_tools)
"""How a wrapper asks a run which of the tools inside it there are."""
_PASSING: Final = (WrapperToolset.get_tools, PrefixedToolset.get_tools, RenamedToolset.get_tools)
"""How a wrapper has all the tools inside it, under whatever names."""
_WITHOUT_RUN: Final = "Which tools its toolset has is decided by each run of pydantic-ai, and this is none."
_NOT_GIVEN: Final = "Its toolset does not give it to this run."

Tools = Mapping[str, ToolsetTool[Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolsetPlugin:
    """A toolset of pydantic-ai that is ready to be called.

    ``tools`` are all that it may have. ``of_run`` is whether each run is asked which of them there are. ``asking`` is
    the same toolset with nothing to run inside, where it decides itself which calls a person approves; else None.
    """

    toolset: AbstractToolset[Any]
    tools: Tools
    of_run: bool
    asking: AbstractToolset[Any] | None
    parameters: Parameters

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the toolset: the same one whatever run is under way."""
        return Manifest(
            tools=tuple(self._describe_tool(tool.tool_def, plugin) for tool in self.tools.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
        )

    def _describe_tool(self, tool: ToolDefinition, plugin: str) -> Tool:
        asks = _ASKS if self.asking is not None else None
        return Tool(
            plugin=plugin,
            name=tool.name,
            description=tool.description or "",
            input_schema=Frozen(tool.parameters_json_schema),
            confirmation=_KINDS.get(tool.kind, asks),
            when=(f"{OF_RUN}{tool.name}",) if self.of_run else (),
        )

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:  # noqa: ARG002
        """Run a tool in the context of the run of pydantic-ai that calls it, else in an empty one."""
        tool, toolset = find_tool(self.tools, plugin, name), self.toolset
        if self.of_run:
            toolset, tools = await self._toolset_of_run()
            if name not in tools:
                raise ToolUnavailableError(f"'{name}' of plugin '{plugin}': {_NOT_GIVEN}")
            tool = tools[name]
        run = _context()
        marked = self.tools[name].tool_def.kind in _KINDS or self.asking is not None
        run = replace(run, tool_name=name, tool_call_approved=run.tool_call_approved or marked)
        try:
            with plugin_output():
                given = await _validate_arguments(tool, arguments, run)
                async with AsyncExitStack() as stack:
                    await stack.enter_async_context(toolset)
                    returned = await toolset.call_tool(name, given, run, tool)
            if isinstance(returned, ToolReturn):
                _note_beside(f"{plugin}/{name}", FrameworkResult(update=[returned]))
            return _result(returned)
        except ModelRetry as error:
            _note_beside(f"{plugin}/{name}", FrameworkResult(raised=error))
            return failure(error)
        except CallDeferred:
            raise ToolUnavailableError(
                f"'{name}' of plugin '{plugin}' is run by the host program, which only its own code knows. "
                "Give it to an ExternalToolset."
            ) from None
        except ApprovalRequired:
            raise ToolUnavailableError(
                f"'{name}' of plugin '{plugin}' wants an approval that only its own code knows of. Mark it with "
                "requires_approval=True, or name it under `approve:`."
            ) from None
        except BaseException as error:  # whatever the tool's code raises is its own failure
            if is_abandoned(error) or isinstance(error, asyncio.CancelledError):
                raise
            return failure(error)

    async def ask_hooks(
        self,
        plugin: str,  # noqa: ARG002
        name: str,
        arguments: JsonObject,
        context: CallContext,  # noqa: ARG002
    ) -> HookAnswer:
        """Return whether the toolset wants a person to approve a call (A1)."""
        if self.asking is None:
            return HookAnswer()
        run = replace(_context(), tool_name=name, tool_call_approved=False)
        with plugin_output():
            tools = await self.asking.get_tools(run)
            try:
                await self.asking.call_tool(name, dict(arguments), run, tools[name])
            except ApprovalRequired:
                return HookAnswer(approval="Its toolset asks for an approval.")
        return HookAnswer()

    def predicate(self, name: str) -> Callable[..., Awaitable[bool | str]] | None:
        """Return what asks the run under way whether it is given a tool."""
        return partial(self._has_tool, name.removeprefix(OF_RUN)) if name.startswith(OF_RUN) else None

    async def _has_tool(self, name: str, *_: object) -> bool | str:
        if _run_under_way() is None:
            return _WITHOUT_RUN
        try:
            return name in (await self._toolset_of_run())[1] or _NOT_GIVEN
        except ToolUnavailableError as error:
            return error.message

    async def _toolset_of_run(self) -> tuple[AbstractToolset[Any], Tools]:
        """Return the toolset as the run under way has it, and the tools that it is given; asked once at a moment."""
        run, under_way = FRAMEWORK_RUN.get(), _run_under_way()
        if run is None or under_way is None:
            raise ToolUnavailableError(_WITHOUT_RUN)
        if self not in run.decided:
            run.decided[self] = asyncio.ensure_future(self._ask_toolset(under_way))
        return await asyncio.shield(run.decided[self])

    async def _ask_toolset(self, run: RunContext[Any]) -> tuple[AbstractToolset[Any], Tools]:
        try:
            with plugin_output():
                toolset = await (await self.toolset.for_run(run)).for_run_step(run)
                return toolset, await toolset.get_tools(run)
        except Exception as error:  # the toolset's own code may raise anything
            raise ToolUnavailableError(
                f"Its toolset does not say what it gives to this run: {type(error).__name__}: {error}"
            ) from error

    async def aclose(self) -> None:
        """Close nothing: what the toolset holds belongs to those who made it."""


def adopt(
    target: object, overrides: JsonObject, *, plugin: str, parameters: Parameters | None = None
) -> ToolsetPlugin | None:
    """Return the plugin that a toolset stands for; None for what is none. Blocks, and needs a thread without a loop.

    Raises ``ToolUnavailableError`` where nothing but a run can tell what the toolset may have.
    """
    if not isinstance(target, AbstractToolset):
        return None
    for name in overrides:
        raise refused_override(plugin, name, ())
    toolset = cast("AbstractToolset[Any]", target)
    whole, of_run = _complete_toolset(toolset, plugin)
    try:
        tools = asyncio.run(whole.get_tools(_no_run()))
    except Exception as error:  # the toolset's own code may raise anything
        raise ToolUnavailableError(
            f"the toolset of plugin '{plugin}' has no list of tools outside a run of pydantic-ai: "
            f"{type(error).__name__}: {error}"
        ) from error
    asks = any(isinstance(part, ApprovalRequiredToolset) for part in _parts(whole))
    asking = whole.visit_and_replace(_InertToolset) if asks else None
    given = parameters or Parameters()
    return ToolsetPlugin(toolset=toolset, tools=Frozen(tools), of_run=of_run, asking=asking, parameters=given)


@dataclass
class _InertToolset(WrapperToolset[Any]):
    """A toolset whose calls do nothing."""

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> None:
        """Return nothing."""


def _complete_toolset(toolset: AbstractToolset[Any], plugin: str) -> tuple[AbstractToolset[Any], bool]:
    """Return a toolset with all that it may have, and whether each run is asked what there is of it."""
    get_tools = type(toolset).get_tools
    match toolset:
        case WrapperToolset() if get_tools in _DECIDING:
            inner, of_run = _complete_toolset(toolset.wrapped, plugin)
            return inner, of_run or not isinstance(toolset, _FOR_EVERY_RUN)
        case WrapperToolset():
            inner, of_run = _complete_toolset(toolset.wrapped, plugin)
            return _copy_with(toolset, wrapped=inner), of_run or get_tools not in _PASSING
        case CombinedToolset() if get_tools is CombinedToolset.get_tools:
            parts = [_complete_toolset(part, plugin) for part in toolset.toolsets]
            return replace(toolset, toolsets=[part for part, _ in parts]), any(of_run for _, of_run in parts)
        case FunctionToolset() if get_tools is FunctionToolset.get_tools:
            if not any(tool.prepare for tool in toolset.tools.values()):
                return toolset, False
            return _copy_with(
                toolset, tools={name: _copy_with(one, prepare=None) for name, one in toolset.tools.items()}
            ), True
        case DynamicToolset():
            raise ToolUnavailableError(
                f"plugin '{plugin}' has a toolset that is made for each run, so that no tool of it is known before: "
                "give it to the agent itself, Agent(toolsets=[...])."
            )
        case _:
            return toolset, not (isinstance(toolset, ExternalToolset) or _is_server(toolset))


def _is_server(toolset: AbstractToolset[Any]) -> bool:
    """Return whether a toolset is that of an MCP server, which has the same tools for every run."""
    return type(toolset).get_tools.__module__ == "pydantic_ai.mcp"


def _copy_with(one: Any, **changes: Any) -> Any:
    """Return a copy with other attributes."""
    made = copy(one)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _parts(toolset: AbstractToolset[Any]) -> Iterator[AbstractToolset[Any]]:
    """Yield a toolset and all that it wraps or combines."""
    yield toolset
    inner = toolset.toolsets if isinstance(toolset, CombinedToolset) else ()
    for part in (toolset.wrapped,) if isinstance(toolset, WrapperToolset) else inner:
        yield from _parts(part)


def _run_under_way() -> RunContext[Any] | None:
    """Return the context of the run of pydantic-ai that uses a session here."""
    run = FRAMEWORK_RUN.get()
    return cast("RunContext[Any]", run.context) if run is not None and isinstance(run.context, RunContext) else None


def _no_run() -> RunContext[Any]:
    return RunContext(deps=None, model=TestModel(), usage=RunUsage())


def _context() -> RunContext[Any]:
    """Return the context of the run of pydantic-ai that is under way here, else one without dependencies."""
    return _run_under_way() or run_around()() or _no_run()


@cache
def run_around() -> Callable[[], RunContext[Any] | None]:
    """Return what knows the run in which a program's own code uses a session."""
    try:
        from pydantic_ai._run_context import get_current_run_context
    except ImportError:
        _LOG.warning(
            "This version of pydantic-ai does not say which run is under way: a tool of a toolset that an agent's own "
            "code calls through a session has no dependencies. Give the session to SessionTools."
        )
        return lambda: None
    return get_current_run_context


async def _validate_arguments(tool: ToolsetTool[Any], arguments: JsonObject, run: RunContext[Any]) -> dict[str, Any]:
    """Return the arguments of a call as its tool takes them, by its schema and by its own check."""
    given: Any = tool.args_validator.validate_python(dict(arguments), context=run.validation_context)
    if tool.args_validator_func is not None:
        checked = tool.args_validator_func(run, **given)
        if isawaitable(checked):
            await checked
    return given


def _note_beside(tool: str, beside: FrameworkResult) -> None:
    """Note what the run under way does with a call beside its result."""
    run = FRAMEWORK_RUN.get()
    if run is not None:
        run.returned[tool] = beside


def _result(value: Any) -> CallResult:
    """Return what a tool returned in MCP's shapes."""
    returned = value.return_value if isinstance(value, ToolReturn) else value
    return as_result(returned.data if isinstance(returned, BinaryContent) else returned)
