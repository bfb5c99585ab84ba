"""What a configuration was made from: everything that another compilation could read differently."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.specs import PythonSpec
from pegboard.support import user_folders
from pegboard.support.version import __version__

_ALWAYS: Final = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA")
"""Variables that say where the files of a user lie."""
_PACKAGE: Final = Path(__file__).parents[2]
_COMPILERS: Final = ("config", "core/model", "sources")
"""What compiles a configuration: its files count, so that an edit in a checkout does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The files, folders and variables that one configuration was made from, by their names."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    variables: tuple[str, ...]

    def digest(self, env: Mapping[str, str], salt: bytes) -> str:
        """Return a digest of their contents now, of the working folder, and of what is installed.

        Raises ``OSError`` where a file is no plain file.
        """
        made = hashlib.blake2b(key=salt, digest_size=32)
        for part in self._parts(env):
            made.update(b"%d:" % len(part))
            made.update(part)
        return made.hexdigest()

    def _parts(self, env: Mapping[str, str]) -> Iterator[bytes]:
        where = f"{os.getcwd()} {user_folders.state()}"  # noqa: PTH109
        yield f"{__version__} {sys.version} {sys.platform} {where}".encode(errors="surrogatepass")
        for file in self.files:
            yield _bytes(file)
        for folder in self.folders:
            yield from _folder(folder)
        for name in self.variables:
            yield repr((name, env.get(name))).encode(errors="surrogatepass")
        for name in _ALWAYS:
            yield repr((env.get(name), os.environ.get(name))).encode(errors="surrogatepass")
        yield repr(sorted(_installed_packages(sys.path))).encode(errors="surrogatepass")
        yield repr([_folder_stamps(_PACKAGE / name) for name in _COMPILERS]).encode(errors="surrogatepass")


def origin_of(configuration: Configuration, variables: Iterable[str]) -> Origin:
    """Return what a configuration was made from, having looked up these variables.

    The modules of plugins beside it count: their names are checked.
    """
    targets = [(s.folder, s.target) for s in configuration.specs.values() if isinstance(s, PythonSpec) and s.folder]
    bases = [Path(folder, *target.partition(":")[0].split(".")) for folder, target in targets]
    modules = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py")]
    return Origin(
        files=tuple(dict.fromkeys(map(str, (*configuration.files, *modules)))),
        folders=tuple(map(str, configuration.folders)),
        variables=tuple(sorted(variables)),
    )


def _bytes(path: str) -> bytes:
    """Return the bytes of a file, or what stands for a missing one; refuse pipes, which can be read once."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except (FileNotFoundError, NotADirectoryError):
        return b"-"
    if not stat.S_ISREG(status.st_mode):
        raise OSError(path)
    with open(path, "rb") as file:  # noqa: PTH123
        return b"+" + file.read()


def _folder(path: str) -> Iterator[bytes]:
    """Yield the names of a folder's YAML files, each before its bytes."""
    try:
        names = sorted(name for name in os.listdir(path) if name.endswith((".yaml", ".yml")))  # noqa: PTH208
    except OSError:
        return
    for name in names:
        yield name.encode(errors="surrogatepass")
        yield _bytes(os.path.join(path, name))  # noqa: PTH118


def _installed_packages(folders: Sequence[str]) -> Iterator[tuple[str, str, int, int]]:
    """Yield which packages are installed in which version, and the stamp of their entry points.

    ``importlib.metadata`` knows more, and takes longer to import than all of this start's reading.
    """
    for folder in folders:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208
        except OSError:
            yield folder, "", *_file_stamp(folder)
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield folder, name, *_file_stamp(os.path.join(folder, name, "entry_points.txt"))  # noqa: PTH118


def _file_stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0, -1
    return status.st_mtime_ns, status.st_size


def _folder_stamps(folder: Path) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.is_dir():
                found += _folder_stamps(Path(entry.path)) if entry.name != "__pycache__" else []
            else:
                status = entry.stat()
                found.append((entry.name, status.st_mtime_ns, status.st_size))
    return found
