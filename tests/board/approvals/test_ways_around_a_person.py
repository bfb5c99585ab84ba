"""What a model may try once a call waits: other arguments in the same place, other roads to the same tool."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from approved_files import CONFIG, ran

from pegboard import Pegboard

APPROVED: dict[str, Any] = {"path": "caf\u00e9/A.txt", "times": 1, "deep": {"a": [None, 1]}, "flag": True}
TOOLS = '''
from pathlib import Path


def wipe(path: str, times: object = None, deep: object = None, flag: object = None, more: object = None) -> str:
    """Wipe something."""
    with Path(__file__).with_name("ran").open("a") as file:
        file.write(f"{path}\\n")
    return "wiped"
'''
OTHERS: dict[str, dict[str, Any]] = {
    "other letters of the same look": {"path": "caf\u00e9/\u0410.txt"},
    "taken apart": {"path": "cafe\u0301/A.txt"},
    "full width": {"path": "caf\u00e9/\uff21.txt"},
    "another case": {"path": "caf\u00e9/a.txt"},
    "a space": {"path": "caf\u00e9/A.txt "},
    "no width": {"path": "caf\u00e9/A\u200b.txt"},
    "a soft hyphen": {"path": "caf\u00e9/A\u00ad.txt"},
    "turned around": {"path": "caf\u00e9/A\u202e.txt"},
    "a null": {"path": "caf\u00e9/A.txt\0"},
    "dots": {"path": "./caf\u00e9/A.txt"},
    "a decimal": {"times": 1.0},
    "a word": {"times": "1"},
    "a boolean": {"times": True},
    "a large number": {"times": 2**64 + 1},
    "a number for a boolean": {"flag": 1},
    "another order of a list": {"deep": {"a": [1, None]}},
    "one level more": {"deep": {"a": [[None, 1]]}},
    "one more key": {"deep": {"a": [None, 1], "b": None}},
    "one more argument": {"more": None},
}
ROADS: dict[str, tuple[str, dict[str, Any]]] = {
    "directly": ("delete_file", {"path": "a"}),
    "by its id": ("files/delete_file", {"path": "a"}),
    "with its kind": ("tool:delete_file", {"path": "a"}),
    "with its prefix": ("files__delete_file", {"path": "a"}),
    "in another case": ("Delete_File", {"path": "a"}),
    "with spaces": (" delete_file ", {"path": "a"}),
    "without width": ("delete_file\u200b", {"path": "a"}),
    "by call_tool": ("call_tool", {"name": "delete_file", "arguments": {"path": "a"}}),
    "by call_tool in itself": (
        "call_tool", {"name": "call_tool", "arguments": {"name": "delete_file", "arguments": {"path": "a"}}},
    ),
    "as one that reads": ("call_read_only_tool", {"name": "delete_file", "arguments": {"path": "a"}}),
    "by invoke_other": ("invoke_other", {"name": "delete_file", "arguments": {"path": "a"}}),
    "by invokeOther": ("invokeOther", {"plugin": "files", "action": "delete_file", "params": {"path": "a"}}),
    "by activation": ("activate_tool", {"name": "delete_file", "arguments": {"path": "a"}}),
}  # fmt: skip


async def test_no_other_arguments_use_an_approval_however_alike_they_look(tmp_path: Path) -> None:
    """A2, A6: only the order of keys may differ; the approval is there until then, and is used up once."""
    (tmp_path / "disk_tools.py").write_text(TOOLS)
    config = tmp_path / "pegboard.yaml"
    config.write_text("plugins: {disk: {python: disk_tools, approve: {wipe: always}}}\nagents: {ada: {tools: [disk]}}")
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        approval = (await session.call("wipe", APPROVED)).approval
        assert approval is not None
        await board.approvals.allow(approval.id, by="grace")
        for name, other in OTHERS.items():
            answer = await session.call("wipe", {**APPROVED, **other})
            assert (answer.status, ran(tmp_path)) in (("needs_approval", []), ("invalid_arguments", [])), name
        for name in APPROVED.keys() - {"path"}:
            left = {key: value for key, value in APPROVED.items() if key != name}
            assert (await session.call("wipe", left)).status == "needs_approval", name
        assert (await session.call("wipe", dict(reversed(APPROVED.items())))).status == "ok"
        assert (await session.call("wipe", APPROVED)).status == "needs_approval"
    assert len(ran(tmp_path)) == 1


@pytest.mark.parametrize("dialect", ["pegboard", "toolkits", "invokeother", "discovery"])
async def test_every_road_to_a_tool_leads_by_the_person(config: Path, tmp_path: Path, dialect: str) -> None:
    """A1, A3: other names, other meta-tools, a second board on the same store."""
    document = CONFIG.replace("ada: {tools: [files]}", f"ada: {{tools: [files], dialect: {dialect}}}")
    await asyncio.to_thread(config.write_text, document)
    async with Pegboard.open(config) as board, Pegboard.open(config) as there:
        for one in (board, there):
            session = await one.session(agent="ada", session_id="thread")
            for name, (tool, arguments) in ROADS.items():
                answer = await session.call(tool, arguments)
                assert answer.status != "ok" or "deleted" not in str(answer), (name, answer)
                assert ran(tmp_path) == [], name
        answer = await session.call("delete_file", {"path": "a"})
        assert answer.status == "needs_approval"
