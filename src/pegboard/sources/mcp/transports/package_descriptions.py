"""How the package of a server that runs here is described: by its own files, no index is asked (F2)."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path, PurePath
from typing import Any, Final

from pegboard.sources.mcp.transports.npx_cache import installation_folder, packages_of

_VERSION: Final = re.compile(r"(?<=.)(?:@|[=<>~!]=|[<>\[;]).*")
"""What is behind the name of a package."""
_SUMMARY: Final = re.compile(r"^Summary: *(.+)$", re.MULTILINE)
_READ: Final = 64 * 1024
"""How much of a file is read, in bytes."""
_MOST_FOLDERS: Final = 12
"""How many folders above a program are looked at."""
_PYTHON_RUNNERS: Final = ("uvx", "uv", "pipx")
_WITH_VALUE: Final = ("--with", "--python", "-p", "--index-url", "--extra-index-url", "--default-index", "--index")
_FROM: Final = ("--from", "--spec")


def package_description(command: str | None, args: Sequence[str], env: Mapping[str, str]) -> str:
    """Return how the package of a server is described, or nothing where that is not known.

    It is read from what its runner (npx, uvx) or its installer has put on this machine, so once it has run.

    Args:
        command: what starts the server; None for one over HTTP.
        args: its arguments.
        env: the environment in which it is started.
    """
    if not command:
        return ""
    try:
        if packages := packages_of(command, args):
            return _description_of_npx(_VERSION.sub("", packages[0]), installation_folder(command, args, env))
        if PurePath(command).name.casefold().removesuffix(".exe") in _PYTHON_RUNNERS:
            return _description_of_wheel(_python_package(args), env)
        return _description_of_program(command, args, env)
    except (OSError, ValueError, UnicodeError):
        return ""


# -- Node ------------------------------------------------------------------------------------------


def _description_of_npx(package: str, folder: Path | None) -> str:
    return (
        _description_in_package_json(folder / "node_modules" / package / "package.json") if folder is not None else ""
    )


def _description_in_package_json(path: Path) -> str:
    value: Any = json.loads(_text(path))
    text = value.get("description") if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


# -- Python ----------------------------------------------------------------------------------------


def _python_package(args: Sequence[str]) -> str:
    """Return the package that ``uvx`` or a program like it runs."""
    rest = iter(args)
    for word in rest:
        name, equals, value = word.partition("=")
        if name in _FROM:
            return _VERSION.sub("", value if equals else next(rest, ""))
        if word in _WITH_VALUE:
            next(rest, "")
        elif not word.startswith("-") and word not in ("tool", "run"):
            return _VERSION.sub("", word)
    return ""


def _description_of_wheel(package: str, env: Mapping[str, str]) -> str:
    """Return the summary of a package in the cache of uv, the newest that is there."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    if not name or PurePath(name).name != name:
        return ""
    cache = _uv_cache(env)
    found = [*cache.glob(f"wheels-v*/*/{name}/*"), *cache.glob(f"wheels-v*/*/*/{name}/*")]
    for wheel in sorted((path for path in found if path.is_dir()), key=_modification_time, reverse=True):
        for metadata in wheel.glob("*.dist-info/METADATA"):
            if summary := _SUMMARY.search(_text(metadata)):
                return summary[1]
    return ""


def _uv_cache(env: Mapping[str, str]) -> Path:
    if named := env.get("UV_CACHE_DIR"):
        return Path(named)
    if os.name == "nt":
        return Path(env.get("LOCALAPPDATA", ".")) / "uv" / "cache"
    home = env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - a text, as the environment has it
    return Path(env.get("XDG_CACHE_HOME") or Path(home) / ".cache") / "uv"


def _description_of_environment(program: Path) -> str:
    """Return the summary of the package that has put a program into a Python environment."""
    for site in program.parent.parent.glob("lib/python*/site-packages"):
        for found in distributions(path=[str(site)]):
            if any(p.name == program.name for p in found.entry_points if p.group == "console_scripts"):
                return str(found.metadata.json.get("summary", ""))
    return ""


# -- programs --------------------------------------------------------------------------------------


def _description_of_program(command: str, args: Sequence[str], env: Mapping[str, str]) -> str:
    found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        return ""
    program = Path(found)
    if summary := _description_of_environment(program):
        return summary
    files = [Path(word) for word in args if PurePath(word).suffix in (".js", ".mjs", ".cjs")]
    for path in (program, *files[:1]):
        for package in _packages_above(path.resolve()):
            return _description_in_package_json(package)
    return ""


def _packages_above(path: Path) -> Iterator[Path]:
    """Yield the description of the package in which a file lies, if it lies in one that was installed."""
    if "node_modules" not in path.parts:
        return
    above: Iterable[Path] = path.parents
    yield from (folder / "package.json" for folder, _ in zip(above, range(_MOST_FOLDERS), strict=False)
                if (folder / "package.json").is_file())  # fmt: skip


def _modification_time(path: Path) -> float:
    return path.stat().st_mtime


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_READ).decode(errors="replace")
