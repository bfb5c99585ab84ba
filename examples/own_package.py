"""A package of your own with plugins: what its entry points name is there for every configuration, by name."""

import asyncio
import sys
import tempfile
from pathlib import Path

from pegboard import Pegboard

MODULE = '''
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}."


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.value = start

    def count(self) -> int:
        """Return the next number."""
        self.value += 1
        return self.value
'''
# What `[project.entry-points."pegboard.plugins"]` and `… "pegboard.toolkits"` of a pyproject.toml install:
ENTRY_POINTS = """
[pegboard.plugins]
greetings = greeter
counter = greeter:Counter
[pegboard.toolkits]
polite = greeter_kits:POLITE
"""
KITS = 'POLITE = {"description": "Be polite to many", "tools": ["greetings", {"counter": {"start": 41}}]}\n'
CONFIG = {"store": "memory:", "agents": {"host": {"dialect": "pegboard", "allowed_toolkits": ["polite"]}}}


def install(folder: Path) -> None:
    """Put the package where Python finds it, as ``pip install`` does."""
    (folder / "greeter.py").write_text(MODULE)
    (folder / "greeter_kits.py").write_text(KITS)
    described = folder / "greeter-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(ENTRY_POINTS)
    sys.path.insert(0, str(folder))


async def main() -> None:
    async with Pegboard.open(CONFIG) as board:
        session = await board.session(agent="host", session_id="party")
        print(*(await session.surface()).hints, (await session.load("polite")).message, sep="\n")
        for name, arguments in (("greet", {"name": "Ada"}), ("count", {})):
            print((await session.call(name, arguments)).result.content[0]["text"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        install(Path(name))
        asyncio.run(main())
