"""What requests cost under prompt caching: the tool list, then the system text, then the messages."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.core.model.delivery import Cache


class Prompt:
    """Add up the cost of one conversation's requests, in plain input tokens.

    What equals the beginning of the request before is read from the cache, everything behind the
    first difference is written to it. Messages are only ever added. ``system`` is in tokens.
    """

    def __init__(self, prices: Cache, *, system: int) -> None:
        self._prices = prices
        self._system = system
        self._list: tuple[str, ...] = ()
        self._known = 0
        self.messages = 0
        self.cost = 0.0
        self.requests = 0
        self.list_changes = 0

    def say(self, tokens: int) -> None:
        """Add a message."""
        self.messages += tokens

    def send(self, names: tuple[str, ...], sizes: Sequence[int]) -> None:
        """Send a request with this tool list."""
        behind = self._system + self.messages
        if names == self._list:
            read, written = sum(sizes) + self._system + self._known, self.messages - self._known
        else:
            same = next((i for i, (a, b) in enumerate(zip(names, self._list, strict=False)) if a != b), None)
            same = min(len(names), len(self._list)) if same is None else same
            read, written = sum(sizes[:same]), sum(sizes[same:]) + behind
            self.list_changes += self.requests > 0
        if not self.requests:
            read, written = 0, sum(sizes) + behind
        self._list, self._known = names, self.messages
        self.cost += read * self._prices.read + written * self._prices.write
        self.requests += 1
