"""A hand-written loop in the form of Anthropic's messages, over twelve turns with `invokeother_tool` and a restart.

The model is scripted, so that it runs without a provider: `python examples/mira_loop.py`.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pegboard import Pegboard, Session

CONFIG = """
plugins: {clock: {python: pegboard.quickstart.clock}, calc: {python: pegboard.quickstart.calc}}
agents: {mira: {essential: [clock/current_time], discoverable: ["*"], dialect: invokeother}}
"""
LOAD = ("invokeother_tool", {"mode": "load", "query": "calculate, no_such_tool"})
FALLBACK = ("invokeother_tool", {"mode": "fallback", "query": ""})
CALCULATE = ("calculate", {"expression": "6 * 7"})
TURNS: list[list[Any]] = [[LOAD, CALCULATE, "42."], ["Hello."], [FALLBACK, "All of it."], *([["Go on."]] * 9)]


async def turn(session: Session, messages: list[dict[str, Any]], script: Sequence[Any]) -> list[str]:
    for step in script:
        surface = await session.surface()
        request = {
            "system": "\n".join(["You are Mira.", "Not loaded, but can be:", *surface.hints, surface.policy]),
            "tools": [{"name": t.tool.wire, "input_schema": dict(t.tool.input_schema)} for t in surface.tools],
            "messages": [*messages, {"role": "user", "content": surface.suffix}] if surface.suffix else messages,
        }
        if isinstance(step, str):  # what `client.messages.create(**request)` answers, here from the script
            messages.append({"role": "assistant", "content": step})
            await session.end_turn()
            return [tool["name"] for tool in request["tools"]]
        name, arguments = step
        call = {"type": "tool_use", "id": f"call-{len(messages)}", "name": name, "input": arguments}
        answer = await session.call(name, arguments)
        result = {"type": "tool_result", "tool_use_id": call["id"], "is_error": answer.is_error}
        messages.append({"role": "assistant", "content": [call]})
        messages.append({"role": "user", "content": [{**result, "content": list(answer.result.content)}]})
        print(f"  {name}: {answer.result.content[0]['text'][:100]}")
    return []


async def main(config: Path) -> None:
    messages: list[dict[str, Any]] = []
    for first, last in ((0, 4), (4, len(TURNS))):  # the process may end in between: what is loaded is in the store
        async with Pegboard.open(config) as board:
            session = await board.session(session_id="thread-42", principal="ada")
            for number in range(first, last):
                messages.append({"role": "user", "content": f"Message {number + 1}"})
                print(f"Turn {number + 1}: {', '.join(await turn(session, messages, TURNS[number]))}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pegboard.yaml").write_text(CONFIG, encoding="utf-8")
        asyncio.run(main(Path(folder, "pegboard.yaml")))
