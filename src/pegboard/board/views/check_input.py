"""Check what a host gives of a conversation before anything reads it or keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from pegboard.core.model.agents import SCOPES, WorkerScope
from pegboard.core.model.delivery import Host
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.dialects.names import Search
from pegboard.errors import UsageError

MOST_TURNS: Final = 1_000_000_000


def check_texts(**given: object) -> None:
    """Raise ``UsageError`` for the first of some values, by the name of its parameter, that is no text."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise UsageError(f"`{name}` is of the type '{type(value).__name__}', not a text.")


def check_names(names: Iterable[object]) -> None:
    """Raise ``UsageError`` for the first of some names that is no text."""
    for name in names:
        check_texts(name=name)


def check_call(name: object, arguments: object) -> None:
    """Raise ``UsageError`` for a call whose name is no text, or whose arguments are no mapping."""
    if not isinstance(name, str):
        check_texts(name=name)
    if arguments is not None and not isinstance(arguments, Mapping):
        hint = "Give a dictionary: session.call('add', {'a': 1})."
        raise UsageError(f"`arguments` are of the type '{type(arguments).__name__}', not a mapping.", hint=hint)


def checked_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return a value that is one of a few words.

    Raises:
        UsageError: it is another one.
    """
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    written = one_line(value, limit=100) if isinstance(value, str) else f"{value!r:.100}"
    words = f"{', '.join(known[:-1])} or {known[-1]}"
    shown = f"'{written}'" if isinstance(value, str) else written
    raise UsageError(f"`{name}` is {shown}, which is not {words}.", hint=did_you_mean(written, known))


def checked_scope(scope: object) -> WorkerScope | None:
    """Return the scope that narrows a session, None where nothing does.

    Raises:
        UsageError: there is no such scope.
    """
    return None if scope is None else cast("WorkerScope", checked_choice("worker_scope", scope, SCOPES))


def check_host(host: object) -> None:
    """Raise ``UsageError`` for what is neither a host nor None."""
    if host is not None and not isinstance(host, Host):
        hint = "Make one: Host(delivery=('array',))."
        raise UsageError(f"`host` is of the type '{type(host).__name__}', not a Host.", hint=hint)


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
