"""Results that reach the client with every key, past the models of the SDK (G7).

What a handler of the SDK returns is validated against the SDK's model of that result, and keys which the
model does not have are dropped: those of a newer revision, and those that a server invented. So a handler
hands its whole result over with :func:`pass_on` and returns an empty model, which gives the SDK's envelope
(``resultType``, cache hints, ``serverInfo``). The middleware around every request collects what was handed
over, for that request alone (a ContextVar: the SDK runs the handler in the context of its middleware), and
lays it over the envelope::

    with collected() as raw:
        result = await call_next(ctx)
    return merged(result, raw)
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_RESULT: ContextVar[dict[str, Any]] = ContextVar("pegboard_raw_result")


@contextmanager
def collected() -> Generator[dict[str, Any]]:
    """Yield the mapping that is filled by :func:`pass_on` while the context lasts."""
    raw: dict[str, Any] = {}
    token = _RESULT.set(raw)
    try:
        yield raw
    finally:
        _RESULT.reset(token)


def pass_on(result: Mapping[str, Any]) -> None:
    """Hand over the result of the request that is being served."""
    _RESULT.get().update(result)


def merged(result: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the SDK's result with what was handed over laid over it; ``_meta`` has the keys of both.

    >>> merged({"content": [], "_meta": {"a": 1}}, {"content": ["x"], "new": 2, "_meta": {"b": 3}})
    {'content': ['x'], '_meta': {'a': 1, 'b': 3}, 'new': 2}
    """
    meta = {**result.get("_meta", {}), **raw.get("_meta", {})}
    return {**result, **raw, **({"_meta": meta} if meta else {})}
