"""Why answers of models of Agno end, which Agno does not hand on: read of what the provider has sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agno.models.response import ModelResponse

from pegboard.core.model.tools import JsonObject
from pegboard.frameworks import runs
from pegboard.wire.provider_forms import UNFINISHED, cut_by

_REASONS: Final = ("finish_reason", "stop_reason", "done_reason", "stopReason")
"""Where providers of models say why an answer ends."""
_PARTS: Final = ("choices", "candidates", "delta", "data", "response", "message", "messageStop", "incomplete_details")
"""In which parts of what they send they say it."""
_DEPTH: Final = 3
_EVENTS: Final = ("message", "content_block_", "response.")
"""How the types of events begin, and of answers, whose providers say it of each: Anthropic, and OpenAI's Responses."""
_PARSED: Final = "pegboard_end"
"""Where a parsed answer, or a part of one, has what the provider's says of the end."""


class AnswerEnd:
    """What is known of the end of an answer, or of what there is of it so far.

    Attributes:
        reason: the provider's own; nothing where it has not said any yet.
        is_known: whether the provider's form is one that has a reason.
        has_one: whether every whole answer in that form has one; some servers of Chat Completions never say it.
    """

    __slots__ = ("has_one", "is_known", "reason")

    def __init__(self) -> None:
        self.reason = ""
        self.is_known = self.has_one = False

    def read(self, raw: object) -> None:
        """Take in what a provider has sent."""
        self.has_one = _part(raw, "candidates") is not None or str(_part(raw, "type")).startswith(_EVENTS)
        self.is_known = self.has_one or _part(raw, "choices") is not None
        self.reason = next(_reasons_in(raw, _DEPTH), "")

    def take(self, part: ModelResponse) -> None:
        """Take in what is known of a part of the answer."""
        end: AnswerEnd | None = vars(part).get(_PARSED)
        if end is not None:
            self.is_known, self.has_one = self.is_known or end.is_known, self.has_one or end.has_one
            self.reason = end.reason or self.reason

    @property
    def is_missing(self) -> bool:
        """Return whether the provider has not said why the answer ends, and says it of every whole one."""
        return self.has_one and not self.reason

    def why_cut(self, calls: Sequence[JsonObject]) -> str:
        """Return why an answer with those calls is not whole, or nothing."""
        if self.reason or not self.is_known:
            return cut_by(self.reason)
        broken = any(runs.arguments_of(call.get("arguments")) is None for call in calls)
        return cut_by(UNFINISHED) if broken or self.has_one else ""


def with_end(parsed: Any, raw: object) -> Any:
    """Return what Agno has made of an answer of a provider, or of a part of one, with what that says of the end."""
    part = parsed[0] if isinstance(parsed, tuple) else parsed
    if isinstance(part, ModelResponse):
        end = AnswerEnd()
        end.read(raw)
        setattr(part, _PARSED, end)
    return parsed


def _reasons_in(raw: object, depth: int) -> Iterator[str]:
    for name in _REASONS:
        if reason := _part(raw, name):
            yield str(getattr(reason, "value", reason))
    if _part(raw, "status") in ("completed", "incomplete"):  # of Responses; why it is incomplete is in a part
        yield str(_part(_part(raw, "incomplete_details"), "reason") or _part(raw, "status"))
    for name in _PARTS if depth else ():
        part = _part(raw, name)
        for one in part[:1] if isinstance(part, list) else (part,):
            if one is not None:
                yield from _reasons_in(one, depth - 1)


def _part(raw: object, name: str) -> Any:
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)
