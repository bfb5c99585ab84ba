"""Which files are Pegboard's own, and whether the arguments of a call name one (P10).

What decides how it runs: the configuration with all that it is read from, the code that it names, the store, what is
kept for the next start, the files of MCP clients.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from pegboard.config.accepted_files import accepted_files, path_of
from pegboard.config.counted_files import bind, named_modules, with_accepted_code
from pegboard.config.location import NAME, SQLITE, Machine
from pegboard.config.schema.configuration import Configuration
from pegboard.config.started_code import started_code
from pegboard.core.access.named_paths import (
    SECRET,
    OwnKind,
    OwnPaths,
    fold_path,
    is_moving_tool,
    is_script,
    named_texts,
    path_forms,
)
from pegboard.core.model.references import references_in
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import JsonObject
from pegboard.support import user_folders
from pegboard.support.imported_modules import with_imports

_BESIDE_A_STORE: Final = ("", "-wal", "-shm", "-journal", ".key")
_MOST_FOLDERS: Final = 8
"""How many folders among the arguments of a call are joined with the names among them."""
_GLOB: Final = frozenset("*?[")


_Own = tuple[Path, OwnKind]


class OwnFileArgument(NamedTuple):
    """The argument of a call that names a file of Pegboard's own, and what that file is for."""

    argument: str
    kind: OwnKind


@dataclass(frozen=True, kw_only=True)
class ConfiguredFiles:
    """The files of Pegboard's own under one configuration, looked for when they are first asked for.

    ``start`` is where servers without a folder of their own start; None is the current one.
    """

    configuration: Configuration
    env: Mapping[str, str]
    stores: tuple[Path, ...] = ()
    start: Path | None = None
    _folder: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_folder", str(self.configuration.path.absolute().parent))

    @property
    def server_folder(self) -> str:
        """Return the folder in which servers without one of their own start."""
        return os.getcwd() if self.start is None else str(self.start.absolute())  # noqa: PTH109

    @cached_property
    def paths(self) -> OwnPaths:
        """Return them, each as it is written and as it is resolved."""
        files: dict[str, OwnKind] = {}
        folders: dict[str, OwnKind] = {}
        existing: set[str] = set()
        spellings = _PathSpellings()
        for paths, found in ((self._files(), files), (self._folders(), folders)):
            for path, kind in paths:
                for spelling in (os.path.abspath(path), *spellings.spellings_of(str(path.absolute()))):  # noqa: PTH100
                    found.setdefault(fold_path(spelling), kind)
                    if os.path.isdir(spelling):  # noqa: PTH112
                        existing.add(fold_path(spelling))
        absent = {path for path, kind in folders.items() if kind == "code" and path not in existing}
        return OwnPaths(
            files=files,
            folders=dict(item for item in folders.items() if item[0] not in absent),
            absent=dict(item for item in folders.items() if item[0] in absent),
        )

    def _files(self) -> Iterator[_Own]:
        from pegboard.config.client_files.known import every_spot  # no start needs it

        configuration = self.configuration
        tops = {Path(self._folder), Path(self.server_folder), Path.cwd()}
        loadouts = set(configuration.folders)
        for path in configuration.files:
            main = path == configuration.path
            yield path, "configuration" if main else "loadout" if path.parent in loadouts else "env file"
        yield configuration.path, "configuration"
        specs = [spec for spec in configuration.specs.values() if isinstance(spec, ServerSpec)]
        kept = (one for spec in specs for one in references_in(spec.references) if one.scheme == "file")
        yield from _with_kind("env file", (one.path for one in kept))
        yield from _with_kind("configuration", (top / NAME for top in tops))
        for store in self.stores:
            names = (f"{name}{end}" for name in (store.name, f"{store.stem}-agno.db") for end in _BESIDE_A_STORE)
            yield from _with_kind("store", (store.with_name(name) for name in names))
        for top in tops:
            yield from _with_kind("client", (spot.path for spot in every_spot(Machine(folder=top, env=self.env))))
        yield from _with_kind("code", self._scripts())
        yield from _with_kind("code", (path.with_suffix(".py") for path in self._modules))

    def _folders(self) -> Iterator[_Own]:
        yield from _with_kind("loadout", self.configuration.folders)
        yield user_folders.configuration(self.env), "settings"
        yield user_folders.cache(), "cache"
        yield user_folders.state(), "state"
        yield user_folders.packages(), "code"
        accepted = accepted_files(path_of(self.configuration))
        if accepted is not None:
            yield accepted.folder / "code", "code"
        yield from _with_kind("code", self._modules)
        if self._modules:
            yield from _with_kind("code", {path.parent / "__pycache__" for path in self._modules})

    def _scripts(self) -> Iterator[Path]:
        """Yield what servers run of files: a program that is named by its path, scripts among the arguments."""
        for spec in self.configuration.specs.values():
            if isinstance(spec, ServerSpec) and spec.command is not None:
                base = Path(spec.cwd or self.server_folder)
                if "/" in spec.command or "\\" in spec.command:
                    yield base / spec.command
                for text in spec.args:
                    if is_script(text):
                        yield base / text

    @property
    def kept_from_confined(self) -> OwnPaths:
        """Return them with what else the next start runs, none of which anything that is confined may change (A7).

        What that may write of the project counts from now on as it is accepted; raises ``StoreError`` where what is
        accepted cannot be kept.
        """
        configuration = self.configuration
        run = with_accepted_code(configuration, bind(configuration))
        started = started_code(
            run.specs.values(),
            named_modules(configuration),
            self.env,
            beside=self._folder,
            server_folder=self.server_folder,
        )
        return replace(self.paths, started=started)

    @cached_property
    def _modules(self) -> tuple[Path, ...]:
        """Return where, without a suffix, the modules beside the file lie that it names, and what they import."""
        names = with_imports(self._folder, named_modules(self.configuration))
        return tuple(Path(self._folder, name) for name in names if name)

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the last parts of their paths, folded."""
        paths = self.paths
        return frozenset(path.rpartition("/")[2] for path in (*paths.files, *paths.folders, *paths.absent))

    def has_all_of(self, folder: str) -> bool:
        """Return whether all in a folder, which is resolved, may be Pegboard's own."""
        return self.paths.kind(folder, made=True) is not None

    def named(
        self, tool: str, arguments: JsonObject, folders: Iterable[str], *, reading: bool
    ) -> OwnFileArgument | None:
        """Return which argument of a call names a file of Pegboard's own, or None.

        ``folders`` are where a relative path may start. A tool that only reads is kept from the secret ones alone.
        """
        counted, spellings = SECRET if reading else None, _PathSpellings()
        texts = [(name, form) for name, text in named_texts(arguments) for form in path_forms(text)]
        bases, made = tuple(dict.fromkeys(folders)), is_moving_tool(tool)
        found: list[tuple[str, str]] = []  # folders that the arguments name
        for argument, form in texts:
            for base in bases:
                path = _join_path(base, form)
                kind = self._kind(path, spellings, made=made)
                if kind is not None and (counted is None or kind in counted):
                    return OwnFileArgument(argument, kind)
                if os.path.isdir(path):  # noqa: PTH112
                    found.append((argument, os.path.realpath(path)))
        if made:
            swept = self._swept_argument(texts, found, bases, counted)
            if swept is not None:
                return swept
        return self._argument_inside(texts, dict(found[:_MOST_FOLDERS]), counted, spellings)

    def _kind(self, path: str, spellings: _PathSpellings, *, made: bool = False) -> OwnKind | None:
        """Return what a path is for: as it is written, as it resolves, and as another name of one file."""
        for spelling in spellings.spellings_of(path):
            kind = self.paths.kind(spelling, made=made)
            if kind is not None:
                return kind
        try:
            status = os.stat(path)  # noqa: PTH116
        except (OSError, ValueError):
            return None
        if status.st_nlink < 2 or os.path.isdir(path):  # noqa: PTH112
            return None
        return next((kind for own, kind in self._own_files_with_links() if own == (status.st_dev, status.st_ino)), None)

    def _own_files_with_links(self) -> Iterator[tuple[tuple[int, int], OwnKind]]:
        """Yield which files of Pegboard's own have several names, by what tells one file from another."""
        for path, kind in self._files():
            try:
                status = os.stat(path)  # noqa: PTH116
            except (OSError, ValueError):
                continue
            if status.st_nlink > 1:
                yield (status.st_dev, status.st_ino), kind

    def _swept_argument(
        self,
        texts: Sequence[tuple[str, str]],
        folders: Sequence[tuple[str, str]],
        bases: Sequence[str],
        counted: frozenset[OwnKind] | None,
    ) -> OwnFileArgument | None:
        """Return which argument takes a file of Pegboard's own with it: a folder above it, or a pattern."""
        for argument, folder in folders:
            for _, kind in self.paths.own_files_below(folder):
                if counted is None or kind in counted:
                    return OwnFileArgument(argument, kind)
        for argument, form in texts:
            if not _GLOB.isdisjoint(form):
                for base in bases:
                    pattern = fold_path(os.path.normpath(_join_path(os.path.realpath(base), form)))
                    for path, kind in (*self.paths.files.items(), *self.paths.folders.items()):
                        if fnmatch.fnmatchcase(path, pattern) and (counted is None or kind in counted):
                            return OwnFileArgument(argument, kind)
        return None

    def _argument_inside(
        self,
        texts: Sequence[tuple[str, str]],
        folders: Mapping[str, str],
        counted: frozenset[OwnKind] | None,
        spellings: _PathSpellings,
    ) -> OwnFileArgument | None:
        """Return which argument names a file of Pegboard's own together with a folder that another one names."""
        for given, folder in folders.items():
            below = tuple(self.paths.own_files_below(folder))
            if not below:
                continue
            for argument, form in texts:
                if argument == given:
                    continue
                for joined in (_join_path(folder, form), _join_path(folder, PurePath(form).name)):
                    kind = self._kind(joined, spellings, made=True) if joined != folder else None
                    if kind is not None and (counted is None or kind in counted):
                        return OwnFileArgument(argument, kind)
            for argument, other in folders.items():
                if argument != given and other != folder:
                    for rest, kind in below:
                        if (counted is None or kind in counted) and os.path.lexists(os.path.join(other, rest)):  # noqa: PTH118
                            return OwnFileArgument(argument, kind)
        return None


def _with_kind(kind: OwnKind, paths: Iterable[Path]) -> Iterator[_Own]:
    for path in paths:
        yield path, kind


def _join_path(base: str, form: str) -> str:
    """Return the path that a text is, seen from a folder."""
    path = os.path.expanduser(form) if form.startswith("~") else form  # noqa: PTH111
    if "$" in path or "%" in path:
        path = os.path.expandvars(path)
    return os.path.join(base, path)  # noqa: PTH118


class _PathSpellings:
    """The absolute paths that a path may come to; the folders of one call are resolved once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def spellings_of(self, path: str) -> tuple[str, ...]:
        """Return a path with its links followed, the link itself, and what it is without dots."""
        try:
            found = [*self._resolve_path(path)]
            if ".." in path:
                found += self._resolve_path(os.path.abspath(path))  # noqa: PTH100
        except (OSError, ValueError):
            return ()
        return tuple(dict.fromkeys(found))

    def _resolve_path(self, path: str) -> Iterator[str]:
        head, tail = os.path.split(path.rstrip("/") or path)
        if tail in ("", ".", ".."):
            yield os.path.realpath(path)
            return
        folder = self._folders.get(head)
        if folder is None:
            folder = self._folders[head] = os.path.realpath(head)
        yield (own := os.path.join(folder, tail))  # noqa: PTH118
        if os.path.islink(own):  # noqa: PTH114
            yield os.path.realpath(own)


def store_file(url: str) -> Path | None:
    """Return the file of a store's URL with an absolute path, or None."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None
