"""LangChain for the shared tests, with a scripted chat model of its own base class."""

import pickle
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from framework_drivers import Call, Final, Form, ModelCall, Ran, Script, Step, Wish
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain.agents.structured_output import ToolStrategy
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import UsageMetadataCallbackHandler
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command
from pydantic import BaseModel, Field

from pegboard import Pegboard, Session
from pegboard.frameworks.langchain import SessionTools, delegate_to

ONE_TOKEN = {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1}


class LangChain:
    """The driver."""

    name = "langchain"
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
    ) -> "LangChainTalk":
        return LangChainTalk(session, deps, structured, stored, url)

    def delegate(self, board: Pegboard, *steps: Step) -> Script:
        script = Script(*steps)

        @dynamic_prompt
        def named(request: ModelRequest[Any]) -> str:
            return f"For {request.runtime.context}."

        model = ScriptedChat(script=script)
        board.on_delegate = delegate_to(lambda child: create_agent(model, middleware=[named, SessionTools(child)]))
        return script


class Counted(BaseModel):
    """How many there are."""

    count: int


class LangChainTalk:
    """A conversation in one thread of a checkpointer, which has its history."""

    def __init__(
        self,
        session: Session,
        deps: str | None = None,
        structured: bool = False,
        stored: bytes | None = None,
        url: str | None = None,
    ) -> None:
        self._model = ScriptedChat()
        self._deps = deps
        self._saver = InMemorySaver()
        if stored is not None:
            storage, writes, blobs = pickle.loads(stored)
            self._saver.writes.update(writes)
            self._saver.blobs.update(blobs)
            for thread, ns, checkpoint, saved in storage:
                self._saver.storage[thread][ns][checkpoint] = saved
        self.agent: Any = create_agent(
            self._model if url is None else claude(url),
            middleware=[SessionTools(session)],
            response_format=ToolStrategy(Counted) if structured else None,
            checkpointer=self._saver,
        )

    async def run(self, message: str, *steps: Step, stream: bool = False) -> Ran:
        return await self._go({"messages": [("user", message)]}, steps, stream)

    async def decide(self, *steps: Step, allow: bool, reason: str = "") -> Ran:
        decision = {"type": "approve"} if allow else {"type": "reject", "message": reason}
        state = await self.agent.aget_state(self._config())
        return await self._go(Command(resume={one.id: decision for one in state.interrupts}), steps)

    async def summarise(self, text: str) -> None:
        messages = [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage(text)]
        await self.agent.aupdate_state(self._config(), {"messages": messages}, as_node="model")

    def stored(self) -> bytes:
        storage = [
            (thread, ns, checkpoint, saved)
            for thread, spaces in self._saver.storage.items()
            for ns, checkpoints in spaces.items()
            for checkpoint, saved in checkpoints.items()
        ]
        return pickle.dumps((storage, dict(self._saver.writes), dict(self._saver.blobs)))

    async def _go(self, given: Any, steps: Sequence[Step], stream: bool = False) -> Ran:
        self._model.script = script = Script(*steps)
        usage = UsageMetadataCallbackHandler()
        config = {**self._config(), "callbacks": [usage]}
        pieces = []
        if stream:
            parts = self.agent.astream(given, config, stream_mode="messages", context=self._deps)
            pieces = [part.text async for part, _ in parts if isinstance(part, AIMessageChunk) and part.text]
        else:
            await self.agent.ainvoke(given, config, context=self._deps)
        state = await self.agent.aget_state(self._config())
        waiting = tuple(one.value["name"] for one in state.interrupts)
        output = state.values.get("structured_response")
        return Ran(
            calls=tuple(script.calls),
            answer="" if waiting or output else state.values["messages"][-1].text,
            output=output.model_dump() if output else None,
            requests=sum(used["input_tokens"] for used in usage.usage_metadata.values()),
            pieces=tuple(pieces),
            waiting=waiting,
            logins=tuple(one.value["login"]["url"] for one in state.interrupts if "login" in one.value),
        )

    def _config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": "talk"}}


def claude(url: str) -> ChatAnthropic:
    given: dict[str, Any] = {"model": "claude-sonnet-4-5", "base_url": url, "api_key": "none", "max_retries": 0}
    return ChatAnthropic(**given)


class ScriptedChat(FakeMessagesListChatModel):
    """A model that follows a script."""

    responses: list[BaseMessage] = Field(default_factory=list)
    script: Any = Field(default_factory=Script)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=tools, **kwargs)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **request: Any) -> ChatResult:
        answer = await self.script.answer(carried(messages, request.get("tools") or (), request.get("tool_choice")))
        return ChatResult(generations=[ChatGeneration(message=message_of(answer, len(self.script.calls)))])

    def _generate(self, messages: list[BaseMessage], *args: Any, **request: Any) -> ChatResult:
        coroutine = self._agenerate(messages, *args, **request)
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("a script for a run that blocks waits for nothing")

    async def _astream(self, *args: Any, **request: Any) -> AsyncIterator[ChatGenerationChunk]:
        whole = (await self._agenerate(*args, **request)).generations[0].message
        for chunk in chunks(whole):
            yield chunk

    def _stream(self, *args: Any, **request: Any) -> Iterator[ChatGenerationChunk]:
        yield from chunks(self._generate(*args, **request).generations[0].message)


def message_of(answer: str | Sequence[Call] | Final, step: int) -> AIMessage:
    if isinstance(answer, str):
        return AIMessage(answer, usage_metadata=ONE_TOKEN, response_metadata={"model_name": "scripted"})
    if isinstance(answer, Final):
        answer = [Call(name="Counted", arguments=answer.value)]
    calls = [
        {"id": f"call_{step}_{index}", "name": call.name, "args": dict(call.arguments)}
        for index, call in enumerate(answer)
    ]
    return AIMessage("", tool_calls=calls, usage_metadata=ONE_TOKEN, response_metadata={"model_name": "scripted"})


def chunks(whole: Any) -> Iterator[ChatGenerationChunk]:
    for word in whole.text.split(" "):
        yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} " if word else ""))
    rest = AIMessageChunk(
        content="",
        tool_calls=whole.tool_calls,
        usage_metadata=whole.usage_metadata,
        response_metadata=whole.response_metadata,
    )
    yield ChatGenerationChunk(message=rest)


def carried(messages: Sequence[BaseMessage], tools: Sequence[Any], choice: object = None) -> ModelCall:
    functions = [tool["function"] for tool in tools if isinstance(tool, dict)]
    texts = [message.text.partition("\n\n<system>") for message in messages]
    system = [text for message, (text, _, _) in zip(messages, texts, strict=True) if isinstance(message, SystemMessage)]
    since = max((i for i, message in enumerate(messages) if isinstance(message, AIMessage)), default=len(messages))
    return ModelCall(
        tools=tuple(function["name"] for function in functions),
        schemas={function["name"]: function["parameters"] for function in functions},
        system="\n".join([*system, *(note for _, _, note in texts if note)]),
        results=tuple(
            texts[i][0] for i, message in enumerate(messages) if i > since and isinstance(message, ToolMessage)
        ),
        required=choice == "any",
    )
