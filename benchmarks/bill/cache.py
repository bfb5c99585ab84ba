"""The prompt cache of a provider, by prefix: what a request reads from it, writes into it, and costs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from benchmarks.bill.requests_read import KINDS, Form, Kind, Read

READ = 0.1
WRITE = {"anthropic": 1.25, "responses": 1.0, "chat": 1.0}
LEAST = 1024
"""The tokens that a cached prefix has at least."""
ANSWER, OUTPUT = 150, 5
"""The tokens of an answer of a model, and what one costs in plain input tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The input tokens of a request: read from the cache, written into it, plain."""

    read: int
    written: int
    plain: int
    write_price: float
    by_kind: Mapping[Kind, float]
    """The bill of each kind of block."""

    @property
    def total(self) -> int:
        return self.read + self.written + self.plain

    @property
    def bill(self) -> float:
        """Return what the request costs with its answer, in plain input tokens."""
        return READ * self.read + self.write_price * self.written + self.plain + ANSWER * OUTPUT


class PromptCache:
    """What one provider has cached of one conversation."""

    def __init__(self, form: Form, count: Callable[[str], int]) -> None:
        self._form = form
        self._count = count
        self._written: set[bytes] = set()

    def ask(self, request: Read) -> Cost:
        """Return what a request costs, and cache what it leaves behind."""
        blocks = request.blocks
        tokens = [0, *accumulate(self._count(block) for block in blocks)]
        places = list(accumulate(blocks, _hashed, initial=b""))
        ends = request.breaks if self._form == "anthropic" else tuple(range(1, len(blocks) + 1))
        last = max(ends, default=0)
        if tokens[last] < LEAST:
            return self._cost(request, tokens, 0, 0)
        known = next(
            (place for place in range(last, 0, -1) if tokens[place] >= LEAST and places[place] in self._written), 0
        )
        self._written.update(places[end] for end in ends if tokens[end] >= LEAST)
        return self._cost(request, tokens, known, last)

    def _cost(self, request: Read, tokens: Sequence[int], known: int, last: int) -> Cost:
        """Return what a request costs whose first blocks are known to the cache, and are in it up to the last."""
        price, by_kind = WRITE[self._form], dict.fromkeys(KINDS, 0.0)
        for place, kind in enumerate(request.kinds):
            factor = READ if place < known else price if place < last else 1.0
            by_kind[kind] += factor * (tokens[place + 1] - tokens[place])
        written, plain = tokens[last] - tokens[known], tokens[-1] - tokens[last]
        return Cost(read=tokens[known], written=written, plain=plain, write_price=price, by_kind=by_kind)


def _hashed(before: bytes, block: str) -> bytes:
    return hashlib.sha256(before + block.encode()).digest()
