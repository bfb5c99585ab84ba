"""pydantic-ai for the shared tests, with its own `FunctionModel` as the model."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from framework_drivers import Call, Final, Form, ModelCall, Ran, Script, Step, Wish
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from pegboard import Pegboard, Session
from pegboard.frameworks.pydantic_ai import SessionTools, delegate_to


class PydanticAI:
    """The driver."""

    name = "pydantic-ai"
    tools_change: Literal["call", "run"] = "call"
    form: Form = "anthropic"
    cannot: Mapping[Wish, str] = MappingProxyType({})

    def talk(
        self,
        session: Session,
        *,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> "PydanticTalk":
        return PydanticTalk(session, deps, structured, stored, url)

    def delegate(self, board: Pegboard, *steps: Step) -> Script:
        script = Script(*steps)
        agent = Agent(scripted(lambda: script), deps_type=str)

        @agent.instructions
        def named(ctx: RunContext[str]) -> str:
            return f"For {ctx.deps}."

        board.on_delegate = delegate_to(agent)
        return script


class Counted(BaseModel):
    count: int


class PydanticTalk:
    """A conversation with a history of messages."""

    def __init__(
        self,
        session: Session,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> None:
        self._script = Script()
        self._deps = deps
        self.messages: list[ModelMessage] = ModelMessagesTypeAdapter.validate_json(stored) if stored else []
        self._waiting = [
            part.tool_call_id
            for message in self.messages[-1:]
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        self.agent: Agent[Any, Any] = Agent(
            scripted(lambda: self._script) if url is None else model_of_form("anthropic", url),
            output_type=[Counted if structured else str, DeferredToolRequests],
            capabilities=[SessionTools(session)],
        )

    async def run(self, message: str, *steps: Step, stream: bool = False) -> Ran:
        self._script = Script(*steps)
        if not stream:
            return self._ran(await self.agent.run(message, message_history=self.messages, deps=self._deps))
        async with self.agent.run_stream(message, message_history=self.messages, deps=self._deps) as result:
            pieces = [piece async for piece in result.stream_text(delta=True, debounce_by=None)]
        self.messages = result.all_messages()
        return Ran(calls=tuple(self._script.calls), answer="".join(pieces), pieces=tuple(pieces))

    async def decide(self, *steps: Step, allow: bool, reason: str = "") -> Ran:
        self._script = Script(*steps)
        decision = ToolApproved() if allow else ToolDenied(reason)
        results = DeferredToolResults(approvals=dict.fromkeys(self._waiting, decision))
        return self._ran(
            await self.agent.run(message_history=self.messages, deferred_tool_results=results, deps=self._deps)
        )

    async def summarise(self, text: str) -> None:
        self.messages = [ModelRequest(parts=[UserPromptPart(text)]), ModelResponse(parts=[TextPart("I see.")])]

    def stored(self) -> bytes:
        return ModelMessagesTypeAdapter.dump_json(self.messages)

    def _ran(self, result: Any) -> Ran:
        self.messages = result.all_messages()
        calls, output, requests = tuple(self._script.calls), result.output, result.usage.requests
        if isinstance(output, DeferredToolRequests):
            self._waiting = [call.tool_call_id for call in output.approvals]
            waiting = tuple(call.tool_name for call in output.approvals)
            logins = tuple(about["login"]["url"] for about in output.metadata.values() if "login" in about)
            return Ran(calls=calls, waiting=waiting, logins=logins, requests=requests)
        if isinstance(output, Counted):
            return Ran(calls=calls, output=output.model_dump(), requests=requests)
        return Ran(calls=calls, answer=output, requests=requests)


def model_of_form(form: str, url: str, *, claude: str = "claude-sonnet-4-5") -> Model:
    """Return the framework's own model of a provider: Anthropic's, or OpenAI's over Responses or Chat Completions."""
    if form == "anthropic":
        return AnthropicModel(claude, provider=AnthropicProvider(base_url=url, api_key="none"))
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    kind: Any = OpenAIResponsesModel if form == "responses" else OpenAIChatModel
    return kind("gpt-5.4", provider=OpenAIProvider(openai_client=client))


def scripted(script: Callable[[], Script]) -> FunctionModel:
    """Return a model that answers by the script of the moment."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given = await script().answer(carried(messages, info))
        if isinstance(given, str):
            return ModelResponse(parts=[TextPart(given)])
        if isinstance(given, Final):
            return ModelResponse(parts=[ToolCallPart("final_result", dict(given.value))])
        return ModelResponse(parts=[ToolCallPart(call.name, dict(call.arguments)) for call in given])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        given = await script().answer(carried(messages, info))
        if isinstance(given, str):
            for word in given.split(" "):
                yield f"{word} "
            return
        assert not isinstance(given, Final)
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
        required=isinstance((info.model_settings or {}).get("tool_choice"), list),
    )


def system_texts(request: ModelRequest) -> list[str]:
    """Return what the system adds within the history; a model that takes none there gets it tagged."""
    texts = [part.content for part in request.parts if isinstance(part, SystemPromptPart | UserPromptPart)]
    tagged = [text for text in texts if isinstance(text, str) and text.startswith("<system>")]
    return [part.content for part in request.parts if isinstance(part, SystemPromptPart)] + tagged
