"""What is read of a tool or a group: its texts, by the fields that weigh differently, and its names."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from pegboard.core.model.naming import words_of
from pegboard.core.model.tool_words import VERBS
from pegboard.core.model.tools import Tool
from pegboard.core.surface.searchable import Group
from pegboard.search.analysis.examples import example_requests
from pegboard.search.analysis.words import name_text, sentences

SearchDocument: TypeAlias = Tool | Group

NAME, FIRST, REST, PARAMETERS, PARAMETER_TEXTS, PLUGIN, PLUGIN_TEXT, EXAMPLES = range(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldKind:
    """How a field counts.

    Attributes:
        weight: how much one of its words counts.
        typical: how many words it usually has; a constant, so that what a word counts in a tool depends on
            nothing but the tool.
        slope: how much a longer field counts less (BM25's b).
    """

    weight: float
    typical: float
    slope: float


FIELDS: Final = (
    FieldKind(weight=2.0, typical=3.0, slope=0.4),
    FieldKind(weight=1.0, typical=9.0, slope=0.4),
    FieldKind(weight=0.35, typical=20.0, slope=0.75),
    FieldKind(weight=1.0, typical=6.0, slope=0.75),
    FieldKind(weight=0.5, typical=25.0, slope=0.75),
    FieldKind(weight=1.0, typical=1.5, slope=0.4),
    FieldKind(weight=0.3, typical=5.0, slope=0.75),
    FieldKind(weight=0.5, typical=120.0, slope=0.75),
)
"""By their numbers: NAME, FIRST (sentence of the description), REST (of it) and so on."""
LONGEST_TEXT: Final = 6_000
"""Characters of one text that are read."""
MOST_PROPERTIES: Final = 200
DEEPEST: Final = 4
LONGEST_NAME: Final = 150
"""A longer text is no name."""
SHORTEST_BEGINNING: Final = 4
_SOLICITING: Final = re.compile(
    r"\b(?:always|must|should|only|please|first|instead)\b.{0,40}\b(?:use|call|choose|select|prefer|invoke|pick)\b.{0,40}"
    r"\b(?:this|me)\b"
    r"|\b(?:use|call|choose|select|prefer|invoke|pick)\b.{0,20}\b(?:this|me)\b.{0,60}"
    r"\b(?:always|first|instead|before|any other|whatever)\b"
    r"|\b(?:ignore|disregard|never use|do not use|don't use)\b.{0,40}\b(?:other|previous|another|any)\b"
    r"|\b(?:best|preferred|recommended|most important)\b.{0,20}\btool\b",
    re.IGNORECASE,
)
"""A sentence that asks to be chosen instead of saying what for."""
_URGING: Final = (
    "always", "must", "should", "only", "please", "first", "instead", "before", "any other", "whatever", "ignore",
    "disregard", "never", "do not", "don't", "best", "preferred", "recommended", "most important",
)  # fmt: skip
"""A sentence without any of these does not."""
_ONE_WORD: Final = re.compile(r"[\w./-]+")


def field_texts(document: SearchDocument, plugin_text: str) -> tuple[str, ...]:
    """Return the text of each field.

    Args:
        document: What can be found.
        plugin_text: What the plugin of a tool is for.
    """
    if isinstance(document, Group):
        return _group_texts(document)
    first, rest = _split_description(document.description)
    names, texts = _parameters(document.input_schema)
    title = document.stated_title
    name = f"{document.name} {title[:200]}" if title else document.name
    return (
        name,
        first,
        rest,
        names,
        texts,
        document.plugin,
        _split_description(plugin_text, whole=True)[0],
        " ".join(examples_of(document)),
    )


def examples_of(document: SearchDocument) -> tuple[str, ...]:
    """Return what people ask of a tool that is named like one of many servers; nothing for other documents."""
    if not isinstance(document, Tool):
        return ()
    known = example_requests()
    return known.get(name_text((document.name,))) or known.get(name_text((document.plugin, document.name))) or ()


def _group_texts(group: Group) -> tuple[str, ...]:
    first, rest = _split_description(group.description)
    members = " ".join(group.members)[:LONGEST_TEXT]
    tools = " ".join(tool.partition("/")[2] for tool in group.tools[:MOST_PROPERTIES])[:LONGEST_TEXT]
    return (group.name, first, rest, members, tools, "", "", "")


def _split_description(text: str, *, whole: bool = False) -> tuple[str, str]:
    """Return the first sentence of a description and the rest, without sentences that ask to be chosen."""
    known = sentences(text[:LONGEST_TEXT])
    kept = [sentence for sentence in known if not _asks_to_be_chosen(sentence)]
    if whole:
        return " ".join(kept), ""
    return (kept[0], " ".join(kept[1:])) if kept else ("", "")


def _asks_to_be_chosen(sentence: str) -> bool:
    lower = sentence.lower()
    return any(word in lower for word in _URGING) and _SOLICITING.search(sentence) is not None


def _parameters(schema: Mapping[str, Any]) -> tuple[str, str]:
    """Return the names of the parameters, and their texts with the strings that they may be."""
    names: list[str] = []
    texts: list[str] = []
    for name, value in _properties(schema, 0):
        names.append(name)
        text = value.get("description")
        if isinstance(text, str):
            texts.append(text[:1_000])
        choices = value.get("enum")
        if isinstance(choices, Sequence) and not isinstance(choices, str):
            texts += [choice[:100] for choice in cast("Sequence[object]", choices)[:50] if isinstance(choice, str)]
    return " ".join(names)[:LONGEST_TEXT], " ".join(texts)[:LONGEST_TEXT]


def _properties(schema: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the properties of a schema and of what is in them, as far as they are well formed."""
    if depth > DEEPEST:
        return
    properties: object = schema.get("properties")
    if isinstance(properties, Mapping):
        for name, value in list(cast("Mapping[object, object]", properties).items())[:MOST_PROPERTIES]:
            if isinstance(value, Mapping):
                inner = cast("Mapping[str, Any]", value)
                yield str(name), inner
                yield from _properties(inner, depth + 1)
            else:
                yield str(name), {}
    items: object = schema.get("items")
    if isinstance(items, Mapping):
        yield from _properties(cast("Mapping[str, Any]", items), depth + 1)


_READING: Final = frozenset(
    {
        "analyze", "check", "compare", "count", "describe", "diff", "discover", "explain", "fetch", "filter", "find",
        "get", "inspect", "list", "log", "logs", "lookup", "ping", "poll", "preview", "query", "read", "retrieve",
        "search", "show", "snapshot", "stats", "status", "summarize", "validate", "verify", "view", "wait",
    }
)  # fmt: skip


def effect_of(document: SearchDocument) -> int:
    """Return 1 for a tool that reads, -1 for one that writes, 0 where nothing says so.

    Its name counts before its annotations, which many servers give to all of their tools alike; what says that it only
    reads is believed here, since this decides nothing but an order.
    """
    if not isinstance(document, Tool):
        return 0
    if document.annotations.get("readOnlyHint") is True:
        return 1
    verb = next((word for word in words_of(document.name) if word in VERBS or word in _READING), "")
    if verb:
        return 1 if verb in _READING else -1
    said = document.annotations
    return -1 if said.get("readOnlyHint") is False or said.get("destructiveHint") is True else 0


def name_key(parts: Sequence[str]) -> int:
    """Return the key of a name, which its spellings share: case, separators, the plural; 0 of what has no word."""
    key = name_text(parts)
    return hash(key) if key else 0


def name_keys(document: SearchDocument) -> tuple[int, int]:
    """Return the keys under which a document is found by name: its own name's, and that with its plugin's."""
    own = name_key((document.name,))
    return own, name_key((document.plugin, document.name)) if isinstance(document, Tool) else own


def is_name_of(document: SearchDocument, text: str) -> bool:
    """Return whether a text is the name of a tool or group as it is spelled."""
    names = (document.name, document.wire, document.id) if isinstance(document, Tool) else (document.name,)
    return text in names


class RowNames:
    """The names of all rows, for the only one that begins so; read ahead, or when someone asks for the first time."""

    def __init__(self, documents: Sequence[SearchDocument]) -> None:
        self._documents = documents

    def read(self) -> None:
        """Read the names now."""
        _ = self._joined_names

    def rows_beginning(self, text: str) -> list[int]:
        """Return the only row whose name begins with a text that is one word; nothing where there are more."""
        if len(text) < SHORTEST_BEGINNING or not _ONE_WORD.fullmatch(text):
            return []
        joined, starts = self._joined_names
        sought = f"\n{text.lower()}"
        rows: set[int] = set()
        place = joined.find(sought)
        while place >= 0 and len(rows) < 2:
            rows.add(bisect_right(starts, place) - 1)
            place = joined.find(sought, place + 1)
        return list(rows) if len(rows) == 1 else []

    @cached_property
    def _joined_names(self) -> tuple[str, list[int]]:
        """Return all names in lower case, each behind a line break, and where those of each row start."""
        starts: list[int] = []
        lines: list[str] = []
        length = 0
        for document in self._documents:
            names = (document.name, document.wire) if isinstance(document, Tool) else (document.name,)
            line = "".join(f"\n{name.lower()}" for name in dict.fromkeys(names) if name)
            starts.append(length)
            lines.append(line)
            length += len(line)
        return "".join(lines), starts
