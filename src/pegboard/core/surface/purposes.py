"""What a plugin is for, in a few words, also where nobody described it (F2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.naming import first_sentence, one_line, says_more, words_of
from pegboard.core.model.tools import Tool
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import reachable

NAMES: Final = 4
"""How many names of tools stand for a plugin that nobody described."""
_SHORT: Final = 8
"""Up to about so many characters a name's length does not count."""


@once_per_permissions
def purposes(permissions: CompiledPermissions, loadout: str | None) -> Mapping[str, str]:
    """Return what each plugin is for under an active loadout, by its name, on one line.

    It is the first sentence of its description; where that says no more than the name, the most distinct of its tools'
    names, else what its first tool is for. Only what is within reach counts (P9). Where nothing is known it is empty.
    """
    described = {p.name: first_sentence(p.description) for p in permissions.world.catalog.plugins.values()}
    bare: dict[str, list[Tool]] = {name: [] for name, text in described.items() if not says_more(text, name)}
    for tool in reachable(permissions, State(loadout=loadout)) if bare else ():
        if tool.plugin in bare:
            bare[tool.plugin].append(tool)
    times = Counter(word for tools in bare.values() for word in {w for tool in tools for w in words_of(tool.name)})
    return described | {name: _of_tools(name, tools, times) for name, tools in bare.items() if tools}


def _of_tools(plugin: str, tools: Sequence[Tool], times: Counter[str]) -> str:
    names = _distinct_names(plugin, tools, times)
    return names if says_more(names, plugin) else first_sentence(tools[0].description) or names


def _distinct_names(plugin: str, tools: Sequence[Tool], times: Mapping[str, int]) -> str:
    """Return the names whose words run through the plugin and not through others, each with words of its own."""
    words = [frozenset(words_of(tool.name)) for tool in tools]
    within = Counter(word for of_one in words for word in of_one)
    worth = {word: count / times[word] for word, count in within.items() if word not in plugin.casefold()}
    chosen: list[int] = []
    while len(chosen) < min(NAMES, len(tools)):
        rest = [place for place in range(len(tools)) if place not in chosen]
        best = max(rest, key=lambda place: _gain(tools[place], words[place], worth))
        chosen.append(best)
        worth |= dict.fromkeys(words[best] & worth.keys(), 0.0)
    more = ", …" if len(tools) > NAMES else ""
    return ", ".join(one_line(_without(plugin, tools[place].name)) for place in chosen) + more


def _gain(tool: Tool, words: frozenset[str], worth: Mapping[str, float]) -> float:
    return sum(worth.get(word, 0.0) for word in words) / (len(tool.name) + _SHORT)


def _without(plugin: str, name: str) -> str:
    """Return the name of a tool without that of its plugin in front."""
    rest = re.sub(rf"^{re.escape(plugin)}[_\-./ ]+", "", name, flags=re.IGNORECASE)
    return rest or name
