"""The lines that inform a model of tools that it does not have yet, and what a plugin is for in a few words (F2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from pegboard.core.access.names import name_to_load
from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.naming import first_purpose, first_sentence, one_line, says_more
from pegboard.core.model.tool_words import tool_words, words_text
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import EMPTY, DescribedBy, Plugin, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.sessions import HintForm, ShownHints, State
from pegboard.core.state.subjects import reachable
from pegboard.core.surface.hinted import (
    HintedSubjects,
    hinted_plugins,
    hinted_toolkits,
    hinted_tools,
    known_since,
    number_of_tools,
    unseen_plugins,
)

Count = Callable[[str], int]
Shorten = Callable[[str], str]
_PURPOSE_CHARACTERS = (160, 80, 60, 45, 36, 30, 24, 18)
"""How long the texts of plugins are at most: the longest at which all of them fit."""
_SINCE_TOKENS = 200
"""What the lines on what has become known since take at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _HintRoom:
    """How long hints may be: in tokens, as counted, and in characters; None is as long as they are."""

    count: Count
    tokens: int | None
    characters: int | None = None

    def has_room_for(self, lines: Iterable[str]) -> bool:
        """Return whether there is room for the lines."""
        lines = tuple(lines)
        if self.characters is not None and sum(len(line) + 1 for line in lines) > self.characters:
            return False
        if self.tokens is None or sum(len(line.encode(errors="surrogatepass")) + 1 for line in lines) <= self.tokens:
            return True  # a token has at least one byte
        spent = 0
        for line in lines:
            spent += self.count(line) + 1
            if spent > self.tokens:
                return False
        return True


def hints(
    permissions: CompiledPermissions,
    count: Count,
    *,
    budget: int | None,
    characters: int | None = None,
    loadout: str | None = None,
    form: HintForm = "rest",
    finds: str = "search",
) -> ShownHints:
    """Return the hints for everything permitted that is not loaded from the start.

    Toolkits come first, each with how many tools it has once that is known. It is the richest tier that fits
    ``budget`` tokens and so many ``characters``, None without a bound: full descriptions, first sentences, names by
    plugin, plugins with what they are for in fewer and fewer words, names, and how many more there are, with what
    finds them (``finds``). They depend on the agent and the active loadout alone.
    """
    room = _HintRoom(count=count, tokens=budget, characters=characters)
    return _hints(permissions, room, loadout, form, finds)


@once_per_permissions
def _hints(
    permissions: CompiledPermissions, room: _HintRoom, loadout: str | None, form: HintForm, finds: str
) -> ShownHints:
    shown = _render_hints(permissions, room, loadout, form, finds)
    return replace(shown, form=form, loadout=loadout)


def _render_hints(
    permissions: CompiledPermissions, room: _HintRoom, loadout: str | None, form: HintForm, finds: str
) -> ShownHints:
    found = _list_one_by_one(permissions, loadout, form, room.tokens) if form != "plugins" else None
    if found is not None:
        if not (found.toolkits or found.tools or found.plugins):
            return ShownHints()
        for tier in _TIERS:
            lines = tuple(tier.lines(permissions, found))
            if room.has_room_for(lines):
                return ShownHints(lines=lines, about=found.about, whole=tier is _TIERS[0])
        if found.tools and (lines := _list_names_by_plugin(permissions, found, room)):
            return ShownHints(lines=lines, about=found.about, whole=False)
    return _list_plugins(permissions, room, loadout, form, finds)


def _list_one_by_one(
    permissions: CompiledPermissions, loadout: str | None, form: HintForm, budget: int | None
) -> HintedSubjects | None:
    """Return toolkits, tools and plugins that were not asked yet; None where even the names do not fit."""
    most = None if budget is None else max(budget, 0) // _LEAST + 1
    tools = tuple(islice(hinted_tools(permissions, loadout, form), most))
    if budget is not None and len(tools) * _LEAST > budget:
        return None
    toolkits, unseen = hinted_toolkits(permissions, loadout, form), unseen_plugins(permissions, loadout, form)
    return HintedSubjects(toolkits=toolkits, tools=tools, plugins=unseen)


_LEAST = 2
"""Tokens that a tool takes at the very least: what cannot fit is not even tried."""


# -- one by one ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DetailLevel:
    """How much is said of each toolkit, plugin and tool."""

    text: Shorten

    def lines(self, permissions: CompiledPermissions, found: HintedSubjects) -> Iterator[str]:
        """Yield the lines on what is hinted."""
        yield from _toolkit_lines(permissions, found.toolkits, self.text)
        for tool in found.tools:
            yield _line(name_to_load(permissions, tool), self.text(tool.description))
        for plugin in found.plugins:
            yield _line(plugin.name, self.text(plugin.description))


_TIERS = (_DetailLevel(str), _DetailLevel(first_sentence))


def _list_names_by_plugin(permissions: CompiledPermissions, found: HintedSubjects, room: _HintRoom) -> tuple[str, ...]:
    """Return the names of the tools by plugin, or nothing where they do not fit.

    A tool that is the only one of its plugin has as many words behind its name as there is room for.
    """

    def lines(limit: int) -> tuple[str, ...]:
        toolkits = _toolkit_lines(permissions, found.toolkits, first_sentence)
        plugins = (_line(plugin.name, first_sentence(plugin.description)) for plugin in found.plugins)
        return (*toolkits, *_names(permissions, found.tools, limit), *plugins)

    bare = lines(0)
    if not room.has_room_for(bare):
        return ()
    longer = map(lines, _PURPOSE_CHARACTERS) if _is_only_tool(found.tools) else ()
    return next((one for one in longer if room.has_room_for(one)), bare)


def _is_only_tool(tools: Iterable[Tool]) -> bool:
    """Return whether a tool is the only one of its plugin here."""
    return 1 in Counter(tool.plugin for tool in tools).values()


def _toolkit_lines(permissions: CompiledPermissions, toolkits: Iterable[Toolkit], shorten: Shorten) -> Iterator[str]:
    for toolkit in toolkits:
        text = toolkit.description or ", ".join(member.name for member in toolkit.members)
        number = number_of_tools(permissions, toolkit)
        known = f" ({number} tool{'' if number == 1 else 's'})" if number is not None else ""
        yield f"{_line(toolkit.name, shorten(text))}{known}"


def _names(permissions: CompiledPermissions, tools: Iterable[Tool], limit: int = 0) -> Iterator[str]:
    """Yield the names by plugin; a tool's own name where no other tool here has it, for it is shorter.

    One that is alone and names its plugin stands by itself, with what it is for in at most ``limit`` characters.
    """
    listed = tuple(tools)
    times = Counter(tool.name for tool in listed)
    for plugin, group in groupby(listed, key=lambda tool: tool.plugin):
        of_plugin = tuple(group)
        names = [t.name if times[t.name] == 1 else name_to_load(permissions, t) for t in of_plugin]
        if len(names) == 1 and plugin in name_to_load(permissions, of_plugin[0]):
            text = clip_text(first_purpose(of_plugin[0].description), limit) if limit else ""
            yield _line(name_to_load(permissions, of_plugin[0]), text)
        else:
            yield _line(plugin, ", ".join(names))


# -- by plugin -------------------------------------------------------------------------------------


def _list_plugins(
    permissions: CompiledPermissions, room: _HintRoom, loadout: str | None, form: HintForm, finds: str
) -> ShownHints:
    """Return toolkits and plugins with what they are for, in fewer words where they are many.

    Where that does not fit, it is as many names as fit, and how many more there are.
    """
    toolkits, plugins = hinted_toolkits(permissions, loadout, form), hinted_plugins(permissions, loadout, form)
    about, names = HintedSubjects(toolkits=toolkits, plugins=plugins).about, _group_names(toolkits, plugins)
    if not names:
        return ShownHints()
    known: Mapping[str, Purpose] = purposes(permissions, loadout) if plugins else EMPTY
    if room.tokens is None or len(names) * _LEAST <= room.tokens:
        for limit in (None, *_PURPOSE_CHARACTERS):
            lines = tuple(_group_lines(permissions, toolkits, plugins, known, limit))
            if room.has_room_for(lines):
                return ShownHints(lines=lines, about=about, by_plugin=True, whole=False)
    return ShownHints(lines=_names_that_fit(names, room, finds), about=about, by_plugin=True, whole=False)


def _group_names(toolkits: Iterable[Toolkit], plugins: Iterable[Plugin]) -> tuple[str, ...]:
    return tuple(one_line(one.name) for one in (*toolkits, *plugins))


def _group_lines(
    permissions: CompiledPermissions,
    toolkits: Iterable[Toolkit],
    plugins: Iterable[Plugin],
    known: Mapping[str, Purpose],
    limit: int | None,
) -> Iterator[str]:
    """Yield a line on each, its text of at most ``limit`` characters; with None that of a toolkit is whole."""
    if limit is None:
        yield from _toolkit_lines(permissions, toolkits, str)
    else:
        yield from _toolkit_lines(permissions, toolkits, lambda text: clip_text(first_sentence(text), limit))
    for plugin in plugins:
        yield _line(plugin.name, known[plugin.name].cut_to(limit or _PURPOSE_CHARACTERS[0]))


def _names_that_fit(names: tuple[str, ...], room: _HintRoom, finds: str) -> tuple[str, ...]:
    """Return as many names as fit beside the line that says how many more there are, and what finds them."""
    if room.has_room_for(names):
        return names
    fewest, most = 0, len(names) - 1
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if room.has_room_for((*names[:middle], _more_line(len(names) - middle, finds))):
            fewest = middle
        else:
            most = middle - 1
    shown = (*names[:fewest], _more_line(len(names) - fewest, finds))
    return shown if room.has_room_for(shown) else ()


def _more_line(number: int, finds: str) -> str:
    return f"and {number} more: {finds}"


# -- behind the history ----------------------------------------------------------------------------


def hints_since(
    permissions: CompiledPermissions, shown: ShownHints, count: Count, *, state: State, form: HintForm
) -> tuple[str, ...]:
    """Return the lines on what has become known since hints were shown, without what is loaded now (F2)."""
    found = known_since(permissions, shown, state.loadout, form)
    if not (found.toolkits or found.plugins or found.tools):
        return ()
    active = active_tools(permissions, state)
    rest = tuple(tool for tool in found.tools if tool.id not in active)
    lines = (
        *_toolkit_lines(permissions, found.toolkits, first_sentence),
        *(_line(plugin.name, first_sentence(plugin.description)) for plugin in found.plugins),
        *_names(permissions, rest),
    )
    names = (*_group_names(found.toolkits, found.plugins), *dict.fromkeys(one_line(tool.plugin) for tool in rest))
    room = _HintRoom(count=count, tokens=_SINCE_TOKENS)
    return lines if room.has_room_for(lines) else _names_that_fit(names, room, "search")


# -- lines -----------------------------------------------------------------------------------------


def _line(name: str, text: str) -> str:
    flat = one_line(text)
    return f"{one_line(name)}: {flat}" if flat else one_line(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What a plugin is for: a text, or the commonest words of its tools' names; and who says so."""

    text: str = ""
    words: tuple[str, ...] = ()
    described_by: DescribedBy = ""

    def cut_to(self, limit: int) -> str:
        """Return it in at most so many characters."""
        return clip_text(self.text or words_text(self.words, limit), limit)


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


def clip_text(text: str, limit: int) -> str:
    """Return a text of at most so many characters, cut between words where there are any."""
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0]
    return f"{(whole or text[: limit - 1]).rstrip(' ,;:…')}…"
