"""Clients of both eras of MCP use the toolkits of `data-agents.yaml`: they list, load, call and unload them.

Run it with `python examples/two_eras.py`, with `pip install 'pegboard[agno]' pandas matplotlib`.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

HERE = Path(__file__).resolve().parent
READ = {
    "dataframe_name": "sales",
    "create_using_function": "read_csv",
    "function_parameters": {"filepath_or_buffer": "sales.csv"},
}
DESCRIBE = {"dataframe_name": "sales", "operation": "describe", "operation_parameters": {}}
CHART = {"data": {"north": 3, "south": 5}, "title": "Sold", "filename": "sold.png"}


async def talk(folder: Path, era: str) -> None:
    serve = ["-m", "pegboard", "serve", "--stdio", "--config", "data-agents.yaml", "--agent", "researcher"]
    server = StdioServerParameters(
        command=sys.executable, args=[*serve, "--session", era], cwd=folder, env=dict(os.environ)
    )
    async with Client(server, mode=era) as client:

        async def call(name: str, /, **arguments: Any) -> str:
            result = await client.call_tool(name, arguments)
            return f"error: {result.content[0].text}" if result.is_error else result.content[0].text

        listed = json.loads(await call("list_toolkits"))
        print(era, "can load", ", ".join(toolkit["name"] for toolkit in listed["toolkits"]))
        print(" ", json.loads(await call("load_tools", toolkit="data"))["message"])
        print(" ", await call("call_tool", name="create_pandas_dataframe", arguments=READ))
        print(await call("call_tool", name="run_dataframe_operation", arguments=DESCRIBE))
        print(" ", json.loads(await call("call_tool", name="create_bar_chart", arguments=CHART))["status"])
        print(" ", json.loads(await call("unload_tools", toolkit="data"))["message"])


async def main(folder: Path) -> None:
    shutil.copy(HERE / "data-agents.yaml", folder)
    (folder / "sales.csv").write_text("shop,sold\nnorth,3\nsouth,5\n", encoding="utf-8")
    for era in ("2026-07-28", "legacy"):
        await talk(folder, era)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
