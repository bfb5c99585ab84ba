"""The sandbox in which VS Code runs a server, as a confinement that is no wider; or why there is none (A7)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pegboard.config.documents.document import is_list, is_mapping
from pegboard.config.schema.fetched import is_fetched
from pegboard.core.model.naming import one_line

KEYS: Final = frozenset({"sandboxEnabled", "sandbox"})
_RULES: Final = {
    "filesystem": frozenset({"allowWrite", "denyWrite", "denyRead"}),
    "network": frozenset({"allowedDomains", "deniedDomains"}),
}
_PATTERN: Final = re.compile(r"[*?\[]|\$\{")
_UNKNOWN: Final = "whose rules Pegboard does not know"


class UnsupportedRuleError(Exception):
    """A rule of a sandbox that no confinement keeps; its text follows ``VS Code runs it in a sandbox``."""


def confine_of(server: Mapping[str, Any], beside: Any, folder: Path | None) -> dict[str, Any] | None:
    """Return what ``confine`` says where VS Code runs a server in a sandbox; None where it runs it in none.

    In that sandbox a server writes what is allowed and its ``cwd``, reads whatever is not denied, and reaches the
    domains that are allowed. What is returned lets it write the same, read its folder and what every confined server
    reads, and reach nothing: never more than the sandbox does. Nothing is returned for a remote server, nor for one
    that says of itself how Pegboard confines it.

    Args:
        server: the server, in our own shape but for these keys.
        beside: the rules that stand beside the servers, for those that have none of their own.
        folder: what relative paths and ``${workspaceFolder}`` mean; None where only the client knows.

    Raises:
        UnkeptError: a confinement would be wider than the sandbox, or no one knows what it says.
    """
    enabled = server.get("sandboxEnabled")
    if enabled in (None, False, 0, "") or server.get("url") is not None or "confine" in server:
        return None
    if enabled is not True or ("sandbox" in server and beside is not None):
        raise UnsupportedRuleError(_UNKNOWN)
    rules = _rules(server.get("sandbox", beside))
    if allowed := rules["allowedDomains"]:
        listed = one_line(", ".join(allowed), limit=100)
        raise UnsupportedRuleError(f"that lets it reach only {listed}, but `confine` restricts ports, not host names")
    if is_fetched(server):
        raise UnsupportedRuleError("that lets it only fetch packages, but `confine` restricts ports, not host names")
    cwd = server.get("cwd")
    start = _path(cwd, folder, folder) if isinstance(cwd, str) else folder
    paths = {key: [_path(text, start, folder) for text in rules[key]] for key in _RULES["filesystem"]}
    write = _writable_paths(
        [*paths["allowWrite"], *([start] if isinstance(cwd, str) and start else [])], paths["denyWrite"]
    )
    read = _readable_paths(start, write, paths["denyRead"], folder)
    return {"write": write, **({"read": read} if read else {}), "network": "none"}


def _rules(sandbox: Any) -> dict[str, list[str]]:
    """Return every rule of a sandbox by its name; what is not there is empty."""
    found: dict[str, list[str]] = {key: [] for keys in _RULES.values() for key in keys}
    for name, section in _items(sandbox):
        known = _RULES.get(name)
        for key, value in _items(section):
            if known is None or key not in known or not is_list(value):
                raise UnsupportedRuleError(
                    f"with '{one_line(f'{name}.{key}', limit=60)}', which Pegboard does not know"
                )
            if not all(isinstance(each, str) for each in value):
                raise UnsupportedRuleError(_UNKNOWN)
            found[key] = value
    return found


def _items(value: Any) -> Iterable[tuple[str, Any]]:
    if value is not None and not is_mapping(value):
        raise UnsupportedRuleError(_UNKNOWN)
    return value.items() if value else ()


def _path(text: str, start: Path | None, folder: Path | None) -> Path:
    """Return where a path of a sandbox is, its links not followed."""
    known = {"workspaceFolder": folder, "userHome": Path.home(), "pathSeparator": os.sep, "/": os.sep}
    filled = f"{known['userHome']}{text[1:]}" if text == "~" or text.startswith("~/") else text
    for name, value in known.items():
        filled = filled.replace(f"${{{name}}}", str(value)) if value is not None else filled
    at = Path(filled) if start is None else start / filled
    if not filled or filled.startswith("~") or _PATTERN.search(filled) or not at.is_absolute():
        raise UnsupportedRuleError(f"that uses '{one_line(text, limit=100)}', which only VS Code knows")
    return Path(os.path.normpath(at))


def _writable_paths(allowed: list[Path], denied: list[Path]) -> list[str]:
    """Return what may be written of what is allowed."""
    if everything := [path for path in allowed if path == Path(path.anchor)]:
        raise UnsupportedRuleError(f"that lets it write '{everything[0]}', which no confinement grants")
    for path in denied:
        if any(_is_inside(path, each) and not _is_inside(each, path) for each in allowed):
            raise UnsupportedRuleError(f"that keeps it from writing '{path}', but `confine` grants whole folders")
    kept = (each for each in allowed if not any(_is_inside(each, path) for path in denied))
    return list(dict.fromkeys(map(str, kept)))


def _readable_paths(start: Path | None, write: list[str], denied: list[Path], folder: Path | None) -> list[str]:
    """Return what may be read besides: the folder in which it runs, where nothing of it is denied.

    What is confined reads of the user's files no more than that, and of the system all of it.
    """
    for path in denied:
        ours = [each for each in (Path.home(), folder) if each is not None]
        if any(_overlap(path, Path(each)) for each in write) or not any(_is_inside(path, each) for each in ours):
            raise UnsupportedRuleError(f"that keeps it from reading '{path}', which `confine` would let it read")
    if start is None or str(start) in write or any(_overlap(path, start) for path in denied):
        return []
    return [str(start)]


def _is_inside(path: Path, other: Path) -> bool:
    """Return whether a path is another or lies in it, links followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(other))


def _overlap(path: Path, other: Path) -> bool:
    return _is_inside(path, other) or _is_inside(other, path)
