"""LangChain's MCP client in front of Pegboard's gateway: ``python langchain_mcp.py "How much is 6 times 7?"``.

It needs ``pip install langchain langchain-openai langchain-mcp-adapters``, a key in ``OPENAI_API_KEY``, and
``pegboard serve`` in another terminal. The client opens a connection for each call; ``?session=`` makes them one.
"""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

URL = os.environ.get("PEGBOARD_URL", "http://127.0.0.1:8321/mcp")


async def main(request: str) -> None:
    client = MultiServerMCPClient({"pegboard": {"url": f"{URL}?session=thread-42", "transport": "streamable_http"}})
    agent = create_agent(ChatOpenAI(model=os.environ.get("MODEL", "gpt-5.4")), tools=await client.get_tools())
    done = await agent.ainvoke({"messages": [("user", request)]})
    print(done["messages"][-1].content)


asyncio.run(main(" ".join(sys.argv[1:])))
