"""An operator's settings panel: one switch for a toolkit, flipped while a session runs; it binds the next call."""

import asyncio
import tempfile
from pathlib import Path

from pegboard import Pegboard

TOOLS = '''
from pegboard import tool


@tool(title="Commit and push")
def github_commit_push(message: str) -> str:
    """Commit and push the change."""
    return f"pushed: {message}"


def schedule_job(when: str) -> str:
    """Run a job later."""
    return f"scheduled for {when}"
'''
CONFIG = """
plugins: {evolution: {python: evolution}}
toolkits:
  self_evolution_toolkit:
    {label: Self-evolution, icon: sprout, tools: [github_commit_push], policy: "Review before {tools}."}
agents:
  sea: {tools: [schedule_job], allowed_toolkits: [self_evolution_toolkit], initial_toolkits: [self_evolution_toolkit]}
"""


def shown(row: dict) -> str:
    """Return one line of the panel, and its members below."""
    box = "x" if row["on"] else " "
    return "\n".join(
        [f"[{box}] {row['label']}: {row['reason']['text']}", *(f"    {shown(m)}" for m in row.get("members", ()))]
    )


async def main(folder: Path) -> list[str]:
    (folder / "evolution.py").write_text(TOOLS)
    (folder / "pegboard.yaml").write_text(CONFIG)
    statuses = []
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        session = await board.session(agent="sea", session_id="chat")
        for value in (None, False, True):
            await board.permissions.set("sea", "self_evolution_toolkit", value, by="ada")
            print("\n".join(shown(row) for row in await board.permissions.panel("sea")))
            statuses.append((await session.call("github_commit_push", {"message": "a fix"})).status)
            print("→", statuses[-1], "\n")
    return statuses


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(main(Path(name)))
