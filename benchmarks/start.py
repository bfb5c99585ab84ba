"""What a program with the library waits for, import, open and first surface, against ``import mcp``.

Starts alternate, and each is a process of its own over a folder without a store, as the first start of a program is:
nothing is known of its plugins. Processor time, the median of all starts, and how much that is of ``import mcp``. Bars:
the first surface of 200 tools in ten toolkits at most 0.5; of 112 modules with a tool each, with the opening, 1.5.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from pegboard.support.own_folder import folder_of

STARTS = 11
VERBS = ("create", "get", "list", "update", "delete", "search", "archive", "assign", "export", "merge")
OBJECTS = (
    "invoice", "customer", "ticket", "folder", "message", "contact", "deal", "event", "team", "file", "report", "order",
    "payment", "refund", "shipment", "product", "user", "role", "project", "task",
)  # fmt: skip
FUNCTION = '''
def {verb}_{thing}(name: str, count: int = 1, tags: list[str] | None = None) -> str:
    """{title} one {thing} by its name.

    Args:
        name: The name of the {thing}.
        count: How many.
        tags: What it is labelled with.
    """
    return name
'''
SDK = """
import time
begun = time.process_time()
import mcp
print(time.process_time() - begun)
"""
PROGRAM = """
import asyncio, json, sys, time
begun = time.process_time()
import pegboard
pegboard.Pegboard.open
imported = time.process_time()

async def main():
    async with pegboard.Pegboard.open("pegboard.yaml") as board:
        opened = time.process_time()
        session = await board.session(agent="assistant", session_id="one")
        message = sys.argv[1] or None
        surface = await session.surface(message=message)
        first = time.process_time()
        await session.surface(message=message)
        times = [imported - begun, opened - imported, first - opened, time.process_time() - first]
        print(json.dumps({"times": times, "tools": len(surface.tools)}))

asyncio.run(main())
"""
NEED = "create an invoice for the customer"


def measure() -> list[dict[str, object]]:
    with tempfile.TemporaryDirectory() as folder:
        ten, many = Path(folder, "ten"), Path(folder, "many")
        in_toolkits(ten)
        one_each(many)
        ways = {
            "200 tools in 10 toolkits": (ten, ""),
            "200 tools in 10 toolkits, by a message": (ten, NEED),
            "112 modules with a tool each": (many, ""),
            "112 modules with a tool each, by a message": (many, NEED),
        }
        sdk: list[float] = []
        found: dict[str, list[list[float]]] = {name: [] for name in ways}
        for _ in range(STARTS):
            sdk.append(float(ran(folder, SDK)))
            for name, (place, message) in ways.items():
                shutil.rmtree(folder_of(place / "pegboard.yaml"), ignore_errors=True)
                found[name].append(json.loads(ran(str(place), PROGRAM, message))["times"])
    mcp = statistics.median(sdk)
    return [row("import mcp", [mcp], mcp), *(row(name, medians(times), mcp) for name, times in found.items())]


def medians(times: list[list[float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*times, strict=True)]


def row(name: str, times: list[float], mcp: float) -> dict[str, object]:
    imported, opened, first, second = times if times[1:] else [times[0], 0.0, 0.0, 0.0]
    return {
        "program": name,
        "import ms": round(imported * 1000),
        "open ms": round(opened * 1000),
        "first surface ms": round(first * 1000),
        "second ms": round(second * 1000, 1),
        "first of import mcp": round(first / mcp, 2),
        "open and first of import mcp": round((opened + first) / mcp, 2),
    }


def ran(folder: str, program: str, *arguments: str) -> str:
    env = {**os.environ, "XDG_CACHE_HOME": f"{folder}/cache", "XDG_STATE_HOME": f"{folder}/state"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def in_toolkits(folder: Path) -> None:
    folder.mkdir()
    plugins, toolkits = [], []
    for number in range(10):
        things = OBJECTS[2 * number : 2 * number + 2]
        tools = [FUNCTION.format(verb=v, thing=t, title=v.title()) for t in things for v in VERBS]
        (folder / f"kit{number}.py").write_text("\n".join(tools))
        plugins.append(f"  kit{number}: {{python: kit{number}}}")
        toolkits.append(f"  area{number}: {{description: Work with each {things[0]}, tools: [kit{number}]}}")
    allowed = ", ".join(f"area{number}" for number in range(10))
    agent = f"agents:\n  assistant: {{dialect: pegboard, allowed_toolkits: [{allowed}]}}\n"
    (folder / "pegboard.yaml").write_text("\n".join(["plugins:", *plugins, "toolkits:", *toolkits, agent]))


def one_each(folder: Path) -> None:
    folder.mkdir()
    pairs = [(verb, thing) for thing in OBJECTS for verb in VERBS][:112]
    for number, (verb, thing) in enumerate(pairs):
        (folder / f"mod{number}.py").write_text(FUNCTION.format(verb=verb, thing=thing, title=verb.title()))
    plugins = [f"  mod{number}: {{python: mod{number}}}" for number in range(len(pairs))]
    agent = "agents:\n  assistant: {discoverable: ['*']}\n"
    (folder / "pegboard.yaml").write_text("\n".join(["plugins:", *plugins, agent]))
