"""The full examples of seeds 000 and 001 with the tools of Agno, as an MCP client meets them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from .clients import MODERN, Connected, connected, edit, gateway

EXAMPLES = Path(__file__).parents[2] / "examples"
DEVOPS = {
    "assistant.yaml": "Docker, AWS, and GitHub tools for infrastructure work",
    "data-agents.yaml": "Infrastructure and deployment tools",
}


async def asked(client: Connected, name: str, **arguments: Any) -> dict[str, Any]:
    return json.loads(await client.text(name, **arguments))


def example(folder: Path, name: str) -> Path:
    return Path(shutil.copy(EXAMPLES / name, folder / "pegboard.yaml"))


@pytest.mark.parametrize("name", DEVOPS)
async def test_the_examples_give_the_three_meta_tools_of_their_document(tmp_path: Path, name: str) -> None:
    """T4, MR1, F2: without a dialect in the file; toolkits are hinted with their descriptions."""
    path = example(tmp_path, name)
    async with gateway(path) as running, connected(f"{running.url}/assistant", MODERN) as client:
        tools = {tool.name: tool for tool in (await client.client.list_tools()).tools}
        assert {"list_toolkits", "load_tools", "unload_tools"} <= tools.keys()
        assert "search_tools" not in tools
        assert {"list_files", "run_shell_command", "web_search"} <= tools.keys()
        assert f"devops: {DEVOPS[name]}" in str(tools["load_tools"].description).splitlines()
        listed = await asked(client, "list_toolkits")
        devops = next(kit for kit in listed["toolkits"] if kit["name"] == "devops")
        assert devops == {
            "name": "devops",
            "description": DEVOPS[name],
            "tool_names": ["docker", "aws_lambda", "github"],
            "loaded": False,
            "sticky": False,
        }
        assert listed["loaded_toolkits"] == ["research"]
        sticky = await asked(client, "unload_tools", toolkit="research")
        assert (sticky["status"], sticky["tool"]) == ("sticky", "dynamic_tools")
        unknown = await asked(client, "load_tools", toolkit="dockers")
        assert (unknown["status"], "devops" in unknown["allowed_toolkits"]) == ("unknown", True)


async def test_a_toolkit_of_agno_is_loaded_used_and_unloaded(tmp_path: Path) -> None:
    """D2, T1: the messages of seed 000; what runs needs no service."""
    path = example(tmp_path, "data-agents.yaml")
    edit(path, "      - pandas\n      - csv\n      - visualization\n", "      - csv: {csvs: [rows.csv]}\n")
    (tmp_path / "rows.csv").write_text("name,size\nann,3\n")
    async with gateway(path) as running, connected(f"{running.url}/researcher", MODERN) as client:
        loaded = await asked(client, "load_tools", toolkit="data")
        assert loaded == {
            "status": "loaded",
            "tool": "dynamic_tools",
            "toolkit": "data",
            "loaded_toolkits": ["data"],
            "takes_effect": "next_request",
            "message": "Toolkit 'data' will be available on the next request in this session.",
        }
        assert "rows" in await client.text("call_tool", name="list_csv_files", arguments={})
        unloaded = await asked(client, "unload_tools", toolkit="data")
        assert (unloaded["status"], unloaded["message"]) == (
            "unloaded",
            "Toolkit 'data' will be removed on the next request in this session.",
        )
        assert (await asked(client, "list_toolkits"))["loaded_toolkits"] == []
