"""What is kept of a call in its record: as much as the configuration says, masked, then cut (X4, X5).

What it costs is bounded by what is kept: a result of 50 MB that is not kept is only measured.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pegboard.core.access.decisions import Reason
from pegboard.core.model.kept_values import kept_blocks, kept_json, kept_text
from pegboard.core.model.masking import Masker
from pegboard.core.model.recording import MOST_ARGUMENTS, MOST_ERROR, Recording
from pegboard.core.model.tools import CallResult, JsonObject
from pegboard.ports import CallDetails, CallNumbers, TokenCounter
from pegboard.ports.requests import NOT_MEASURED

SAMPLE: Final = 4_000
"""How many characters of a text are counted; the tokens of a longer one are estimated from them."""
CHARACTERS: Final = 4
"""How many characters a token is taken to have where the text is not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """What is kept of one call for some days.

    Attributes:
        tool: the id of the tool, or nothing.
        because: why it ran or did not, as ``explain`` says it.
        where: the place of that.
        approval: the id of the approval that let it run, or nothing.
        kept: what was to be kept.
        error: the error text.
        error_cut: whether some of it is missing.
        arguments: as JSON, or nothing.
        arguments_cut: whether some of them is missing.
        exact: whether they are what the call had, neither masked nor cut.
        result: the blocks of the answer as JSON, or nothing.
        result_cut: whether some of it is missing.
    """

    tool: str = ""
    because: str = ""
    where: str = ""
    approval: str = ""
    kept: Recording
    error: str = ""
    error_cut: bool = False
    arguments: str = ""
    arguments_cut: bool = False
    exact: bool = False
    result: str = ""
    result_cut: bool = False


class EndedCall(NamedTuple):
    """A call that has come to its end, as it was."""

    tool: str
    arguments: JsonObject
    numbers: CallNumbers = NOT_MEASURED
    because: Reason | None = None
    approval: str = ""
    error: str = ""
    result: CallResult | None = None


_TEXTS: Final = frozenset({"tool", "because", "where", "approval", "error", "arguments", "result"})
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


def details_of(masker: Masker, kept: Recording, call: EndedCall) -> CallDetails:
    """Return what is kept of a call: its numbers, and the fields of :class:`StoredCall` that are not as by default."""
    result = call.result
    found: dict[str, Any] = {}
    if call.approval:
        found["approval"] = call.approval
    if call.error and kept.errors:
        found["error"], found["error_cut"] = kept_text(masker, call.error, MOST_ERROR)
    if kept.arguments:
        arguments = kept_json(masker, call.arguments, MOST_ARGUMENTS)
        found["arguments"], found["arguments_cut"], found["exact"] = arguments.text, arguments.cut, arguments.exact
    if result is not None and kept.results and not result.is_error:
        answer = kept_blocks(masker, result.content, result.structured, kept.results)
        found["result"], found["result_cut"] = answer.text, answer.cut
    more = f", {_ENCODER.encode(found)[1:-1]}" if found else ""
    text = f"{{{_fixed_fields(masker, masker.forms, call.tool, kept, call.because)}{more}}}"
    return CallDetails(call.numbers, text, kept.days)


@lru_cache(maxsize=1_024)
def _fixed_fields(masker: Masker, forms: frozenset[str], tool: str, kept: Recording, because: Reason | None) -> str:  # noqa: ARG001 - what is secret decides it
    """Return what is the same for every call of a tool, as the fields of a JSON object."""
    found: dict[str, Any] = {
        "tool": tool,
        "kept": {"errors": kept.errors, "arguments": kept.arguments, "results": kept.results, "days": kept.days},
    }
    if because is not None:
        found["because"] = masker.text(because.text)
        if because.where is not None:
            found["where"] = masker.text(str(because.where))
    return _ENCODER.encode(found)[1:-1]


def call_of_text(text: str) -> StoredCall | None:
    """Return what is kept of a call, of the text that a store has; None where it has none, or something else."""
    try:
        found: Any = json.loads(text)
        values = {field.name: found[field.name] for field in fields(StoredCall) if field.name in found}
        if any(type(value) is not str for name, value in values.items() if name in _TEXTS):
            return None
        values["kept"] = Recording(**values.get("kept", {}))
        return StoredCall(**values)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


class CallTokens(NamedTuple):
    """What a call cost its model: its arguments, which it wrote, and its answer, which it reads.

    ``estimated`` is whether one of them is counted in part only; None is what nothing is known of.
    """

    sent: int | None
    received: int | None
    estimated: bool


def tokens_of_call(counter: TokenCounter, arguments: str | int | None, answer: str | int | None) -> CallTokens:
    """Return the tokens of a call, each of a text, or of how many characters it had where it is not there.

    Args:
        counter: the tokenizer; its vocabulary is read by the first count, and no call waits for this.
        arguments: those of the call as JSON.
        answer: what the model reads of its result.
    """
    sent, received = _tokens(counter, arguments), _tokens(counter, answer)
    return CallTokens(sent[0], received[0], sent[1] or received[1])


def _tokens(counter: TokenCounter, text: str | int | None) -> tuple[int | None, bool]:
    match text:
        case None:
            return None, False
        case int():
            return -(-text // CHARACTERS), True
        case str():
            if len(text) <= SAMPLE:
                return counter.count(text), False
            return round(counter.count(text[:SAMPLE]) * len(text) / SAMPLE), True
