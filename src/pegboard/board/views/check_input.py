"""Check what a host gives of a conversation before anything reads it or keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from pegboard.dialects.names import Search
from pegboard.errors import UsageError

MOST_TURNS: Final = 1_000_000_000


def checked_message(message: object) -> str | None:
    """Return the user's message.

    Raises:
        UsageError: it is neither a text nor None.
    """
    if message is None or isinstance(message, str):
        return message
    raise UsageError(f"The message is {_kind(message)}.", hint="It is the text that the user wrote, or None.")


def checked_turn(turn: object) -> int | None:
    """Return the number of the turn that begins.

    Raises:
        UsageError: it is neither a whole number up to a billion nor None.
    """
    if turn is None or (isinstance(turn, int) and not isinstance(turn, bool) and turn <= MOST_TURNS):
        return turn
    raise UsageError(f"The turn is {turn!r:.40}.", hint="It is a whole number up to a billion, or None.")


def checked_share(read: object, of: object) -> float | None:
    """Return the share of a run's input tokens that a provider read from its cache.

    Raises:
        UsageError: only one number is given, or they are no numbers of tokens of which the first is at most the other.
    """
    if read is None and of is None:
        return None
    if type(read) is int and type(of) is int and 0 <= read <= of:
        return read / of if of else 0.0
    hint = "Both are whole numbers of tokens, as the provider reports them; what was read is part of all."
    raise UsageError(f"The input is {read!r:.40} tokens read of {of!r:.40}.", hint=hint)


def checked_search(queries: Sequence[object], limit: object, context: object) -> Search:
    """Return what is searched for.

    Raises:
        UsageError: a query is no text, the limit is no number above zero, or the context is no list of texts.
    """
    texts = tuple(query for query in queries if isinstance(query, str))
    if len(texts) < len(queries):
        number, query = next((number, query) for number, query in enumerate(queries, 1) if not isinstance(query, str))
        hint = "Each query is a text: search('read a file', 'commit changes')."
        raise UsageError(f"Query {number} is {_kind(query)}.", hint=hint)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise UsageError(f"The limit is {limit!r:.40}.", hint="It is a whole number from 1 on.")
    return Search(queries=texts, limit=limit, context=None if context is None else _texts(context))


def _texts(context: object) -> tuple[str, ...]:
    given = cast("Sequence[object]", context) if isinstance(context, Sequence) else ()
    texts = tuple(text for text in given if isinstance(text, str))
    if isinstance(context, str) or not isinstance(context, Sequence) or len(texts) < len(given):
        raise UsageError("The context is no list of texts.", hint="It is what the user wrote, the newest last.")
    return texts


def _kind(value: object) -> str:
    return f"of the type '{type(value).__name__}', not a text"
