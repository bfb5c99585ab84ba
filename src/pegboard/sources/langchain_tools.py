"""Tools of LangChain as plugins: one `BaseTool`, or a list of them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Manifest, Tool
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, HookAnswer
from pegboard.sources.signatures import Parameters, as_result, called, failure, given_up, refused_override
from pegboard.sources.stdout import plugin_output

_HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True, kw_only=True)
class LangChainPlugin:
    """Tools of LangChain that are ready to be called, by name."""

    tools: Mapping[str, BaseTool]
    parameters: Parameters

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the tools."""
        return Manifest(
            tools=tuple(_described(tool, plugin) for tool in self.tools.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
        )

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:  # noqa: ARG002
        """Run a tool as an agent of LangChain would; what it raises is an error result."""
        tool = called(self.tools, plugin, name)
        call = {"type": "tool_call", "id": secrets.token_hex(6), "name": name, "args": dict(arguments)}
        try:
            with plugin_output():
                return _result(await tool.ainvoke(call))
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
        """Return nothing: tools of LangChain have no hooks of ours."""
        return HookAnswer()

    def predicate(self, name: str) -> None:
        """Return nothing: tools of LangChain have no predicates."""

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


def _described(tool: BaseTool, plugin: str) -> Tool:
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
    )


def _drops_unknown_arguments(tool: BaseTool) -> bool:
    """Return whether LangChain runs a tool without the arguments that its model does not have, and says nothing."""
    model: Any = tool.args_schema
    return isinstance(model, type) and getattr(model, "model_config", EMPTY).get("extra") != "allow"


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
