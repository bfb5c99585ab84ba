"""Which secrets and variables an edit would bring to where they did not stand: they are read there (X5, A5)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

from pegboard.operators.masked import ShownNames, marks_in

_Place = tuple[str | int, ...]
_ITEM: Final = 0
"""The items of a list stand in one place: one that goes moves those after it."""
_NAME: Final = 1
_VARIABLE: Final = re.compile(r"\$\$\{|(\$\{[^}]*\}?)")
"""Whatever may be a reference. One is told from another by all that is written between the braces, its default too.

What is written for the two signs alone is none, and what is behind it is not made one.
"""


def brings_secret(value: Any, there: Any, names: ShownNames) -> bool:
    """Return whether a value as it was handed in has a mark which no text has that is in the same place now."""
    return _brings_secret(value, there, marks_in, names.shown)


def brings_variable(value: Any, there: Any) -> bool:
    """Return whether a value refers to something to which no text refers that is in the same place now.

    >>> brings_variable({"role": "of ${TEAM}"}, {"role": "for ${TEAM}"})
    False
    >>> brings_variable({"role": "of ${TOKEN}"}, {"env": "${TOKEN}"})
    True
    >>> brings_variable("${TOKEN}", "write $${TOKEN}"), brings_variable("write $${TOKEN}", "")
    (True, False)
    """
    return _brings_secret(value, there, _variables, str)


def _variables(text: str) -> Iterator[str]:
    return filter(None, _VARIABLE.findall(text))


def _brings_secret(value: Any, there: Any, found: Callable[[str], Iterable[str]], shown: Callable[[str], str]) -> bool:
    known: defaultdict[_Place, set[str]] = defaultdict(set)
    for place, text in _texts(there):
        known[place].update(found(shown(text)))
    return any(not known[place].issuperset(found(text)) for place, text in _texts(value))


def _texts(value: Any, place: _Place = ()) -> Iterator[tuple[_Place, str]]:
    """Yield every text in a plain value, names of members too, with where it stands."""
    match value:
        case str():
            yield place, value
        case Mapping():
            for name, inner in cast("Mapping[str, Any]", value).items():
                yield (*place, _NAME), name
                yield from _texts(inner, (*place, name))
        case list() | tuple():
            for inner in cast("list[Any]", value):
                yield from _texts(inner, (*place, _ITEM))
        case _:
            return
