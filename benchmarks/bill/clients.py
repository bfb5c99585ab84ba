"""OpenAI's real client, without its slowest part, which changes nothing here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = ("maybe_transform", "async_maybe_transform")


@contextmanager
def quick_clients() -> Iterator[None]:
    """Let the client send its parameters as they are given.

    Before a request it looks for aliases and files in every value by its annotation: a third of a second for a long
    history, and no request of these conversations has any. ``--slow-clients`` sends the same bodies.
    """
    from openai.resources.chat.completions import completions
    from openai.resources.responses import responses

    modules: tuple[Any, ...] = (completions, responses)
    before = [(module, name, getattr(module, name)) for module in modules for name in _NAMES]
    for module in modules:
        module.maybe_transform, module.async_maybe_transform = _as_given, _as_given_later
    try:
        yield
    finally:
        for module, name, whole in before:
            setattr(module, name, whole)


def _as_given(data: Any, expected_type: object) -> Any:
    from openai import omit

    return {key: value for key, value in data.items() if value is not omit}


async def _as_given_later(data: Any, expected_type: object) -> Any:
    return _as_given(data, expected_type)
