"""A provider's tool search, simulated: the best few by BM25 over names, descriptions and arguments."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from benchmarks.bill.toolkits import Made, Toolkit

FOUND = 5
RULE = (
    "The provider's tool search, simulated: every tool is deferred; where its tool is not visible the model searches "
    f"with the user's words, then with the tool's own description, and each time {FOUND} definitions join the history, "
    "the best by BM25 over names, descriptions and arguments. A search is a step of the model, also where the provider "
    "runs it within a request. In Chat, which has none, all tools stand at the head."
)


class ToolSearch:
    """A search among the tools of toolkits."""

    def __init__(self, toolkits: Sequence[Toolkit]) -> None:
        made = [tool for toolkit in toolkits for tool in toolkit.tools]
        self._words = {tool.name: Counter(_words(_text(tool))) for tool in made}

    def found(self, query: str) -> list[str]:
        """Return the names of what a search finds."""
        words, count = set(_words(query)), len(self._words)
        mean = sum(known.total() for known in self._words.values()) / count
        holding = {word: sum(word in known for known in self._words.values()) for word in words}
        rarity = {word: math.log(1 + (count - n + 0.5) / (n + 0.5)) for word, n in holding.items()}

        def score(name: str) -> float:
            known = self._words[name]
            length = 1.5 * (0.25 + 0.75 * known.total() / mean)
            return sum(rarity[word] * known[word] * 2.5 / (known[word] + length) for word in words)

        return sorted(self._words, key=score, reverse=True)[:FOUND]


def _text(tool: Made) -> str:
    arguments = " ".join(f"{one.name} {one.about}" for one in tool.arguments)
    return f"{tool.name} {tool.description} {arguments}"


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())
