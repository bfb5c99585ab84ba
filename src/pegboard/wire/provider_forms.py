"""What a request to a model and its reply are, whatever form a provider gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, cast

from pegboard.core.model.tools import CallResult, JsonObject, Tool
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.errors import UsageError

Message = JsonObject
PARSED: Final = frozenset({"parsed", "parsed_arguments", "parsed_output"})
"""What a client adds to the objects of a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A call that a model made; ``arguments`` are None where what it wrote is no JSON object."""

    id: str
    name: str
    arguments: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """Which tools may be called at one step, by their wire names; without names any, or with ``none`` nothing."""

    mode: Literal["auto", "required", "none"]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParts:
    """What a request carries beside its messages.

    Attributes:
        model: the provider's name of the model.
        system: the host's own text, then what the session adds to it, as far as there is either.
        head: the tools that stand at the head of every request.
        deferred: the tools that are declared and shown to the model only once the history reveals them.
        choice: what narrows this step, or None.
        reveals: whether the history may reveal tools.
        encrypted: whether the provider is asked for what it needs back of its reasoning.
    """

    model: str
    system: tuple[str, ...] = ()
    head: Sequence[Tool] = ()
    deferred: Sequence[Tool] = ()
    choice: ToolChoice | None = None
    reveals: bool = False
    encrypted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryChange:
    """What joins the history at one place, and stays there.

    ``joined`` are revealed from there on, ``left`` are the wire names of those that are no longer; ``note`` is a text.
    """

    joined: tuple[Tool, ...] = ()
    left: tuple[str, ...] = ()
    note: str = ""

    def __bool__(self) -> bool:
        return bool(self.joined or self.left or self.note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        messages: what the history keeps of it; nothing where it is empty.
        calls: the calls that it made, in order.
        text: what the user reads.
        unfinished: whether the provider goes on with it where it is sent back as it stands.
        cut: why it ended before the model had written all of it, so that none of its calls is whole; else nothing.
    """

    messages: tuple[Message, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    text: str = ""
    unfinished: bool = False
    cut: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call came to, for the model; at most ``limit`` characters of text, and bytes of each picture or file."""

    call: ModelCall
    result: CallResult
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMark:
    """One thing that a message of the history stands for.

    ``value`` is the id of a call or a result, the wire name of a tool that joined, left or is defined in a note, or a
    text; ``definition`` is that of a tool which joined or is defined, where the history has it; ``text`` is that of a
    result.
    """

    kind: Literal["call", "result", "joined", "left", "defined", "note", "user", "model"]
    value: str = ""
    call: ModelCall | None = None
    definition: JsonObject | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """What is no longer sent of a history: results without a call, tools that are gone, and whether all reveals are."""

    results: AbstractSet[str] = frozenset()
    tools: AbstractSet[str] = frozenset()


class ProviderForm(Protocol):
    """The form that one provider gives to requests, replies and histories. All of it is pure."""

    @property
    def name(self) -> str:
        """Return the name by which a loop chooses it."""
        ...

    def request(self, parts: RequestParts, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the keyword arguments for the provider's client."""
        ...

    def reply(self, given: JsonObject) -> Reply:
        """Return what a reply of the provider says; ``ValueError`` for what is none."""
        ...

    def text(self, text: str) -> list[Message]:
        """Return a text of the model as its message; no text is none."""
        ...

    def results(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return the messages that answer calls, in order."""
        ...

    def change(self, change: HistoryChange, *, reveals: bool) -> list[Message]:
        """Return the messages that a change of the history is."""
        ...

    def definition(self, tool: Tool) -> JsonObject | None:
        """Return what the history has of a tool that it reveals; None where it only names it."""
        ...

    def marks(self, message: Message) -> Iterator[HistoryMark]:
        """Yield what a message stands for."""
        ...

    def without(self, message: Message, stale: Stale) -> Message | None:
        """Return a message without what is stale, the same one where nothing is; None where nothing remains."""
        ...


def as_plain(given: object) -> JsonObject:
    """Return an object of a provider's client as plain JSON, without what is None or was added by the client.

    Raises:
        UsageError: it is neither a mapping nor a pydantic model.
    """
    if isinstance(given, Mapping):
        return cast("JsonObject", given)
    if not _is_mapping(given):
        raise UsageError(
            f"A message or reply is a mapping or an object of the provider's client, not a {type(given).__name__}."
        )
    dump = cast("Any", given).model_dump
    try:
        dumped: Any = dump(mode="json", warnings=False)
    except ValueError:  # text that UTF-8 cannot carry
        dumped = dump(warnings=False)
    return cast("JsonObject", _object_for_provider(given, dumped))


def _object_for_provider(value: Any, dumped: Any) -> Any:
    """Return an object of a client without what is None or the client has parsed, which no provider takes back.

    What is no object of the client, as the arguments that a model wrote, stays whole.

    Args:
        value: the object, or a part of one.
        dumped: the same as JSON.
    """
    if hasattr(value, "model_dump"):
        fields = {name: part for name, part in dumped.items() if part is not None and name not in PARSED}
        return {name: _object_for_provider(getattr(value, name, None), part) for name, part in fields.items()}
    if isinstance(value, list | tuple):
        return [_object_for_provider(own, part) for own, part in zip(cast("Sequence[Any]", value), dumped, strict=True)]
    return dumped


def mappings(value: object) -> list[JsonObject]:
    """Return the mappings of a list, those of the client's objects among them; nothing of anything else."""
    parts = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
    return [as_plain(part) for part in parts if _is_mapping(part)]


def _is_mapping(part: object) -> bool:
    return isinstance(part, Mapping) or hasattr(part, "model_dump")


def written_arguments(written: object, *, whole: bool) -> object:
    """Return the arguments of a call as its provider takes them back.

    Args:
        written: as the model wrote them.
        whole: whether the reply was not cut, so that what is no JSON is all that the model wrote.
    """
    empty = written is None or (isinstance(written, str) and not written.strip())
    return "{}" if empty or (not whole and parsed_arguments(written) is None) else written


def without_added(item: JsonObject, added: AbstractSet[str] = PARSED) -> JsonObject:
    """Return a message or an item of a reply without what is None and what only replies have."""
    return {key: part for key, part in item.items() if part is not None and key not in added}


UNFINISHED: Final = "unfinished"
"""In place of the reason of a reply that has none: its stream stopped before it was whole."""
_CUT: Final = frozenset({"length", "max_output_tokens", "max_tokens", "model_context_window_exceeded"})
_FILTERED: Final = frozenset({"content_filter", "refusal", "safety"})


def cut_by(reason: object) -> str:
    """Return why a reply is not whole, for its model, by the reason that a provider gives for its end; else nothing."""
    word = str(reason).lower()
    if word in _CUT:
        return "The reply reached its limit of tokens within its calls. None of them has run. Make them again, shorter."
    if word == UNFINISHED:
        return "The reply stopped within its calls. None of them has run. Make them again."
    if word in _FILTERED:
        return "The provider's filter ended the reply within its calls. None of them has run."
    return ""


def texts_in(content: object, kind: str = "text") -> str:
    """Return the texts of a message's content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in mappings(content) if block.get("type") == kind)
