"""Run an agent whose model manages its own tools: search, load, call, unload, and go on after a restart.

The model here is a script, so that this runs anywhere: `python examples/library.py`. A real one takes its place in
`Model.next`: it gets the messages and the tools, and answers with a call or with a text. Hints and policy stand in the
system prompt, the suffix behind the newest message.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard import Pegboard, Session, Surface

CONFIG = """
store: sqlite:///pegboard.db

plugins:
  clock: {python: pegboard.quickstart.clock}
  calc: {python: pegboard.quickstart.calc}
  text: {python: pegboard.quickstart.text}

toolkits:
  numbers: {description: "Arithmetic, statistics and units", tools: [calc]}
  search: {description: Search and compare text files, tools: [text]}

agents:
  assistant:
    dialect: pegboard                     # the model searches, loads and unloads by itself
    tools: [clock]                        # always loaded
    allowed_toolkits: [numbers, search]   # the model may load them
"""

ROLE = "Answer in one sentence. Load what you need."

Call = tuple[str, dict[str, Any]]
FIRST_TURN: list[Call | str] = [
    ("search_tools", {"queries": ["mean of some numbers"]}),
    ("load_tools", {"names": ["numbers"]}),
    ("summarize_numbers", {"numbers": [2, 4, 9]}),
    "The mean is 5.",
]
SECOND_TURN: list[Call | str] = [
    ("calculate", {"expression": "5 * 3"}),
    ("unload_tools", {"names": ["numbers"]}),
    "Three times that is 15.",
]


@dataclass
class Model:
    """Stand in for a language model: it can call only what it is given at this step."""

    script: list[Call | str]
    steps: Iterator[Call | str] = field(init=False)

    def __post_init__(self) -> None:
        self.steps = iter(self.script)

    def next(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Call | str:
        step = next(self.steps)
        if not isinstance(step, str) and step[0] not in [tool["name"] for tool in tools]:
            raise LookupError(f"the model was not given {step[0]}")
        return step


def definitions(surface: Surface) -> list[dict[str, Any]]:
    """Return the tools in the form in which most providers take them."""
    return [
        {
            "name": loaded.tool.wire,
            "description": loaded.tool.description,
            "input_schema": dict(loaded.tool.input_schema),
        }
        for loaded in surface.tools
    ]


def prompt(surface: Surface, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of one request: what stays the same first, so that it can be cached, what changes last."""
    hints = "\n".join(("Not loaded yet:", *surface.hints)) if surface.hints else ""
    system = "\n\n".join(text for text in (ROLE, hints, surface.policy) if text)
    newest = history[-1]
    if surface.suffix:
        newest = {**newest, "content": f"{newest['content']}\n\n{surface.suffix}"}
    return [{"role": "system", "content": system}, *history[:-1], newest]


async def turn(session: Session, model: Model, question: str) -> str:
    """Answer one user request: model, tool, model, tool … until the model answers with a text."""
    history: list[dict[str, Any]] = [{"role": "user", "content": question}]
    while True:
        surface = await session.surface(message=question)  # afresh at each step: tools come and go in between
        print(f"  {len(surface.tools)} tools, {surface.tokens.total} tokens: {', '.join(surface.names)}")
        step = model.next(prompt(surface, history), definitions(surface))
        if isinstance(step, str):
            await session.end_turn()
            return step
        name, arguments = step
        answer = await session.call(name, arguments)  # a meta-tool or a tool: both go through here
        content = "\n".join(block.get("text", "") for block in answer.result.content)
        history.append({"role": "tool", "name": name, "content": content, "is_error": answer.is_error})
        print(f"  {name} -> {answer.status}: {content.splitlines()[0][:70]}")


async def conversation(config: Path) -> None:
    async with Pegboard.open(config) as board:
        board.on("loaded", lambda event: print(f"  * {event['subject']} was loaded in turn {event['turn']}"))
        session = await board.session(agent="assistant", session_id="thread-42", principal="ada")
        print("Turn 1")
        print(await turn(session, Model(FIRST_TURN), "What is the mean of 2, 4 and 9?"))

    # The process may end here. What was loaded is in the store, so the same session goes on with it.
    async with Pegboard.open(config) as board:
        session = await board.session(agent="assistant", session_id="thread-42", principal="ada")
        print("Turn 2, after a restart")
        print(await turn(session, Model(SECOND_TURN), "And three times that?"))

        # An operator's view of the same session.
        refused = await session.call("format_disk")
        print(f"format_disk -> {refused.status}: {refused.message}")
        await board.permissions.set("assistant", "search", value=False)
        print(f"search_text: {(await session.explain('search_text')).reasons[0].text}")


def without_an_event_loop(config: Path) -> None:
    """Do the same where nothing is asynchronous."""
    with Pegboard.open_sync(config) as board:
        session = board.session(agent="assistant", session_id="thread-43", principal="ada")
        outcome = session.load("numbers")
        answer = session.call("calculate", {"expression": "6 * 7"})
        print(f"numbers is {outcome.items[0].status}; 6 * 7 = {answer.result.content[0]['text']}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "pegboard.yaml")
        config.write_text(CONFIG, encoding="utf-8")
        asyncio.run(conversation(config))
        without_an_event_loop(config)


if __name__ == "__main__":
    main()
