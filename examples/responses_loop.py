"""A loop by hand on OpenAI's Responses, and an operator who throws the switch of a toolkit at the console meanwhile.

The model is scripted, so that it runs without a key: `python examples/responses_loop.py`.
"""

import asyncio
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2
from openai import AsyncOpenAI
from scripted_provider import scripted

from pegboard import Pegboard
from pegboard.frameworks.loop import Loop

TOOLS = '''
def github_commit_push(message: str) -> str:
    """Commit and push the change."""
    return f"pushed: {message}"
'''
CONFIG = """
plugins: {evolution: {python: evolution}, clock: {python: pegboard.quickstart.clock}}
toolkits:
  self_evolution_toolkit:
    {label: Self-evolution, tools: [evolution], policy: "Review before {tools}.", focus: [{when: "(?i)push"}]}
agents: {sea: {tools: [clock], allowed_toolkits: [self_evolution_toolkit], initial_toolkits: [self_evolution_toolkit]}}
tokens: {ada: {token: ada-ada-ada-ada-ada-ada, agents: [sea], console: [see, switch]}}
"""
PUSH = ("github_commit_push", {"message": "a fix"})


async def turn(loop: Loop, client: AsyncOpenAI, items: list[Any]) -> str:
    items.append({"role": "user", "content": "Push the fix."})
    while True:
        items += await loop.answer(await client.responses.create(**await loop.request(items), store=False))
        if loop.done:
            return next(item["output"] for item in reversed(items) if item.get("type") == "function_call_output")


async def main(folder: Path, console: str) -> None:
    switches = f"{console}/api/agents/sea/switches"
    async with httpx2.AsyncClient(headers={"Authorization": "Bearer ada-ada-ada-ada-ada-ada"}) as operator:
        with scripted([PUSH, "Done."] * 3) as (url, requests):
            client, items = AsyncOpenAI(api_key="none", base_url=url), list[Any]()
            async with Pegboard.open(folder / "pegboard.yaml") as board:
                loop = Loop(await board.session(session_id="chat"), form="responses", model="gpt-5.4")
                for value in (True, False, True):
                    switch = {"name": "self_evolution_toolkit", "value": value}
                    (await operator.put(switches, json=switch)).raise_for_status()
                    result = await turn(loop, client, items)
                    offered = [tool["name"] for tool in requests[-2]["tools"]]
                    policy = "Review before" in requests[-2].get("instructions", "")
                    print(f"{value}: offered {PUSH[0] in offered}, policy {policy}, result {result}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        Path(name, "evolution.py").write_text(TOOLS)
        Path(name, "pegboard.yaml").write_text(CONFIG)
        serve = [sys.executable, "-m", "pegboard", "serve", "--config", f"{name}/pegboard.yaml", "--port", "0"]
        with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as console:
            try:
                address = next(found[0] for line in console.stderr if (found := re.search(r"http://[\d.]+:\d+", line)))
                asyncio.run(main(Path(name), address))
            finally:
                console.terminate()
