"""Check what a host gives of a conversation before anything reads it or keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from pegboard.core.model.agents import SCOPES, WorkerScope
from pegboard.core.model.delivery import Host
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.errors import UsageError

MOST_TURNS: Final = 1_000_000_000


def check_texts(**given: object) -> None:
    """Raise ``UsageError`` for the first of some values, by the name of its parameter, that is no text."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise UsageError(f"`{name}` is of the type '{type(value).__name__}', not a text.")


def checked_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return a value that is one of a few words."""
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    written = one_line(value, limit=100) if isinstance(value, str) else f"{value!r:.100}"
    words = f"{', '.join(known[:-1])} or {known[-1]}"
    shown = f"'{written}'" if isinstance(value, str) else written
    raise UsageError(f"`{name}` is {shown}, which is not {words}.", hint=did_you_mean(written, known))


def checked_scope(scope: object) -> WorkerScope | None:
    """Return the scope that narrows a session, None where nothing does."""
    return None if scope is None else cast("WorkerScope", checked_choice("worker_scope", scope, SCOPES))


def check_host(host: object) -> None:
    """Raise ``UsageError`` for what is neither a host nor None."""
    if host is not None and not isinstance(host, Host):
        hint = "Make one: Host(delivery=('array',))."
        raise UsageError(f"`host` is of the type '{type(host).__name__}', not a Host.", hint=hint)


def checked_turn(turn: object) -> int | None:
    """Return the number of the turn that begins."""
    if turn is None or (isinstance(turn, int) and not isinstance(turn, bool) and turn <= MOST_TURNS):
        return turn
    raise UsageError(f"The turn is {turn!r:.40}.", hint="It is a whole number up to a billion, or None.")


def checked_share(read: object, of: object) -> float | None:
    """Return the share of a run's input tokens that a provider read from its cache."""
    if read is None and of is None:
        return None
    if type(read) is int and type(of) is int and 0 <= read <= of:
        return read / of if of else 0.0
    hint = "Both are whole numbers of tokens, as the provider reports them; the tokens read are part of all."
    raise UsageError(f"The input is {read!r:.40} tokens read of {of!r:.40}.", hint=hint)
