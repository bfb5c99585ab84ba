"""From what a plugin is confined to, and what lies where, to the paths that its process may reach; no I/O."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from pegboard.core.access.named_paths import UNCOUNTED, OwnPaths, fold_path
from pegboard.core.model.specs import OWN_FOLDER, Confinement
from pegboard.errors import ToolUnavailableError
from pegboard.sources.confinement.policy import ConfinementPolicy

Kind = Literal["file", "folder", "link"]
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_MOST_ENTRIES: Final = 20_000
_KEPT: Final = {"store": "the store", "cache": "the cache", "state": "the state", "settings": "the settings"}


class Disk(Protocol):
    """What lies where."""

    def resolve_path(self, path: str) -> str | None:
        """Return a path with its links followed, or None where nothing is there."""
        ...

    def link_folders(self, path: str) -> tuple[str, ...]:
        """Return the folders, without links, in which the links lie that a path leads over."""
        ...

    def entries(self, folder: str) -> Iterable[tuple[str, Kind]]:
        """Yield the names in a folder and what each is; nothing of what is no folder, or cannot be read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedPlugin:
    """What is confined: a plugin, and the program that it is.

    ``folder`` is its own, ``reads`` what its program consists of, ``lists`` the folders in which that is looked for by
    name, ``home`` the user's folder. ``withheld`` are paths
    that no one gets, ``section`` is where its settings stand. ``caches`` and ``temporary`` are made for it.
    """

    name: str
    folder: str
    reads: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    home: str = ""
    withheld: frozenset[str] = frozenset()
    caches: str = ""
    temporary: str = ""
    section: str = ""


@dataclass(slots=True)
class _GrantedPaths:
    """What has been granted so far."""

    own: OwnPaths
    disk: Disk
    subject: ConfinedPlugin
    write: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    list_only: dict[str, None] = field(default_factory=dict)
    split_folders: dict[str, None] = field(default_factory=dict)
    seen: int = 0

    def grant(self, path: str, *, writing: bool) -> None:
        """Grant a path, without what in it is Pegboard's own, or no one's."""
        if self._is_withheld(path):
            return
        kind = self.own.kind(path)
        if kind is not None and kind != "code":
            return
        if not self._parts(path, writing=writing):
            (self.write if writing and kind is None else self.read)[path] = None
            return
        self.list_only[path] = None
        if writing:
            self.split_folders[path] = None
        for name, what in self.disk.entries(path):
            self.seen += 1
            hidden = path == self.subject.home and name.startswith(".")
            if what != "link" and not hidden and self.seen <= _MOST_ENTRIES:
                self.grant(posixpath.join(path, name), writing=writing and kind is None)

    def _is_withheld(self, path: str) -> bool:
        return any(path == each or path.startswith(f"{each}/") for each in self.subject.withheld)

    def _parts(self, path: str, *, writing: bool) -> bool:
        """Return whether what lies below a path has to be looked at one by one.

        What of a project counts by what was accepted may be written with all that is beside it.
        """
        below = f"{path.rstrip('/')}/"
        if path == self.subject.home or any(each.startswith(below) for each in self.subject.withheld):
            return True
        return any(not writing or kind in UNCOUNTED for _, kind in self.own.own_files_below(path))


def plan(
    confinement: Confinement, subject: ConfinedPlugin, disk: Disk, own: OwnPaths, system: Iterable[str]
) -> ConfinementPolicy:
    """Return what a plugin's process may reach (A7, P10).

    Raises:
        ToolUnavailableError: a stated path is not there, is Pegboard's own, is everything, or leads over a link that
            the plugin could have set itself.
    """
    grants = _GrantedPaths(own, disk, subject)
    refused_paths = list(_refused_paths(confinement, subject))
    writes = [
        _resolve_stated(path, "write", subject, disk, own) for path in confinement.write if path not in refused_paths
    ]
    reads = [_resolve_stated(path, "read", subject, disk, own) for path in confinement.read]
    for section, paths in (("write", confinement.write), ("read", confinement.read)):
        for path in paths:
            _refuse_own_links(_absolute(path, subject), section, writes, subject, disk)
    for path in writes:
        _refuse_uncounted(path, subject, own)
        grants.grant(path, writing=True)
    grants.list_only.update(dict.fromkeys(_existing_paths(subject.lists, disk)))
    for path in (*reads, *_existing_paths((*system, *subject.reads), disk)):
        grants.grant(path, writing=False)
    own_folders = tuple(each for each in (subject.caches, subject.temporary) if each)
    for path in (*writes, *own_folders):
        _refuse_started(path, subject, own)
    return ConfinementPolicy(
        write=(*own_folders, *_outermost_paths(grants.write)),
        read=tuple(_outermost_paths(grants.read)),
        list_only=tuple(grants.list_only),
        devices=DEVICES,
        network=confinement.network,
        split_folders=tuple(grants.split_folders),
        refused_paths=tuple(refused_paths),
        caches=subject.caches,
        temporary=subject.temporary,
    )


def _refused_paths(confinement: Confinement, subject: ConfinedPlugin) -> Iterator[str]:
    """Yield its own folder where that is the user's, or above: no one meant to give that away by `true`."""
    home = f"{subject.home.rstrip('/')}/"
    if OWN_FOLDER in confinement.write and subject.home and home.startswith(f"{subject.folder.rstrip('/')}/"):
        yield OWN_FOLDER


def _absolute(path: str, subject: ConfinedPlugin) -> str:
    return subject.folder if path == OWN_FOLDER else path


def _resolve_stated(path: str, key: str, subject: ConfinedPlugin, disk: Disk, own: OwnPaths) -> str:
    """Return where a path of the configuration leads."""
    stated = _absolute(path, subject)
    found = disk.resolve_path(stated)
    where = f"`confine: {{{key}: [...]}}` of '{subject.name}'"
    if found is None and path == OWN_FOLDER:
        raise ToolUnavailableError(f"its folder {stated!r} does not exist", hint="Correct `cwd`.")
    if found is None:
        hint = "Make it, or correct the path."
        raise ToolUnavailableError(f"{where} names {stated!r}, which does not exist", hint=hint)
    if found == "/":
        raise ToolUnavailableError(f"{where} names {stated!r}, which is everything", hint="Name the folders it needs.")
    kind = own.kind(found)
    if kind is not None and (key == "write" or kind != "code"):
        raise ToolUnavailableError(
            f"{where} names {stated!r}, which is Pegboard's own",
            hint="A confined server or plugin cannot have that: remove it.",
        )
    return found


def _refuse_uncounted(path: str, subject: ConfinedPlugin, own: OwnPaths) -> None:
    """Refuse a folder to write that holds what counts as it is: a store, a cache, what this user configures."""
    if f"{subject.home}/".startswith(f"{path.rstrip('/')}/") and subject.home:
        return  # of that the entries are granted one by one
    for rest, kind in own.own_files_below(path):
        if kind in UNCOUNTED:
            raise ToolUnavailableError(
                f"it may write {path!r}, and {posixpath.join(path, rest)!r} in it is {_KEPT[kind]} of Pegboard",
                hint="Without `store:` it lies in your state folder. Else name what it may write without that: "
                "`confine: {write: [sub/folder]}`.",
            )


def _refuse_started(path: str, subject: ConfinedPlugin, own: OwnPaths) -> None:
    """Refuse a folder to write from which Pegboard, or what is not confined, is run."""
    home = fold_path(subject.home)
    hidden = f"{home}/." if subject.home and f"{home}/".startswith(f"{fold_path(path).rstrip('/')}/") else "\0"
    for started, what in own.started_in(path):
        if not fold_path(started).startswith(hidden):  # of the user's folder that is not granted
            raise ToolUnavailableError(
                f"it may write {path!r}, and {started.removesuffix('/*')!r} is {what}: "
                "what it changes there, the next start would run",
                hint="Name what it may write without that: `confine: {write: [sub/folder]}`, or none: `write: []`.",
            )


def _refuse_own_links(path: str, key: str, writes: list[str], subject: ConfinedPlugin, disk: Disk) -> None:
    """Refuse a path that leads over a link which the plugin could have set, to where it may not."""
    for folder in disk.link_folders(path):
        if any(folder == each or folder.startswith(f"{each.rstrip('/')}/") for each in writes):
            raise ToolUnavailableError(
                f"`confine: {{{key}: [...]}}` of '{subject.name}' names {path!r}, which leads over a link in "
                f"{folder!r}: the plugin writes there, and could have set it",
                hint="Name where the link leads instead.",
            )


def _existing_paths(paths: Iterable[str], disk: Disk) -> Iterator[str]:
    for path in paths:
        found = disk.resolve_path(path)
        if found is not None and found != "/":
            yield found


def _outermost_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that lie in none of the others."""
    kept: list[str] = []
    for path in sorted(dict.fromkeys(paths)):
        if not kept or not path.startswith(f"{kept[-1].rstrip('/')}/"):
            kept.append(path)
            yield path
