"""Arguments that a meta-tool does not know: some clients and models add some of their own to every call."""

from pathlib import Path
from typing import Any

import pytest

from pegboard.assembly import Pegboard
from pegboard.core.model.delivery import GATEWAY

CONFIG = """
store: "memory:"
plugins:
  text: {python: pegboard.quickstart.text, category: Search}
  files: {python: pegboard.quickstart.files, category: Filesystem}
toolkits:
  reading: {tools: [files]}
agents:
  default: {dialect: DIALECT, discoverable: ["*"], allowed_toolkits: [reading]}
"""
CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "pegboard": [
        ("search_tools", {"queries": ["count words"]}),
        ("load_tools", {"names": ["text"]}),
        ("unload_tools", {"names": ["text"]}),
        ("call_tool", {"name": "list_files", "arguments": {"path": "no such folder"}}),
        ("call_read_only_tool", {"name": "nothing"}),
    ],
    "toolkits": [
        ("list_toolkits", {}),
        ("load_tools", {"toolkit": "reading"}),
        ("unload_tools", {"toolkit": "reading"}),
    ],
    "invokeother": [
        ("invokeother_tool", {"mode": "load", "query": "text"}),
        ("invokeother_tool", {"mode": "unload", "query": "text"}),
    ],
    "discovery": [
        ("capability_list", {}),
        ("discover_tools", {"keyword": "count"}),
        ("activate_tool", {"plugin": "text"}),
        ("list_tool_categories", {}),
        ("list_toolbelts", {}),
    ],
}


@pytest.mark.parametrize("dialect", CALLS)
async def test_an_argument_that_is_not_known_changes_nothing(tmp_path: Path, dialect: str) -> None:
    """T4: as tools of MCP servers do that say nothing of further properties; what is known is checked as before."""
    config = tmp_path / "pegboard.yaml"
    config.write_text(CONFIG.replace("DIALECT", dialect))
    async with Pegboard.open(config) as board:
        plain = await board.session(session_id="plain", host=GATEWAY)
        adding = await board.session(session_id="adding", host=GATEWAY)
        tools = {one.tool.wire: one.tool for one in (await plain.surface()).tools}
        for name, arguments in CALLS[dialect]:
            assert "additionalProperties" not in tools[name].input_schema
            expected = await plain.call(name, arguments)
            answered = await adding.call(name, {**arguments, "toolCallId": "7", "reason": "as asked"})
            assert (answered.status, answered.result) == (expected.status, expected.result)
