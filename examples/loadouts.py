"""A host in Python with loadouts by kind of agent: registered in code, used by sessions, children and a specialist.

Run it in any folder; nothing is written. With Agno installed, `developer` has its file and shell tools too.
"""

import asyncio

from pegboard import LoadoutBuilder, Pegboard, Session

REVIEWER = (
    LoadoutBuilder.create("security-reviewer")
    .extends("developer")
    .include_category("Security")
    .add_plugin("think")
    .add_discoverable("clock")
    .disable("websearch")
    .build()
)
CONFIG = {
    "store": "memory:",
    "plugins": {
        "git": {"python": "pegboard.quickstart.git", "category": "Git"},
        "file": {"python": "pegboard.quickstart.files", "category": "Filesystem"},
        "clock": {"python": "pegboard.quickstart.clock"},
    },
    "agents": {
        "lead": {"loadout": "security-reviewer", "tools": ["delegate"], "may_delegate": ["timekeeper"]},
        "timekeeper": {"tools": ["clock"], "role": "Knows the time."},
    },
}


def plugins(names: set[str]) -> str:
    return ", ".join(sorted(names))


async def loaded(session: Session) -> set[str]:
    """Return the plugins of which the session has tools."""
    tools = [entry.tool for entry in (await session.surface()).tools]
    return {tool.plugin for tool in tools} & set(CONFIG["plugins"])


async def run(child: Session, task: str) -> str:
    """Stand in for your loop over a model: give it `child.surface()`, hand its calls to `child.call`."""
    return f"{child.key.agent}, with {plugins(await loaded(child))}: {task} is done"


async def main() -> None:
    async with Pegboard.open(CONFIG, loadouts=[REVIEWER]) as board:
        board.on_delegate = run
        lead = await board.session(agent="lead", session_id="thread")
        print("lead:", plugins(await loaded(lead)), "| clock:", (await lead.load("clock")).status)
        print("task:", plugins(await loaded(await lead.child("task"))))
        answer = await lead.call("delegate", {"task": "the time", "agent": "timekeeper"})
        print("delegate:", answer.result.content[0]["text"])


asyncio.run(main())
