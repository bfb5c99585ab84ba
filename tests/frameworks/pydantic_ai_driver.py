"""pydantic-ai for the shared tests, with its own `FunctionModel` as the model."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from framework_drivers import Call, ModelCall, Ran, Script, Step
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from pegboard import Pegboard, Session
from pegboard.frameworks.pydantic_ai import SessionTools, delegate_to


class PydanticAI:
    """The driver."""

    name = "pydantic-ai"
    tools_change = "call"

    def talk(self, session: Session) -> "PydanticTalk":
        return PydanticTalk(session)

    def delegate(self, board: Pegboard, *steps: Step) -> Script:
        script = Script(*steps)
        board.on_delegate = delegate_to(Agent(scripted(lambda: script)))
        return script


class PydanticTalk:
    """A conversation with a history of messages."""

    def __init__(self, session: Session) -> None:
        self._script = Script()
        self.messages: list[ModelMessage] = []
        self._waiting = DeferredToolRequests()
        self.agent = Agent(
            scripted(lambda: self._script),
            output_type=[str, DeferredToolRequests],
            capabilities=[SessionTools(session)],
        )

    async def run(self, message: str, *steps: Step, stream: bool = False) -> Ran:
        self._script = Script(*steps)
        if not stream:
            return self._ran(await self.agent.run(message, message_history=self.messages))
        async with self.agent.run_stream(message, message_history=self.messages) as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
        self.messages = result.all_messages()
        return Ran(calls=tuple(self._script.calls), answer="".join(pieces), pieces=tuple(pieces))

    async def decide(self, *steps: Step, allow: bool, reason: str = "") -> Ran:
        self._script = Script(*steps)
        decision = ToolApproved() if allow else ToolDenied(reason)
        results = DeferredToolResults(approvals={call.tool_call_id: decision for call in self._waiting.approvals})
        return self._ran(await self.agent.run(message_history=self.messages, deferred_tool_results=results))

    def _ran(self, result: Any) -> Ran:
        self.messages = result.all_messages()
        calls = tuple(self._script.calls)
        if isinstance(result.output, DeferredToolRequests):
            self._waiting = result.output
            return Ran(calls=calls, waiting=tuple(call.tool_name for call in result.output.approvals))
        return Ran(calls=calls, answer=result.output)


def scripted(script: Callable[[], Script]) -> FunctionModel:
    """Return a model that answers by the script of the moment."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given = await script().answer(carried(messages, info))
        if isinstance(given, str):
            return ModelResponse(parts=[TextPart(given)])
        return ModelResponse(parts=[ToolCallPart(call.name, dict(call.arguments)) for call in given])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        given = await script().answer(carried(messages, info))
        if isinstance(given, str):
            for word in given.split(" "):
                yield f"{word} "
            return
        for index, call in enumerate(given):
            yield {index: delta(call)}

    return FunctionModel(answer, stream_function=stream)


def delta(call: Call) -> DeltaToolCall:
    return DeltaToolCall(name=call.name, json_args=json.dumps(call.arguments))


def carried(messages: list[ModelMessage], info: AgentInfo) -> ModelCall:
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    return ModelCall(
        tools=tuple(tool.name for tool in info.function_tools),
        schemas={tool.name: tool.parameters_json_schema for tool in info.function_tools},
        system="\n".join([info.instructions or "", *(text for request in requests for text in system_texts(request))]),
        results=tuple(part.model_response_str() for part in requests[-1].parts if isinstance(part, ToolReturnPart)),
    )


def system_texts(request: ModelRequest) -> list[str]:
    """Return what the system adds within the history; a model that takes none there gets it tagged."""
    texts = [part.content for part in request.parts if isinstance(part, SystemPromptPart | UserPromptPart)]
    tagged = [text for text in texts if isinstance(text, str) and text.startswith("<system>")]
    return [part.content for part in request.parts if isinstance(part, SystemPromptPart)] + tagged
