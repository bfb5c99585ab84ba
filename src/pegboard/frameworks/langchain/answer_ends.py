"""Why answers of chat models of LangChain end, and what is done with arguments that are no JSON.

LangChain completes what a stream has of the arguments of a call, so that half of them looks like a call without some;
of an answer in one piece it hands such calls on apart from the others, and then the run only ends.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.wire.provider_forms import UNFINISHED, cut_by

_HALF: Final = "pegboard_half"
"""Where an answer that was streamed says that arguments of its calls were no JSON: its metadata, never sent."""
_WHOLE: Final = ("status", "object")
"""What an answer of OpenAI's Responses that is whole has in its metadata; its stream begins with an id alone."""


class StreamedArguments:
    """The arguments of the calls of a streamed answer, as its model wrote them."""

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written: dict[Hashable, str] = {}

    def add(self, part: BaseMessage) -> None:
        """Take in a part of the answer."""
        for one in part.tool_call_chunks if isinstance(part, AIMessageChunk) else ():
            place: Hashable = ("whole", len(self._written)) if one["index"] is None else one["index"]
            self._written[place] = self._written.get(place, "") + (one["args"] or "")

    def invalid_arguments_part(self) -> AIMessageChunk | None:
        """Return the part that says that arguments are no JSON, where that is so."""
        if all(parsed_arguments(written) is not None for written in self._written.values()):
            return None
        return AIMessageChunk(content="", response_metadata={_HALF: True})


def with_unreadable(answer: AIMessage) -> AIMessage:
    """Return an answer whose calls with arguments that are no JSON are among the others, so that each is answered."""
    if not answer.invalid_tool_calls:
        return answer
    calls = [{"type": "tool_call", "name": one["name"] or "", "args": {}, "id": one["id"]}
             for one in answer.invalid_tool_calls]  # fmt: skip
    about = {**answer.response_metadata, _HALF: True}
    update = {"tool_calls": [*answer.tool_calls, *calls], "invalid_tool_calls": [], "response_metadata": about}
    return answer.model_copy(update=update)


def cut_of(answer: AIMessage) -> str:
    """Return why an answer of the model is not whole, or nothing: what its provider says of its end, or what it lacks.

    Some servers of Chat Completions never say why an answer ends: there arguments that are no JSON say it.
    """
    about = answer.response_metadata
    details: JsonObject = about.get("incomplete_details") or EMPTY
    reason = about.get("stop_reason") or about.get("finish_reason") or details.get("reason")
    if cut := cut_by(reason):
        return cut
    provider = about.get("model_provider")
    lacks = not reason and (
        provider == "anthropic"
        or (provider == "openai" and "id" in about and not any(name in about for name in _WHOLE))
    )
    return cut_by(UNFINISHED) if lacks or about.get(_HALF) else ""
