"""Run the command in this process, compare what it prints with a shape, and write and read files of clients."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.config.documents import json_text, yaml_text


@dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the one document on standard output."""
        return json.loads(self.out)


Run = Callable[..., Ran]

OUTCOME = {
    "status": str,
    "items": [{"name": str, "status": str, "message": str}],
    "takes_effect": (str, type(None)),
    "loaded": [str],
}
ERROR = {
    "error": {
        "code": str,
        "message": str,
        "hint": str,
        "file": (str, type(None)),
        "line": (int, type(None)),
        "column": (int, type(None)),
    }
}


def misfits(value: Any, shape: Any, path: str = "$") -> list[str]:
    """Return where a JSON value differs from a shape: types, [shape of each], {key: shape} with exactly these keys."""
    match shape:
        case dict() if not isinstance(value, dict):
            return [f"{path}: not an object: {value!r}"]
        case dict() if list(value) != list(shape):
            return [f"{path}: keys {list(value)}, expected {list(shape)}"]
        case dict():
            return [fault for key in shape for fault in misfits(value[key], shape[key], f"{path}.{key}")]
        case [each]:
            if not isinstance(value, list):
                return [f"{path}: not an array: {value!r}"]
            return [fault for n, item in enumerate(value) for fault in misfits(item, each, f"{path}[{n}]")]
        case _ if isinstance(value, bool) and bool not in (shape if isinstance(shape, tuple) else (shape,)):
            return [f"{path}: {value!r} is a boolean"]
        case _:
            return [] if isinstance(value, shape) else [f"{path}: {value!r} is no {shape}"]


def put(name: str, text: str, mode: int = 0o644) -> Path:
    """Write a file below the current folder."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(mode)
    return path


def servers_in(path: Path) -> dict[str, Any]:
    """Return the servers in a client's file."""
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text())["mcp_servers"]
    if path.suffix == ".yaml":
        return yaml_text.compose(path.read_text(), path.name).value["extensions"]
    value = json_text.compose(path.read_text("utf-8-sig"), path.name).value
    found = next(value[root] for root in ("mcpServers", "servers", "context_servers", "mcp") if root in value)
    return found.get("servers", found) if "mcp" in value else found


def command_of(entry: dict[str, Any]) -> list[str]:
    """Return what an entry in a client's file starts."""
    command: Any = entry.get("command", entry.get("cmd"))
    return [*(command if isinstance(command, list) else [command]), *entry.get("args", [])]


def as_client_starts(entry: dict[str, Any], project: Path) -> tuple[list[str], str]:
    """Return what a client starts of an entry in one person's copy of a project, and in which folder.

    Where the project's folder is named, the client starts it at `/`, else in that folder. A bare command is found as it
    is by someone who has installed it.
    """
    named = json.dumps(entry).replace("${workspaceFolder}", str(project))
    filled = json.loads(named)
    command, *arguments = command_of(filled)
    installed = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folder = filled.get("cwd") or ("/" if "${workspaceFolder}" in json.dumps(entry) else str(project))
    return [shutil.which(command, path=installed) or command, *arguments], folder
