"""Sessions of subagents, and active loadouts, over a real board."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import Pegboard, Session, UsageError
from pegboard.core.model.agents import WorkerScope

KINDS = {"git": "log", "shell": "run", "web": "fetch", "notes": "add", "docker": "ps", "think": "reflect"}
CONFIG = """
store: sqlite:///state.db
plugins:
  git: {python: git_tools}
  shell: {python: shell_tools}
  web: {python: web_tools}
  notes: {python: notes_tools}
  docker: {python: docker_tools}
  think: {python: think_tools}
loadouts:
  gits: {categories: [Git]}
sub_apps: {desk: {tool_names: [docker]}}
agents:
  lead: {tools: [git, shell, web], essential: [notes], discoverable: ["*"], unloaded_call: run}
  clerk: {tools: [web, docker], essential: [docker]}
  small: {tools: [git, shell, web, think], budget: {tools: 6, shrink: true}, discoverable: ["*"], hints: {tokens: 0}}
"""


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    for name, tool in KINDS.items():
        (tmp_path / f"{name}_tools.py").write_text(f'def {tool}() -> str:\n    """Do {tool}."""\n    return "{tool}"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    async with Pegboard.open(path, env={"HOME": str(tmp_path)}) as board:
        await board.ready()
        yield board


@pytest.fixture
async def lead(board: Pegboard) -> Session:
    return await board.session(agent="lead", session_id="thread", principal="ada")


async def out(session: Session) -> list[str]:
    """Return the wire names on the surface without the meta-tools."""
    return [held.tool.wire for held in (await session.surface()).tools if held.tool.plugin != "pegboard"]


async def meta(session: Session) -> int:
    return sum(held.tool.plugin == "pegboard" for held in (await session.surface()).tools)


# -- the active loadout ----------------------------------------------------------------------------


async def test_a_session_uses_a_loadout_and_lets_it_go(lead: Session) -> None:
    """L7, JD85: statics are filtered, essentials and meta-tools stay; the surface says so."""
    before, menu = await out(lead), await meta(lead)
    assert (await lead.surface()).loadout is None
    outcome = await lead.use_loadout("minimal")
    assert (outcome.status, outcome.removed) == ("ok", ("log", "fetch"))
    surface = await lead.surface()
    assert (await out(lead), await meta(lead)) == (["add", "run", "reflect"], menu)
    assert (surface.loadout, surface.suffix) == (
        "minimal",
        "Active loadout: minimal; what it excludes is out of reach.",
    )
    await lead.use_loadout(None)
    assert (await out(lead), (await lead.surface()).suffix) == (before, "")


async def test_a_loadout_binds_the_next_call_of_every_process(board: Pegboard, lead: Session) -> None:
    """L7, S2: it is stored state; a call of what it excludes does not run, and says why."""
    same = await board.session(agent="lead", session_id="thread", principal="ada")
    assert (await same.call("fetch")).status == "ok"
    await lead.use_loadout("gits")
    refused = await same.call("fetch")
    assert (refused.status, refused.message) == ("not_found", "Tool 'fetch' was not found.")
    assert (await same.call("log")).status == "ok"
    explained = await same.explain("fetch")
    assert (explained.permitted, explained.callable, explained.reasons[-1].code) == (True, False, "narrowed_loadout")
    assert str(explained.reasons[-1].where).endswith("pegboard.yaml:11:3")
    found = await same.search("fetch", "ps", "log")
    assert [hit.name for hit in found.results] == ["log"]


async def test_an_unknown_loadout_is_refused_and_nothing_is_stored(board: Pegboard, lead: Session) -> None:
    """L7, X4: a refusal, no exception; both are audited."""
    refused = await lead.use_loadout("minimum")
    assert refused.status == "refused"
    assert refused.message == "There is no loadout 'minimum'. Did you mean 'minimal'?"
    assert await board.services.store.load(lead.key) is None
    await lead.use_loadout("minimal")
    records = await board.services.store.entries(kind="loadout")
    assert [(r.subject, r.decision) for r in records] == [("minimal", "allowed"), ("minimum", "refused")]


async def test_a_change_of_loadout_is_an_event(board: Pegboard, lead: Session) -> None:
    """L7: for anyone who keeps a list of tools elsewhere."""
    heard: list[str] = []
    board.on("loadout_changed", lambda record: heard.append(str(record["subject"])))
    await lead.use_loadout("minimal")
    await lead.use_loadout("minimal")
    assert heard == ["minimal"]


async def test_a_smaller_loadout_steps_in_and_goes_on_the_surface_too(board: Pegboard) -> None:
    """S9: the suffix tells; what is called by name is loaded and makes room; unloading brings all back."""
    small = await board.session(agent="small", session_id="s")
    surface = await small.surface()
    assert (await out(small), surface.shrunk) == (["log", "run", "reflect"], "developer")
    assert surface.suffix == (
        "To fit the budget only loadout 'developer' is loaded from the start; the rest may be loaded."
    )
    assert (await small.explain("fetch")).reasons[-1].code == "narrowed_budget"
    assert await board.services.store.load(small.key) is None
    assert (await small.call("fetch")).status == "not_loaded"
    assert len((await small.surface()).tools) <= 6
    assert (await small.call("fetch")).status == "ok"


# -- children --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "loadout", "tools"),
    [
        ("explore", "research", ["add", "run", "fetch", "reflect"]),
        ("task", "minimal", ["add", "run", "reflect"]),
        ("plan", "developer", ["add", "log", "run", "reflect"]),
        ("Review", "developer", ["add", "log", "run", "reflect"]),
        ("general", "full", ["add", "log", "run", "fetch", "ps", "reflect"]),
        ("something else", "minimal", ["add", "run", "reflect"]),
        ("", "minimal", ["add", "run", "reflect"]),
    ],
)
async def test_a_child_has_the_loadout_of_its_kind(lead: Session, kind: str, loadout: str, tools: list[str]) -> None:
    """L8, P8, JD80, JD81: as its active one: what it makes active is loaded, whatever the parent has loaded."""
    child = await lead.child(kind)
    assert (await child.snapshot()).state.loadout == loadout
    assert await out(child) == tools


async def test_a_child_has_an_id_of_its_own_under_its_parents(board: Pegboard, lead: Session) -> None:
    """P8, S4: fresh every time; nothing is stored before something changes, not even its loadout."""
    first, second = await lead.child("explore"), await lead.child("explore")
    assert first.key.session.startswith("thread/explore/")
    assert first.key.session != second.key.session
    assert (first.key.principal, first.key.agent) == ("ada", "lead")
    odd = await lead.child("../up\nhere")
    assert odd.key.session.rpartition("/")[0] == "thread/-up-here"
    nameless = await (await board.session(agent="lead")).child("task")
    assert nameless.key.session.startswith("task/")
    await first.surface()
    assert await board.services.store.sessions() == []


async def test_nothing_that_a_child_does_changes_its_parent(board: Pegboard, lead: Session) -> None:
    """P8: loads, loadouts, fallback, turns and calls are its own."""
    await lead.load("docker")
    before, stored = await out(lead), await board.services.store.load(lead.key)
    child = await lead.child("task")
    assert "ps" not in await out(child)
    await child.load("think")
    await child.call("reflect")
    await child.call("load_tools", {"names": ["docker"]})
    await child.unload("docker")
    await child.use_loadout(None)
    await child.fallback()
    await child.end_turn()
    assert (await child.snapshot()).state.turn == 2
    assert (await out(lead), await board.services.store.load(lead.key)) == (before, stored)
    subjects = {record.session for record in await board.services.store.entries() if record.kind != "call"}
    assert subjects == {lead.key.session, child.key.session}


async def test_a_child_keeps_its_loadout_off_once_it_is_let_go(board: Pegboard, lead: Session) -> None:
    """S4, L7: equal to the default of others, and yet a difference from its own start."""
    child = await lead.child("task")
    await child.use_loadout(None)
    assert (await child.snapshot()).state.loadout is None
    assert await out(child) == await out(lead)
    await child.use_loadout("minimal")
    assert await board.services.store.load(child.key) is None


async def test_a_child_has_no_more_than_its_parent_is_narrowed_to(lead: Session) -> None:
    """P8, L7: also a general one, also after it let its own loadout go; and at once, when the parent changes."""
    child = await lead.child("general")
    await child.use_loadout(None)
    assert await out(child) == ["add", "log", "run", "fetch"]
    await lead.use_loadout("gits")
    assert await out(child) == ["add", "log"]
    assert (await child.call("fetch")).status == "not_found"
    assert (await child.explain("fetch")).reasons[0].code == "denied_parent"
    assert (await child.load("docker")).items[0].status == "not_found"
    await lead.use_loadout(None)
    assert (await child.call("fetch")).status == "ok"


async def test_a_switch_of_the_parent_binds_the_next_call_of_its_children(board: Pegboard, lead: Session) -> None:
    """P8, P4: a child of another agent too, down to the deepest; what was compiled before does not count."""
    child = await lead.child("general", agent="clerk")
    deepest = await (await child.child("general")).child("general")
    assert (await out(child), await out(deepest)) == (["ps", "fetch"], ["ps", "fetch"])
    await board.permissions.set("lead", "web", value=False)
    for session in (child, deepest):
        assert await out(session) == ["ps"]
        assert (await session.call("fetch")).status == "not_found"
        assert (await session.explain("fetch")).reasons[0].code == "denied_parent"
    await board.permissions.set("lead", "web", value=None)
    assert await out(deepest) == ["ps", "fetch"]


async def test_a_child_follows_an_edit_of_the_configuration(board: Pegboard, lead: Session) -> None:
    """P8: the world was replaced; the child asks its parent's profile of now."""
    child = await lead.child("general", agent="clerk")
    assert await out(child) == ["ps", "fetch"]
    path = board.configuration.path
    path.write_text(path.read_text().replace('essential: [notes], discoverable: ["*"]', "essential: [notes]"))
    assert [p for p in await board.reload() if p.severity == "error"] == []
    await board.ready()
    assert await out(child) == ["fetch"]
    assert child.known_tool("ps") is None
    assert child.known_tool("fetch") is not None


async def test_a_child_never_shares_more_widely_than_its_parent(board: Pegboard) -> None:
    """P8, G9: the narrowest of the parent's scope and its own agent's."""
    scopes: list[WorkerScope | None] = ["user", "user_agent", None]
    for scope in scopes:
        parent = await board.session(agent="lead", session_id="t", worker_scope=scope, sub_app="desk")
        child = await parent.child("general", agent="clerk")
        assert (child.info.constraints.worker_scope, child.info.constraints.sub_app) == (scope, "desk")


async def test_a_fourth_level_is_refused(lead: Session) -> None:
    """P8: children of children, three levels deep."""
    deepest = lead
    for _ in range(3):
        deepest = await deepest.child("general")
    assert deepest.key.session.count("/general/") == 3
    with pytest.raises(UsageError, match="more than 3 levels deep") as refused:
        await deepest.child("task")
    assert refused.value.code == "child_depth"


def test_a_child_of_a_blocking_session_blocks_too(tmp_path: Path) -> None:
    """P8: the same, without an event loop."""
    (tmp_path / "git_tools.py").write_text('def log() -> str:\n    return "log"\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(
        'store: "memory:"\nplugins: {git: {python: git_tools}}\nloadouts: {shells: {categories: [Shell]}}\n'
        "agents: {default: {tools: [git]}}\n"
    )
    with Pegboard.open_sync(path) as board:
        session = board.session(session_id="s")
        child = session.child("plan")
        assert child.surface().names == ("log",)
        assert session.use_loadout("shells").status == "ok"
        assert child.surface().names == ()
