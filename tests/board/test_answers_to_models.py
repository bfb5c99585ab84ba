"""What a search answers a model in the library: what it loads, what it must not touch, how it hedges."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Cache, Host, Pegboard, Session
from pegboard.core.model.delivery import GATEWAY
from pegboard.core.model.leases import LeaseTerm
from pegboard.ports import Adapters, Evidence
from pegboard.stores.sql import MemoryStore
from pegboard.testing import Canned, FakeRanker, FakeSource

WARM = Host(delivery=("array",), cache=Cache(tokens=60_000))
COLD = Host(delivery=("array",), cache=Cache())
SCHEMA = {"type": "object", "properties": {"branch": {"type": "string"}}, "required": ["branch"]}
LONG = "It has a long description that makes its schema dear, and says so at some length, once more. " * 40
SOURCE = {
    "git": {
        "log": Canned(results=["done"], description="Show the log. Newest first.", input_schema=SCHEMA),
        "diff": Canned(results=["done"], description="Show changes."),
        "blame": Canned(results=["done"], description=LONG),
    },
    "notes": {f"note_{number}": Canned(results=["n"], description=LONG) for number in range(200)},
}
CONFIG: dict[str, Any] = {
    "store": "memory:",
    "plugins": {"git": {"python": "git_tools"}, "notes": {"python": "notes_tools"}},
    "toolkits": {"devops": {"description": "Deploy things.", "tools": ["git"]}},
    "agents": {"default": {"allowed_toolkits": ["devops"], "discoverable": ["*"], "dialect": "pegboard"}},
}
CLEAR, LIKELY, UNSURE = Evidence(clear=True), Evidence(), Evidence(fits=0.0)
HOSTS = (("through", GATEWAY), ("array", Host()))
Opened = Callable[..., AbstractAsyncContextManager[Pegboard]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Return a function that opens a board whose searches find these names, with this evidence."""

    @asynccontextmanager
    async def open_board(*names: str, evidence: Evidence = CLEAR, **changes: Any) -> AsyncIterator[Pegboard]:
        path = tmp_path / "pegboard.yaml"
        profile = {**CONFIG["agents"]["default"], **changes.pop("agent", {})}
        path.write_text(json.dumps({**CONFIG, "agents": {"default": profile}, **changes}))
        adapters = Adapters(
            store=MemoryStore(), sources=[FakeSource(SOURCE)], ranker=FakeRanker(*names, evidence=evidence)
        )
        async with Pegboard.open(path, adapters=adapters) as board:
            yield board

    return open_board


async def asked(session: Session, *queries: str) -> dict[str, Any]:
    answer = await session.call("search_tools", {"queries": list(queries or ("the log",))})
    return json.loads(answer.result.content[0]["text"])


async def leases(session: Session) -> list[str]:
    return [f"{lease.subject} {lease.until}" for lease in (await session.snapshot()).state.leases]


@pytest.mark.parametrize("host", [Host(), COLD, GATEWAY])
async def test_a_search_loads_what_is_clear_and_one_more_step_calls_it(opened: Opened, host: Host) -> None:
    """D1, D2, X4: by an ordinary load, which lapses when no one uses what no one asked for."""
    async with opened("log", "diff") as board:
        session = await board.session(session_id="s", host=host)
        document = await asked(session)
        assert document["takes_effect"] == "next_step"
        assert document["results"][0] == {
            "name": "log",
            "loaded": True,
            "description": "Show the log. Newest first.",
            "arguments": {"branch": "string"},
        }
        assert await leases(session) == ["tool:git/log idle(5)"]
        assert (await session.call("log", {"branch": "main"})).status == "ok"
        entries = await board.services.store.entries(session="s", kind="load")
        assert [(entry.subject, entry.outcome) for entry in entries] == [("tool:git/log", "loaded")]


async def test_behind_a_warm_cache_a_search_changes_nothing_on_the_wire(opened: Opened) -> None:
    """D1, D3: not even for what is clear; before the first cached request it may."""
    async with opened("log", "diff") as board:
        session = await board.session(session_id="s", host=COLD)
        before = await session.wire()
        session.host = WARM
        document = await asked(session)
        assert document["results"][0] == {
            "name": "log",
            "description": "Show the log.",
            "required": "branch",
        }
        assert await session.wire() == before
        assert await leases(session) == []


async def test_what_is_likely_is_loaded_where_the_answer_brings_it_and_what_hardly_fits_is_not(opened: Opened) -> None:
    """D1, F4: an answer costs less than one more model call; a tool list without a cache is paid with every request."""
    async with opened("log", "diff", evidence=LIKELY) as board:
        through, array = [await board.session(session_id=name, host=host) for name, host in HOSTS]
        assert (await asked(through))["results"][0]["loaded"] is True
        assert "loaded" not in (await asked(array))["results"][0]
    async with opened("log", evidence=UNSURE) as board:
        session = await board.session(session_id="s", host=GATEWAY)
        document = await asked(session)
        assert document["hint"].startswith("Nothing seems to fit; these are the nearest. Try other words")
        assert "There are: devops" in document["hint"]
        assert [one["name"] for one in document["results"]] == ["log"]
        assert await leases(session) == []


@pytest.mark.parametrize(
    "changes",
    [{"search": {"load": False}}, {"agent": {"activation": "next_request"}}, {"agent": {"budget": {"tools": 5}}}],
)
async def test_a_search_loads_nothing_where_it_is_switched_off_or_late_or_over_the_budget(
    opened: Opened, changes: dict[str, Any]
) -> None:
    """S9, D2: then it answers without a schema, and nothing is refused."""
    async with opened("log", **changes) as board:
        session = await board.session(session_id="s", host=GATEWAY)
        document = await asked(session)
        assert (document["status"], document["results"][0]["required"]) == ("ok", "branch")
        assert await leases(session) == []


async def test_what_is_loaded_is_called_by_name_and_from_the_next_request_on_where_it_joins_then(
    opened: Opened,
) -> None:
    """D2: each result says where it stands."""
    async with opened("log", "diff", "blame", agent={"activation": "next_request"}) as board:
        session = await board.session(session_id="s")
        await session.load("log")
        found = await session.search("the log")
        assert [result.status for result in found.results] == ["next_request", "loadable", "loadable"]
        await session.end_turn()
        assert (await session.search("the log")).results[0].status == "callable"
        assert "log is loaded already" in (await session.search("the log")).hint


async def test_toolkits_and_plugins_that_are_not_known_are_found(opened: Opened) -> None:
    """P3, F2: under the name by which they are loaded, and never loaded by a search."""
    async with opened("devops", "log") as board:
        session = await board.session(session_id="s", host=GATEWAY)
        found = await session.search("deploy")
        assert [(result.name, result.kind, result.plugin) for result in found.results] == [
            ("devops", "toolkit", ""),
            ("log", "tool", "git"),
        ]
        first = (await asked(session, "deploy"))["results"][0]
        assert first == {"name": "devops", "kind": "toolkit", "description": "Deploy things."}
        assert await leases(session) == []


async def test_every_need_of_a_list_has_its_share_and_results_say_which_they_answer(tmp_path: Path) -> None:
    """P3: by our own ranker; a thousand needs are answered as far as one answer reaches."""
    path = tmp_path / "pegboard.yaml"
    path.write_text(json.dumps(CONFIG))
    async with Pegboard.open(path, adapters=Adapters(store=MemoryStore(), sources=[FakeSource(SOURCE)])) as board:
        session = await board.session(session_id="s", host=GATEWAY)
        document = await asked(session, "show the log", "show changes")
        assert [(one["name"], one["need"]) for one in document["results"]][:2] == [("log", 1), ("diff", 2)]
        many = await asked(session, *(f"show the log {number}" for number in range(1_000)))
        assert many["hint"].startswith("Only the first 50 needs were searched for.")
        assert len(many["results"]) <= 20


async def test_a_lease_of_the_agent_that_is_shorter_counts_for_what_a_search_loads(opened: Opened) -> None:
    """S5: never longer than what the model asks for itself."""
    async with opened("log", agent={"lease": {"kind": "turn"}}) as board:
        session = await board.session(session_id="s", host=GATEWAY)
        await asked(session)
        (lease,) = (await session.snapshot()).state.leases
        assert lease.until == LeaseTerm("turn")


@pytest.mark.parametrize("limit", [2.0, 0, -1, 10**40, 1e300])
async def test_any_whole_number_is_a_limit(tmp_path: Path, limit: float) -> None:
    """X2: as JSON has them, where 2.0 is one; it counts as the nearest that a search takes."""
    (tmp_path / "pegboard.yaml").write_text(json.dumps(CONFIG))
    adapters = Adapters(store=MemoryStore(), sources=[FakeSource(SOURCE)])
    async with Pegboard.open(tmp_path / "pegboard.yaml", adapters=adapters) as board:
        session = await board.session(session_id="s", host=GATEWAY)
        answered = await session.call("search_tools", {"queries": ["show changes"], "limit": limit})
        assert answered.status == "ok"
