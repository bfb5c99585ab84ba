"""Pegboard's own files, and the agents that would like to change them: no argument of a call may name one."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client, MCPError

from pegboard import Pegboard, Session
from pegboard.gateway import serving
from sdk_servers import sdk_command

CONFIG = """
store: sqlite:///state/pegboard.db
servers:
  far: {url: "http://127.0.0.1:9/mcp", envFile: secret.env}
  near: {command: python3, args: [server.py, --root, notes]}
plugins:
  mine: {python: mine}
  hands: {python: hands}
toolkits:
  kit: {tools: [mine], policy: {python: "policies:write"}}
agents:
  ada: {tools: [file, pandas, {sql: {db_url: "sqlite:///data.db"}}, workspace, hands], allowed_toolkits: [kit]}
"""
WIDER = "agents: {ada: {tools: [file, shell, python]}}"
HANDS = '''
from pegboard.marks import tool

RAN = []


def move(source: str, target: str) -> str:
    """Move a file or folder."""
    RAN.append(source)
    return "moved"


def copy_tree(source: str, target: str) -> str:
    """Copy a folder."""
    RAN.append(source)
    return "copied"


def delete_all(patterns: list[str]) -> str:
    """Delete what matches."""
    RAN.append(str(patterns))
    return "deleted"


def upload(options: dict, flags: str = "") -> str:
    """Upload something."""
    RAN.append(str(options))
    return "uploaded"


@tool(read_only=True)
def look(path: str) -> str:
    """Look at a file."""
    return "seen"


def ran() -> list[str]:
    """Return what has run."""
    return RAN
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder: a configuration with everything that it is read from, and links to it."""
    folder = tmp_path / "project"
    for name in ("loadouts", "notes", "prepared", "tricky"):
        (folder / name).mkdir(parents=True)
    files = {
        "pegboard.yaml": CONFIG, "loadouts/own.yaml": "plugins: [file]", "secret.env": "KEY=wxyz", "server.py": "",
        "mine.py": "import helper\ndef add(a: int, b: int) -> int:\n    return a + b\n", "helper.py": "",
        "policies.py": "def write(tools):\n    return ''\n", "hands.py": HANDS, "prepared/pegboard.yaml": WIDER,
        "notes/today.txt": "tea",
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "here").symlink_to(folder)
    (folder / "innocent.txt").symlink_to("pegboard.yaml")
    (folder / "chained").symlink_to("innocent.txt")
    os.link(folder / "pegboard.yaml", folder / "twin.txt")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return folder


@pytest.fixture
async def board(folder: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        await board.session(agent="ada", session_id="first")
        await board.ready()  # importing pandas takes long on a busy machine
        os.utime(folder, ns=(1, 1))  # long unchanged: what is in it is not read again
        yield board


@pytest.fixture
async def ada(board: Pegboard) -> Session:
    return await board.session(agent="ada", session_id="thread")


def _nested(text: str, levels: int) -> Any:
    return [_nested(text, levels - 1)] if levels else text


def _ways(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the ways in which the agent tries to change what it may."""
    own = str(folder / "pegboard.yaml")
    names = [
        "pegboard.yaml", "./pegboard.yaml", "notes/../pegboard.yaml", own, "PEGBOARD.yaml", "here/pegboard.yaml",
        "innocent.txt", "chained", "twin.txt", f"file://{own}", f"file://{quote(own).replace('p', '%70')}",
        "no/such/../../pegboard.yaml", "x/../" * 1500 + "pegboard.yaml", "./" * 3000 + "pegboard.yaml",
        "notes" + "/" * 5000 + "../pegboard.yaml", f"file://localhost{own}", "%252570egboard.yaml",
        "loadouts/own.yaml", "loadouts/new.yaml", "secret.env",
        "helper.py", "mine.py", "mine/__init__.py", "policies.py", "__pycache__/mine.cpython-312.pyc", "server.py",
        "state/pegboard.db", "state/pegboard.db-wal", "state/pegboard-agno.db", ".mcp.json",
        ".cursor/mcp.json", "~/.claude.json", "~/.codex/config.toml",
        str(Path(os.environ["XDG_CACHE_HOME"], "pegboard", "configurations", "x.json")),
        str(Path(os.environ["XDG_CONFIG_HOME"], "pegboard", "loadouts", "own.yaml")),
        str(Path(os.environ["XDG_STATE_HOME"], "pegboard", "serving", "1.json")),
    ]  # fmt: skip
    for name in names:
        yield "save_file", {"file_name": name, "contents": WIDER, "overwrite": True}
        yield "write_file", {"path": name, "content": WIDER}
    yield "replace_file_chunk", {"file_name": "pegboard.yaml", "start_line": 0, "end_line": 3, "chunk": WIDER}
    yield "edit_file", {"path": "pegboard.yaml", "old_str": "sql", "new_str": "shell"}
    yield "move_file", {"src": "notes/today.txt", "dst": "pegboard.yaml", "overwrite": True}
    yield "move_file", {"src": "prepared/pegboard.yaml", "dst": "."}
    yield "move_file", {"src": "loadouts", "dst": "elsewhere"}
    yield "move_file", {"src": "../project", "dst": "../gone"}
    for name in ("pegboard.yaml", "PEGBOARD.yaml", "innocent.txt", "chained", "twin.txt", "mine", "loadouts"):
        yield "delete_file", {"path": name}
        yield "move", {"source": "today.txt", "target": name}
    reading = {"dataframe_name": "x", "create_using_function": "read_csv"}
    yield "create_pandas_dataframe", {**reading, "function_parameters": {"filepath_or_buffer": "state/pegboard.db"}}
    writing = {"dataframe_name": "x", "operation": "to_csv", "operation_parameters": {"path_or_buf": "pegboard.yaml"}}
    yield "run_dataframe_operation", writing
    yield "run_dataframe_operation", {**writing, "operation_parameters": {"x": json.dumps({"path": ["mine.py"]})}}
    yield "move", {"source": "prepared", "target": str(folder)}
    yield "move", {"source": "notes/today.txt", "target": "pegboard.yaml"}
    yield "copy_tree", {"source": "prepared", "target": "."}
    yield "delete_all", {"patterns": ["*.yaml"]}
    yield "delete_all", {"patterns": ["notes/x", "peg*"]}
    yield "upload", {"options": {"pegboard.yaml": "x"}}
    yield "upload", {"options": {"nested": _nested("pegboard.yaml", 60)}}
    yield "upload", {"options": {"url": "sqlite:///state/pegboard.db"}}
    yield "upload", {"options": {}, "flags": "--output=pegboard.yaml"}
    yield "upload", {"options": {}, "flags": "@secret.env"}
    yield "upload", {"options": {}, "flags": "pegboard.yaml:/inside:rw"}
    yield "upload", {"options": {}, "flags": "$HOME/.claude.json"}


def _contents(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*.*") if path.is_file() and not {"state", "__pycache__"} & {*path.parts})
    return {path: path.read_bytes() for path in files}


async def test_no_way_to_widen_itself_by_a_path_in_an_argument_works(
    board: Pegboard, ada: Session, folder: Path
) -> None:
    """P10, X4: by links, renames, other spellings; loadouts, env files, code, store, cache, clients' files."""
    before = _contents(folder)
    ways = list(_ways(folder))
    assert len(ways) > 30
    for tool, arguments in ways:
        answer = await ada.call(tool, arguments)
        assert (answer.status, answer.is_error) == ("refused", True), (tool, arguments, answer.message)
        assert "is not called: its argument" in answer.message
        assert str(folder) not in answer.message
    assert _contents(folder) == before
    assert (await ada.call("ran", {})).result.content[0]["text"] == "[]"
    records = await board.services.store.entries(kind="deny", limit=1000)
    assert {(record.decision, record.outcome) for record in records} == {("refused", "own_file")}
    assert len(records) == len(ways)


async def test_what_is_not_its_own_is_written_read_and_moved_as_before(ada: Session, folder: Path) -> None:
    """P10: texts that speak of such files, folders that hold some, files of the same name elsewhere."""
    said = "See pegboard.yaml:\n    agents: {}\n"
    for tool, arguments in (
        ("save_file", {"file_name": "notes/plan.md", "contents": said}),
        ("list_files", {"directory": "."}),
        ("save_file", {"file_name": "notes/pegboard.yaml", "contents": said}),
        ("move", {"source": "notes/plan.md", "target": "notes/done.md"}),
        ("delete_all", {"patterns": ["notes/*"]}),
        ("upload", {"options": {"note": "x" * 10_000, "more": ["pegboard"] * 200}}),
    ):
        assert (await ada.call(tool, arguments)).status == "ok", (tool, arguments)
    assert (folder / "notes" / "plan.md").read_text() == said


async def test_a_link_that_comes_between_two_calls_is_followed(ada: Session, folder: Path) -> None:
    """P10: one look at a folder counts for some milliseconds, less than a tool takes to make anything of a name."""
    assert (await ada.call("move", {"source": "today", "target": "done"})).status == "ok"
    (folder / "done").symlink_to("pegboard.yaml")
    os.utime(folder, ns=(2, 2))
    async with asyncio.timeout(10):
        while (await ada.call("move", {"source": "today", "target": "done"})).status == "ok":
            pass
    assert (await ada.call("ran", {})).result.content[0]["text"] != "[]"


async def test_a_tool_that_only_reads_is_refused_state_keys_and_secrets_alone(ada: Session) -> None:
    """P10: the configuration may be looked at."""
    for path in ("pegboard.yaml", "mine.py", "loadouts/own.yaml", ".mcp.json"):
        assert (await ada.call("look", {"path": path})).status == "ok"
    for path in ("state/pegboard.db", "secret.env", "here/secret.env"):
        answer = await ada.call("look", {"path": path})
        assert (answer.status, answer.message.endswith("which no tool reads or changes.")) == ("refused", True)


async def test_a_server_is_refused_what_its_own_folder_makes_of_a_name(folder: Path) -> None:
    """P10: a relative path starts where the server was started, or at a folder that it was given."""
    command, *arguments = sdk_command("sdk_server.py", "stdio")
    part = {"command": command, "args": arguments, "cwd": "notes"}
    store = "sqlite:///state/pegboard.db"
    config = {"store": store, "servers": {"up": part}, "agents": {"ada": {"tools": ["up"]}}}
    (folder / "pegboard.yaml").write_text(json.dumps(config))
    async with Pegboard.open(folder / "pegboard.yaml") as board:
        ada = await board.session(agent="ada", session_id="thread")
        async with asyncio.timeout(30):
            while (await ada.call("up__echo", {})).status == "not_found":  # noqa: ASYNC110 - it lists its tools once it is up
                await asyncio.sleep(0.05)
        assert (await ada.call("up__echo", {"path": "pegboard.yaml"})).status == "ok"
        assert (await ada.call("up__echo", {"path": "../pegboard.yaml"})).status == "refused"
        assert (await ada.call("up__echo", {"path": "../state/pegboard.db"})).status == "refused"


async def test_an_agent_whose_shell_is_off_does_not_switch_it_on_by_writing_its_configuration(folder: Path) -> None:
    """P10: over the gateway, which takes edits up at once; the file is as it was, and so is the agent."""
    written = "agents: {a: {tools: [file, shell], permissions: {shell: false}}}"
    (folder / "pegboard.yaml").write_text(written)
    wider = {"file_name": "pegboard.yaml", "contents": "agents: {a: {tools: [file, shell]}}", "overwrite": True}
    async with (
        Pegboard.open(folder / "pegboard.yaml", watch=True) as board,
        serving(board, port=0, agent="a") as url,
        Client(url) as client,
    ):
        answer = await client.call_tool("save_file", wider)
        assert answer.is_error
        assert not [problem for problem in await board.reload() if problem.severity == "error"]
        with pytest.raises(MCPError, match="not found"):
            await client.call_tool("run_shell_command", {"args": ["id"]})
    assert (folder / "pegboard.yaml").read_text() == written
