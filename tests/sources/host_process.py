"""A host's process: open a board, use plugins of every kind, close it, and report what is not as before."""

import asyncio
import json
import logging
import signal
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

from pegboard import Pegboard

CALLS = {
    "colour": {},
    "shop_price": {"item": "tea"},
    "add": {"a": 1, "b": 2},
    "docker_ps": {},
    "far__pid": {},
}


def handlers() -> dict[str, str]:
    return {
        name.name: str(signal.getsignal(name)) for name in signal.valid_signals() if isinstance(name, signal.Signals)
    }


def loggers() -> dict[str, str]:
    names = ("", "mcp", "pegboard", "py.warnings", "asyncio")
    found = {name: logging.getLogger(name) for name in names}
    return {name: f"{logger.handlers} {logger.level} {logger.propagate}" for name, logger in found.items()}


def children() -> list[str]:
    return [path.read_text() for path in Path("/proc/self/task").glob("*/children") if path.read_text()]


def state(folder: str) -> dict[str, object]:
    return {
        "stdout": str(sys.stdout),
        "stderr": str(sys.stderr),
        "path": list(sys.path),
        "finders": [str(finder) for finder in sys.meta_path],
        "modules": [n for n, m in list(sys.modules.items()) if folder in str(getattr(m, "__file__", ""))],
        "importers": [path for path in sys.path_importer_cache if folder in path],
        "signals": handlers(),
        "policy": str(asyncio.get_event_loop_policy()),
        "loggers": loggers(),
        "hooks": [str(hook) for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook)],
        "threads": [thread.name for thread in threading.enumerate()],
        "children": children(),
    }


async def use(folder: Path, seen: dict[str, str]) -> None:
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        session = await board.session(agent="ada", session_id="s")
        await session.surface(message="colour please")
        for name, arguments in CALLS.items():
            outcome = await session.call(name, arguments)
            seen[name] = outcome.result.content[0]["text"]
        assert "colour" not in sys.modules, "the host has a module of this name"
        assert "shop_h" in sys.modules


def main(folder: Path) -> None:
    seen: dict[str, str] = {}
    before = state(str(folder / "beside"))
    for _ in range(2):
        asyncio.run(use(folder / "beside", seen))
    with Pegboard.open_sync(folder / "beside" / "pegboard.yaml") as board:
        seen["blocking"] = board.session(agent="ada", session_id="s").call("shop_price", {"item": "tea"}).status
    after = state(str(folder / "beside"))
    colour: Any = import_module("colour")  # the host's own, which a module beside the configuration has the name of

    changed = {key: (before[key], after[key]) for key in before if before[key] != after[key]}
    muted = [name for name in ("agno", "agno-team") if "Null" in str(logging.getLogger(name).handlers)]
    print(json.dumps({"seen": seen, "changed": changed, "host": colour.WHOSE, "muted": muted}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
