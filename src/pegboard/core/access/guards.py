"""What an argument of a call may be: patterns that stand beside the tools that they guard (T10)."""

from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote

from pegboard.core.model.tools import EMPTY, JsonObject, Tool

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_ROUNDS = 4
"""How often a value is decoded that hides percent signs behind percent signs."""
_WITH_EXPONENT = 1e16
"""From here on JSON writes a number with few characters (1e+16): a pattern that counts them would miss it."""


def broken_rule(guards: JsonObject, tool: Tool, arguments: JsonObject) -> str:
    """Return which rule a call breaks, or nothing; the value that breaks it is never repeated (X4).

    An argument that the call does not give breaks no rule. A rule about an argument that the tool does
    not have refuses every call: a guard that is misspelt must not let anything through.
    """
    for name, argument, rule in _rules(guards, tool):
        where = f"guards.{name}.{argument}"
        if argument not in known_arguments(tool):
            return f"'{tool.wire}' is guarded by {where}, and it has no argument '{argument}'; it cannot be called."
        if argument not in arguments:
            continue
        why = _why_broken(rule, arguments[argument])
        if why:
            return f"'{tool.wire}' is not called: its argument '{argument}' {why} ({where}.{why.kind})."
    return ""


def guards_in_force(guards: JsonObject, tool: Tool) -> Any:
    """Return the rules about a tool as JSON; by both of its names where both have some."""
    found = [guards[name] for name in dict.fromkeys((tool.name, tool.wire)) if guards.get(name)]
    return found if len(found) > 1 else next(iter(found), None)


def _rules(guards: JsonObject, tool: Tool) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield the rules about the arguments of a tool, with the one of its two names that each is under."""
    for name in dict.fromkeys((tool.name, tool.wire)):
        for argument, rule in (guards.get(name) or EMPTY).items():
            yield name, argument, rule


def known_arguments(tool: Tool) -> Mapping[str, Any]:
    """Return the arguments that a tool says that it has."""
    found = tool.input_schema.get("properties")
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else EMPTY


class _BrokenRule(str):
    """The text of how a rule is broken; ``kind`` is which of its two lists did it."""

    __slots__ = ("kind",)
    kind: str

    @classmethod
    def of(cls, kind: str, text: str) -> _BrokenRule:
        why = cls(text)
        why.kind = kind
        return why


def first_match(patterns: Iterable[str], value: Any) -> str | None:
    """Return the first pattern that a value matches in any way to read it, or None."""
    return next(
        (pattern for pattern in patterns if any(_matches_pattern(pattern, form) for form in _every_form(value))), None
    )


def _why_broken(rule: JsonObject, value: Any) -> _BrokenRule:
    denied = first_match(rule.get("deny", ()), value)
    if denied is not None:
        return _BrokenRule.of("deny", f"may not match '{denied}'")
    allow: Iterable[str] | None = rule.get("allow")
    if allow is not None and not _all_readings_match(tuple(allow), value):
        return _BrokenRule.of("allow", f"must match one of {', '.join(repr(p) for p in allow) or 'nothing'}")
    return _BrokenRule.of("", "")


def _all_readings_match(patterns: tuple[str, ...], value: Any) -> bool:
    """Return whether every way to read a value matches one of the patterns; a list is its elements."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        whole = any(_matches_pattern(pattern, _text(items)) for pattern in patterns)
        return whole or (bool(items) and all(_all_readings_match(patterns, item) for item in items))
    readings = _readings(value) if isinstance(value, str) else (_text(value),)
    return all(any(_matches_pattern(pattern, form) for pattern in patterns) for form in readings)


def _every_form(value: Any) -> Iterator[str]:
    """Yield every text that a value may be read as: itself, its readings, and those of its elements."""
    if isinstance(value, str):
        yield value
        yield value.strip()
        for form in _readings(value):
            yield form
            climbs = re.sub(r"^(?:\.\./)+", "/", form)
            if climbs != form:
                yield climbs
        return
    yield _text(value)
    if isinstance(value, Mapping):
        elements: Iterable[Any] = cast("Mapping[Any, Any]", value).values()
    else:
        elements = cast("list[Any]", value) if isinstance(value, list) else ()
    for item in elements:
        yield from _every_form(item)


def _text(value: Any) -> str:
    """Return a value as the text that patterns are matched against: a string itself, else JSON."""
    if isinstance(value, float) and _WITH_EXPONENT <= abs(value) <= sys.float_info.max:
        return f"{value:.0f}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _readings(value: str) -> tuple[str, ...]:
    """Return what a text may come to as a path or an address: without dot segments, decoded or not.

    >>> _readings("docs/../etc/passwd")
    ('etc/passwd',)
    >>> _readings("docs/%2e%2e/etc")
    ('docs/%2e%2e/etc', 'etc')
    >>> _readings("file:///srv/../etc/passwd")
    ('file:///etc/passwd', '/etc/passwd')
    >>> _readings("2024-01 and more")
    ('2024-01 and more',)
    """
    found: dict[str, None] = {}
    for text in decodings(value):
        found.update(dict.fromkeys(_normal(text)))
    return tuple(found)


def decodings(value: str) -> Iterator[str]:
    """Yield a text and what decoding it makes of it, round by round."""
    yield value
    for _ in range(_ROUNDS if "%" in value else 0):
        plain = unquote(value)
        if plain == value:
            return
        yield plain
        value = plain


def _normal(text: str) -> Iterator[str]:
    address = _SCHEME.fullmatch(text)
    if address is not None:
        scheme, rest = address.groups()
        host, slash, path = rest.replace("\\", "/").partition("/")
        clean = posixpath.normpath(f"/{path}").replace("//", "/") if slash else ""
        yield f"{scheme.lower()}://{host.lower()}{clean}{'/' if clean not in ('', '/') and path.endswith('/') else ''}"
        if scheme.lower() == "file":
            yield clean or "/"
    elif "/" in text or "\\" in text or text in (".", ".."):
        clean = posixpath.normpath(text.strip().replace("\\", "/"))
        yield f"/{clean.lstrip('/')}" if clean.startswith("/") else clean
    else:
        yield text


@lru_cache(maxsize=4096)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _matches_pattern(pattern: str, text: str) -> bool:
    """Return whether a text matches: ``*`` is anything, ``?`` one character, ``[…]`` one of several."""
    return _pattern(pattern).match(text) is not None
