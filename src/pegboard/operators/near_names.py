"""What a text names among everything that there is: exactly, by its beginning, or but for a slip or two."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from pegboard.core.model.agents import World
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.naming import is_within
from pegboard.core.model.tools import Tool
from pegboard.operators.masked import ShownNames

NameKind = Literal["toolkit", "plugin", "tool"]
NameMatch = Literal["exact", "beginning", "near"]

LONGEST: Final = 150
"""A longer text is no name."""
SHORTEST_BEGINNING: Final = 3
MOST: Final = 5
"""So many names are found; of more that begin so, none."""
ONE_SLIP: Final = 5
TWO_SLIPS: Final = 9
"""From so many letters on, one or two of them may be wrong."""


class NamedSubject(NamedTuple):
    """Something that has a name: a toolkit or plugin by it, a tool itself."""

    kind: NameKind
    name: str
    tool: Tool | None = None


class _ComparedName(NamedTuple):
    """A name as it is compared, and as it is spelled."""

    key: str
    spelled: str
    named: NamedSubject


class NearNames:
    """All names of a world as they are shown, to be looked up while someone types.

    What is hidden in them is not found, so that no one guesses it letter by letter.
    """

    def __init__(self, world: World, names: ShownNames) -> None:
        self.names = names
        shown = ((names.shown(name), named) for name, named in _names(world))
        entries = [_ComparedName(_key(name), name, named) for name, named in shown]
        entries.sort(key=itemgetter(0))
        self._entries = entries
        self._keys = [entry.key for entry in entries]
        self._by_length: dict[int, tuple[list[int], list[_ComparedName]]] = {}
        for entry in entries:
            letters, of_length = self._by_length.setdefault(len(entry.key), ([], []))
            letters.append(_letter_bits(entry.key))
            of_length.append(entry)

    def find(self, text: str) -> tuple[tuple[NamedSubject, NameMatch], ...]:
        """Return what a text names, the best first: toolkits, plugins and tools, each as what it is.

        Case and separators do not count. Only where nothing has the name, it is what begins so, where that is little;
        only where nothing begins so, what is like it but for a letter more, less or other, or two that changed places.

        Args:
            text: What someone types; ``toolkit:``, ``plugin:`` or ``tool:`` in front says which is meant.
        """
        kind, bare = split_kind(self.names.shown(self.names.meant(text)).strip())
        key = _key(bare[: LONGEST + 1])
        if not key or len(bare) > LONGEST:
            return ()
        ways: tuple[tuple[NameMatch, Iterable[_ComparedName]], ...] = (
            ("exact", self._exact(key)),
            ("beginning", self._entries_beginning(key)),
            ("near", self._entries_near(key)),
        )
        for match, found in ways:
            of_kind = {entry.named[:2]: entry for entry in found if kind in (None, entry.named.kind)}
            if of_kind and (match == "exact" or len(of_kind) <= MOST):
                best = sorted(of_kind.values(), key=lambda entry: (entry.spelled != bare, _ORDER[entry.named.kind]))
                return tuple((entry.named, match) for entry in best[:MOST])
        return ()

    def _exact(self, key: str) -> Iterator[_ComparedName]:
        return (entry for entry in self._entries_from(key) if entry.key == key)

    def _entries_beginning(self, key: str) -> Sequence[_ComparedName]:
        return self._entries_from(key) if len(key) >= SHORTEST_BEGINNING else ()

    def _entries_from(self, key: str) -> Sequence[_ComparedName]:
        """Return the entries that begin with a key."""
        first = bisect_left(self._keys, key)
        last = bisect_left(self._keys, key + _AFTER_ALL, lo=first)
        return self._entries[first:last]

    def _entries_near(self, key: str) -> Iterator[_ComparedName]:
        slips = (len(key) >= ONE_SLIP) + (len(key) >= TWO_SLIPS)
        sought, most = _letter_bits(key), 2 * slips
        for length in range(len(key) - slips, len(key) + slips + 1) if slips else ():
            letters, entries = self._by_length.get(length, _NONE)
            for at in [at for at, own in enumerate(letters) if (own ^ sought).bit_count() <= most]:
                if is_within(entries[at].key, key, slips):
                    yield entries[at]


_NONE: Final[tuple[list[int], list[_ComparedName]]] = ([], [])
_ORDER: Final = {"toolkit": 0, "plugin": 1, "tool": 2}
_AFTER_ALL: Final = "\U0010ffff"


def _names(world: World) -> Iterator[tuple[str, NamedSubject]]:
    for name in world.toolkits:
        yield name, NamedSubject("toolkit", name)
    for name in world.catalog.plugins:
        yield name, NamedSubject("plugin", name)
    for tool in world.catalog:
        named = NamedSubject("tool", tool.wire, tool)
        yield tool.name, named
        if tool.wire != tool.name:
            yield tool.wire, named
        if not tool.wire.startswith(tool.plugin):
            yield tool.id, named


def _key(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _letter_bits(key: str) -> int:
    """Return a number with a bit for each letter that a key has."""
    found = 0
    for letter in key:
        found |= 1 << (ord(letter) & 63)
    return found
