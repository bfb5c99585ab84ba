"""Count the tokens of what calls took and gave: counted up to a bound, and estimated from that beyond it (F4)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pegboard.core.model.tools import CallResult, JsonObject
from pegboard.core.state.call_plans import CallAnswer
from pegboard.ports import UsageOutcome
from pegboard.support.encodable import Pieces, pieces_by

Key = tuple[str, str, str]
"""Principal, agent and session id."""
CountMany = Callable[[Sequence[str]], Awaitable[Sequence[int]]]
"""Counts the tokens of some texts while no call waits for it."""
COUNTED: Final = 50_000
"""How many characters of a tool's arguments and results are counted in a process; what comes then is estimated."""
KEPT: Final = 200
"""How many calls' texts are kept at most until the next bill."""
_MOST_KEPT: Final = 2 * KEPT
PIECE: Final = 16_000
"""How many characters of one text are counted."""
MOST: Final = 10_000
"""How many combinations of session, tool and outcome are told apart until the next bill."""
MOST_TOOLS: Final = 4_096
"""Of how many tools it is known how many characters a token has."""
USUAL: Final = 3.5
"""How many characters a token has where nothing was counted yet: between prose (3.6 to 4.5) and JSON (2 to 3)."""
_OUTCOMES: Final[Mapping[str, UsageOutcome]] = {
    "ok": "ok",
    "error": "error",
    "timeout": "error",
    "tool_unavailable": "error",
    "needs_approval": "waits",
}
_plain: Final = pieces_by(json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str))
_escaped: Final = pieces_by(json.JSONEncoder(sort_keys=True, default=str))


@dataclass(slots=True, eq=False)
class _CountedShare:
    """How many characters and tokens of a tool were counted, and how many characters may still be."""

    left: int = COUNTED
    characters: int = 0
    tokens: int = 0

    @property
    def characters_per_token(self) -> float:
        return self.characters / self.tokens if self.tokens else USUAL


@dataclass(slots=True, eq=False)
class _TextSums:
    """The arguments or results of some calls: all characters, and what of them is counted.

    The characters of arguments are those of the JSON that the trail digests: what is estimated need not be written.
    """

    characters: int = 0
    counted: int = 0
    tokens: int = 0


@dataclass(slots=True, eq=False)
class _TextRow:
    of_tool: tuple[_CountedShare, _CountedShare]
    arguments: _TextSums = field(default_factory=_TextSums)
    results: _TextSums = field(default_factory=_TextSums)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTotals:
    """What calls of one session, tool and outcome came to; the tool is empty of meta-tools, and where none was meant.

    ``estimated`` is how many of both tokens are an estimate.
    """

    key: Key
    tool: str
    outcome: UsageOutcome
    arguments: int
    results: int
    estimated: int


class CallTexts:
    """The texts of calls since the last bill; adding one takes some microseconds, and counts nothing."""

    def __init__(self) -> None:
        self._rows: dict[tuple[Key, str, UsageOutcome], _TextRow] = {}
        self._kept: list[tuple[_TextSums, _CountedShare, str, int]] = []
        self._tools: dict[str, tuple[_CountedShare, _CountedShare]] = {}

    def add(
        self, key: Key, arguments: JsonObject | None, answered: CallAnswer, *, meta: bool, sent: int | None = None
    ) -> None:
        """Note what the model wrote, if it did, and was answered.

        Args:
            key: the session.
            arguments: what it wrote, None where that was noted before.
            answered: the answer.
            meta: whether it called a meta-tool.
            sent: how many characters the arguments have in the JSON that the trail digests, where that is known.
        """
        tool = "" if meta or answered.tool is None else answered.tool.id
        outcome: UsageOutcome = "listed" if meta else _OUTCOMES.get(answered.status, "refused")
        row = self._rows.get((key, tool, outcome)) or self._row(key, tool, outcome)
        of_arguments, of_results = row.of_tool
        if arguments is not None:
            size = len(_as_json(arguments, _escaped)) if sent is None else sent
            row.arguments.characters += size
            if of_arguments.left > 0 and len(self._kept) < _MOST_KEPT:
                self._count_text(row.arguments, of_arguments, _as_json(arguments), size)
        for text in texts_of(answered.result):
            row.results.characters += len(text)
            if of_results.left > 0 and len(self._kept) < _MOST_KEPT:
                self._count_text(row.results, of_results, text, len(text))

    def _row(self, key: Key, tool: str, outcome: UsageOutcome) -> _TextRow:
        if len(self._rows) >= MOST:
            tool = ""
        of_tool = self._tools.get(tool)
        if of_tool is None:
            name = tool if len(self._tools) < MOST_TOOLS else ""
            of_tool = self._tools.setdefault(name, (_CountedShare(), _CountedShare()))
        return self._rows.setdefault((key, tool, outcome), _TextRow(of_tool))

    def _count_text(self, of: _TextSums, ratio: _CountedShare, text: str, size: int) -> None:
        """Keep a text, which has so many characters where all are counted, as far as it is counted itself."""
        if text:
            piece = text if len(text) <= PIECE else text[:PIECE]
            ratio.left -= len(piece)
            self._kept.append((of, ratio, piece, size * len(piece) // len(text)))

    async def take(self, count: CountMany | None) -> Iterator[CallTotals]:
        """Return what has come since the last time; with None nothing more is counted, and the rest is estimated."""
        rows, self._rows = self._rows, {}
        kept, self._kept = self._kept, []
        if count is not None and kept:
            counts = await count([piece for _, _, piece, _ in kept])
            for (of, ratio, _, size), tokens in zip(kept, counts, strict=True):
                of.counted += size
                of.tokens += tokens
                ratio.characters += size
                ratio.tokens += tokens
        return (_tokens(*names, row) for names, row in rows.items())


def _tokens(key: Key, tool: str, outcome: UsageOutcome, row: _TextRow) -> CallTotals:
    (taken, more_taken), (given, more_given) = (
        (one.tokens, round((one.characters - one.counted) / ratio.characters_per_token))
        for one, ratio in zip((row.arguments, row.results), row.of_tool, strict=True)
    )
    return CallTotals(
        key=key,
        tool=tool,
        outcome=outcome,
        arguments=taken + more_taken,
        results=given + more_given,
        estimated=more_taken + more_given,
    )


def texts_of(result: CallResult) -> Sequence[str]:
    """Return the texts of a result that a model reads; what is structured counts only where there is no text.

    Pictures and sounds are not counted: what they take is up to the provider.
    """
    if len(result.content) == 1 and type(only := result.content[0].get("text")) is str:
        return (only,)
    found: list[str] = []
    for block in result.content:
        text: Any = block.get("text")
        if text is None and block.get("type") == "resource":
            text = block["resource"].get("text")
        if isinstance(text, str):
            found.append(text)
    if not found and result.structured is not None:
        found.append(_as_json(result.structured))
    return found


def _as_json(value: Any, pieces: Pieces = _plain) -> str:
    """Return a value as JSON, which a model wrote or reads; nothing where it is none."""
    try:
        return "".join(pieces(value, 0))
    except (ValueError, TypeError, RecursionError):
        return ""
