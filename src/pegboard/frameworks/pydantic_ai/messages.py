"""What passes between the framework, a model and a session: messages, calls, results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, replace
from typing import Any, Final, cast, get_args

from pydantic_ai import RunContext
from pydantic_ai.exceptions import (
    ModelRetry,
    ToolFailed,
)
from pydantic_ai.messages import (
    BinaryContent,
    DocumentMediaType,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    VideoMediaType,
)

from pegboard.core.model.tools import EMPTY
from pegboard.core.state.call_plans import CallAnswer
from pegboard.core.surface.definitions import AHEAD, DEFINING
from pegboard.frameworks.runs import (
    arguments_of,
    text_and_media,
)
from pegboard.wire.passed_on import THROUGH, CallThrough, passed_on
from pegboard.wire.result_blocks import RESULT_LIMIT

AnyContext = RunContext[Any]


PASSED_CALLS: Final = "pegboard_calls"
"""Where an answer of the model has its calls through ``call_tool`` as it wrote them: its metadata, never sent."""


_NO_TEXT: Final = "[The result has no text.]"
"""In place of a text that is empty to the eye, which Anthropic refuses."""
_FILES: Final = frozenset((*get_args(DocumentMediaType), *get_args(VideoMediaType)))


def arguments_in(call: ToolCallPart) -> dict[str, Any] | None:
    """Return the arguments of a call, or None where they are no object."""
    return call.args if isinstance(call.args, dict) else arguments_of(call.args)


def passed_in(message: ModelMessage) -> Mapping[str, Any]:
    """Return how the model made the calls of an answer that went through ``call_tool``, by their ids."""
    return (message.metadata or {}).get(PASSED_CALLS, EMPTY) if isinstance(message, ModelResponse) else EMPTY


def _read_passed_on(about: Mapping[str, Any]) -> CallThrough | None:
    """Return how a call was made through ``call_tool``; None for one that only has another name for the agent."""
    known = {key: value for key, value in about.items() if key not in ("args", "shown")}
    return CallThrough(**known) if "via" in known else None


def with_tool_names(response: ModelResponse, own: Collection[str]) -> ModelResponse:
    """Return an answer whose calls through ``call_tool`` are those of the tools that they name.

    So hooks, limits and approvals that go by a tool's name see that tool.

    Args:
        response: what the model answered.
        own: names of tools that the agent runs itself.
    """
    passed: dict[str, Any] = {}
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        if isinstance(part, ToolCallPart) and part.tool_name in THROUGH:
            one = passed_on(part.tool_name, arguments_in(part), own)
            if one is not None:
                passed[part.tool_call_id] = {**asdict(one), "args": part.args}
                part = replace(cast("Any", part), tool_name=one.name, args=one.arguments)  # noqa: PLW2901
        parts.append(part)
    if not passed:
        return response
    return replace(
        response,
        parts=parts,
        metadata={**(response.metadata or {}), PASSED_CALLS: {**passed_in(response), **passed}},
    )


def with_wrapper_names(response: ModelResponse, names: Mapping[str, str]) -> ModelResponse:
    """Return an answer whose calls have the names of the agent's wrappers, of which hooks and limits know."""
    if not names:
        return response
    passed = {**passed_in(response)}
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        shown = names.get(part.tool_name) if isinstance(part, ToolCallPart) else None
        if shown is not None and isinstance(part, ToolCallPart):
            known = passed.get(part.tool_call_id, {"name": part.tool_name, "args": part.args})
            passed[part.tool_call_id] = {**known, "shown": shown}
            part = replace(cast("Any", part), tool_name=shown)  # noqa: PLW2901
        parts.append(part)
    return replace(response, parts=parts, metadata={**(response.metadata or {}), PASSED_CALLS: passed})


def call_for_session(ctx: AnyContext, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of the call that is carried out, for the session."""
    for message in reversed(ctx.messages):
        about = passed_in(message).get(ctx.tool_call_id or "")
        if about is not None and (passed := _read_passed_on(about)) is not None:
            return passed.of_session(name, arguments)
    return name, arguments


def as_written(message: ModelMessage) -> ModelMessage:
    """Return a message for the provider: calls through ``call_tool`` as the model made them."""
    known = passed_in(message)
    if not known or not isinstance(message, ModelResponse):
        return message
    parts: list[ModelResponsePart] = []
    for part in message.parts:
        about = known.get(part.tool_call_id) if isinstance(part, ToolCallPart) else None
        if about is not None and isinstance(part, ToolCallPart):
            part = _call_as_written(part, about)  # noqa: PLW2901
        parts.append(part)
    return replace(message, parts=parts)


def _call_as_written(part: ToolCallPart, about: Mapping[str, Any]) -> ToolCallPart:
    """Return a call as the model made it; one that was changed since has the changes."""
    name = about["name"] if part.tool_name == about.get("shown") else part.tool_name
    if (passed := _read_passed_on(about)) is None:
        return replace(cast("Any", part), tool_name=name)
    name, arguments = passed.of_session(name, arguments_in(part) or {})
    args = about["args"] if arguments is passed.written else arguments
    return replace(cast("Any", part), tool_name=name, args=args)


def texts_with_definitions(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield the answers to loads and searches."""
    for message in messages:
        if isinstance(message, ModelRequest):
            for part in message.parts:
                if isinstance(part, ToolReturnPart) and part.tool_name in DEFINING:
                    yield part.model_response_str()


def ahead_before(messages: Sequence[ModelMessage]) -> Iterator[str]:
    """Yield what earlier runs added to the history of tools that were loaded ahead."""
    parts = (part for message in messages for part in message.parts if isinstance(part, UserPromptPart))
    return (part.content for part in parts if isinstance(part.content, str) and part.content.startswith(AHEAD))


def open_calls(ctx: AnyContext) -> AbstractSet[str]:
    """Return the names of the calls that a run begins with: those that were waited for."""
    newest = ctx.messages[-1] if ctx.messages else None
    return {call.tool_name for call in newest.tool_calls} if isinstance(newest, ModelResponse) else frozenset()


def is_written(ctx: AnyContext, arguments: Mapping[str, Any]) -> bool:
    """Return whether the model wrote these arguments of the call that is carried out, and not a person."""
    responses = (message for message in reversed(ctx.messages) if isinstance(message, ModelResponse))
    calls = (call for response in responses for call in response.tool_calls if call.tool_call_id == ctx.tool_call_id)
    call = next(calls, None)
    return call is None or call.args_as_dict() == arguments


def text_of(prompt: str | Sequence[UserContent] | None) -> str | None:
    """Return the text of a user's message."""
    if prompt is None or isinstance(prompt, str):
        return prompt
    texts = [part if isinstance(part, str) else part.content for part in prompt if isinstance(part, str | TextContent)]
    return "\n".join(texts) or None


def result_of(answer: CallAnswer) -> Any:
    """Return the result for the model; files that no model of the framework reads are named in its text."""
    text, media = text_and_media(answer.result, _FILES)
    if answer.is_error:
        raise (ModelRetry if answer.status == "invalid_arguments" else ToolFailed)(text or answer.message)
    if not media and (answer.result.structured is None or len(text) > RESULT_LIMIT):
        return text if text.strip() else _NO_TEXT
    if not media:
        return answer.result.structured
    blobs = (blob for kind in media.values() for blob in kind)
    parts = [BinaryContent(data=blob["content"], media_type=blob["mime_type"]) for blob in blobs]
    return [text, *parts] if text.strip() else parts
