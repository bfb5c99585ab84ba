"""Packages that npx had half installed when it was killed.

npx takes such a folder for a whole one: what is started from it fails for want of modules each time, and the next
start waits a minute for the lock that was left. Of uv nothing of the kind is left: it moves what it has installed into
place at once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

_ALONE: Final = ("-y", "--yes", "-q", "--quiet", "--silent", "--prefer-online", "--prefer-offline", "--offline")
"""Options of npx without a value."""
_PACKAGE: Final = ("-p", "--package")
_HELD: Final = 10.0
"""Seconds after which no one holds a lock any longer, which npx touches every second."""
_SETTLED: Final = 60.0
"""Seconds after which no one installs any longer, where an older npx has no lock."""
_LACKS: Final = ("MODULE_NOT_FOUND", "Cannot find module", "Cannot find package")


def remove_half_installed(
    command: str | None, args: Sequence[str], env: Mapping[str, str], *, ours: bool = False
) -> bool:
    """Remove what is half installed of the packages that a command of npx starts; return whether there was anything.

    What someone installs right now is left alone, unless it is ``ours``, and has been killed.
    """
    folder = installation_folder(command, args, env)
    if folder is None or not _is_half(folder) or not (ours or not _is_being_installed(folder)):
        return False
    return _remove_folder(folder)


def remove_broken(command: str | None, args: Sequence[str], env: Mapping[str, str], printed: Iterable[str]) -> bool:
    """Remove the packages that a command of npx starts, if what it printed says that parts of them are missing."""
    folder = installation_folder(command, args, env)
    text = "\n".join(printed)
    broken = folder is not None and f"_npx/{folder.name}/" in text and any(lack in text for lack in _LACKS)
    return folder is not None and broken and not _is_being_installed(folder) and _remove_folder(folder)


def installation_folder(command: str | None, args: Sequence[str], env: Mapping[str, str]) -> Path | None:
    """Return the folder into which npx installs the packages of a command, or None where it is not known."""
    packages = packages_of(command, args)
    named = next((value for name, value in env.items() if name.casefold() == "npm_config_cache"), "")
    home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text, as the environment has it
    if not packages:
        return None
    digest = hashlib.sha512("\n".join(sorted(packages, key=str.casefold)).encode()).hexdigest()[:16]
    return Path(named or Path(home) / ".npm") / "_npx" / digest


def packages_of(command: str | None, args: Sequence[str]) -> list[str]:
    """Return the packages that a command of npx installs, none where that is not sure."""
    program = PurePath(command or "").name.casefold().removesuffix(".cmd")
    words = list(args)
    if program == "npm" and words and words[0] in ("exec", "x"):
        del words[0]
    elif program != "npx":
        return []
    found: list[str] = []
    rest: Iterator[str] = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in _PACKAGE:
            found.append(value if equals else next(rest, ""))
        elif word in _ALONE:
            continue
        elif word.startswith("-") and word != "--":
            return []
        else:
            package = next(rest, "") if word == "--" else word
            return found or ([package] if package else [])
    return found


def _is_half(folder: Path) -> bool:
    """Return whether an installation was begun in a folder, and not ended."""
    begun = (folder / "node_modules").is_dir() or (folder / "concurrency.lock").exists()
    return begun and not (folder / "node_modules" / ".package-lock.json").is_file()


def _is_being_installed(folder: Path) -> bool:
    lock = folder / "concurrency.lock"
    newest, settled = (lock, _HELD) if lock.exists() else (folder / "node_modules", _SETTLED)
    try:
        return time.time() - newest.stat().st_mtime < settled
    except OSError:
        return False


def _remove_folder(folder: Path) -> bool:
    """Remove a folder: it is out of the way at once, its files soon; return whether it was there."""
    aside = folder.with_name(f"{folder.name}.{os.getpid()}-{time.monotonic_ns()}")
    try:
        folder.rename(aside)
    except OSError:
        return False
    threading.Thread(target=shutil.rmtree, args=(aside,), kwargs={"ignore_errors": True}).start()
    return True
