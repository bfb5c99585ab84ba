"""A board with tools that note what they ran with, under any dialect."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from pegboard import Pegboard, Session
from pegboard.core.model.delivery import GATEWAY

CONFIG = """
store: "memory:"
plugins:
  kit: {python: misplaced_kit}
toolkits:
  whole: {tools: [kit]}
agents:
  default: {dialect: DIALECT, discoverable: ["*"], allowed_toolkits: [whole], unloaded_call: run}
"""
MODULE = '''
ran = []


def purge(before: str = "", dry_run: bool = False) -> str:
    """Delete old things."""
    ran.append((before, dry_run))
    return f"purged {before} {dry_run}"


def note(meta: str = "", note: str = "") -> str:
    """Take what clients add to calls under names with a line before them."""
    ran.append((meta, note))
    return f"{meta} {note}"


def now() -> str:
    """Take nothing."""
    ran.append(())
    return "now"


def odd(name: str = "", arguments: dict = {}, parameters: dict = {}) -> str:
    """Take parameters that are named as those of call_tool."""
    ran.append((name, arguments, parameters))
    return f"{name} {arguments} {parameters}"
'''
GIVEN = {"before": "2020", "dry_run": True}


@asynccontextmanager
async def opened(folder: Path, dialect: str) -> AsyncIterator[tuple[Callable[[], Awaitable[Session]], list[Any]]]:
    """Yield what opens a session in which nothing is loaded, and what the tools have run with."""
    (folder / "misplaced_kit.py").write_text(MODULE)
    (folder / "pegboard.yaml").write_text(CONFIG.replace("DIALECT", dialect))
    numbers = count()
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        await board.ready()

        async def session() -> Session:
            return await board.session(session_id=f"s{next(numbers)}", host=GATEWAY)

        await (await session()).surface()
        yield session, sys.modules["misplaced_kit"].ran
