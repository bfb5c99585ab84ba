"""The files of a project that count as they were accepted last, while something that is confined may write them (A7).

Landlock excepts no file of a folder that it grants. So what Pegboard reads or runs of a project is copied into the
user's state folder before anything is started that may write the project, and is read and run from there: whatever
becomes of the files themselves waits until a person accepts it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from pegboard.core.access.grants import FILES, Grant, GrantChange
from pegboard.core.model.tools import EMPTY
from pegboard.errors import StoreError
from pegboard.support import user_folders
from pegboard.support.own_folder import make_private

if TYPE_CHECKING:
    from pegboard.config.schema.configuration import Configuration

FileKind = Literal["text", "code"]
"""Whether Pegboard reads a file, or it is run; what is run may be read by what is confined."""
LARGEST: Final = 16 * 1024 * 1024
"""Bytes of one file; a larger one does not count."""
UNREADABLE: Final = "unreadable"
"""The digest of what is there, and is no file of a size that counts."""
MAPPING: Final = "configuration"
"""How messages name a mapping that a program gives, of which there is no file."""
_FOLDER: Final = "files"
_MANIFEST: Final = "accepted.json"


class CountedFile(NamedTuple):
    """A file as it was accepted: what it is for, and the digest of what was in it."""

    kind: FileKind
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedFiles:
    """What was accepted of the files of one configuration.

    ``folder`` has the copies, ``base`` is the folder of the configuration, ``roots`` are the folders and files that
    something confined may write. ``files`` are by their paths, those below ``base`` relative to it.
    """

    folder: Path
    base: str
    roots: tuple[str, ...] = ()
    files: Mapping[str, CountedFile] = EMPTY

    def key(self, path: Path | str) -> str:
        """Return the name of a file among ``files``."""
        whole = os.path.abspath(path)  # noqa: PTH100
        start = f"{self.base.rstrip('/')}/"
        return whole.removeprefix(start) if whole.startswith(start) else whole

    def path(self, key: str) -> Path:
        """Return where a file of a name lies."""
        return Path(self.base, key)

    def covers_file(self, path: Path | str) -> bool:
        """Return whether something confined may write a file, by any of its names."""
        whole = os.path.abspath(path)  # noqa: PTH100
        return any(_is_in(each, root) for each in (whole, os.path.realpath(whole)) for root in self.roots)

    def copy(self, path: Path | str, kind: FileKind) -> Path:
        """Return where the copy of a file, or of what is in a folder, lies."""
        key = self.key(path)
        inside = not os.path.isabs(key)  # noqa: PTH117
        return self.folder / kind / ("in" if inside else "out") / (key if inside else key.lstrip("/"))

    def copied_folder(self, path: Path | str) -> Path:
        """Return where the copies of the code in a folder lie."""
        whole = os.path.abspath(path)  # noqa: PTH100
        return self.folder / "code" / "in" if whole == self.base else self.copy(path, "code")

    @property
    def watched_files(self) -> Iterator[Path]:
        """Yield the files in which something becomes to be seen: what was accepted, and each that counts."""
        yield self.folder / _MANIFEST
        yield from map(self.path, self.files)

    def in_force(self, path: Path | str, kind: FileKind) -> Path | None:
        """Return the file that counts: itself where nothing confined may write it, its copy, None where it waits."""
        if not self.covers_file(path):
            return Path(path)
        known = self.files.get(self.key(path))
        copy = self.copy(path, kind)
        return copy if known is not None and known.kind == kind and digest_of(copy) == known.digest else None

    def in_force_differs(self, path: Path) -> bool:
        """Return whether a file that something confined may write is not what was accepted."""
        return self.covers_file(path) and self._change(self.key(path), "text") is not None

    def listed(self, folder: Path) -> list[Path]:
        """Return the files that count of those right in a folder which something confined may write."""
        paths = (self.path(key) for key in self.files)
        return sorted(path for path in paths if path.parent == folder.absolute())

    def changes(self, named: Mapping[Path, FileKind]) -> tuple[GrantChange, ...]:
        """Return how files differ from what was accepted; ``named`` are those that are to count now."""
        keys = {self.key(path): kind for path, kind in named.items()}
        kinds = {**{key: known.kind for key, known in self.files.items()}, **keys}
        return tuple(found for key, kind in sorted(kinds.items()) if (found := self._change(key, kind)) is not None)

    def _change(self, key: str, kind: FileKind) -> GrantChange | None:
        known, now = self.files.get(key), digest_of(self.path(key))
        if (known.digest if known is not None else "") == now:
            return None
        before = Grant(value=known.digest) if known is not None else None
        after = Grant(value=now) if now else None
        return GrantChange(key=(FILES, kind, key), before=before, after=after, widens=True)

    def accept(self, changes: Iterable[GrantChange]) -> tuple[GrantChange, ...]:
        """Keep that a person accepts changes, those of files that are still as they were shown; return them.

        Raises:
            StoreError: they cannot be kept.
        """
        files, accepted = dict(self.files), list[GrantChange]()
        for change in changes:
            _, kind, key = change.key
            wanted = str(change.after.value) if change.after is not None else ""
            if self._keep_file(key, cast("FileKind", kind), wanted, files):
                accepted.append(change)
        self._save(files, self.roots)
        return tuple(accepted)

    def accept_saved(self, path: Path, text: str, waiting: Iterable[GrantChange]) -> None:
        """Keep that a person has put a text into a file, and so accepts it with those that only it names.

        Raises:
            StoreError: it cannot be kept.
        """
        data, own = read_counted(path), self.key(path)
        if not self.covers_file(path) or data is None or data.decode("utf-8-sig", errors="replace") != text:
            return
        loadouts = Path(path.absolute().parent, "loadouts")
        named = [
            change
            for change in waiting
            if change.before is None and change.key[-1] != own and self.path(change.key[-1]).parent != loadouts
        ]
        before = Grant(value=self.files[own].digest) if own in self.files else None
        saved = GrantChange(key=(FILES, "text", own), before=before, after=Grant(value=digest(data)), widens=True)
        self.accept([saved, *named])

    def _keep_file(self, key: str, kind: FileKind, wanted: str, files: dict[str, CountedFile]) -> bool:
        """Copy a file where it has the digest that is wanted; return whether it has."""
        data = read_counted(self.path(key))
        if (digest(data) if data is not None else digest_of(self.path(key))) != wanted or wanted == UNREADABLE:
            return False
        if data is None:
            files.pop(key, None)
            return True
        with _kept_or_error(self.base):
            mode = 0o700 if kind == "code" and os.access(self.path(key), os.X_OK) else 0o600
            _write(self.copy(self.path(key), kind), data, mode)
        files[key] = CountedFile(kind, wanted)
        return True

    def bind_files(self, named: Mapping[Path, FileKind], roots: Iterable[str]) -> AcceptedFiles:
        """Return it with what something confined may write from now on: that counts as it is now.

        What it could write before, and has not been accepted, waits. ``roots`` are all that something may write.

        Raises:
            StoreError: it cannot be kept.
        """
        files = dict(self.files)
        for path, kind in named.items():
            if not self.covers_file(path) and (now := digest_of(path)):
                self._keep_file(self.key(path), kind, now, files)
        return self._save(files, tuple(roots))

    def _save(self, files: Mapping[str, CountedFile], roots: tuple[str, ...]) -> AcceptedFiles:
        found = {"base": self.base, "roots": roots, "files": files}
        with _kept_or_error(self.base):
            _write(self.folder / _MANIFEST, json.dumps(found).encode(), 0o600)
        return replace(self, roots=roots, files=dict(files))

    def end(self) -> None:
        """Let every file count as it is: nothing that is confined may write one any longer."""
        shutil.rmtree(self.folder, ignore_errors=True)


def known_as(path: Path, *, in_code: bool) -> Path:
    """Return the path by which is kept what of its files was accepted; ``in_code``: the configuration is no file."""
    return path.with_name(MAPPING) if in_code else path


def path_of(configuration: Configuration) -> Path:
    """Return the path under which is kept what of the files of a configuration was accepted."""
    return known_as(configuration.path, in_code=configuration.path not in configuration.files)


def accepted_files(configuration: Path) -> AcceptedFiles | None:
    """Return what was accepted of the files of a configuration; None where nothing confined may write any.

    Raises:
        StoreError: what is kept is damaged: then nothing of it counts.
    """
    for name in _names(configuration):
        folder = user_folders.state() / _FOLDER / name
        try:
            found: Any = json.loads((folder / _MANIFEST).read_bytes())
            files = {str(key): CountedFile(kind, str(known)) for key, (kind, known) in found["files"].items()}
            return AcceptedFiles(folder=folder, base=found["base"], roots=tuple(found["roots"]), files=files)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise StoreError(
                f"The accepted files of {configuration} cannot be read: {error}",
                code="state_damaged",
                hint=f"Look at the files next to it, then remove {folder}: the current files are then used.",
            ) from error
    return None


def code_folder(beside: Path, accepted: AcceptedFiles | None) -> Path:
    """Return where the modules of a folder lie that count."""
    if accepted is None or not accepted.covers_file(beside / "any.py"):
        return beside
    return accepted.copied_folder(beside)


def accepted_path(configuration: Path, path: Path) -> Path:
    """Return the file that counts in place of one of a configuration, which need not be there."""
    accepted = accepted_files(configuration)
    return path if accepted is None else accepted.in_force(path, "text") or accepted.copy(path, "text")


def new_accepted_files(configuration: Path) -> AcceptedFiles:
    """Return what was accepted of a configuration of which nothing was; raises ``StoreError``."""
    spelled, *others = _names(configuration)
    top = user_folders.state() / _FOLDER
    folder = top / spelled
    with _kept_or_error(str(configuration)):
        make_private(top)
        make_private(folder)
        for other in others:  # whatever becomes of links on the way to it, either name leads to what was accepted
            if not os.path.lexists(top / other):
                (top / other).symlink_to(spelled)
    return AcceptedFiles(folder=folder, base=os.path.abspath(configuration.parent))  # noqa: PTH100


def _names(configuration: Path) -> list[str]:
    whole = os.path.abspath(configuration)  # noqa: PTH100
    real = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))  # noqa: PTH118, PTH119, PTH120
    return list(dict.fromkeys(_name(each) for each in (whole, real)))


def _name(path: str) -> str:
    return hashlib.blake2b(path.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def digest(data: bytes) -> str:
    """Return the digest of what is in a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_of(path: Path) -> str:
    """Return the digest of a file, ``unreadable`` for what is none that counts, nothing where nothing is there."""
    data = read_counted(path)
    return digest(data) if data is not None else UNREADABLE if os.path.lexists(path) else ""


def read_counted(path: Path) -> bytes | None:
    """Return what is in a file; None for a folder, a pipe, a device, one that is too large or cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    except (OSError, ValueError):
        return None
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return None
        with os.fdopen(os.dup(number), "rb") as stream:
            data = stream.read(LARGEST + 1)
        return data if len(data) <= LARGEST else None
    except OSError:
        return None
    finally:
        os.close(number)


def _write(path: Path, data: bytes, mode: int) -> None:
    """Put data in the place of a file in one step."""
    make_private(path.parent)
    spare = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    number = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
        os.replace(spare, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(spare)  # noqa: PTH108
        raise


class _kept_or_error:  # noqa: N801 - reads as what it is for
    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise StoreError(
                f"The accepted files of {self._what} cannot be stored: {error}",
                hint="Make the state folder writable. Until then confined servers may not write the project.",
            ) from None


def _is_in(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def files_below(folder: Path, most: int) -> Iterator[Path]:
    """Yield the files in a folder and below it, over no link; not more than ``most``."""
    found = 0
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            found += 1
            if found > most:
                return
            yield Path(top, name)
