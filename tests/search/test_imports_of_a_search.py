"""What costs time to import is imported by the first search, and by nothing before it."""

import subprocess
import sys
from pathlib import Path

CONFIG = """
store: "memory:"
plugins: {calc: {python: pegboard.quickstart.calc}}
"""
STEPS = """
import asyncio, sys
from pegboard import Pegboard

def arrays():
    return [name for name in ("numpy", "onnxruntime") if name in sys.modules]

async def main():
    async with Pegboard.open("pegboard.yaml") as board:
        session = await board.session(session_id="thread-1")
        await session.surface()
        assert (await session.load("calc")).status == "ok"
        assert (await session.call("calculate", {"expression": "6 * 7"})).status == "ok"
        print(arrays())
        await session.search("count words")
        print(arrays())

asyncio.run(main())
"""


def test_a_surface_a_load_and_a_call_import_nothing_that_only_a_search_needs(tmp_path: Path) -> None:
    (tmp_path / "pegboard.yaml").write_text(CONFIG)
    ran = subprocess.run([sys.executable, "-c", STEPS], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[]", "['numpy']"]
