"""Arrays whose places have schemas of their own, as tuples have, for readers that want one schema for every place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def items_beside(places: Sequence[Any]) -> Any:
    """Return one schema that the value at any of the places fits: no provider takes an array without ``items``.

    >>> items_beside([{"type": "number"}, {"type": "number"}])
    {'type': 'number'}
    >>> items_beside([{"type": "number"}, {"type": "string"}])
    {'anyOf': [{'type': 'number'}, {'type': 'string'}]}
    """
    distinct = [place for number, place in enumerate(places) if place not in places[:number]]
    if not distinct:
        return {}
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
