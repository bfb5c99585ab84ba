"""What a plugin is for, in a few words, also where nobody described it (F2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.naming import first_purpose, says_more
from pegboard.core.model.tool_words import tool_words, words_text
from pegboard.core.model.tools import DescribedBy, Plugin, Tool
from pegboard.core.state.sessions import State
from pegboard.core.state.subjects import reachable


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What a plugin is for: a text, or the commonest words of its tools' names; and who says so."""

    text: str = ""
    words: tuple[str, ...] = ()
    described_by: DescribedBy = ""

    def within(self, limit: int) -> str:
        """Return it in at most so many characters."""
        return clipped(self.text or words_text(self.words, limit), limit)


@once_per_permissions
def purposes(permissions: CompiledPermissions, loadout: str | None) -> Mapping[str, Purpose]:
    """Return what each plugin is for under an active loadout, by its name, on one line.

    It is the first sentence of its description; where that says no more than the name, what its only tool is for, else
    the commonest words of its tools' names. Only what is within reach counts (P9), and no other plugin.
    """
    plugins = permissions.world.catalog.plugins.values()
    bare: dict[str, list[Tool]] = {
        plugin.name: [] for plugin in plugins if not says_more(plugin.description, plugin.name)
    }
    for tool in reachable(permissions, State(loadout=loadout)) if bare else ():
        if tool.plugin in bare:
            bare[tool.plugin].append(tool)
    return {plugin.name: purpose_of(plugin, bare.get(plugin.name, ())) for plugin in plugins}


def purpose_of(plugin: Plugin, tools: Sequence[Tool]) -> Purpose:
    """Return what a plugin is for, whose description says it, or these tools do."""
    text = first_purpose(plugin.description)
    if not tools or says_more(plugin.description, plugin.name):
        return Purpose(text=text, described_by=plugin.described_by)
    words = tool_words(plugin.name, [tool.name for tool in tools])
    first_known = tuple(word for word in plugin.words if word in words)
    described = first_purpose(tools[0].description)
    if described and (len(tools) == 1 or not words):
        return Purpose(text=described, described_by="tools")
    return Purpose(text="" if words else text, words=first_known or words, described_by="tools" if words else "")


def clipped(text: str, limit: int) -> str:
    """Return a text of at most so many characters, cut between words where there are any."""
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0]
    return f"{(whole or text[: limit - 1]).rstrip(' ,;:…')}…"
