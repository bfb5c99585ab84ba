"""What needs a person: every subject by its rank, only while it is so, and for whom it is."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from losable_store import losable
from pegboard import Pegboard
from pegboard.board.catalog.loader import PluginRequest
from pegboard.errors import StoreUnavailableError
from pegboard.operators.attention import Attention, find_attention
from pegboard.operators.configuration import ConfigurationState, ShownProblem
from pegboard.operators.subjects import make_subjects
from pegboard.ports import Adapters
from pegboard.stores.grace import with_grace
from pegboard.stores.sql import MemoryStore

LISTED = Path(__file__).resolve().parent.parent / "servers" / "listed_server.py"
CONFIG = """
store: "memory:"
servers:
  crm: {{command: {python}, args: [-c, "raise SystemExit(3)"]}}
  keyed: {{command: srv, env: {{KEY: "${{ABSENT_KEY}}"}}}}
plugins:
  mail: {{python: mail_tools, approve: {{send: always}}}}
agents:
  all: {{tools: [mail], discoverable: [crm], dialect: pegboard, budget: {{tools: {budget}}}}}
  few: {{tools: [mail], dialect: pegboard}}
tokens: {{root: {{token: root-root-root-root, agents: ["*"]}}}}
"""
MAIL = '''
def send(to: str) -> str:
    """Send a mail."""
    return to
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mail_tools.py").write_text(MAIL)
    return tmp_path


def written(folder: Path, budget: int) -> Path:
    path = folder / "pegboard.yaml"
    path.write_text(CONFIG.format(python=sys.executable, budget=budget))
    return path


@pytest.fixture
async def board(folder: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(written(folder, 100)) as opened:
        yield opened


async def needing(board: Pegboard, *, limit: int = 50, agents: frozenset[str] | None = None) -> Attention:
    """Return what needs a person, once it is known what is wrong with plugins and budgets."""
    known = asyncio.Event()
    subjects = make_subjects(board.services, counted=known.set)
    try:
        await subjects.problems.added_to(board.configuration_state)
        async with asyncio.timeout(30):
            await known.wait()
        edits = [str(change) for change in board.waiting]
        return await find_attention(
            board.services, subjects.problems, board.configuration_state, edits, agents=agents, limit=limit
        )
    finally:
        await subjects.aclose()


async def test_calls_that_wait_come_before_servers_that_do_not_run(board: Pegboard) -> None:
    """F5: with what helps, why and since when; what is answered needs no one any longer."""
    before = time.time()
    session = await board.session(agent="all", session_id="thread")
    waits = await session.call("send", {"to": "ada"})
    assert waits.approval is not None
    await session.load("crm")
    found = await needing(board)
    call, *servers = found.items
    assert (call.kind, call.subject, call.agent, call.id, call.action) == (
        "approval", "send", "all", waits.approval.id, "decide",
    )  # fmt: skip
    assert call.since is not None
    assert call.until is not None
    assert before - 1 <= call.since < call.until == found.next_end
    assert {(one.kind, one.subject, one.severity, one.action) for one in servers if one.kind == "server"} == {
        ("server", "crm", "error", "restart"),
        ("server", "keyed", "error", "look"),
    }
    assert "ABSENT_KEY" in next(one.hint for one in servers if one.subject == "keyed")
    await board.approvals.refuse(call.id, by="root")
    assert "approval" not in {one.kind for one in (await needing(board)).items}


async def test_what_a_server_that_does_not_run_says_is_not_said_again_as_a_problem(board: Pegboard) -> None:
    """F5: one item for one cause."""
    await (await board.session(agent="all", session_id="thread")).load("crm")
    items = (await needing(board)).items
    assert sum("ABSENT_KEY" in f"{one.text}{one.hint}" for one in items) == 1


async def test_a_refused_edit_and_what_waits_of_an_edit_need_a_person(board: Pegboard) -> None:
    """F5, P10: with the first error and its place; the warnings of a refused edit are not of what is in force."""
    problem = ShownProblem(
        severity="error", code="unknown_key", message="There is no key 'toolz'.", hint="Did you mean 'tools'?",
        file="pegboard.yaml", line=7, column=3, path="agents.all",
    )  # fmt: skip
    read = ConfigurationState(
        file="pegboard.yaml", in_force_since=1.0, read_at=2.0, refused=True, problems=(problem, problem)
    )
    subjects = make_subjects(board.services)
    found = await find_attention(
        board.services, subjects.problems, read, ["agent 'all' may use 'x'", "another"], limit=50
    )
    refused, waiting = (one for one in found.items if one.kind in ("refused_edit", "waiting_edit"))
    assert (refused.place, refused.since) == ("pegboard.yaml:7", 2.0)
    assert "it has 2 errors" in refused.text
    assert "Did you mean 'tools'?" in refused.hint
    assert ("2 changes" in waiting.text, waiting.hint, waiting.action) == (True, "agent 'all' may use 'x'", "accept")
    assert not [one for one in found.items if one.kind == "problem" and "toolz" in one.text]
    await subjects.aclose()


async def test_tools_that_a_server_changed_need_a_person_until_they_are_accepted(tmp_path: Path) -> None:
    """A4, F5: one item for a server, in place of the warning of `check`; it is for operators of every agent."""
    names, config = tmp_path / "list.json", tmp_path / "pegboard.yaml"
    server = {"command": sys.executable, "args": [str(LISTED), str(names)]}
    config.write_text(json.dumps({"store": "memory:", "servers": {"up": server}, "agents": {"all": {"tools": ["up"]}}}))
    names.write_text(json.dumps({"look": {"description": "Look."}, "wipe": {"description": "Wipe."}}))
    async with Pegboard.open(config) as board:
        await board.ready()
        assert (await needing(board)).items == ()
        names.write_text(json.dumps({"look": {"description": "Look, and send."}, "sweep": {"description": "Sweep."}}))
        await board.services.loader.fetch(PluginRequest(plugin="up"))
        (one,) = (await needing(board)).items
        assert (one.kind, one.severity, one.subject, one.action) == ("pin", "waiting", "up", "accept")
        assert one.text == "2 tools of server 'up' wait for a person and cannot be used until then."
        assert "'look' has changed, and 'sweep' is new" in one.hint
        assert one.place.startswith(str(config))
        assert (await needing(board, agents=frozenset({"all"}))).items == ()
        await board.pins.accept("up", by="root")
        assert (await needing(board)).items == ()


@pytest.mark.parametrize(("budget", "kinds"), [(100, set()), (4, {"budget"}), (3, {"problem"})])
async def test_a_budget_that_is_nearly_used_needs_a_person(folder: Path, budget: int, kinds: set[str]) -> None:
    """F5, S9: from 90% on; a start that exceeds it is a problem already."""
    async with Pegboard.open(written(folder, budget)) as board:
        await (await board.session(agent="all", session_id="s")).surface()
        items = [one for one in (await needing(board)).items if "budget" in one.text]
        assert {one.kind for one in items} == kinds
        of_few = await needing(board, agents=frozenset({"all"}))
        assert {one.kind for one in of_few.items} == ({"budget"} if kinds else set())


async def test_an_operator_of_some_agents_is_shown_what_is_of_these(board: Pegboard) -> None:
    """A5: neither servers nor edits nor problems, nor calls of others."""
    await (await board.session(agent="all", session_id="thread")).call("send", {"to": "ada"})
    await (await board.session(agent="few", session_id="thread")).call("send", {"to": "bob"})
    assert [one.agent for one in (await needing(board, agents=frozenset({"few"}))).items] == ["few"]
    assert (await needing(board, agents=frozenset())).items == ()


async def test_much_that_needs_a_person_is_cut_with_how_much_there_is(board: Pegboard) -> None:
    """F5: the most urgent stay."""
    for number in range(5):
        await (await board.session(agent="all", session_id=f"s{number}")).call("send", {"to": "ada"})
    found = await needing(board, limit=3)
    assert ([one.kind for one in found.items], found.total >= 6) == (["approval"] * 3, True)
    since = [one.since or 0.0 for one in found.items]
    assert since == sorted(since)


async def test_a_store_that_is_lost_needs_a_person_and_what_is_known_without_it_stays(folder: Path) -> None:
    """F5: an operator of some agents is not told where the store is."""
    double, store = losable(MemoryStore())
    async with Pegboard.open(written(folder, 100), adapters=Adapters(store=with_grace(store))) as board:
        session = await board.session(agent="all", session_id="thread")
        await session.load("crm")
        before = await needing(board)
        double.lose()
        with pytest.raises(StoreUnavailableError):
            await board.approvals.list()
        await session.surface()
        found = await needing(board)
        assert [one.kind for one in found.items] == ["store", "server", "server"]
        assert (found.items[0].severity, found.items[0].text) == (
            "error",
            "The store of the test cannot be reached now: the server has gone away.",
        )
        few = await needing(board, agents=frozenset({"few"}))
        assert [one.text for one in few.items] == ["The store cannot be reached now."]
        back = asyncio.Event()
        board.on("store_back", lambda _: back.set())
        double.find()
        await asyncio.wait_for(back.wait(), 20)
        assert [one.kind for one in (await needing(board)).items] == [one.kind for one in before.items]
