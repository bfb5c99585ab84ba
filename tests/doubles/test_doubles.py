"""The doubles of `pegboard.testing`, in place of the adapters that a configuration names."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from pegboard import CallResult, Pegboard, ports
from pegboard.ports import AskRefusedError
from pegboard.testing import (
    Adapters,
    Canned,
    FakeClient,
    FakeFocusRules,
    FakeHooks,
    FakeListener,
    FakeLogins,
    FakeOwnFiles,
    FakeRanker,
    FakeResources,
    FakeSource,
    FakeValidator,
    MemoryStore,
    WordCounter,
)

CONFIG = """
servers:
  github: {command: this-program-is-not-started}
  wiki: {url: "http://127.0.0.1:9/mcp"}
plugins:
  notes: {python: no_such_module}
toolkits:
  dev: {tools: [github], description: Work on code, focus: [{python: "hooks:only_issues"}]}
agents:
  ada: {tools: [notes], allowed_toolkits: [dev], discoverable: [wiki]}
"""
TWINS: dict[str, object] = {
    "Store": MemoryStore(),
    "SessionDataStore": MemoryStore(),
    "SessionStore": MemoryStore(),
    "PermissionStore": MemoryStore(),
    "ManifestStore": MemoryStore(),
    "PinStore": MemoryStore(),
    "RequestStore": MemoryStore(),
    "UseStore": MemoryStore(),
    "ApprovalStore": MemoryStore(),
    "Source": FakeSource({}),
    "CodeSource": FakeSource({}),
    "ImportingSource": FakeSource({}),
    "AskingSource": FakeSource({}),
    "ListReader": FakeSource({}),
    "SourceWithTurns": FakeSource({}),
    "ScopedSource": FakeSource({}),
    "ConditionalSource": FakeSource({}),
    "Restartable": FakeSource({}),
    "ConfiningSource": FakeSource({}),
    "ScheduleSource": FakeSource({}),
    "HasHooks": FakeSource({}),
    "HookRunner": FakeHooks(),
    "HasResources": FakeSource({}),
    "ResourceSource": FakeResources(),
    "Ranker": FakeRanker(),
    "TokenCounter": WordCounter(),
    "ArgumentValidator": FakeValidator(),
    "GrantStore": MemoryStore(),
    "ConfigurationTextStore": MemoryStore(),
    "OwnFiles": FakeOwnFiles(),
    "FocusRules": FakeFocusRules(),
    "Client": FakeClient(),
    "Listener": FakeListener(),
    "SealedStore": MemoryStore(),
    "ReplicaStore": MemoryStore(),
    "HasLogins": FakeSource({}),
    "ServerLogins": FakeLogins(),
}


def note_add(text: str, times: int = 1) -> str:
    """Write a note."""
    if not text:
        raise ValueError("there is nothing to write")
    return text * times


ISSUE = Canned(results=({"number": 7}, {"number": 8}), description="Open an issue.")
GITHUB = {"create_issue": ISSUE, "close_issue": TimeoutError("no answer"), "star": CallResult(is_error=True)}


@pytest.fixture
def source() -> FakeSource:
    return FakeSource({"github": GITHUB, "notes": [note_add], "wiki": {"look_up": "Tea is a drink."}})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
async def board(config: Path, source: FakeSource) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config, adapters=Adapters(sources=[source], store=MemoryStore())) as opened:
        yield opened


def members(port: Any) -> set[str]:
    own = set[str]().union(*(vars(base) for base in port.__mro__ if Protocol in base.__mro__ and base is not Protocol))
    return {name for name in own if not name.startswith("_")}


async def test_what_a_load_names_starts_before_what_nobody_waits_for(board: Pegboard, source: FakeSource) -> None:
    """G8: its server, not those that are asked in the background."""
    session = await board.session(agent="ada", session_id="one")
    await session.surface()
    assert (await session.load("dev")).status == "ok"
    assert source.needed == ["github"]


def test_every_port_has_a_twin() -> None:
    known = {name: getattr(ports, name) for name in ports.__all__}
    protocols = {name: port for name, port in known.items() if getattr(port, "_is_protocol", False)}
    assert set(TWINS) == set(protocols)
    for name, port in protocols.items():
        lacking = {member for member in members(port) if not hasattr(TWINS[name], member)}
        assert not lacking, name


def test_importing_the_doubles_needs_no_test_framework() -> None:
    code = "import sys, pegboard.testing; print([m for m in ('pytest', 'mcp', 'pydantic', 'yaml') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


async def test_g11_a_fake_source_wants_logins_that_a_test_completes() -> None:
    logins = FakeLogins(["wiki"])
    source = FakeSource({"wiki": {"find": Canned(results=["found"])}, "notes": {}, "github": {}}, logins=logins)
    config = {"servers": {"wiki": {"url": "http://127.0.0.1:9/mcp"}}, "agents": {"ada": {"tools": ["wiki"]}}}
    async with Pegboard.open(config, adapters=Adapters(store=MemoryStore(), sources=[source])) as board:
        session = await board.session(agent="ada", session_id="s", principal="ada")
        refused = await session.call("wiki__find", {})
        assert refused.status == "needs_login"
        assert refused.login is not None
        await logins.complete({"state": refused.login.pending.id})
        assert (await session.resume(refused.login.id)).status == "ok"
        other = await board.session(agent="ada", session_id="s", principal="bob")
        assert (await other.call("wiki__find", {})).status == "needs_login"


async def test_a_fake_source_stands_in_for_servers_and_modules(board: Pegboard, source: FakeSource) -> None:
    """Nothing is started or imported, and names are those of the configuration."""
    session = await board.session(agent="ada", session_id="s", principal="ada")
    assert (await session.load("dev")).status == "ok"
    assert {"note_add", "github__create_issue", "github__close_issue"} <= set((await session.surface()).names)
    answers = [await session.call("github__create_issue", {"title": "x"}) for _ in range(3)]
    assert [answer.result.structured for answer in answers] == [{"number": 7}, {"number": 8}, {"number": 8}]
    failed = await session.call("github__close_issue", {})
    assert (failed.status, failed.result.content) == ("error", ({"type": "text", "text": "TimeoutError: no answer"},))
    assert (await session.call("github__star", {})).is_error
    assert [(call.tool, call.context.principal) for call in source.calls[2:4]] == [
        ("create_issue", "ada"),
        ("close_issue", "ada"),
    ]


async def test_functions_have_schemas_and_failures_of_their_own(board: Pegboard, source: FakeSource) -> None:
    session = await board.session(agent="ada", session_id="s")
    assert (await session.call("note_add", {"text": "a", "times": 2})).result.content[0]["text"] == "aa"
    assert (await session.call("note_add", {"times": 2})).status == "invalid_arguments"
    assert "nothing to write" in (await session.call("note_add", {"text": ""})).result.content[0]["text"]
    assert [dict(call.arguments) for call in source.calls] == [{"text": "a", "times": 2}, {"text": ""}]


async def test_a_fake_source_fails_and_changes_on_request(board: Pegboard, source: FakeSource) -> None:
    session = await board.session(agent="ada", session_id="s")
    source.fail("github", "github is down.")
    refused = await session.load("dev")
    assert "github is down." in refused.message
    assert refused.status == "refused"
    source.fail("github", None)
    assert (await session.load("dev")).status == "ok"
    changed = asyncio.Event()
    board.on("catalog_changed", lambda _: changed.set())
    source.change("github", {**GITHUB, "fork": "forked"})
    await changed.wait()
    assert (await session.call("github__fork", {})).status == "ok"


async def test_a_ranker_a_counter_a_validator_and_focus_rules_of_a_tests_own(config: Path, source: FakeSource) -> None:
    """P3, X2, F3, F4: what decides in a board may be the test's too."""
    ranker = FakeRanker("notes/note_add", "wiki__look_up")
    own = Adapters(
        sources=[source],
        store=MemoryStore(),
        ranker=ranker,
        counter=WordCounter(),
        validator=FakeValidator({"notes/note_add": ["argument 'text': too loud."]}),
        focus=FakeFocusRules({"hooks:only_issues": lambda message, tools: [t for t in tools if "create" in t]}),
    )
    async with Pegboard.open(config, adapters=own) as board:
        session = await board.session(agent="ada", session_id="s")
        found = await session.search("encyclopedia")
        assert [hit.name for hit in found.results] == ["note_add", "wiki__look_up"]
        assert ranker.queries == [("encyclopedia",)]
        refused = await session.call("note_add", {"text": "A"})
        assert "too loud" in refused.message
        await session.load("dev")
        surface = await session.surface(message="an issue")
        assert surface.focus is not None
        assert surface.focus["allowed_tools"][-1] == "github__create_issue"
    assert own.counter is not None
    assert own.counter.count("three short words") == 3


async def test_a_client_answers_and_a_listener_keeps_what_is_reported() -> None:
    """G9: what no one gave an answer for is refused."""
    listener = FakeListener(level="info")
    client = FakeClient(
        {"roots/list": {"roots": []}, "sampling/createMessage": AskRefusedError("no")}, listener=listener
    )
    assert await client.ask("roots/list", {}) == {"roots": []}
    for method, message in (("sampling/createMessage", "no"), ("elicitation/create", "no answer was given")):
        with pytest.raises(AskRefusedError, match=message):
            await client.ask(method, {})
    await client.tell("notifications/message", {"level": "info"})
    changes: list[str] = []
    off = listener.watch(lambda: changes.append(str(listener.level)))
    listener.level = "error"
    off()
    listener.level = "debug"
    listener.tell("notifications/message", {})
    assert (changes, len(listener.received), len(client.received), len(client.asked)) == (["error"], 1, 1, 3)


async def test_resources_of_a_server_in_memory() -> None:
    offered = FakeResources(templates={"wiki": ["wiki://page/{name}"]})
    assert offered.matches("wiki://page/{name}", "wiki://page/tea")
    assert not offered.matches("wiki://page/{name}", "wiki://page/tea/green")
    assert offered.capabilities("wiki") == {"resources"}
    assert offered.capabilities("other") == frozenset()
