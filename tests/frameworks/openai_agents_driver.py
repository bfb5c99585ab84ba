"""OpenAI Agents for the shared tests, with the SDK's own `ScriptedModel` as the model."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from agents import (
    Agent,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunContextWrapper,
    Runner,
    RunState,
    Usage,
    set_tracing_disabled,
)
from agents.testing import ModelCall as Request
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from framework_drivers import Call, Final, Form, ModelCall, Ran, Script, Step, Wish
from openai import AsyncOpenAI
from openai.types.responses import ResponseOutputText, ResponseTextDeltaEvent
from pydantic import BaseModel

from pegboard import Pegboard, Session
from pegboard.frameworks.openai_agents import delegate_to, equip

set_tracing_disabled(True)


class OpenAIAgents:
    """The driver."""

    name = "openai-agents"
    tools_change: Literal["call", "run"] = "call"
    form: Form = "responses"
    cannot: Mapping[Wish, str] = MappingProxyType({"login": "an interruption is asked for before the call"})

    def talk(
        self,
        session: Session,
        *,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> "OpenAIAgentsTalk":
        return OpenAIAgentsTalk(session, deps, structured, stored, url)

    def delegate(self, board: Pegboard, *steps: Step) -> Script:
        def named(run: RunContextWrapper[str], agent: Agent[str]) -> str:
            return f"For {run.context}."

        script = Script(*steps)
        board.on_delegate = delegate_to(Agent(name="Worker", instructions=named, model=scripted(script)))
        return script


class Counted(BaseModel):
    count: int


class OpenAIAgentsTalk:
    """A conversation with a history of items, and the state of a run that waits."""

    def __init__(
        self,
        session: Session,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> None:
        self._model = ScriptedModel(default_usage=Usage(requests=1))
        self._deps = deps
        model = self._model if url is None else model_of_form("responses", url)
        self.agent = equip(Agent(name="Talker", model=model, output_type=Counted if structured else None), session)
        self.items: list[Any] = []
        self._state: Any = None
        if stored is not None:
            self.items, self._state = json.loads(stored)

    async def run(self, message: str, *steps: Step, stream: bool = False) -> Ran:
        script = self._script(steps, words=stream)
        given: Any = [*self.items, {"role": "user", "content": message}]
        if not stream:
            return self._ran(script, await Runner.run(self.agent, given, context=self._deps))
        result = Runner.run_streamed(self.agent, given, context=self._deps)
        raw = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
        pieces = tuple(event.delta for event in raw if isinstance(event, ResponseTextDeltaEvent))
        self._ran(script, result)
        return Ran(calls=tuple(script.calls), answer="".join(pieces), pieces=pieces)

    async def decide(self, *steps: Step, allow: bool, reason: str = "") -> Ran:
        state = await RunState.from_json(self.agent, self._state)
        script = self._script(steps)
        for waiting in state.get_interruptions():
            state.approve(waiting) if allow else state.reject(waiting, rejection_message=reason)
        return self._ran(script, await Runner.run(self.agent, state))

    async def summarise(self, text: str) -> None:
        self.items = [{"role": "user", "content": text}]

    def stored(self) -> bytes:
        return json.dumps([self.items, self._state]).encode()

    def _script(self, steps: Sequence[Step], *, words: bool = False) -> Script:
        script = Script(*steps)
        self._model.__dict__["_steps"].clear()
        self._model.extend(steps_of(script, words=words))
        return script

    def _ran(self, script: Script, result: Any) -> Ran:
        calls, requests = tuple(script.calls), result.context_wrapper.usage.requests
        self._state = result.to_state().to_json() if result.interruptions else None
        if result.interruptions:
            return Ran(calls=calls, waiting=tuple(one.name for one in result.interruptions), requests=requests)
        self.items = result.to_input_list()
        if isinstance(result.final_output, Counted):
            return Ran(calls=calls, output=result.final_output.model_dump(), requests=requests)
        return Ran(calls=calls, answer=str(result.final_output), requests=requests)


def model_of_form(form: str, url: str) -> Model:
    """Return the SDK's own model of OpenAI, over Responses or Chat Completions."""
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    return (OpenAIResponsesModel if form == "responses" else OpenAIChatCompletionsModel)("gpt-5.4", client)


def scripted(script: Script) -> ScriptedModel:
    return ScriptedModel(steps_of(script), default_usage=Usage(requests=1))


def steps_of(script: Script, *, words: bool = False) -> list[ModelStep]:
    """Return more steps than any script has, each of which asks the script when its turn comes.

    With ``words`` each word of a text is a part of its own: the SDK's model streams a part as one piece.
    """

    async def answer(request: Request) -> ModelStep:
        given = await script.answer(carried(request))
        step = len(script.calls)
        if isinstance(given, Final):
            given = json.dumps(given.value)
        if isinstance(given, str):
            message: Any = assistant_message(given)
            if words:
                message.content = [part(f"{word} ") for word in given.split(" ")]
            return ModelStep(output=[message])
        return ModelStep(output=[made(call, f"call_{id(script)}_{step}_{n}") for n, call in enumerate(given)])

    return [ModelStep.respond(answer) for _ in range(20)]


def part(text: str) -> ResponseOutputText:
    return ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])


def made(call: Call, call_id: str) -> Any:
    return function_call(call.name, dict(call.arguments), call_id=call_id)


def carried(request: Request) -> ModelCall:
    items: Any = request.input if isinstance(request.input, list) else [{"role": "user", "content": request.input}]
    outputs: list[str] = []
    notes = [item["content"] for item in items if str(item.get("content", "")).startswith("<system>")]
    for item in reversed([one for one in items if one.get("content") not in notes]):
        if item.get("type") != "function_call_output":
            break
        outputs.insert(0, item["output"] if isinstance(item["output"], str) else json.dumps(item["output"]))
    tools: Any = request.tools
    return ModelCall(
        tools=tuple(tool.name for tool in tools),
        schemas={tool.name: tool.params_json_schema for tool in tools},
        system="\n".join([request.system_instructions or "", *notes]),
        results=tuple(outputs),
        required=request.model_settings.tool_choice == "required",
    )
