"""Refuse a call whose arguments name a file of Pegboard's own, before anything runs (P10)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pegboard.core import access
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.core.model.tools import EMPTY

if TYPE_CHECKING:
    from pegboard.core.access.named_paths import OwnKind
    from pegboard.core.model.tools import JsonObject, Tool
    from pegboard.ports import OwnFiles

_AT_ONCE: Final = 50
"""So many texts are looked at without leaving the event loop: each takes some ten microseconds."""
_LOOK: Final = 0.005
"""Seconds for which one look at a folder counts: what a tool makes of a name comes later than that anyway."""
_MOST_LOOKS: Final = 1000
_SECOND: Final = 1_000_000_000
_FINE: Final = _SECOND // 10
_COARSE: Final = 3 * _SECOND
"""Nanoseconds within which a second change may leave a folder the time of the first: most clocks tick every few
milliseconds, some file systems count in whole seconds, or in two."""
_MOST_ENTRIES: Final = 5_000
"""How many entries of a folder are kept."""
_TEXTS: Final[Mapping[OwnKind, str]] = {
    "configuration": "the configuration of Pegboard",
    "loadout": "a loadout of Pegboard",
    "env file": "a file of secrets that Pegboard reads",
    "code": "code that Pegboard runs",
    "store": "the store of Pegboard",
    "cache": "what Pegboard caches for its next start",
    "state": "what Pegboard keeps for this user",
    "client": "the configuration of an MCP client",
    "settings": "what this user configures for every project",
}


class _FolderEntries(NamedTuple):
    """A folder as it was: what tells it from another and from a later state, and its entries, folded.

    ``names`` is None where they are not known: there are too many, or a later change may look the same.
    """

    state: tuple[int, int, int]
    names: frozenset[str] | None
    too_many: bool = False


class FolderNames:
    """The entries of folders: whether one is there costs one look at the folder, however many are asked for."""

    def __init__(self) -> None:
        self._seen: dict[str, _FolderEntries] = {}

    def entries_of(self, folder: str) -> frozenset[str] | None:
        """Return the entries of a folder, folded, or None where they are not known; links to nothing count."""
        try:
            status = os.stat(folder)  # noqa: PTH116
        except OSError:
            return None
        state = (status.st_dev, status.st_ino, status.st_mtime_ns)
        seen = self._seen.get(folder)
        if seen is None or seen.state != state or (seen.names is None and not seen.too_many):
            seen = self._seen[folder] = _read_folder(folder, state)
        return seen.names


def _read_folder(folder: str, state: tuple[int, int, int]) -> _FolderEntries:
    changed = state[2]
    if time.time_ns() - changed < (_FINE if changed % _SECOND else _COARSE):
        return _FolderEntries(state, None)
    try:
        with os.scandir(folder) as entries:
            names = frozenset(access.named_paths.fold_path(entry.name) for entry in islice(entries, _MOST_ENTRIES + 1))
    except OSError:
        return _FolderEntries(state, None)
    return _FolderEntries(state, None, too_many=True) if len(names) > _MOST_ENTRIES else _FolderEntries(state, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FolderSnapshot:
    """What was in the folders that the arguments of one plugin start from, and when it has to be looked at again.

    ``spec`` and ``overrides`` are kept with it: what is told apart by its identity must not be replaced meanwhile.
    """

    files: OwnFiles
    spec: PluginSpec
    overrides: JsonObject
    until: float
    entries: tuple[frozenset[str], ...] | None
    names: frozenset[str] | None


class OwnFilesGuard:
    """The guard on the files of Pegboard's own under the configuration in force; it refuses nothing without one."""

    def __init__(self) -> None:
        self._find: Callable[[], OwnFiles] | None = None
        self._files: OwnFiles | None = None
        self._is_plain: Callable[[str], object] = bool
        self._looks: dict[int, _FolderSnapshot] = {}
        self._entries = FolderNames()
        self._own_folders: dict[str, bool] = {}

    def follow(self, find: Callable[[], OwnFiles]) -> None:
        """Take over a configuration; its files are looked for with the first call that may name one."""
        self._find, self._files = find, None

    def clears(self, spec: PluginSpec, overrides: JsonObject, arguments: JsonObject) -> bool:
        """Return whether arguments are seen at once to name no file of Pegboard's own, as those of most calls are."""
        if self._find is None or not arguments:
            return True
        files = self._files
        if files is None:
            files = self._find_files(self._find)
        names: list[str] = []
        for value in arguments.values():
            if isinstance(value, str):
                if not self._is_plain(value):
                    return False
                names.append(value.casefold())
            elif isinstance(value, Mapping | list | tuple):
                return False
        if not names:
            return True
        look = self._looks.get(id(spec))
        if look is None or look.until < time.monotonic() or look.files is not files or look.overrides is not overrides:
            look = self._look_at_folders(look, files, spec, overrides)
        return look.names is not None and look.names.isdisjoint(names)

    def _find_files(self, find: Callable[[], OwnFiles]) -> OwnFiles:
        self._is_plain = access.named_paths.plain_name
        self._files = find()
        self._own_folders.clear()
        return self._files

    def _look_at_folders(
        self, last: _FolderSnapshot | None, files: OwnFiles, spec: PluginSpec, overrides: JsonObject
    ) -> _FolderSnapshot:
        """Look at the folders that the arguments of a plugin start from, and keep for a moment what is there."""
        until = time.monotonic() + _LOOK
        entries = self._names_in_folders(files, *_start_folders(files, spec, overrides))
        if last is not None and last.entries == entries:
            names = last.names
        else:
            names = None if entries is None else frozenset[str]().union(*entries)
        if len(self._looks) >= _MOST_LOOKS:
            self._looks.clear()
        look = self._looks[id(spec)] = _FolderSnapshot(
            files=files, spec=spec, overrides=overrides, until=until, entries=entries, names=names
        )
        return look

    def _names_in_folders(
        self, files: OwnFiles, start: str, folders: Sequence[str]
    ) -> tuple[frozenset[str], ...] | None:
        """Return what is in folders, and the names of Pegboard's own files, folded; None where that is not known."""
        found, here = [files.names], self._entries.entries_of(start)
        if here is None or self._is_own(files, start):
            return None
        found.append(here)
        for folder in folders:
            above, _, last = folder.rpartition("/")
            if above == start and access.named_paths.fold_path(last) not in here:
                continue
            if os.access(f"{folder}/", os.F_OK):
                inside = self._entries.entries_of(folder)
                if inside is None or self._is_own(files, folder):
                    return None
                found.append(inside)
        return tuple(found)

    def _is_own(self, files: OwnFiles, folder: str) -> bool:
        """Return whether all in a folder may be Pegboard's own; one that is no link is resolved once."""
        known = self._own_folders.get(folder)
        if known is None:
            real = os.path.realpath(folder)
            known = files.has_all_of(real)
            if real == folder:
                self._own_folders[folder] = known
        return known

    async def refusal(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, *, reading: bool
    ) -> str:
        """Return why a call is not made, in words for the model, or nothing."""
        found = await self._named_file(spec, overrides, tool.name, arguments, reading=reading)
        if found is None:
            return ""
        argument, kind = found
        secret = kind in access.named_paths.SECRET
        rule = "which no tool reads or changes" if secret else "and this tool is not known to be read-only"
        return f"'{tool.wire}' is not called: its argument '{argument}' names {_TEXTS[kind]}, {rule}."

    async def unreadable(self, spec: PluginSpec, asked: JsonObject) -> str:
        """Return why a server is not asked to read something, a resource or a prompt, or nothing.

        ``asked`` is what names it: a URI, or the arguments of a prompt.
        """
        if self.clears(spec, EMPTY, asked):
            return ""
        found = await self._named_file(spec, EMPTY, "", asked, reading=True)
        return f"'{found[0]}' names {_TEXTS[found[1]]}, which cannot be read through a server." if found else ""

    async def _named_file(
        self, spec: PluginSpec, overrides: JsonObject, tool: str, arguments: JsonObject, *, reading: bool
    ) -> tuple[str, OwnKind] | None:
        if self._find is None or not arguments:
            return None
        files = self._files or self._find_files(self._find)
        start, given = _start_folders(files, spec, overrides)
        folders = [start, *filter(os.path.isdir, given)]
        if sum(1 for _ in access.named_paths.named_texts(arguments)) > _AT_ONCE:
            return await asyncio.to_thread(files.named, tool, arguments, folders, reading=reading)
        return files.named(tool, arguments, folders, reading=reading)


def _start_folders(files: OwnFiles, spec: PluginSpec, overrides: JsonObject) -> tuple[str, tuple[str, ...]]:
    """Return the folder that a relative path in the arguments of a tool starts from, and paths that may be others."""
    if isinstance(spec, ServerSpec):
        start = os.path.join(files.server_folder, spec.cwd) if spec.cwd else files.server_folder  # noqa: PTH118
        return start, _paths_from_texts(start, spec.args, tuple(spec.env.values()) if spec.env else ())
    here = os.getcwd()  # noqa: PTH109
    start = here if spec.confine is None else spec.confine.folder or here
    return start, _paths_from_texts(start, tuple(_texts(overrides))) if overrides else ()


@lru_cache(maxsize=1000)
def _paths_from_texts(start: str, *texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths that texts are, seen from a folder; what is named as a script is no folder."""
    every = (text for some in texts for text in some if "\0" not in text and not access.named_paths.is_script(text))
    return tuple(os.path.join(start, os.path.expanduser(text)) for text in every)  # noqa: PTH111, PTH118


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in cast("Mapping[str, Any]", value).values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value):
            yield from _texts(inner)
    elif isinstance(value, str | os.PathLike):
        yield os.fspath(cast("str", value))
