"""Guards that stand in the configuration, over plugins and servers that really run."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session
from pegboard.config.inspection import inspect
from pegboard.core.model.delivery import GATEWAY
from sdk_servers import sdk_command

TOOLS = """
from pathlib import Path

RAN = Path(__file__).with_name("ran")


def read(path: str, limit: int = 5) -> str:
    \"\"\"Read a file.\"\"\"
    RAN.write_text(path)
    return f"read {path}"


def other(path: str) -> str:
    \"\"\"Do something else.\"\"\"
    return path
"""
CONFIG = """
store: sqlite:///state.db
servers:
  up:
    command: COMMAND
    args: ARGUMENTS
    guards: {add: {a: {deny: ["1?"]}}, echo: {tetx: {deny: ["*"]}}}
plugins:
  files:
    python: file_tools
    guards:
      read:
        path: {allow: ["docs/*"], deny: ["*secret*"]}
        limit: {deny: ["0", "-*"]}
  wrong: {python: wrong_tools, guards: {raed: {path: {deny: ["*"]}}}}
agents:
  ada: {tools: [files, up], discoverable: [wrong]}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    (tmp_path / "file_tools.py").write_text(TOOLS)
    (tmp_path / "wrong_tools.py").write_text(TOOLS.replace("other", "another"))
    command, *arguments = sdk_command("sdk_server.py", "stdio")
    text = CONFIG.replace("COMMAND", command).replace("ARGUMENTS", json.dumps(arguments))
    (tmp_path / "pegboard.yaml").write_text(text)
    async with Pegboard.open(tmp_path / "pegboard.yaml", env={"HOME": str(tmp_path), "PATH": "/usr/bin"}) as board:
        yield board


@pytest.fixture
async def ada(board: Pegboard) -> Session:
    return await board.session(agent="ada", session_id="thread")


async def test_a_guard_refuses_before_anything_runs_and_is_audited(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """T10, X4: the rule is named; the arguments are not repeated."""
    for arguments in ({"path": "docs/../my-secret"}, {"path": "docs/a", "limit": 0}, {"path": "elsewhere"}):
        answer = await ada.call("read", arguments)
        assert (answer.status, answer.is_error) == ("refused", True)
        assert "guards.read." in answer.message
        assert "elsewhere" not in answer.message
    assert not (tmp_path / "ran").exists()
    assert not await board.services.store.entries(kind="call")
    denied = await board.services.store.entries(kind="deny")
    assert {(record.subject, record.decision, record.outcome) for record in denied} == {
        ("files/read", "refused", "guard")
    }
    assert "(guards.read.path.allow)" in denied[0].reason
    assert (await ada.call("read", {"path": "docs/a"})).status == "ok"
    assert (tmp_path / "ran").read_text() == "docs/a"
    assert (await ada.call("other", {"path": "elsewhere"})).status == "ok"


async def test_permission_and_validation_come_first(board: Pegboard, ada: Session) -> None:
    """T10, X2, P3: a guard is asked last."""
    assert (await ada.call("read", {"path": 5})).status == "invalid_arguments"
    await board.permissions.set("ada", "read", False)
    assert (await ada.call("read", {"path": "elsewhere"})).status == "not_found"


async def test_a_guard_holds_on_every_way_to_call(board: Pegboard) -> None:
    """T10: through call_tool too."""
    session = await board.session(agent="ada", session_id="thread", host=GATEWAY)
    through = {"name": "read", "arguments": {"path": "elsewhere"}}
    assert (await session.call("call_tool", through)).status == "refused"


async def test_the_tools_of_a_server_are_guarded_by_its_own_names(ada: Session) -> None:
    """T10: a guard of an argument that the tool does not have refuses every call."""
    assert (await ada.call("up__add", {"a": 12, "b": 1})).status == "refused"
    assert (await ada.call("up__add", {"a": 2, "b": 1})).result.structured == {"sum": 3}
    assert "no argument 'tetx'" in (await ada.call("up__echo", {})).message


async def test_a_guard_of_a_tool_that_does_not_exist_makes_the_plugin_unavailable(ada: Session) -> None:
    """T10, P6: a guard that is misspelt guards nothing, and so nothing is offered."""
    item = (await ada.load("wrong")).items[0]
    assert item.status == "tool_unavailable"
    assert "'guards' names 'raed', which is not one of its tools. Did you mean 'read'?" in item.message


def test_guards_are_lists_of_patterns(tmp_path: Path) -> None:
    """T10: one that is written as text is refused by its place."""
    path = tmp_path / "pegboard.yaml"
    (tmp_path / "file_tools.py").write_text(TOOLS)
    path.write_text("plugins: {f: {python: file_tools, guards: {read: {path: {deny: '/etc/*'}}}}}\n")
    (problem,) = inspect(path, registered={}, env={})[1]
    assert "plugins.f.guards.read.path.deny" in str(problem)
    assert problem.severity == "error"
