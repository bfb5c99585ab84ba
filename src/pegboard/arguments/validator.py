"""Check the arguments of a call against the tool's schema before anything runs (X2)."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pegboard.arguments.checking import compile_schema, first_problem_texts, took_too_many_steps
from pegboard.arguments.elsewhere import MOST_AT_ONCE, problems_elsewhere
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import JsonObject, Tool

if TYPE_CHECKING:
    from jsonschema_rs import Validator

LARGEST_SCHEMA: Final = 200_000
"""From how many characters on a schema is compiled in a process of its own."""
MOST_WORK: Final = 1_000_000
"""How much work a check may be where others wait for it; more is done in a process of its own."""
MOST_VALUES: Final = 50_000
"""How many values arguments may have to be counted to the end."""
_DEEPEST: Final = 24
_CHARACTER: Final = 100
_ITEM: Final = 50
_CHOICE: Final = 4
_SHORT_PATTERN: Final = 40
_FEW: Final = 50
_DEAR: Final = re.compile(r"\{|\(\?|\\[1-9k]")
"""What makes a short pattern a large one, or one that goes back: a count, a group with a question, a reference."""
_SCALARS: Final = frozenset((str, int, float, bool, type(None)))

_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SINGLE: Final = ("not", "if", "then", "else")
_EACH: Final = ("additionalProperties", "items", "additionalItems", "contains", "propertyNames")
_LEFT_OVER: Final = ("unevaluatedProperties", "unevaluatedItems")
_PLAIN: Final = frozenset(
    ("$schema", "$defs", "definitions", "type", "title", "description", "default", "examples", "required", "properties",
     "minProperties", "maxProperties")
)  # fmt: skip


class _Size(NamedTuple):
    values: int
    characters: int
    depth: int


class _TooManyValuesError(Exception):
    """There are more values than are counted."""


class SchemaWork:
    """The work that one schema makes."""

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._known: dict[tuple[int, int], float] = {}
        self._patterned: dict[int, bool] = {}
        self._is_large = _is_large(schema)
        self._most = math.inf if self._is_large else self._most_lookups(schema)
        self._plain = self._most < math.inf and not self.has_patterns
        self.is_small = self._plain and self._most * (1 + _FEW) <= MOST_WORK
        """Whether a few plain values are little work, whichever they are."""

    @cached_property
    def has_patterns(self) -> bool:
        """Return whether it has patterns that are not plainly cheap."""
        try:
            return self._has_pattern(self._schema, set())
        except RecursionError:
            return True

    def work_of(self, arguments: JsonObject) -> float:
        """Return how much work arguments make at most; infinite where that is not told in a moment."""
        if self._plain and len(arguments) <= _FEW and _SCALARS.issuperset(map(type, arguments.values())):
            return self._most * (1 + len(arguments))
        if self._is_large:
            return math.inf
        try:
            return self._work(self._schema, arguments)
        except (_TooManyValuesError, RecursionError):
            return math.inf

    def _most_lookups(self, schema: JsonObject) -> float:
        """Return how often a keyword is looked at for one value, infinite for a schema that contains itself."""
        try:
            each = self._count_lookups(schema, _DEEPEST, ())
            return each if each == self._count_lookups(schema, _DEEPEST - 1, ()) else math.inf
        except (_TooManyValuesError, RecursionError):
            return math.inf

    def _work(self, schema: Any, value: Any) -> float:
        """Return the work of a value; where a schema only names properties, that of each of them."""
        if isinstance(value, dict) and isinstance(schema, dict) and _is_plain(cast("JsonObject", schema)):
            properties = cast("JsonObject", cast("JsonObject", schema).get("properties", {}))
            values = cast("JsonObject", value)
            inner = (self._work(properties[name], values[name]) for name in values.keys() & properties.keys())
            return len(cast("JsonObject", schema)) + len(values) + sum(inner)
        size = _size_of(value)
        depth = min(size.depth, _DEEPEST)
        each = self._count_lookups(schema, depth, ())
        if size.depth > _DEEPEST and each != self._count_lookups(schema, _DEEPEST - 1, ()):
            return math.inf  # it goes deeper with the value
        characters = size.characters * _CHARACTER if self._has_pattern(schema, set()) else 0
        return each * (size.values + characters)

    def _count_lookups(self, schema: Any, depth: int, above: tuple[int, ...]) -> float:
        """Return how often at most a keyword is looked at for one value, down to a depth below this one."""
        if not isinstance(schema, dict) or depth < 0:
            return 1
        parts = cast("JsonObject", schema)
        if id(parts) in above:
            return 0  # it contains itself at the same value, which the validator does not follow
        key = id(parts), depth
        if (known := self._known.get(key)) is None:
            here = (*above, id(parts))
            same = sum(self._count_lookups(one, depth, here) for one in self._same_value(parts))
            if any(name in parts for name in _LEFT_OVER):
                same *= 3  # they are tried again to see what they left over
            below = depth - 1
            inner = sum(
                self._count_lookups(parts[name], below, ())
                for name in (*_EACH, *_LEFT_OVER)
                if _has_mapping(parts, name)
            )
            inner += sum(self._count_lookups(one, below, ()) for one in _values(parts.get("patternProperties")))
            inner += max((self._count_lookups(one, below, ()) for one in _values(parts.get("properties"))), default=0)
            listed = [*_values(parts.get("prefixItems")), *_values(parts.get("items"), lists=True)]
            inner += max((self._count_lookups(one, below, ()) for one in listed), default=0)
            known = self._known[key] = _cost_of_keywords(parts) + same + inner
        return known

    def _same_value(self, schema: JsonObject) -> Iterator[Any]:
        """Yield the parts of a schema that look at the same value."""
        for name in _LISTS:
            yield from _values(schema.get(name), lists=True)
        for name in _SINGLE:
            if name in schema:
                yield schema[name]
        for name in ("dependentSchemas", "dependencies"):
            yield from _values(schema.get(name))
        for name in ("$ref", "$dynamicRef", "$recursiveRef"):
            if name in schema:
                yield self._resolve_reference(schema[name])

    def _resolve_reference(self, reference: Any) -> Any:
        """Return the part that a reference names; the whole schema for one that only the validator can follow."""
        found: Any = self._schema
        if isinstance(reference, str) and reference.startswith("#/"):
            for part in reference[2:].split("/"):
                step = part.replace("~1", "/").replace("~0", "~")
                if isinstance(found, dict) and step in found:
                    found = cast("JsonObject", found)[step]
                elif isinstance(found, list) and step.isdigit() and int(step) < len(cast("list[Any]", found)):
                    found = cast("list[Any]", found)[int(step)]
                else:
                    return self._schema
        return found

    def _has_pattern(self, schema: Any, seen: set[int]) -> bool:
        """Return whether a text under this schema may meet a pattern that is not plainly cheap."""
        if isinstance(schema, list):
            return any(self._has_pattern(one, seen) for one in cast("list[Any]", schema))
        if not isinstance(schema, dict):
            return False
        parts = cast("JsonObject", schema)
        if id(parts) in seen:
            return False
        if (known := self._patterned.get(id(parts))) is None:
            seen.add(id(parts))
            patterns = [parts.get("pattern"), *_keys(parts.get("patternProperties"))]
            known = any(isinstance(one, str) and not _is_cheap(one) for one in patterns)
            targets = [
                self._resolve_reference(parts[name])
                for name in ("$ref", "$dynamicRef", "$recursiveRef")
                if name in parts
            ]
            known = known or any(self._has_pattern(one, seen) for one in (*parts.values(), *targets))
            if known or len(seen) == 1:
                self._patterned[id(parts)] = known
        return known


def _is_plain(schema: JsonObject) -> bool:
    """Return whether a schema looks at the values in an object by their names alone."""
    more = schema.get("additionalProperties")
    return isinstance(schema.get("properties", {}), dict) and all(
        name in _PLAIN or (name == "additionalProperties" and isinstance(more, bool)) for name in schema
    )


def _is_cheap(pattern: str) -> bool:
    """Return whether a pattern is so small that its time does not count, whatever the text."""
    return len(pattern) <= _SHORT_PATTERN and _DEAR.search(pattern) is None


def _is_large(schema: JsonObject) -> bool:
    try:
        return len(json.dumps(schema, default=str)) > LARGEST_SCHEMA
    except (ValueError, RecursionError):
        return True


def _has_mapping(schema: JsonObject, name: str) -> bool:
    return isinstance(schema.get(name), dict)


def _keys(value: Any) -> Iterable[Any]:
    return cast("JsonObject", value).keys() if isinstance(value, dict) else ()


def _values(value: Any, *, lists: bool = False) -> Iterable[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    return cast("JsonObject", value).values() if isinstance(value, dict) and not lists else ()


def _cost_of_keywords(schema: JsonObject) -> int:
    """Return what the keywords of one schema come to at one value, without its parts."""
    choices = sum(_size_of(schema[name]).values for name in ("enum", "const") if name in schema) * _CHOICE
    return len(schema) + choices + (_ITEM if schema.get("uniqueItems") else 0)


def _size_of(value: Any) -> _Size:
    """Return how many values there are in one, how many characters, and how deep it goes."""
    if isinstance(value, str):
        return _Size(1, len(value), 0)
    inner: Iterable[Any]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value)
        inner, characters = pairs.values(), sum(len(key) for key in pairs if isinstance(key, str))
    elif isinstance(value, list | tuple):
        inner, characters = cast("list[Any]", value), 0
    else:
        return _Size(1, 0, 0)
    values, deepest = 1, -1
    for one in inner:
        below = _size_of(one)
        values, characters, deepest = values + below.values, characters + below.characters, max(deepest, below.depth)
        if values > MOST_VALUES:
            raise _TooManyValuesError
    return _Size(values, characters, deepest + 1)


MOST_WORK_FOR_TEXTS: Final = 5_000
"""The same for finding what is wrong, which takes a thousand times as long where nothing fits."""
_LONGEST = 300


class _Known:
    """A schema that was seen before: its work, and itself compiled when it is first needed."""

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self.work = SchemaWork(schema)

    @cached_property
    def compiled_schema(self) -> Validator | None:
        return compile_schema(dict(self.schema))

    @cached_property
    def checks_nothing(self) -> bool:
        """Return whether everything fits: the schema is not valid, which is not for the size of a pattern."""
        return self.compiled_schema is None and not self.work.has_patterns

    @cached_property
    def is_valid(self) -> Callable[[JsonObject], bool]:
        """Return what tells whether arguments fit."""
        if self.compiled_schema is not None:
            return self.compiled_schema.is_valid
        return lambda _: self.checks_nothing


class SchemaValidator:
    """A check of arguments with validators that are compiled once for each schema.

    A schema that is itself not valid, or that points outside itself, checks nothing: the tool
    judges its arguments then. What may take long is checked in a process of its own, within a limit.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._elsewhere = asyncio.Semaphore(MOST_AT_ONCE)

    def fits(self, tool: Tool, arguments: JsonObject) -> bool:
        """Return whether arguments fit; False too where that takes long to see, or where they are not JSON."""
        known = self._known.get(tool.wire)
        if known is None or known.schema is not tool.input_schema:
            known = self._validator_of(tool)
        instance = arguments if type(arguments) is dict else dict(arguments)
        few = known.work.is_small and len(instance) <= _FEW and _SCALARS.issuperset(map(type, instance.values()))
        try:
            return (few or known.work.work_of(instance) <= MOST_WORK) and known.is_valid(instance)
        except (ValueError, RecursionError):
            return False

    async def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:
        """Return one sentence per problem, naming the argument and what was expected.

        Raises:
            ToolUnavailableError: The schema takes too long to check these arguments against.
        """
        known, instance = self._validator_of(tool), _as_dict(arguments)
        work = known.work.work_of(instance)
        try:
            if work <= MOST_WORK:
                compiled = known.compiled_schema
                if known.checks_nothing or (compiled is not None and compiled.is_valid(instance)):
                    return []
                if compiled is not None and work <= MOST_WORK_FOR_TEXTS:
                    texts = first_problem_texts(compiled, instance)
                    if not took_too_many_steps(texts):
                        return _sentences(texts)
            async with self._elsewhere:
                return _sentences(await problems_elsewhere(tool, instance))
        except (ValueError, TypeError, RecursionError) as error:  # a lone surrogate, a cycle, an object, too deep
            return [f"they are not JSON ({one_line(str(error), limit=_LONGEST)})"]

    def _validator_of(self, tool: Tool) -> _Known:
        known = self._known.get(tool.wire)
        if known is None or known.schema is not tool.input_schema:
            known = self._known[tool.wire] = _Known(tool.input_schema)
        return known


def _as_dict(arguments: JsonObject) -> JsonObject:
    return arguments if isinstance(arguments, dict) else dict(arguments)


def _sentences(texts: list[tuple[str, str]]) -> list[str]:
    found: list[str] = []
    for path, message in texts:
        text = one_line(message, limit=_LONGEST)
        found.append(f"argument '{path}': {text}" if path else text)
    return found
