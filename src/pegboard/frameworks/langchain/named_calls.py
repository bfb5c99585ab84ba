"""Calls through ``call_tool`` as LangChain sees them: calls of the tools that they name.

The last thing before the provider's client is a twin of the model. It sends the history as the model wrote it and
names the calls of an answer, so that every middleware, callback and stream around the model knows the tools.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache, wraps
from typing import Any, Final, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from pegboard.core.model.tools import EMPTY
from pegboard.frameworks import runs
from pegboard.frameworks.langchain.answer_ends import StreamedArguments
from pegboard.support.encodable import encodable
from pegboard.wire.passed_on import THROUGH, CallThrough, passed_on

_PASSED: Final = "pegboard_calls"
"""Where an answer of the model has its calls through ``call_tool`` as it wrote them: its metadata, never sent."""
_BLOCKS: Final = "pegboard_blocks"
"""Where it has the blocks of its content that were such calls, by the id of the call."""
_CALLS: Final = ("tool_use", "function_call", "tool_call")
_MODEL_SLOTS: Final = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedTools:
    """What a request to a model knows of tools.

    Attributes:
        own: names of tools that the agent runs itself, which no call reaches through the session.
        defined: returns the definition of a tool of the session that is loaded and not in the list, or None.
    """

    own: frozenset[str]
    defined: Callable[[str], dict[str, Any] | None]


_REQUESTED: ContextVar[RequestedTools | None] = ContextVar("pegboard_requested_tools", default=None)


@contextmanager
def with_requested_tools(tools: RequestedTools) -> Generator[None, None, None]:
    """Let a twin of a model know the tools of the request meanwhile."""
    before = _REQUESTED.set(tools)
    try:
        yield
    finally:
        _REQUESTED.reset(before)


def with_tool_names(message: Any, own: Collection[str]) -> Any:
    """Return an answer whose calls through ``call_tool`` are those of the tools that they name.

    Args:
        message: what the model answered.
        own: names of tools that the agent runs itself.
    """
    if not isinstance(message, AIMessage):
        return message
    message = _encodable_calls(message)
    if not any(one["name"] in THROUGH for one in message.tool_calls):
        return message
    found = {one["id"] or "": passed_on(one["name"], one["args"], own) for one in message.tool_calls}
    passed = {call_id: one for call_id, one in found.items() if one is not None}
    if not passed:
        return message
    shown = {call_id: (one.name, one.arguments) for call_id, one in passed.items()}
    update = _renamed_calls(message, shown)
    blocks = {_id_of(block): block for block in _call_blocks(message) if _id_of(block) in passed}
    update["response_metadata"] = {
        **message.response_metadata,
        _PASSED: {call_id: asdict(one) for call_id, one in passed.items()},
        **({_BLOCKS: blocks} if blocks else {}),
    }
    return message.model_copy(update=update)


def _encodable_calls(message: AIMessage) -> AIMessage:
    """Return an answer whose calls UTF-8 can carry, since it goes back to the provider: a model may name halves."""
    calls = encodable(message.tool_calls)
    if calls is message.tool_calls:
        return message
    update: dict[str, Any] = {"tool_calls": calls, "content": encodable(message.content)}
    if isinstance(message, AIMessageChunk):
        update["tool_call_chunks"] = [
            tool_call_chunk(name=one["name"], args=json.dumps(one["args"]), id=one["id"], index=place)
            for place, one in enumerate(calls)
        ]
    return message.model_copy(update=update)


def messages_as_written(message: BaseMessage) -> BaseMessage:
    """Return an answer with its calls through ``call_tool`` as the model made them; another message as it is."""
    known = _passed_in(message)
    if not known or not isinstance(message, AIMessage):
        return message
    made: dict[str, tuple[str, dict[str, Any]]] = {}
    unchanged: set[str] = set()
    for one in message.tool_calls:
        if (passed := known.get(one["id"] or "")) is not None:
            made[one["id"] or ""] = passed.of_session(one["name"], one["args"])
            unchanged |= {one["id"] or ""} if (one["name"], one["args"]) == (passed.name, passed.arguments) else set()
    written: Mapping[str, Any] = message.response_metadata.get(_BLOCKS) or EMPTY
    update = _renamed_calls(message, made, {key: block for key, block in written.items() if key in unchanged})
    update["response_metadata"] = {
        key: value for key, value in message.response_metadata.items() if key not in (_PASSED, _BLOCKS)
    }
    return message.model_copy(update=update)


def call_for_session(messages: Sequence[BaseMessage], call: ToolCall) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of a call for the session, by the answer in which the model made it."""
    made_in = _answer_with(messages, call["id"])
    known = _passed_in(made_in).get(call["id"] or "") if made_in is not None else None
    return (call["name"], call["args"]) if known is None else known.of_session(call["name"], call["args"])


def added_by_host(messages: Sequence[BaseMessage], call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call that are not among those that the model gave it."""
    made_in = _answer_with(messages, call["id"])
    made = () if made_in is None else [one["args"] for one in made_in.tool_calls if one["id"] == call["id"]]
    return {key: value for key, value in call["args"].items() if made and key not in made[0]}


def _answer_with(messages: Sequence[BaseMessage], call_id: str | None) -> AIMessage | None:
    """Return the newest answer that has a call of this id, or None."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and any(one["id"] == call_id for one in message.tool_calls):
            return message
    return None


def naming_model(model: Any) -> Any | None:
    """Return a twin of a chat model that sends calls as they were written and answers with those of the tools.

    It shares everything with the model; of a twin it is that one. None for what is no chat model of LangChain's, as one
    that is chosen by the configuration of a run.
    """
    if not isinstance(model, BaseChatModel) or isinstance(model, _NamingModel):
        return model if isinstance(model, _NamingModel) else None
    kind = _twin_of(type(model))
    made: Any = kind.__new__(kind)
    for slot in _MODEL_SLOTS:
        object.__setattr__(made, slot, getattr(model, slot))
    return made


def _passed_in(message: BaseMessage) -> Mapping[str, CallThrough]:
    known: Mapping[str, Any] = message.response_metadata.get(_PASSED) or EMPTY
    return {call_id: CallThrough(**one) for call_id, one in known.items()}


def _renamed_calls(
    message: AIMessage, made: Mapping[str, tuple[str, dict[str, Any]]], blocks: Mapping[str, Any] = EMPTY
) -> dict[str, Any]:
    """Return what of an answer changes with the names and arguments of its calls, by their ids.

    Args:
        message: the answer.
        made: what the calls become.
        blocks: whole blocks of the content that take the place of those of a call.
    """
    update: dict[str, Any] = {"tool_calls": [_call(one, made.get(one["id"] or "")) for one in message.tool_calls]}
    if isinstance(message, AIMessageChunk):
        update["tool_call_chunks"] = [
            {**one, "name": made[one["id"] or ""][0], "args": json.dumps(made[one["id"] or ""][1])}
            if (one["id"] or "") in made
            else one
            for one in message.tool_call_chunks
        ]
    if _call_blocks(message):
        update["content"] = [_block(one, made, blocks) for one in message.content]
    return update


def _call(call: ToolCall, made: tuple[str, dict[str, Any]] | None) -> ToolCall:
    return call if made is None else {**call, "name": made[0], "args": made[1]}


def _call_blocks(message: AIMessage) -> list[dict[str, Any]]:
    """Return the blocks of a content that are calls."""
    if not isinstance(message.content, list):
        return []
    return [one for one in message.content if isinstance(one, dict) and one.get("type") in _CALLS]


def _id_of(block: Mapping[str, Any]) -> str:
    return str(block.get("call_id") or block.get("id") or "")


def _block(block: Any, made: Mapping[str, tuple[str, dict[str, Any]]], whole: Mapping[str, Any]) -> Any:
    """Return a block of a content with the name and the arguments of its call, where it is one of these."""
    if not isinstance(block, dict) or block.get("type") not in _CALLS:
        return block
    known = cast("dict[str, Any]", block)
    call_id = _id_of(known)
    if call_id in whole:
        return whole[call_id]
    if call_id not in made:
        return known
    name, arguments = made[call_id]
    changed: dict[str, Any] = {"name": name}
    for key in ("input", "args", "arguments", "partial_json"):
        if key in known:
            changed[key] = json.dumps(arguments) if isinstance(known[key], str) else arguments
    return {**known, **changed}


# -- the twin of a model ----------------------------------------------------------------------------


def _own_tools() -> Collection[str]:
    requested_tools = _REQUESTED.get()
    return () if requested_tools is None else requested_tools.own


def _wrap_generate(own: Any) -> Any:
    @wraps(own)
    def generate(self: Any, messages: list[BaseMessage], *args: Any, **request: Any) -> ChatResult:
        return _named_result(own(self, [*map(messages_as_written, messages)], *args, **request))

    return generate


def _generating_async(own: Any) -> Any:
    @wraps(own)
    async def generate(self: Any, messages: list[BaseMessage], *args: Any, **request: Any) -> ChatResult:
        return _named_result(await own(self, [*map(messages_as_written, messages)], *args, **request))

    return generate


def _named_result(result: ChatResult) -> ChatResult:
    own = _own_tools()
    generations: list[ChatGeneration] = []
    for one in result.generations:
        message = with_tool_names(one.message, own)
        generations.append(one if message is one.message else one.model_copy(update={"message": message}))
    return result.model_copy(update={"generations": generations})


def _wrap_stream(own: Any) -> Any:
    @wraps(own)
    def stream(self: Any, messages: list[BaseMessage], *args: Any, **request: Any) -> Iterator[ChatGenerationChunk]:
        parts = _HeldStreamParts(request)
        for part in own(self, [*map(messages_as_written, messages)], *args, **request):
            yield from parts.parts_to_pass_on(part)
        yield from parts.rest()

    return stream


def _streaming_async(own: Any) -> Any:
    @wraps(own)
    async def stream(
        self: Any, messages: list[BaseMessage], *args: Any, **request: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        parts = _HeldStreamParts(request)
        async for part in own(self, [*map(messages_as_written, messages)], *args, **request):
            for one in parts.parts_to_pass_on(part):
                yield one
        for one in parts.rest():
            yield one

    return stream


class _HeldStreamParts:
    """The parts of a streamed answer: held back from the first on that begins a call of another tool, or may do so.

    Args:
        request: what the stream is asked with; it loses what would report the parts as the provider sends them.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        request.pop("run_manager", None)
        self._held: ChatGenerationChunk | None = None
        self._arguments = StreamedArguments()

    def parts_to_pass_on(self, part: ChatGenerationChunk) -> tuple[ChatGenerationChunk, ...]:
        """Return what is passed on with a part: itself, or nothing."""
        self._arguments.add(part.message)
        if self._held is None and not _begins_call_of_another(part):
            return (part,)
        self._held = part if self._held is None else self._held + part
        return ()

    def rest(self) -> tuple[ChatGenerationChunk, ...]:
        """Return what was held back, as one part with calls of the tools that they name, and what only the end says."""
        half = self._arguments.invalid_arguments_part()
        end = () if half is None else (ChatGenerationChunk(message=half),)
        return end if self._held is None else (_named_part(self._held), *end)


def _begins_call_of_another(part: ChatGenerationChunk) -> bool:
    """Return whether a part of an answer begins a call whose tool is in its arguments, or may do so."""
    calls = part.message.tool_call_chunks if isinstance(part.message, AIMessageChunk) else ()
    return any(through.startswith(one["name"]) for one in calls if one["name"] for through in THROUGH)


def _named_part(part: ChatGenerationChunk) -> ChatGenerationChunk:
    message = with_tool_names(part.message, _own_tools())
    return part if message is part.message else part.model_copy(update={"message": message})


def _wrap_bind_tools(own: Any) -> Any:
    @wraps(own)
    def bind_tools(self: Any, tools: Sequence[Any], **request: Any) -> Any:
        name = runs.chosen_tool(request.get("tool_choice"))
        if name is not None and name not in map(name_of_tool, tools):
            request_tools = _REQUESTED.get()
            definition = None if request_tools is None else request_tools.defined(name)
            tools = tools if definition is None else [*tools, definition]
        return own(self, tools, **request)

    return bind_tools


_AROUND: Final[Mapping[str, Callable[[Any], Any]]] = {
    "_generate": _wrap_generate,
    "_agenerate": _generating_async,
    "_stream": _wrap_stream,
    "_astream": _streaming_async,
    "bind_tools": _wrap_bind_tools,
}
_STREAMS: Final = ("_stream", "_astream")


class _NamingModel:
    """What a twin of a model is known by."""


@cache
def _twin_of(kind: type[BaseChatModel]) -> type[BaseChatModel]:
    """Return the class of the twins of a model; it streams where the model does."""
    given: dict[str, Any] = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "model_config": {"defer_build": True},
    }
    for name, around in _AROUND.items():
        own: Any = getattr(kind, name)
        if name not in _STREAMS or own is not getattr(BaseChatModel, name):
            given[name] = around(own)
    made: type[BaseChatModel] = type(kind.__name__, (_NamingModel, kind), given)
    for events in ("_stream_chat_model_events", "_astream_chat_model_events"):
        if hasattr(kind, events):  # LangChain makes them of what is streamed
            setattr(made, events, None)
    return made


def name_of_tool(tool: Any) -> str:
    """Return the name of a tool of a request, in any of the forms that LangChain takes."""
    if isinstance(tool, Mapping):
        known = cast("Mapping[str, Any]", tool)
        return str(known.get("name") or known.get("function", EMPTY).get("name") or "")
    return str(getattr(tool, "name", ""))
