"""Tools of LangChain as plugins: one `BaseTool`, or a list of them."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as SingleInputTool

from pegboard.core.access.settings.predicates import OF_RUN
from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Manifest, Tool, text_result
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkResult
from pegboard.sources.langchain.injection import injected_into, runtime_of, with_injected
from pegboard.sources.signatures import (
    Parameters,
    WithoutHooks,
    as_result,
    failure,
    find_tool,
    is_abandoned,
    refused_override,
    run_in_thread,
)
from pegboard.sources.stdout import plugin_output

_HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True, kw_only=True)
class LangChainPlugin(WithoutHooks):
    """Tools of LangChain that are ready to be called, by name."""

    tools: Mapping[str, BaseTool]
    parameters: Parameters

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the tools."""
        return Manifest(
            tools=tuple(_describe_tool(tool, plugin) for tool in self.tools.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
        )

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:  # noqa: ARG002
        """Run a tool as an agent of LangChain would; what it raises is an error result."""
        tool = find_tool(self.tools, plugin, name)
        call = {"type": "tool_call", "id": secrets.token_hex(6), "name": name, "args": dict(arguments)}
        run, injected = FRAMEWORK_RUN.get(), injected_into(tool)
        runtime, beside = runtime_of(run), FrameworkResult(ends=tool.return_direct)
        given = {} if run is None else {key: run.given[key] for key in injected.own if key in run.given}
        if fault := injected.fault(runtime, given):
            raise ToolUnavailableError(f"'{name}' of plugin '{plugin}': {fault}")
        try:
            with plugin_output():
                if run is None or runtime is None:
                    return _result(await _invoke_tool(tool, call))
                run.returned[f"{plugin}/{name}"] = beside
                filled = with_injected({**call, "args": {**call["args"], **given}}, injected, runtime)
                return _result_of(await _invoke_tool(tool, filled, runtime.config), beside)
        except BaseException as error:  # whatever the tool's code raises is its own failure
            if is_abandoned(error):
                raise
            beside.raised = error
            return failure(error)

    def predicate(self, name: str) -> Callable[..., Awaitable[bool | str]] | None:
        """Return what asks the run under way for what a tool takes of it."""
        return partial(self._has_tool, name.removeprefix(OF_RUN)) if name.startswith(OF_RUN) else None

    async def _has_tool(self, name: str, *_: object) -> bool | str:
        return injected_into(self.tools[name]).fault(runtime_of(FRAMEWORK_RUN.get())) or True

    async def aclose(self) -> None:
        """Close nothing: whatever the tools hold belongs to who made them."""


def adopt(
    target: object, overrides: JsonObject, *, plugin: str, parameters: Parameters | None = None
) -> LangChainPlugin | None:
    """Return the plugin that a tool of LangChain, or a list of nothing else, stands for; None for what is neither.

    Raises ``ToolUnavailableError``.
    """
    found = [target] if isinstance(target, BaseTool) else target
    if not isinstance(found, list | tuple):
        return None
    items = list(cast("Iterable[object]", found))
    tools = [one for one in items if isinstance(one, BaseTool)]
    if not tools or len(tools) < len(items):
        return None
    for name in overrides:
        raise refused_override(plugin, name, ())
    named = {tool.name: tool for tool in tools}
    if len(named) < len(tools):
        twice = next(tool.name for tool in tools if named[tool.name] is not tool)
        raise ToolUnavailableError(f"plugin '{plugin}' has two tools named '{twice}'.")
    return LangChainPlugin(tools=Frozen(named), parameters=parameters or Parameters())


def _describe_tool(tool: BaseTool, plugin: str) -> Tool:
    shown: Any = tool.tool_call_schema
    schema: Any = cast("Any", shown) if isinstance(shown, dict) else shown.model_json_schema()
    if schema.get("properties") and _drops_unknown_arguments(tool):  # models fill in something where there is nothing
        schema = {**schema, "additionalProperties": False}
    return Tool(
        plugin=plugin,
        name=tool.name,
        description=tool.description,
        input_schema=Frozen({key: value for key, value in schema.items() if key not in ("title", "description")}),
        annotations=Frozen({key: value for key, value in (tool.metadata or {}).items() if key in _HINTS}),
        when=(f"{OF_RUN}{tool.name}",) if injected_into(tool).of_run else (),
    )


def _drops_unknown_arguments(tool: BaseTool) -> bool:
    """Return whether LangChain runs a tool without the arguments that its model does not have, and says nothing."""
    model: Any = tool.args_schema
    return isinstance(model, type) and getattr(model, "model_config", EMPTY).get("extra") != "allow"


async def _invoke_tool(tool: BaseTool, call: Any, config: Any = None) -> Any:
    """Return what a tool answers; a function that blocks has a thread of Pegboard's, which keeps nothing waiting."""
    if (
        type(tool).ainvoke in (StructuredTool.ainvoke, SingleInputTool.ainvoke)
        and getattr(tool, "coroutine", 0) is None
    ):
        return await run_in_thread(tool.invoke, call, config)
    return await tool.ainvoke(call, config)


def _result_of(answer: Any, beside: FrameworkResult) -> CallResult:
    """Return the result of a call in a run; of commands, that is the message in them."""
    parts = cast("list[Any]", answer if isinstance(answer, list) else [answer])
    commands = [one for one in parts if type(one).__name__ == "Command"]
    if not commands:
        artifact: object = getattr(answer, "artifact", None)
        beside.artifact = None if isinstance(artifact, dict) else artifact
        return _result(answer)
    beside.update = parts
    found = [one for one in parts if isinstance(one, ToolMessage)]
    for one in commands:
        update: Any = one.update
        messages = update.get("messages", ()) if isinstance(update, dict) else ()
        found.extend(message for message in cast("Any", messages) if isinstance(message, ToolMessage))
    return _result(found[0]) if found else text_result("Done.")


def _result(answer: Any) -> CallResult:
    """Return what a tool returned in MCP's shapes; an artifact that is an object is structured content."""
    if not isinstance(answer, ToolMessage):
        return as_result(answer)
    content = (
        ({"type": "text", "text": answer.content},)
        if isinstance(answer.content, str)
        else tuple(_block(dict(block)) for block in answer.content_blocks)
    )
    artifact: Any = answer.artifact
    structured = as_result(artifact).structured if isinstance(artifact, dict) else None
    return replace(CallResult(content=content, structured=structured), is_error=answer.status == "error", meta=EMPTY)


def _block(block: dict[str, Any]) -> JsonObject:
    match block:
        case {"type": "image" | "audio" as kind, "base64": str(data), "mime_type": str(mime_type)}:
            return {"type": kind, "data": data, "mimeType": mime_type}
        case {"type": "file", "base64": str(data), "mime_type": str(mime_type)}:
            about = {"uri": "pegboard://result", "mimeType": mime_type, "blob": data}
            return {"type": "resource", "resource": about}
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case _:
            return as_result(block).content[0]
