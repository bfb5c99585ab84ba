"""Agno for the shared tests, with a scripted model of its own base class."""

import json
import pickle
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.message import Message
from agno.models.openai import OpenAIChat
from agno.models.response import ModelResponse
from agno.run import RunContext
from agno.run.agent import RunContentEvent, RunOutput
from framework_drivers import Call, Final, Form, ModelCall, Ran, Script, Step, Wish
from pydantic import BaseModel

from pegboard import Pegboard, Session
from pegboard.frameworks.agno import delegate_to, equip


class Agno:
    """The driver."""

    name = "agno"
    tools_change: Literal["call", "run"] = "call"
    form: Form = "chat"
    cannot: Mapping[Wish, str] = MappingProxyType(
        {
            "usage": "Each run of Agno has metrics of its own.",
            "again": "Agno does not pause for a call that a person has decided: the model reads that it waits anew.",
        }
    )

    def talk(
        self,
        session: Session,
        *,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> "AgnoTalk":
        return AgnoTalk(session, deps, structured, stored, url)

    def delegate(self, board: Pegboard, *steps: Step) -> Script:
        script = Script(*steps)

        def named(run_context: RunContext) -> str:
            return f"For {(run_context.dependencies or {}).get('name')}."

        agent = agent_of(ScriptedModel(script=script))
        agent.instructions = named
        board.on_delegate = delegate_to(agent)
        return script


class Counted(BaseModel):
    count: int


class AgnoTalk:
    """A conversation in one session of Agno, which has its history."""

    def __init__(
        self,
        session: Session,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> None:
        self._model = ScriptedModel()
        client = self._model if url is None else OpenAIChat(id="gpt-4.1", base_url=f"{url}/v1", api_key="none")
        self.agent = equip(agent_of(client), session)
        self._db: Any = self.agent.db
        self.agent.output_schema = Counted if structured else None
        self._given: dict[str, Any] = {} if deps is None else {"dependencies": {"name": deps}}
        self._paused: RunOutput | None = None
        if stored is not None:
            sessions, paused = pickle.loads(stored)
            self._db.__dict__["_sessions"] = sessions
            self._paused = RunOutput.from_dict(paused)

    async def run(self, message: str, *steps: Step, stream: bool = False) -> Ran:
        script = self._script(steps)
        if not stream:
            return self._ran(script, await self.agent.arun(message, session_id="talk", **self._given))
        events = [event async for event in self.agent.arun(message, session_id="talk", stream=True)]
        pieces = [str(event.content) for event in events if isinstance(event, RunContentEvent)]
        return Ran(calls=tuple(script.calls), answer="".join(pieces), pieces=tuple(pieces))

    async def decide(self, *steps: Step, allow: bool, reason: str = "") -> Ran:
        assert self._paused is not None
        script = self._script(steps)
        for requirement in self._paused.active_requirements:
            requirement.confirm() if allow else requirement.reject(reason)
        decided = self._paused.requirements
        return self._ran(
            script,
            await self.agent.acontinue_run(run_id=self._paused.run_id, session_id="talk", requirements=decided),
        )

    async def summarise(self, text: str) -> None:
        self._db.__dict__["_sessions"].clear()  # Agno adds a summary of its own to the system's text
        self.agent.additional_context = text

    def stored(self) -> bytes:
        return pickle.dumps((self._db.__dict__["_sessions"], self._paused.to_dict() if self._paused else None))

    def _script(self, steps: Sequence[Step]) -> Script:
        self._model.script = Script(*steps)
        if isinstance(self.agent.model, ScriptedModel):
            self.agent.model.script = self._model.script
        return self._model.script

    def _ran(self, script: Script, run: RunOutput) -> Ran:
        self._paused = run if run.is_paused else None
        if self._paused is not None:
            waiting = tuple(str(tool.tool_name) for tool in run.tools or () if tool.is_paused)
            said = (word for tool in run.tools or () if tool.is_paused for word in str(tool.confirmation_note).split())
            return Ran(
                calls=tuple(script.calls), waiting=waiting, logins=tuple(w for w in said if w.startswith("http"))
            )
        if isinstance(run.content, Counted):
            return Ran(calls=tuple(script.calls), output=run.content.model_dump())
        return Ran(calls=tuple(script.calls), answer=str(run.content))


def agent_of(model: Model) -> Agent:
    return Agent(model=model, db=InMemoryDb(), add_history_to_context=True, num_history_runs=100, telemetry=False)


@dataclass
class ScriptedModel(Model):
    """A model that follows a script."""

    id: str = "scripted"
    name: str | None = "Scripted"
    provider: str | None = "tests"
    script: Script = field(default_factory=Script)
    watch: Callable[[Sequence[Message]], object] = len

    async def ainvoke(self, messages: list[Message], *args: Any, **request: Any) -> ModelResponse:
        self.watch(messages)
        answer = await self.script.answer(carried(messages, request.get("tools"), request.get("tool_choice")))
        if isinstance(answer, str):
            return ModelResponse(role="assistant", content=answer)
        if isinstance(answer, Final):
            return ModelResponse(role="assistant", content=json.dumps(answer.value))
        return ModelResponse(role="assistant", tool_calls=tool_calls(answer, len(self.script.calls)))

    async def ainvoke_stream(self, messages: list[Message], *args: Any, **request: Any) -> AsyncIterator[ModelResponse]:
        whole = await self.ainvoke(messages, *args, **request)
        for word in (whole.content or "").split(" "):
            yield ModelResponse(role="assistant", content=f"{word} " if word else None)
        yield ModelResponse(role="assistant", tool_calls=whole.tool_calls)

    def invoke(self, messages: list[Message], *args: Any, **request: Any) -> ModelResponse:
        return finished(self.ainvoke(messages, *args, **request))

    def invoke_stream(self, *args: Any, **request: Any) -> Iterator[ModelResponse]:
        yield self.invoke(*args, **request)

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response


def finished(coroutine: Any) -> Any:
    """Return what a coroutine returns that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a script for a run that blocks waits for nothing")


def tool_calls(calls: Sequence[Call], step: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{step}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(calls)
    ]


def carried(messages: Sequence[Message], tools: Sequence[Any] | None, choice: object = None) -> ModelCall:
    functions = [tool["function"] for tool in tools or ()]
    texts = [message.get_content_string().partition("\n\n<system>") for message in messages]
    system = [text for message, (text, _, _) in zip(messages, texts, strict=True) if message.role == "system"]
    since = max((i for i, message in enumerate(messages) if message.role == "assistant"), default=len(messages))
    return ModelCall(
        tools=tuple(function["name"] for function in functions),
        schemas={function["name"]: function["parameters"] for function in functions},
        system="\n".join([*system, *(note for _, _, note in texts if note)]),
        results=tuple(texts[i][0] for i, message in enumerate(messages) if i > since and message.role == "tool"),
        required=choice == "required",
    )
