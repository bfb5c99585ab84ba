"""A model of Agno that follows a script: calls of tools, then a text. For examples and tests without a provider."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from agno.models.base import Model
from agno.models.response import ModelResponse


class Scripted(Model):
    """A model that makes its calls in order, each `(name, arguments)`, and says its texts."""

    def __init__(self, script: Sequence[Any]) -> None:
        super().__init__(id="scripted")
        self.script = list(script)
        self.tools: list[list[str]] = []  # what it was given, request by request

    def invoke(self, *args: Any, **request: Any) -> ModelResponse:
        self.tools.append([tool["function"]["name"] for tool in request.get("tools") or ()])
        step = self.script.pop(0)
        if isinstance(step, str):
            return ModelResponse(content=step)
        name, arguments = step
        function = {"name": name, "arguments": json.dumps(arguments)}
        return ModelResponse(tool_calls=[{"id": f"call-{len(self.tools)}", "type": "function", "function": function}])

    async def ainvoke(self, *args: Any, **request: Any) -> ModelResponse:
        return self.invoke(*args, **request)

    def invoke_stream(self, *args: Any, **request: Any) -> Iterator[ModelResponse]:
        yield self.invoke(*args, **request)

    async def ainvoke_stream(self, *args: Any, **request: Any) -> AsyncIterator[ModelResponse]:
        yield self.invoke(*args, **request)

    def _parse_provider_response(self, response: ModelResponse, **_: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: ModelResponse) -> ModelResponse:
        return response
