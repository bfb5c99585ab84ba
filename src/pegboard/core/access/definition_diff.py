"""What is different between two definitions of a tool, in plain words (A4)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from re import compile as pattern
from typing import Any, Final, Literal, cast

from pegboard.core.access.approvals.digests import canonical
from pegboard.core.model.tools import JsonObject
from pegboard.support.visible_text import visible, without_long_runs

Kind = Literal[
    "text added", "text removed", "text changed",
    "argument added", "argument removed", "now required", "no longer required",
    "type widened", "type narrowed", "type changed", "limit added", "limit dropped",
    "choice added", "choice removed", "order changed",
    "output schema added", "output schema removed", "output schema changed",
    "read-only claim turned", "destructive hint dropped", "destructive hint changed",
    "UI added", "UI removed", "UI changed",
    "added", "removed", "changed",
]  # fmt: skip
"""What happened to a part of a definition."""

Role = Literal[
    "definition", "schema", "arguments", "argument", "names", "choices", "output", "annotations", "meta", "ui", "plain"
]  # fmt: skip

LIMIT: Final = 8_000
"""How many characters a rendered diff has at most, where nothing else is said."""
_LEAST: Final = 200
_VALUE: Final = 300
_PARTS: Final = 1_000
_CONTEXT: Final = 30
_ORDER: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta")
_TEXTS: Final = frozenset({"name", "title", "description", "$comment"})
_INPUT: Final = frozenset({"inputSchema", "input_schema", "input"})
_OUTPUT: Final = frozenset({"outputSchema", "output_schema", "output"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES: Final = frozenset({"default", "examples"})
_SETS: Final = frozenset({("required", "schema"), ("required", "output"), ("enum", "choices"), ("enum", "output")})
_LIMITS: Final = frozenset(
    {
        "additionalProperties", "const", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems",
        "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum", "multipleOf",
        "pattern", "uniqueItems",
    }
)  # fmt: skip
_OUTPUTS: Final[Mapping[str, Kind]] = {
    "added": "output schema added", "removed": "output schema removed", "changed": "output schema changed",
}  # fmt: skip
_UIS: Final[Mapping[str, Kind]] = {"added": "UI added", "removed": "UI removed", "changed": "UI changed"}
_ARGUMENTS: Final[Mapping[str, Kind]] = {
    "added": "argument added", "removed": "argument removed", "changed": "changed",
}  # fmt: skip
_TEXT_KINDS: Final[Mapping[str, Kind]] = {"added": "text added", "removed": "text removed", "changed": "text changed"}
_ALL_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_WORDS: Final = pattern(r"\s+|[^\W_]+|[\W_]")


class _Missing:
    """What is not there."""

    __slots__ = ()


_MISSING: Final = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between two definitions.

    Attributes:
        path: a JSON pointer to what is different; for names of ``required`` and choices of ``enum`` to the list.
        kind: what happened, in plain words.
        before: what stood there; None where nothing did.
        after: what stands there now; None where nothing does.
    """

    path: str
    kind: Kind
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of two texts: in both (``same``), only in the first (``removed``) or only in the second (``added``)."""

    kind: Literal["same", "removed", "added"]
    text: str


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two values at the same place; ``role`` is how they are to be read."""

    path: str
    before: Any
    after: Any
    role: Role
    key: str = ""


def diff(before: JsonObject, after: JsonObject) -> tuple[Change, ...]:
    """Return what is different between two definitions as MCP has them; nothing if and only if their JSON is the same.

    Both are JSON values with the keys of MCP (``inputSchema``, ``annotations``, ``_meta`` …). The order is that of a
    definition, then of the names; neither the order of keys nor how deep something lies matters.

    >>> old = {"name": "add", "annotations": {"readOnlyHint": True}}
    >>> for change in diff(old, {"name": "add", "annotations": {"readOnlyHint": False}}):
    ...     print(change.path, change.kind)
    /annotations/readOnlyHint read-only claim turned
    """
    changes: list[Change] = []
    waiting = [_Pair("", before, after, "definition")]
    while waiting:
        pair = waiting.pop()
        if isinstance(pair.before, Mapping) and isinstance(pair.after, Mapping):
            waiting += reversed(list(_inner(pair)))
        elif _are_lists(pair) and (pair.key, pair.role) in _SETS:
            changes += _as_sets(pair)
        elif _are_lists(pair) and not (pair.role == "schema" and pair.key == "type"):
            waiting += reversed(list(_items(pair)))
        elif (change := _leaf(pair)) is not None:
            changes.append(change)
    return tuple(changes)


def _are_lists(pair: _Pair) -> bool:
    return isinstance(pair.before, list | tuple) and isinstance(pair.after, list | tuple)


def _inner(pair: _Pair) -> Iterator[_Pair]:
    """Yield the parts of two mappings, in an order that theirs does not change."""
    for key in sorted({**pair.before, **pair.after}, key=lambda key: _place(pair, key)):
        before, after = pair.before.get(key, _MISSING), pair.after.get(key, _MISSING)
        role = _role(pair.role, key)
        if pair.role == "definition" and role in {"annotations", "meta"}:
            before, after = _opened(before, after, {}), _opened(after, before, {})
        if role in {"schema", "output"} and key == "required":
            before, after = _opened(before, after, []), _opened(after, before, [])
        yield _Pair(_under(pair.path, key), before, after, role, key)


def _opened(one: Any, other: Any, empty: dict[str, Any] | list[Any]) -> Any:
    """Return an empty value for what is missing where the other side says something: each of it is a change."""
    return empty if one is _MISSING and isinstance(other, type(empty)) and other else one


def _place(pair: _Pair, key: str) -> tuple[int, str]:
    if pair.role == "definition" and key in _ORDER:
        return _ORDER.index(key), key
    return len(_ORDER), key


def _role(role: Role, key: str) -> Role:
    """Return how a part of a mapping is read."""
    match role:
        case "definition":
            return _role_of_top(key)
        case "schema" | "argument":
            if key in _NAMED:
                return "arguments" if key == "properties" else "names"
            return "plain" if key in _VALUES else "choices" if key in {"enum", "const"} else "schema"
        case "arguments":
            return "argument"
        case "names":
            return "schema"
        case "choices":
            return "plain"
        case "meta" if key in {"ui", "openai/outputTemplate"} or key.startswith(("ui/", "openai/widget")):
            return "ui"
        case _:
            return role


def _role_of_top(key: str) -> Role:
    if key in _INPUT:
        return "schema"
    if key in _OUTPUT:
        return "output"
    return "annotations" if key == "annotations" else "meta" if key == "_meta" else "plain"


def _items(pair: _Pair) -> Iterator[_Pair]:
    """Yield the items of two lists, one by one."""
    for at in range(max(len(pair.before), len(pair.after))):
        before = pair.before[at] if at < len(pair.before) else _MISSING
        after = pair.after[at] if at < len(pair.after) else _MISSING
        yield _Pair(f"{pair.path}/{at}", before, after, pair.role)


def _as_sets(pair: _Pair) -> Iterator[Change]:
    """Yield what a list of names or choices gained and lost; that only its order is another is said too."""
    before = {canonical(one): one for one in pair.before}
    after = {canonical(one): one for one in pair.after}
    added: Kind = "now required" if pair.key == "required" else "choice added"
    removed: Kind = "no longer required" if pair.key == "required" else "choice removed"
    if pair.role == "output":
        added = removed = "output schema changed"
    for text in sorted(before.keys() - after.keys()):
        yield Change(path=pair.path, kind=removed, before=before[text])
    for text in sorted(after.keys() - before.keys()):
        yield Change(path=pair.path, kind=added, after=after[text])
    if before.keys() == after.keys() and canonical(pair.before) != canonical(pair.after):
        yield Change(path=pair.path, kind="order changed", before=pair.before, after=pair.after)


def _leaf(pair: _Pair) -> Change | None:
    before, after = pair.before, pair.after
    if before is not _MISSING and after is not _MISSING and _same(before, after):
        return None
    kind = _kind(pair)
    return Change(
        path=pair.path,
        kind=kind,
        before=None if before is _MISSING else before,
        after=None if after is _MISSING else after,
    )


def _same(before: Any, after: Any) -> bool:
    """Return whether two values that are not both mappings or both lists are the same JSON."""
    if isinstance(before, str) and isinstance(after, str):
        return before == after
    return type(before) is type(after) and canonical(before) == canonical(after)


def _kind(pair: _Pair) -> Kind:
    """Return in plain words what happened."""
    way = "added" if pair.before is _MISSING else "removed" if pair.after is _MISSING else "changed"
    match pair.role:
        case "output":
            top = pair.path.count("/") == 1
            return _OUTPUTS[way] if top else "output schema changed"
        case "annotations" if pair.key == "readOnlyHint":
            return "read-only claim turned"
        case "annotations" if pair.key == "destructiveHint":
            return "destructive hint dropped" if pair.before is True else "destructive hint changed"
        case "ui":
            return _UIS[way]
        case "argument":
            return _ARGUMENTS[way]
        case "schema" | "choices":
            return _of_schema(pair, way)
        case _:
            return _TEXT_KINDS[way] if pair.key in _TEXTS else way


def _of_schema(pair: _Pair, way: Literal["added", "removed", "changed"]) -> Kind:
    if pair.key in _TEXTS:
        return _TEXT_KINDS[way]
    if pair.key == "type":
        return _of_type(_types(pair.before), _types(pair.after))
    if pair.key in _LIMITS and way != "changed" and True not in (pair.before, pair.after):
        return "limit added" if way == "added" else "limit dropped"
    return way


def _of_type(before: frozenset[str], after: frozenset[str]) -> Kind:
    if before < after:
        return "type widened"
    return "type narrowed" if after < before else "type changed"


def _types(stated: Any) -> frozenset[str]:
    """Return the types that a schema allows; every one where it says nothing."""
    if stated is _MISSING:
        return _ALL_TYPES
    types = frozenset(map(str, cast("list[object]", stated) if isinstance(stated, list | tuple) else [stated]))
    return types | {"integer"} if "number" in types else types


def _under(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


# --- texts ---


def parts(before: str, after: str) -> tuple[Part, ...]:
    """Return two texts as what they share and what only one of them has, in order.

    Words are compared; where more than :data:`_PARTS` of them differ, lines; where those are too many as well, all
    between the common beginning and the common end counts as replaced. The time stays in proportion to the length.

    >>> [(part.kind, part.text) for part in parts("Add numbers.", "Add two numbers.")]
    [('same', 'Add '), ('added', 'two '), ('same', 'numbers.')]
    """
    for pieces in (_WORDS.findall, _lines):
        old, new = pieces(before), pieces(after)
        start = _shared(old, new)
        end = _shared(old[start:][::-1], new[start:][::-1])
        middle_old, middle_new = old[start : len(old) - end], new[start : len(new) - end]
        if max(len(middle_old), len(middle_new)) <= _PARTS:
            return _joined(old[:start], _compared(middle_old, middle_new), old[len(old) - end :])
    return _joined(old[:start], [("removed", middle_old), ("added", middle_new)], old[len(old) - end :])


_Run = tuple[Literal["same", "removed", "added"], Sequence[str]]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many pieces two texts begin with together."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _compared(old: list[str], new: list[str]) -> Iterator[_Run]:
    for kind, a, b, c, d in SequenceMatcher(None, old, new).get_opcodes():
        if kind == "equal":
            yield "same", old[a:b]
        else:
            yield "removed", old[a:b]
            yield "added", new[c:d]


def _joined(lead: Sequence[str], runs: Iterable[_Run], rest: Sequence[str]) -> tuple[Part, ...]:
    every: list[_Run] = [("same", lead), *runs, ("same", rest)]
    return tuple(Part(kind=kind, text="".join(pieces)) for kind, pieces in every if pieces)


# --- for people ---


def render(changes: Sequence[Change], *, limit: int = LIMIT) -> str:
    r"""Return changes as text for a terminal or a page: one line each, and what was removed and added under it.

    Every hidden character is visible, no text of a definition begins a line of its own, and the whole has at most
    ``limit`` characters (but not less than 200); what is cut is counted.

    Args:
        changes: what :func:`diff` returned.
        limit: the most characters.

    >>> print(render(diff({"description": "Add all."}, {"description": "Add\u200b all."})))
    /description: text changed
      = Add
      + <U+200B>
      =  all.
    """
    room = max(limit, _LEAST) - 80
    lines: list[str] = []
    for at, change in enumerate(changes):
        for line in _rendered(change):
            room -= len(line) + 1
            if room < 0:
                more = len(changes) - at - 1
                lines.append(f"… cut: the rest of this change and {more:,} more." if more else "… cut: the rest of it.")
                return "\n".join(lines)
            lines.append(line)
    return "\n".join(lines)


def _rendered(change: Change) -> Iterator[str]:
    yield f"{_cut(change.path, _VALUE)}: {change.kind}"
    if isinstance(change.before, str) and isinstance(change.after, str):
        yield from map(_rendered_part, parts(change.before, change.after))
        return
    for sign, value in (("-", change.before), ("+", change.after)):
        if value is not None:
            yield f"  {sign} {_cut(value if isinstance(value, str) else _json(value), _VALUE)}"


def _rendered_part(part: Part) -> str:
    if part.kind == "same":
        return f"  = {_cut(part.text, _CONTEXT)}"
    return f"  {'-' if part.kind == 'removed' else '+'} {_cut(part.text, _VALUE)}"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(too deep to be shown)"


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text on one line, hidden characters visible, and how much of it is missing."""
    text = without_long_runs(text)
    shown = visible(text[:most]).replace("\n", "\\n").replace("\t", "\\t")
    return f"{shown}… ({len(text) - most:,} more characters)" if len(text) > most else shown
