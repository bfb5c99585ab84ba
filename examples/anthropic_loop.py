"""A loop by hand on Anthropic's client, over twelve turns with `invokeother_tool`, a fallback and a restart.

The model is scripted, so that it runs without a key: `python examples/anthropic_loop.py`.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from scripted_provider import scripted

from pegboard import Pegboard, Session
from pegboard.frameworks.loop import Loop

CONFIG = """
plugins: {clock: {python: pegboard.quickstart.clock}, calc: {python: pegboard.quickstart.calc}}
agents: {mira: {essential: [clock/current_time], discoverable: ["*"], dialect: invokeother}}
"""
LOAD = ("invokeother_tool", {"mode": "load", "query": "calculate, no_such_tool"})
FALLBACK = ("invokeother_tool", {"mode": "fallback", "query": ""})
CALCULATE = ("calculate", {"expression": "6 * 7"})
SCRIPT = [LOAD, CALCULATE, "42.", "Hello.", FALLBACK, "All of it.", *["Go on."] * 9]


async def turn(session: Session, loop: Loop, client: AsyncAnthropic, messages: list[Any]) -> tuple[str, ...]:
    while True:
        reply = await client.messages.create(**await loop.request(messages), max_tokens=1000)
        names = (await session.surface()).names
        answered = await loop.answer(reply)
        for block in (block for message in answered for block in message["content"] if block["type"] == "tool_result"):
            print(f"  {block['content'][0]['text'][:100]}")
        messages += answered
        if loop.done:
            return names


async def main(config: Path) -> None:
    messages: list[Any] = []
    with scripted(SCRIPT) as (url, requests):
        client = AsyncAnthropic(api_key="none", base_url=url)
        for first, last in ((1, 4), (5, 12)):  # the process may end in between: what is loaded is in the store
            async with Pegboard.open(config) as board:
                session = await board.session(session_id="thread-42", principal="ada")
                loop = Loop(session, form="anthropic", model="claude-opus-5", system="You are Mira.")
                for number in range(first, last + 1):
                    messages.append({"role": "user", "content": f"Message {number}"})
                    print(f"Turn {number}: {', '.join(await turn(session, loop, client, messages))}")
        print("heads of requests:", len({repr((request["tools"], request["system"])) for request in requests}))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pegboard.yaml").write_text(CONFIG, encoding="utf-8")
        asyncio.run(main(Path(folder, "pegboard.yaml")))
