"""Produce the errors and reasons that nothing else produces by its code."""

import contextlib
import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from losable_store import losable
from pegboard import Loadout, LoadoutRegistry, Pegboard, PegboardError, Session
from pegboard.board.board import Board, BoardAdapters
from pegboard.cli import main
from pegboard.config.acceptance import accept_text
from pegboard.config.client_files.known import CLIENTS
from pegboard.config.clients.installing import entry_for, file_of, installation
from pegboard.config.inspection import inspect
from pegboard.config.location import Machine
from pegboard.configuration_source import registered_plugins
from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import PythonSpec, ServerSpec
from pegboard.core.model.tools import Tool
from pegboard.gateway.http.addresses import bind
from pegboard.gateway.http.run import serving
from pegboard.ports import Adapters, CallContext
from pegboard.sources.mcp import McpSource
from pegboard.stores.sql import MemoryStore, SqliteStore

SERVER = Path(__file__).resolve().parent / "servers" / "plain_server.py"
TOOLS = '''
from pegboard import tool


@tool(requires=["tools/two"])
def one() -> str:
    """Return one."""
    return "1"


def two() -> str:
    """Return two."""
    return "2"


@tool(default_on=False)
def three() -> str:
    """Return three."""
    return "3"
'''
CONFIG = """
store: "memory:"
servers:
  gone: {command: no-such-command-anywhere}
plugins:
  tools: {python: my_tools}
  clock: {python: pegboard.quickstart.clock}
toolkits:
  kit: {tools: [tools]}
  part: {tools: [{tools: {exclude_tools: [two]}}]}
  none: {tools: [docker]}
loadouts:
  lean: {plugins: [tools]}
  open: {discoverable: [tool*]}
  bare: {disabled: [tools]}
  timely: {plugins: [clock]}
sub_apps:
  desk: {tool_names: [tools]}
agents:
  nothing: {}
  essential: {essential: [tools]}
  static: {tools: [tools], permissions: {three: true}}
  allowed: {dialect: pegboard, allowed_toolkits: [kit]}
  initial: {allowed_toolkits: [kit], initial_toolkits: [kit]}
  filtered: {allowed_toolkits: [part]}
  lean: {loadout: lean}
  open: {loadout: open}
  finder: {discoverable: [tools, gone]}
  bare: {tools: [tools], loadout: bare}
  switched: {permissions: {tools/two: true}}
  small: {tools: [tools, clock], budget: {tools: 4, shrink: true}, loadout: timely}
  off: {tools: [tools], permissions: {two: false}}
"""
PADS = '''
class Pads:
    def __init__(self, width: int = 4) -> None:
        self.width = width

    def pad(self, text: str) -> str:
        """Pad a text."""
        return text.rjust(self.width)
'''
PADS_CONFIG = """
store: "memory:"
plugins: {pads: {python: "pads:Pads"}}
toolkits: {wide: {tools: [{pads: {width: 40}}]}}
agents: {writer: {tools: [pads], allowed_toolkits: [wide]}}
"""
DEAF = """
import asyncio
from pegboard import Pegboard, PegboardError
from pegboard.gateway.http.run import run_http

class Deaf(Pegboard):
    def on(self, event, callback):
        raise RuntimeError("nobody can listen to this board")

async def serve():
    async with Deaf.open("pegboard.yaml") as board:
        try:
            await run_http(board, port=0)
        except PegboardError as error:
            print(error.code)

asyncio.run(serve())
"""
Explained = Callable[[Session], Awaitable[object]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with homes of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    return tmp_path


@pytest.fixture
def path(folder: Path) -> Path:
    (folder / "my_tools.py").write_text(TOOLS)
    path = folder / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


def rewrite(path: Path, text: str) -> None:
    path.write_text(text)


@contextlib.contextmanager
def raises(code: str) -> Iterator[None]:
    with pytest.raises(PegboardError) as caught:
        yield
    assert caught.value.code == code
    assert caught.value.message


async def test_an_agent_a_sub_app_and_a_state_that_are_not_there_are_named(path: Path) -> None:
    async with Pegboard.open(path) as board:
        with raises("agent_required"):
            await board.session()
        with raises("unknown_agent"):
            await board.session(agent="notthing")
        with raises("unknown_sub_app"):
            await board.session(agent="static", sub_app="dusk")
        session = await board.session(agent="static", session_id="s")
        await board.services.store.save(session.key, '{"turn": "soon", "leases": []}', expected=0)
        with raises("state_damaged"):
            await session.snapshot()


async def test_a_loadout_without_a_name_and_a_fourth_level_of_children_are_refused(path: Path) -> None:
    "L5, P8: both are misuse of the library."
    with raises("bad_loadout"):
        LoadoutRegistry().register(Loadout(name=" "))
    async with Pegboard.open(path) as board:
        session = await board.session(agent="static", session_id="s")
        for _ in range(3):
            session = await session.child("task")
        with raises("child_depth"):
            await session.child("task")


async def test_a_plugin_that_no_source_brings_in_is_an_error(tmp_path: Path) -> None:
    async with Pegboard.open() as board:
        given = board.services
        bare = Board(
            BoardAdapters(
                store=given.store, sources=(), ranker=given.ranker, counter=given.counter,
                validator=given.validator, dialects=given.dialects,
            ),
            masker=Masker(), env={},
        )  # fmt: skip
        with raises("no_source"):
            await bare.adopt(board.world, {"notes": PythonSpec(name="notes", target="notes")}, masker=Masker())


async def test_a_store_says_what_is_wrong_with_its_file(tmp_path: Path) -> None:
    folder, text, held = tmp_path / "folder.db", tmp_path / "text.db", tmp_path / "held.db"
    folder.mkdir()
    text.write_text("no database " * 100)
    with raises("store_failed"):
        await SqliteStore(folder).open()
    with raises("store_schema"):
        await SqliteStore(text).open()
    store = SqliteStore(held, patience=0.05)
    await store.open()
    other = sqlite3.connect(held)
    other.execute("BEGIN IMMEDIATE")
    try:
        with raises("store_busy"):
            await store.set_switch("agent", "name", value=True)
    finally:
        other.close()
        await store.aclose()


async def test_a_store_that_cannot_be_reached_is_said_to_be_unavailable(path: Path) -> None:
    double, store = losable(MemoryStore())
    double.lose()
    with raises("store_unavailable"):
        async with Pegboard.open(path, adapters=Adapters(store=store)):
            pass


async def test_a_server_that_ends_or_hangs_in_a_call_fails_that_call() -> None:
    source = McpSource()
    spec = ServerSpec(name="plain", command=sys.executable, args=(str(SERVER),), timeout=0.5)
    try:
        await source.describe(spec, {})
        for name, code in (("crash", "upstream_failed"), ("slow", "upstream_timeout")):
            with raises(code):
                await source.call(spec, {}, Tool(plugin="plain", name=name), {}, CallContext())
    finally:
        await source.aclose()


async def test_the_gateway_says_why_it_does_not_serve(path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with raises("port_in_use"):
            bind("127.0.0.1", taken.getsockname()[1])
        with raises("address_unavailable"):
            bind("203.0.113.1", 0)
    async with Pegboard.open(path) as board:
        with raises("tokens_required"):
            async with serving(board, host="0.0.0.0", port=0):
                pass


def test_a_server_that_cannot_start_is_an_error(path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", DEAF], cwd=path.parent, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "server_failed\n"), ran.stderr


def test_the_command_reports_what_a_file_lacks(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = path.with_name("other.json")
    other.write_text('{"editor": {}}')
    missing = path.with_name("no-folder") / "pegboard.yaml"
    for code, arguments in (
        ("no_servers", ["init", "--from", str(other), "--config", "new.yaml", "--json"]),
        ("system_error", ["init", "--config", str(missing), "--json"]),
    ):
        assert main(arguments) == 1
        assert json.loads(capsys.readouterr().out)["error"]["code"] == code


def test_a_client_s_file_is_never_changed_by_halves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cursor = folder / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    for code, option, text in (
        ("not_rewritable", "--install", '{"mcpServers": {"a": {"command": "b"}, "a": {"command": "c"}}}'),
        ("server_invalid", "--install", '{"mcpServers": {"a": {"command": 5}}}'),
        ("not_installed", "--uninstall", '{"mcpServers": {"a": {"command": "b"}}}'),
        ("no_backup", "--uninstall", '{"mcpServers": {"pegboard": {"command": "pegboard", "args": ["serve"]}}}'),
    ):
        cursor.write_text(text)
        accept_text(cursor)
        assert main(["init", option, "cursor", "--json"]) == (3 if code == "not_installed" else 1)
        assert json.loads(capsys.readouterr().out)["error"]["code"] == code
        assert cursor.read_text() == text
    cursor.write_text('{"mcpServers": {"a": {"command": "b"}}}')
    machine = Machine(folder=folder, home=folder / "home")
    file = file_of(CLIENTS["cursor"], machine, None)
    edit = installation(file, entry_for(file, {}, folder / "pegboard.yaml"), ())
    cursor.write_text('{"mcpServers": {}}')
    with raises("file_changed"), edit.stage_files(keep_in=folder / "kept"):
        pass
    assert cursor.read_text() == '{"mcpServers": {}}'


def test_aliases_count_as_what_they_stand_for(tmp_path: Path) -> None:
    lists = [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 7)]
    path = tmp_path / "pegboard.yaml"
    path.write_text("\n".join(["x0: &x0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", *lists]))
    _, problems = inspect(path, registered=registered_plugins(), env={})
    assert [problem.code for problem in problems] == ["too_large"]


async def loads(session: Session) -> object:
    return await session.load("one")


async def falls_back(session: Session) -> object:
    return await session.fallback()


async def narrows(session: Session) -> object:
    return await session.use_loadout("bare")


async def waits(_: Session) -> None:
    """Do nothing before the question."""


@pytest.mark.parametrize(
    ("agent", "before", "name", "codes"),
    [
        ("nothing", waits, "two", "not_granted"),
        ("nothing", waits, "docker", "not_granted not_seen"),
        ("nothing", waits, "tools", "is_plugin"),
        ("nothing", waits, "kit", "is_toolkit"),
        ("nothing", waits, "four", "unknown not_seen not_seen"),
        ("finder", waits, "gone", "granted unavailable"),
        ("finder", waits, "search_tools", "loaded_meta"),
        ("essential", waits, "one", "granted_essential loaded_essential"),
        ("essential", waits, "three", "denied_default granted_essential"),
        ("static", waits, "one", "granted_static loaded_static"),
        ("static", waits, "two", "granted_static loaded_static loaded_required"),
        ("allowed", waits, "one", "granted_toolkit not_loaded"),
        ("allowed", loads, "one", "granted_toolkit loaded_loaded"),
        ("allowed", loads, "two", "granted_toolkit loaded_required"),
        ("allowed", falls_back, "one", "granted_toolkit loaded_fallback"),
        ("initial", waits, "one", "granted_toolkit loaded_initial"),
        ("filtered", waits, "two", "denied_filter not_granted"),
        ("lean", waits, "one", "granted_loadout loaded_loadout"),
        ("open", waits, "one", "granted_discoverable not_loaded"),
        ("finder", waits, "one", "granted_discoverable not_loaded"),
        ("bare", waits, "one", "denied_loadout granted_static"),
        ("switched", waits, "two", "granted_switch loaded_switch"),
        ("off", waits, "two", "denied_switch granted_static"),
        ("allowed", narrows, "one", "granted_toolkit narrowed_loadout"),
        ("small", waits, "one", "granted_static narrowed_budget"),
    ],
)
async def test_each_reason_is_given(path: Path, agent: str, before: Explained, name: str, codes: str) -> None:
    "F5: the chain of reasons names everything that speaks for and against a tool, what decided first."
    async with Pegboard.open(path) as board:
        await board.ready("tools", "clock")
        session = await board.session(agent=agent, session_id="s")
        await before(session)
        explained = await session.explain(name)
    assert " ".join(reason.code for reason in explained.reasons) == codes


async def test_scope_and_parent_deny(path: Path) -> None:
    "P5, P8: a plugin that is only shared is out of reach where users are apart; a child has no more than its parent."
    rewrite(path, CONFIG.replace("my_tools}", "my_tools, shared_only: true}"))
    async with Pegboard.open(path) as board:
        await board.ready("tools")
        apart = await board.session(agent="static", session_id="s", worker_scope="user")
        assert [reason.code for reason in (await apart.explain("two")).reasons] == ["denied_scope", "granted_static"]
        parent = CompiledPermissions(board.world, board.agent("nothing"))
        child = CompiledPermissions(board.world, board.agent("static"), SessionConstraints(parent=parent))
        two: Any = board.world.catalog.find_tool("two")
        assert child.decide(two).code == "denied_parent"


async def test_a_conflict_is_among_the_reasons(path: Path) -> None:
    "T5, F5: a toolkit that wants a tool with other settings than it is loaded with is named."
    rewrite(path.with_name("pads.py"), PADS)
    rewrite(path, PADS_CONFIG)
    async with Pegboard.open(path) as board:
        session = await board.session(session_id="s")
        await session.surface()
        assert (await session.load("wide")).items[0].status == "conflict"
        assert "conflict" in [reason.code for reason in (await session.explain("pad")).reasons]
