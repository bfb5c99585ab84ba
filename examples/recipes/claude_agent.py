"""Claude Agent SDK with Pegboard's gateway as its only server: ``python claude_agent.py "How much is 6 times 7?"``.

It needs ``pip install claude-agent-sdk``, a key in ``ANTHROPIC_API_KEY``, and ``pegboard serve`` in another terminal.
"""

import asyncio
import os
import sys

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, TextBlock, query

URL = os.environ.get("PEGBOARD_URL", "http://127.0.0.1:8321/mcp")
OPTIONS = ClaudeAgentOptions(
    mcp_servers={"pegboard": {"type": "http", "url": URL}},
    allowed_tools=["mcp__pegboard"],  # what may run is Pegboard's to say
    tools=[],
    setting_sources=[],
    max_turns=20,
)


async def main(request: str) -> None:
    async for message in query(prompt=request, options=OPTIONS):
        for block in message.content if isinstance(message, AssistantMessage) else ():
            if isinstance(block, TextBlock):
                print(block.text)


asyncio.run(main(" ".join(sys.argv[1:])))
