"""How this Pegboard was installed, and the line that adds a package to it."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pegboard.support.version import __version__

CODE: Final = "pegboard-slim"
"""The distribution that has the code and declares what it needs."""
_WITH_SERVERS: Final = "pegboard"
"""The distribution that has no code and brings the other one with the extra ``mcp``."""


def install_line(*packages: str, extra: str = "") -> str:
    """Return the line that adds an extra of Pegboard, and packages, to the environment that runs this Pegboard.

    Args:
        packages: requirements, as they are written behind ``pip install``.
        extra: the extra of Pegboard; empty adds the packages alone.
    """
    environment = Path(sys.prefix)
    if (receipt := environment / "uv-receipt.toml").is_file():
        extras, others = _uv_tool(receipt)
        wanted = dict.fromkeys((*others, *packages))
        return _line("uv tool install", *_repeat_option("--with", wanted), _own_requirement(*extras, extra))
    if in_cache(environment / "bin"):
        return _line("uvx", "--from", _own_requirement(extra), *_repeat_option("--with", packages), "pegboard")
    own = _own_requirement(extra) if extra else ""
    if (environment / "pipx_metadata.json").is_file():
        return _line("pipx runpip", environment.name, "install", own, *packages)
    pip = "pip install" if find_spec("pip") is not None else "uv pip install"
    if own and (folder := _editable_folder()):
        return _line(pip, "-e", f"{folder}[{extra}]", *packages)
    return _line(pip, own, *packages)


def install_hint(*packages: str, extra: str = "") -> str:
    """Return :func:`install_line` as a sentence, in which the line ends where its quotes end."""
    return f"Run `{install_line(*packages, extra=extra)}`."


def _line(command: str, *words: str) -> str:
    return " ".join([command, *(shlex.quote(word) for word in words if word)])


def _repeat_option(option: str, values: Sequence[str] | dict[str, None]) -> Iterator[str]:
    for value in values:
        yield from (option, value)


def _own_requirement(*extras: str) -> str:
    """Return the requirement of the distribution that was asked for, from where it came."""
    name, came_from = _distribution()
    wanted = ",".join(dict.fromkeys(extra for extra in extras if extra))
    requirement = f"{name}[{wanted}]" if wanted else name
    url = came_from.get("url", "")
    if (vcs := came_from.get("vcs_info")) is not None:
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"{requirement} @ {url}" if url else requirement


def _editable_folder() -> str:
    """Return the checkout that the package is imported from; empty where it was built and installed."""
    _, came_from = _distribution()
    if not came_from.get("dir_info", {}).get("editable"):
        return ""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    return url2pathname(urlsplit(came_from["url"]).path)


def _distribution() -> tuple[str, dict[str, Any]]:
    """Return the name of the distribution that brought this package, and where it came from but from an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # takes longer to import than most of a start

    for name in (_WITH_SERVERS, CODE):
        try:
            text = distribution(name).read_text("direct_url.json")
        except PackageNotFoundError:
            continue
        return name, json.loads(text) if text else {}
    return CODE, {}


def _uv_tool(receipt: Path) -> tuple[list[str], list[str]]:
    """Return the extras of Pegboard and the other packages that ``uv tool install`` was given before."""
    import tomllib

    extras: list[str] = []
    others: list[str] = []
    for one in tomllib.loads(receipt.read_text("utf-8")).get("tool", {}).get("requirements", ()):
        if one["name"] in (_WITH_SERVERS, CODE):
            extras += one.get("extras", ())
        else:
            others.append(one["name"] + (f"[{','.join(one['extras'])}]" if one.get("extras") else ""))
    return extras, others


def lasting_command() -> list[str] | None:
    """Return how Pegboard is started from anywhere, also in a month: by a path, since clients have another ``PATH``.

    Nothing in a cache is named: it is gone with the next cleaning. None where nothing else is there.
    """
    beside = Path(sys.executable).parent / ("pegboard.exe" if sys.platform == "win32" else "pegboard")
    found = shutil.which("pegboard")
    for place in (beside, Path(found).absolute() if found else None):
        if place is not None and place.is_file() and not in_cache(place):
            return [str(place)]
    if not in_cache(Path(sys.prefix)):
        return [sys.executable, "-m", "pegboard"]
    if (runner := shutil.which("uvx")) is not None and from_index():
        return [str(Path(runner).absolute()), f"pegboard@{__version__}"]
    return None


def shared_command(folder: Path, folder_as: str) -> list[str]:
    """Return how everyone who has a copy of a project starts Pegboard, whatever their machine is like.

    Args:
        folder: the project.
        folder_as: how its folder is written for all of them, empty where it cannot be.
    """
    program, *more = lasting_command() or ["pegboard"]
    if more and more[0].startswith("pegboard@"):
        return ["uvx", *more]
    with suppress(ValueError):
        inside = Path(program).relative_to(folder.absolute())
        if folder_as and not more:
            return [f"{folder_as}/{inside.as_posix()}"]
    return ["pegboard"]


def in_cache(path: Path) -> bool:
    """Return whether a path lies in an environment that ``uvx`` made in uv's cache: the next run may have another."""
    return any(folder.name.startswith(("archive-v", "environments-v")) for folder in path.absolute().parents)


def from_index() -> bool:
    """Return whether this Pegboard came from an index of packages, not from a file or a checkout."""
    return not _distribution()[1]


def lasting_line() -> str:
    """Return the line that installs this Pegboard where it stays."""
    return _line("uv tool install", _own_requirement())
