"""What lies where, asked of the file system; and the folders that everything reads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pegboard.core.access.named_paths import is_script
from pegboard.sources.confinement.plan import Kind
from pegboard.support.imported_modules import own_files

SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/proc", "/sys", "/nix", "/gnu"),
    *("/snap", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf", "/run/current-system"),
    *("/System", "/Library", "/private/etc", "/private/var/db", "/dev/fd"),
)
"""What every program reads; whichever of them there are."""
_OF_ROOT: Final = frozenset(
    (
        *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
        *("/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab"),
    )
)
_SHARED_PARENTS: Final = frozenset({".local", ".config", ".cache"})
_OF_A_PREFIX: Final = ("bin", "lib", "lib32", "lib64", "libexec", "include", "share")
_PACKAGE_FILES: Final = ("package.json", "pyproject.toml", "setup.py", "Cargo.toml", "go.mod", "deno.json")
_OF_PACKAGES: Final = ("package.json", "node_modules")
_SHEBANG: Final = 256


class RealDisk:
    """The file system of this machine."""

    def resolve_path(self, path: str) -> str | None:
        """Return a path with its links followed, or None where nothing is there."""
        try:
            return os.path.realpath(path, strict=True)
        except (OSError, ValueError):
            return None

    def link_folders(self, path: str) -> tuple[str, ...]:
        """Return the folders, without links, in which the links lie that a path leads over."""
        found = [each for each in (path, *map(str, Path(path).parents)) if os.path.islink(each)]  # noqa: PTH114
        return tuple(os.path.realpath(os.path.dirname(each)) for each in found)  # noqa: PTH120

    def entries(self, folder: str) -> Iterator[tuple[str, Kind]]:
        """Yield the names in a folder and what each is."""
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda each: each.name)
        except OSError:
            return
        for each in entries:
            yield each.name, "link" if each.is_symlink() else "folder" if each.is_dir() else "file"


def withheld_paths() -> frozenset[str]:
    """Return what the system keeps from users, where this one is root and it keeps it from no one."""
    return _OF_ROOT if hasattr(os, "geteuid") and os.geteuid() == 0 else frozenset()


def program(command: str, env: Mapping[str, str], cwd: str | None) -> tuple[str | None, list[str]]:
    """Return the file that a command is, None where there is none, and the paths that its program is read from."""
    base = cwd or os.getcwd()  # noqa: PTH109
    if os.sep in command:
        named = os.path.join(base, command)  # noqa: PTH118
        found = named if os.access(named, os.X_OK) and not os.path.isdir(named) else None  # noqa: PTH112
    else:
        found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        return None, []
    home = os.path.expanduser("~")  # noqa: PTH111
    roots = list(dict.fromkeys(_roots(os.path.abspath(found), home, env)))  # noqa: PTH100
    return found, roots


def script_files(args: Sequence[str], cwd: str | None, folder: str) -> Iterator[str]:
    """Yield what the scripts among arguments consist of: the package of each, in the plugin's folder its own files."""
    home, own = os.path.expanduser("~"), os.path.realpath(folder)  # noqa: PTH111
    for text in args:
        script = os.path.realpath(os.path.join(cwd or os.getcwd(), text)) if is_script(text) else ""  # noqa: PTH109, PTH118
        if not script or not os.path.isfile(script):  # noqa: PTH113
            continue
        for package in _package(script, home):
            if not is_or_holds(package, own):
                yield package
                continue
            top, name = os.path.split(script)
            yield script
            yield from own_files(top, [name.removesuffix(".py")]) if name.endswith(".py") else ()
            yield from (os.path.join(package, each) for each in _OF_PACKAGES)  # noqa: PTH118


def is_or_holds(folder: str, own: str) -> bool:
    """Return whether a folder is that of a plugin, or above it."""
    return f"{own}/".startswith(f"{folder.rstrip('/')}/")


def module_folders(code: Iterable[str], home: str) -> Iterator[str]:
    """Yield the folders in which Python looks for modules by their names: of what is code those that hold it."""
    for path in code:
        folder = os.path.dirname(path)  # noqa: PTH120
        if path.endswith(".py") and folder != home:
            yield folder


def _roots(file: str, home: str, env: Mapping[str, str], depth: int = 0) -> Iterator[str]:
    """Yield what a program is read from: its folder, the environment or the manager it belongs to, its interpreter."""
    for path in dict.fromkeys((file, os.path.realpath(file))):
        yield path
        folder = os.path.dirname(path)  # noqa: PTH120
        yield from _manager(path, home)
        prefix = os.path.dirname(folder)  # noqa: PTH120
        if "/node_modules/" in path:
            yield f"{path.partition('/node_modules/')[0]}/node_modules"
        settings = os.path.join(prefix, "pyvenv.cfg")  # noqa: PTH118
        if os.path.isfile(settings):  # noqa: PTH113
            yield prefix
            if depth < 3 and (base := _cache_home_of(settings)):
                yield from _roots(os.path.join(base, "python3"), home, env, depth + 1)  # noqa: PTH118
        elif os.path.basename(folder) in ("bin", "shims") and prefix not in (home, "/"):  # noqa: PTH119
            yield folder
            yield from (os.path.join(prefix, name) for name in _OF_A_PREFIX if prefix != f"{home}/.local")  # noqa: PTH118
        elif folder != home:
            yield folder
    if depth < 3 and (interpreter := _interpreter(file, env)):
        yield from _roots(interpreter, home, env, depth + 1)


def _manager(path: str, home: str) -> Iterator[str]:
    """Yield the folder of the version manager below the user's folder that a program belongs to."""
    if not path.startswith(f"{home}/."):
        return
    parts = path.removeprefix(f"{home}/").split("/")
    if parts[0] not in _SHARED_PARENTS:
        if len(parts) > 1:
            yield f"{home}/{parts[0]}"
    elif parts[0] == ".local":
        yield from (f"{home}/.local/{name}" for name in ("bin", "lib", "share/uv/python", "share/uv/tools"))
        if len(parts) > 3 and parts[1] == "share":
            yield f"{home}/{'/'.join(parts[:3])}"
    elif len(parts) > 2:
        yield f"{home}/{'/'.join(parts[:2])}"


def _cache_home_of(settings: str) -> str:
    try:
        lines = Path(settings).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    pairs = (line.partition("=") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == "home"), "")


def _interpreter(file: str, env: Mapping[str, str]) -> str:
    """Return the program that runs a script, by its first line."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            first = opened.read(_SHEBANG).split(b"\n", 1)[0]
    except OSError:
        return ""
    if not first.startswith(b"#!"):
        return ""
    words = os.fsdecode(first[2:]).split()
    if words and os.path.basename(words[0]) == "env":  # noqa: PTH119
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        return shutil.which(names[0], path=env.get("PATH")) or "" if names else ""
    return words[0] if words else ""


def _package(script: str, home: str) -> list[str]:
    """Return the package that a script belongs to: the folder of its manifest, else its own folder, never a home."""
    if "/node_modules/" in script:
        return [f"{script.partition('/node_modules/')[0]}/node_modules"]
    folder = os.path.dirname(script)  # noqa: PTH120
    for above in (folder, *map(str, Path(folder).parents)):
        if above == home or home.startswith(f"{above.rstrip('/')}/"):
            break
        if any(os.path.isfile(os.path.join(above, name)) for name in _PACKAGE_FILES):  # noqa: PTH113, PTH118
            return [above]
    return [script] if folder == home else [folder]
