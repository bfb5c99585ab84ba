"""What the rows of a panel are found by: label, name and description, folded once for each plugin."""

from __future__ import annotations

from collections.abc import Iterator

from pegboard.core.access.settings.panels import PanelGroup, PanelPart
from pegboard.core.model.agents import World
from pegboard.core.model.tools import Plugin, Tool

Words = tuple[str, ...]


class PanelTexts:
    """The texts of plugins and their tools; no switch changes them, and they are made when somebody first looks."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Plugin, str, dict[str, str]]] = {}

    def words(self, query: str) -> Words:
        """Return the words of a query, all of which have to stand in one text."""
        return tuple(query.casefold().split())

    def fits(self, words: Words, *texts: str) -> bool:
        """Return whether every word stands in one of these texts."""
        folded = "\n".join(texts).casefold()
        return all(word in folded for word in words)

    def group_fits(self, world: World, group: PanelGroup, words: Words) -> bool:
        """Return whether a row fits, or one of its members does."""
        if not words:
            return True
        return self.fits(words, *_own(world, group)) or any(self._part_fits(part, words) for part in group.parts)

    def _part_fits(self, part: PanelPart, words: Words) -> bool:
        if not part.tools:
            return self.fits(words, part.plugin.name, part.plugin.description)
        return next(self.tools_that_fit(part, words), None) is not None

    def tools_that_fit(self, part: PanelPart, words: Words) -> Iterator[Tool]:
        """Yield the tools of a part that fit, in order."""
        together, texts = self._of(part.plugin)
        if not all(word in together for word in words):
            return
        for tool in part.tools:
            text = texts[tool.id]
            if all(word in text for word in words):
                yield tool

    def _of(self, plugin: Plugin) -> tuple[str, dict[str, str]]:
        known = self._known.get(plugin.name)
        if known is None or known[0] is not plugin:
            texts = {tool.id: _text(tool) for tool in plugin.tools}
            known = self._known[plugin.name] = plugin, "\n".join(texts.values()), texts
        return known[1:]


def _own(world: World, group: PanelGroup) -> tuple[str, ...]:
    """Return the texts of a group itself."""
    match group.kind:
        case "toolkit":
            toolkit = world.toolkits[group.name]
            return group.name, toolkit.label, toolkit.description
        case "plugin":
            return group.name, world.catalog.plugins[group.name].description
        case "unknown":
            return (group.name,)


def _text(tool: Tool) -> str:
    title = tool.annotations.get("title") or tool.extra.get("title")
    return "\n".join((tool.wire, tool.name, title if isinstance(title, str) else "", tool.description)).casefold()
