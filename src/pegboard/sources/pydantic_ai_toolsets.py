"""Toolsets of pydantic-ai as plugins: a `FunctionToolset`, or what filters, renames or combines some."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic_ai import BinaryContent, RunContext, RunUsage, ToolReturn
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from pegboard.core.model.tools import CallResult, Confirmation, Frozen, JsonObject, Manifest, Tool
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.signatures import Parameters, as_result, called, failure, given_up, refused_override
from pegboard.sources.stdout import plugin_output

_KINDS: Final = {"unapproved": Confirmation(kind="confirm"), "external": Confirmation(kind="external")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetPlugin:
    """A toolset of pydantic-ai that is ready to be called."""

    toolset: AbstractToolset[Any]
    tools: Mapping[str, ToolsetTool[Any]]
    parameters: Parameters

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the toolset."""
        return Manifest(
            tools=tuple(_described(tool.tool_def, plugin) for tool in self.tools.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
        )

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:  # noqa: ARG002
        """Run a tool in the context of the run of pydantic-ai that calls it, else in an empty one."""
        tool = called(self.tools, plugin, name)
        run = replace(_context(), tool_name=name, tool_call_approved=True)
        try:
            with plugin_output():
                given: Any = tool.args_validator.validate_python(dict(arguments), context=run.validation_context)
                async with AsyncExitStack() as stack:
                    await stack.enter_async_context(self.toolset)
                    return _result(await self.toolset.call_tool(name, given, run, tool))
        except BaseException as error:  # whatever the tool's code raises is its own failure
            if given_up(error) or isinstance(error, asyncio.CancelledError):
                raise
            return failure(error)

    async def ask_hooks(
        self,
        plugin: str,  # noqa: ARG002
        name: str,  # noqa: ARG002
        arguments: JsonObject,  # noqa: ARG002
        context: CallContext,  # noqa: ARG002
    ) -> HookAnswer:
        """Return nothing: toolsets of pydantic-ai have no hooks of ours."""
        return HookAnswer()

    def predicate(self, name: str) -> None:
        """Return nothing: toolsets of pydantic-ai have no predicates."""

    async def aclose(self) -> None:
        """Close nothing: whatever the toolset holds belongs to who made it."""


def adopt(
    target: object, overrides: JsonObject, *, plugin: str, parameters: Parameters | None = None
) -> ToolsetPlugin | None:
    """Return the plugin that a toolset stands for; None for what is none. Blocks, and needs a thread without a loop."""
    if not isinstance(target, AbstractToolset):
        return None
    for name in overrides:
        raise refused_override(plugin, name, ())
    toolset = cast("AbstractToolset[Any]", target)
    tools = asyncio.run(toolset.get_tools(_context()))
    return ToolsetPlugin(toolset=toolset, tools=Frozen(tools), parameters=parameters or Parameters())


def _context() -> RunContext[Any]:
    """Return the context of the run of pydantic-ai that is going on here, else one without dependencies."""
    from pydantic_ai._run_context import get_current_run_context

    return get_current_run_context() or RunContext(deps=None, model=TestModel(), usage=RunUsage())


def _described(tool: ToolDefinition, plugin: str) -> Tool:
    return Tool(
        plugin=plugin,
        name=tool.name,
        description=tool.description or "",
        input_schema=Frozen(tool.parameters_json_schema),
        confirmation=_KINDS.get(tool.kind),
    )


def _result(value: Any) -> CallResult:
    """Return what a tool returned in MCP's shapes."""
    returned = value.return_value if isinstance(value, ToolReturn) else value
    return as_result(returned.data if isinstance(returned, BinaryContent) else returned)
