"""What the tools of one run came to under a prompt cache, and what they would have come to otherwise (D1, F4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from pegboard.core.model.delivery import Cache
from pegboard.core.surface.cache_cost import standing_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCost:
    """What the tools of a run came to, by this rule.

    A request carries the definitions of its list, hints and policy, then what the history has: definitions that it
    reveals, definitions and answers of loads and searches; last a line on what is loaded. What begins a request as it
    began the one before is read from the cache, the rest written; that line is written each time. Across runs the
    history is kept, and the cache lasts. The conversation itself counts nowhere: neither what a break writes again of
    it, nor what a request more reads.

    Attributes:
        requests: how many there were.
        tokens: of tools, in all requests together.
        read: the share that was read from the cache, from 0 to 1: of ``tokens``, or of the whole input where a
            provider's numbers were given.
        predicted: whether ``read`` comes from the rule, and from no provider.
        breaks: how many requests had another list, other hints or another policy than the one before.
        cost: in plain input tokens, by the prices of the host's cache.
        deferred: the same for a framework's own deferral: a line for each plugin at the head, and all definitions of a
            plugin from the request on that first called one of its tools; without its means to search. None while a
            plugin is not known.
        listed: the same with everything that the agent may use at the head, without the requests whose calls only
            loaded or searched. None while a plugin is not known.
    """

    requests: int
    tokens: int
    read: float
    predicted: bool
    breaks: int
    cost: float
    deferred: float | None
    listed: float | None

    def line(self) -> str:
        """Return it as one line for a log; the other costs only where no break hides some of the own."""
        source = "predicted" if self.predicted else "of all input, as reported"
        found = (
            f"{self.tokens:,} tokens of tools in {_number(self.requests, 'request')}, "
            f"{self.read:.0%} read from cache ({source}), {_number(self.breaks, 'break')}"
        )
        others = ((self.deferred, "deferred"), (self.listed, "all listed"))
        beside = [_compare_costs(self.cost, other, name) for other, name in others if other and not self.breaks]
        return "; ".join((found, ", ".join(beside))) if beside else found


class RequestPart(NamedTuple):
    """A part of a request, equal where it is in another one too."""

    what: object
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """The pieces of a request's head and of its history, and the tokens of what no later request keeps."""

    head: tuple[RequestPart, ...]
    history: tuple[RequestPart, ...] = ()
    note: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternativeCosts:
    """What other ways would have sent.

    ``catalog`` are the tokens of all definitions, ``lines`` those of a line for each plugin; ``joined`` has for each
    plugin of which a tool was called its tokens and the place of that request, -1 for one before the run; ``loading``
    counts the requests whose calls only loaded or searched.
    """

    catalog: int
    lines: int
    joined: Sequence[tuple[int, int]] = ()
    loading: int = 0


def run_cost(
    requests: Sequence[SentRequest],
    *,
    before: SentRequest | None,
    cache: Cache,
    otherwise: AlternativeCosts | None,
    reported: float | None = None,
) -> RunCost:
    """Return what the tools of a run came to.

    ``before`` is the last request of the run before it, ``otherwise`` None where the catalog is not known, ``reported``
    the share that a provider read from its cache.
    """
    tokens = read = breaks = 0
    last = before
    for request in requests:
        pieces = (*request.head, *request.history)
        tokens += sum(piece.tokens for piece in pieces) + request.note
        if last is not None:
            breaks += [piece.what for piece in request.head] != [piece.what for piece in last.head]
            pairs = takewhile(
                lambda pair: pair[0].what == pair[1].what, zip(pieces, (*last.head, *last.history), strict=False)
            )
            read += sum(piece.tokens for piece, _ in pairs)
        last = request
    deferred = listed = None
    if otherwise is not None:
        listed = _cost_in_requests(
            otherwise.catalog, len(requests) - otherwise.loading, cache, known=before is not None
        )
        deferred = _cost_in_requests(otherwise.lines, len(requests), cache, known=before is not None) + sum(
            _cost_in_requests(size, len(requests) - max(place, 0), cache, known=place < 0)
            for size, place in otherwise.joined
        )
    return RunCost(
        requests=len(requests),
        tokens=tokens,
        read=reported if reported is not None else read / tokens if tokens else 0.0,
        predicted=reported is None,
        breaks=breaks,
        cost=cache.read * read + cache.write * (tokens - read),
        deferred=deferred,
        listed=listed,
    )


def _cost_in_requests(tokens: int, requests: int, cache: Cache, *, known: bool) -> float:
    """Return what tokens cost in some requests, the first of which writes them unless they are known."""
    if requests <= 0:
        return 0.0
    return tokens * cache.read * requests if known else standing_cost(tokens, requests, cache)


def _compare_costs(cost: float, other: float, name: str) -> str:
    share = 1 - cost / other
    return f"{abs(share):.0%} {'less' if share >= 0 else 'more'} than {name}"


def _number(count: int, unit: str) -> str:
    return f"{count:,} {unit}" if count == 1 else f"{count:,} {unit}s"
