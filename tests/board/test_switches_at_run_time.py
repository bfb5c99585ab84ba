"""Switches, sub-apps and conditions over a real board, while it runs."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.clients import edit
from pegboard import Pegboard, Session, UnknownAgentError, UsageError
from pegboard.board.switch_actions import apply_plan, plan_switch

SLOW = """
import asyncio

STARTED, GO = [], []


async def slow_wait() -> str:
    \"\"\"Wait until somebody says go.\"\"\"
    STARTED.append(1)
    while not GO:
        await asyncio.sleep(0.005)
    return "waited"


def started() -> int:
    \"\"\"Say how often it was started.\"\"\"
    return len(STARTED)


def go() -> str:
    \"\"\"Let it go on.\"\"\"
    GO.append(1)
    return "gone"
"""
BILLING = """
def invoice_list() -> str:
    \"\"\"List invoices.\"\"\"
    return "none"


def invoice_send() -> str:
    \"\"\"Send an invoice.\"\"\"
    return "sent"
"""
CONFIG = """
store: sqlite:///state.db
plugins:
  slow: {python: slow_tools}
  billing: {python: billing_tools, needs: {invoice_send: {env: [MAIL_KEY]}}}
toolkits:
  waiting: {tools: [slow], label: Waiting, icon: hourglass, description: "It waits for ${NAME_OF_IT}."}
  money: {tools: [{billing: {include_tools: [invoice_list, invoice_send]}}], icon: coin}
sub_apps:
  billing: {tool_names: [invoice_list]}
agents:
  ada: {allowed_toolkits: [waiting, money]}
  bob: {discoverable: ["*"], hints: {tokens: 2000}}
  cy: {permissions: {invoice_list: true, money: "yes please", nonsense: true}}
"""
ENV = {"NAME_OF_IT": "s3cret-name"}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "slow_tools.py").write_text(SLOW)
    (tmp_path / "billing_tools.py").write_text(BILLING)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@asynccontextmanager
async def opened(config: Path, env: dict[str, str] | None = None) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(config, env=ENV if env is None else env) as board:
        await board.ready()
        yield board


async def begun(board: Pegboard, agent: str = "bob") -> Session:
    return await board.session(agent=agent, session_id="thread")


async def names(session: Session) -> set[str]:
    return {out.tool.wire for out in (await session.surface()).tools if out.tool.plugin != "pegboard"}


async def until_started(session: Session) -> None:
    async with asyncio.timeout(10):
        while True:
            if (await session.call("started")).result.content[0]["text"] == "1":
                return
            await asyncio.sleep(0.005)


async def test_a_switch_binds_the_next_call_and_lets_the_one_in_flight_end(config: Path) -> None:
    """SJ18, P4: the call in flight ends, the next is refused, hints name it no more, nothing else is touched."""
    async with opened(config) as board:
        bob = await begun(board)
        await bob.load("slow", "invoice_list")
        in_flight = asyncio.create_task(bob.call("slow_wait"))
        await until_started(bob)
        await board.permissions.set("bob", "slow_wait", False)
        assert (await bob.call("slow_wait")).status == "not_found"
        assert not in_flight.done()
        await bob.call("go")
        assert (await in_flight).status == "ok"
        surface = await bob.surface()
        assert {"started", "go", "invoice_list"} <= set(surface.names)
        assert "slow_wait" not in "\n".join((*surface.names, *surface.hints, surface.suffix))
        assert (await bob.load("slow_wait")).items[0].status == "not_found"
        assert [tool.name for tool in (await bob.search("slow wait somebody")).results] != ["slow_wait"]
        await board.permissions.set("bob", "slow_wait", None)
        assert "slow_wait" in (await bob.surface()).names, "the lease stood all the time"
        assert (await bob.call("slow_wait")).status == "ok"


async def test_two_processes_that_switch_at_once_end_in_one_state(config: Path) -> None:
    """P2, P4, S2: whoever is last wins, everywhere; every change is in the audit."""
    async with opened(config) as one, opened(config) as two:
        values = [True, False] * 10
        await asyncio.gather(
            *(one.permissions.set("bob", "slow", value) for value in values),
            *(two.permissions.set("bob", "slow", not value) for value in values),
            *(two.permissions.set("bob", "billing", False) for _ in values),
        )
        shown = await one.permissions.show()
        assert shown == await two.permissions.show()
        assert shown["bob"]["billing"] is False
        state = shown["bob"]["slow"]
        for board in (one, two):
            session = await begun(board)
            found = await session.call("go")
            assert (found.status != "not_found") is state
            assert (await session.call("invoice_list")).status == "not_found"
        assert len(await one.services.store.entries(kind="permission", limit=500)) == 60


async def test_of_two_operators_who_throw_one_switch_at_once_one_is_first(config: Path) -> None:
    """P2, X4, S2: the other gets one error that names who was first and the value of now; nothing else is changed."""
    async with opened(config) as one, opened(config) as two:
        found = await asyncio.gather(
            *(one.permissions.set("bob", "slow", False, by=f"ada-{n}", expected=None) for n in range(5)),
            *(two.permissions.set("bob", "slow", True, by=f"eve-{n}", expected=None) for n in range(5)),
            return_exceptions=True,
        )
        assert found.count(None) == 1, "exactly one is first"
        (record,) = await one.services.store.entries(kind="permission")
        value = (await two.permissions.show())["bob"]["slow"]
        for error in found:
            assert error is None or isinstance(error, UsageError)
            state = f"{'on' if value else 'off'} now: '{record.by}' set it in the meantime."
            assert error is None or error.message == f"The switch 'slow' of agent 'bob' is {state}"
            assert error is None or error.code == "switch_changed"
        await two.permissions.set("bob", "slow", None, by="eve", expected=value)
        assert "slow" not in (await one.permissions.show())["bob"]
        with pytest.raises(UsageError, match="A switch is True, False or None, not str"):
            await one.permissions.set("bob", "slow", True, expected="off")  # type: ignore[arg-type]


async def test_a_switch_of_another_process_binds_the_next_call(config: Path) -> None:
    """SJ18, P4: without any event."""
    async with opened(config) as one, opened(config) as two:
        bob = await begun(one)
        await bob.load("go")
        assert (await bob.call("go")).status == "ok"
        await two.permissions.set("bob", "go", False)
        assert (await bob.call("go")).status == "not_found"


async def test_a_turn_that_is_ended_twice(config: Path) -> None:
    """S6, G3: by two at once it grows by two; by the same label it ends once."""
    async with opened(config) as one, opened(config) as two:
        first, second = await begun(one), await begun(two)
        await first.load("go", keep="idle")
        await first.mark_turn("a")
        await asyncio.gather(first.mark_turn("b"), second.mark_turn("b"), first.mark_turn("b"))
        assert (await first.snapshot()).state.turn == 2
        await asyncio.gather(first.end_turn(), second.end_turn())
        state = (await second.snapshot()).state
        assert (state.turn, len(state.leases)) == (4, 1)


async def test_names_that_mean_nothing_are_refused_or_without_effect(config: Path) -> None:
    """P2: a switch for a name that does not exist; taking one back never fails."""
    async with opened(config) as board:
        with pytest.raises(UsageError, match=r"'wating' is not a toolkit, plugin or tool. Did you mean 'waiting'"):
            await board.permissions.set("ada", "wating", True)
        with pytest.raises(UnknownAgentError):
            await board.permissions.set("eve", "waiting", True)
        await board.permissions.set("ada", "wating", None)
        cy = await begun(board, "cy")
        assert await names(cy) == {"invoice_list"}
        assert (await board.permissions.show())["cy"] == {"invoice_list": True, "nonsense": True}


async def test_a_sub_app_brings_its_tools_as_static_ones(config: Path) -> None:
    """T9: to that session alone; an unknown one is refused."""
    async with opened(config) as board:
        ada = await board.session(agent="ada", session_id="thread", sub_app="billing")
        out = (await ada.surface()).find("invoice_list")
        assert out is not None
        assert (out.until.kind, out.because[0].value) == ("always", "static")
        assert (await ada.unload("invoice_list")).items[0].status == "sticky"
        assert (await ada.call("invoice_list")).status == "ok"
        assert "invoice_list" not in await names(await begun(board, "ada"))
        await board.permissions.set("ada", "invoice_list", False)
        assert (await ada.call("invoice_list")).status == "not_found"
        with pytest.raises(UsageError, match=r"There is no sub-app 'biling'. Did you mean 'billing'"):
            await board.session(agent="ada", session_id="thread", sub_app="biling")


async def test_a_tool_comes_and_goes_with_its_conditions(config: Path) -> None:
    """MI15, P6: looked at again whenever the configuration is; the lease stands meanwhile."""
    env = dict(ENV)
    async with opened(config, env) as board:
        bob = await begun(board)
        refused = (await bob.load("invoice_send")).items[0]
        assert (refused.status, "Set the environment variable MAIL_KEY." in refused.message) == (
            "tool_unavailable",
            True,
        )
        assert "invoice_send" not in "\n".join((await bob.surface()).hints)
        env["MAIL_KEY"] = "k"
        await board.reload()
        assert (await bob.load("invoice_send")).status == "ok"
        assert "invoice_send" in await names(bob)
        del env["MAIL_KEY"]
        await board.reload()
        assert "invoice_send" not in await names(bob)
        answer = await bob.call("invoice_send")
        assert (answer.status, "MAIL_KEY" in answer.message) == ("tool_unavailable", True)
        env["MAIL_KEY"] = "k"
        await board.reload()
        assert (await bob.call("invoice_send")).status == "ok"


async def test_a_panel_shows_toolkits_with_their_switches(config: Path) -> None:
    """SJ11, SJ12, T6, X5: on where absent and any member is on; no secret, no callable, plain JSON."""
    async with opened(config) as board:
        waiting, money, *_ = await board.permissions.panel("ada")
        assert (waiting["name"], waiting["label"], waiting["icon"]) == ("waiting", "Waiting", "hourglass")
        assert (money["label"], money["switch"], money["on"]) == ("money", None, True)
        assert [(m["name"], m["on"], m["available"]) for m in money["members"]] == [
            ("invoice_list", True, True),
            ("invoice_send", True, False),
        ]
        text = json.dumps([waiting, money])
        assert "s3cret-name" not in text
        assert "include_tools" not in text
        await board.permissions.set("ada", "invoice_list", False)
        _, money, *_ = await board.permissions.panel("ada")
        assert (money["switch"], money["on"], [m["switch"] for m in money["members"]]) == (None, True, [False, None])
        await board.permissions.set("ada", "money", False)
        _, money, *_ = await board.permissions.panel("ada")
        assert (money["switch"], money["on"], [m["on"] for m in money["members"]]) == (False, False, [False, False])
        nothing, legacy, *_ = await board.permissions.panel("cy")
        assert (nothing["on"], legacy["switch"], legacy["on"]) == (False, None, True)
        with pytest.raises(UnknownAgentError):
            await board.permissions.panel("eve")


async def test_the_numbers_of_a_session(config: Path) -> None:
    """F4: loads, unloads, evictions, calls, refusals, turns, and the tokens that it saves now."""
    async with opened(config) as board:
        assert board.metrics() == []
        bob = await begun(board)
        await bob.load("go", "nonsense")
        await bob.load("invoice_list", keep="turn")
        await bob.call("go")
        await bob.end_turn()
        (numbers,) = board.metrics()
        assert numbers == {
            "principal": "local", "agent": "bob", "session": "thread", "loads": 2, "unloads": 0, "evictions": 1,
            "denials": 1, "calls": 1, "turns": 1, "surfaces": 0, "tokens": None, "saved": None,
        }  # fmt: skip
        await bob.unload("go")
        surface = await bob.surface()
        (numbers,) = board.metrics()
        assert (numbers["unloads"], numbers["surfaces"]) == (1, 1)
        assert (numbers["tokens"], numbers["saved"]) == (surface.tokens.total, surface.tokens.saved)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("waiting", "toolkit:waiting"),
        ("toolkit:waiting", "waiting"),
        ("plugin:billing", "billing"),
        ("invoice_list", "billing/invoice_list"),
    ],
)
async def test_one_subject_has_one_stored_switch_however_it_is_spelled(config: Path, first: str, then: str) -> None:
    """P2: the newest counts, in the preview too, and taking it back leaves nothing of the other spelling."""
    async with opened(config) as board:
        await board.ready()
        await board.permissions.set("ada", first, False)
        supposed = board.services.compiler.supposing_switch("ada", then, True).stored("ada")
        await board.permissions.set("ada", then, True)
        assert (await board.services.store.stored_permissions()).switches["ada"] == supposed == {then: True}
        await board.permissions.set("ada", first, None)
        assert (await board.services.store.stored_permissions()).switches.get("ada", {}) == {}


async def test_a_category_is_no_other_spelling_of_its_one_plugin(config: Path) -> None:
    """P2: what joins the category later is switched with it."""
    edit(config, "{python: slow_tools}", "{python: slow_tools, category: waits}")
    async with opened(config) as board:
        await board.permissions.set("ada", "category:waits", True)
        await board.permissions.set("ada", "plugin:slow", True)
        stored = (await board.services.store.stored_permissions()).switches["ada"]
        assert stored == {"category:waits": True, "plugin:slow": True}


@pytest.mark.parametrize("name", ["started", "go", "plugin:slow", "waiting", "invoice_list"])
@pytest.mark.parametrize("value", [False, True])
async def test_a_host_switches_what_no_plugin_was_asked_for_yet(config: Path, name: str, value: bool) -> None:
    """P2: its first act after it opened the board; of one agent, and of all together."""
    async with Pegboard.open(config, env=ENV) as board:
        await board.permissions.set("bob", name, value)
        assert (await board.permissions.show())["bob"] == {name: value}
    async with Pegboard.open(config, env=ENV) as board:
        plan = await plan_switch(board.services, ["ada", "bob"], name, value)
        await apply_plan(board.services, plan, by="ada")
        shown = await board.permissions.show()
        assert shown["ada"] == shown["bob"] == {name: value}


async def test_a_name_that_nothing_has_is_refused_and_says_of_which_plugin_it_may_be(config: Path) -> None:
    """P2: where a plugin cannot be asked, its id is taken, and binds as soon as it is there."""
    edit(config, "plugins:\n", "servers:\n  gone: {command: no-such-command}\nplugins:\n")
    async with Pegboard.open(config, env=ENV) as board:
        with pytest.raises(UsageError, match="'go_away' is not a toolkit, plugin or tool") as refused:
            await board.permissions.set("bob", "go_away", False)
        assert "gone/go_away" in refused.value.hint
        await board.permissions.set("bob", "gone/go_away", False)
        assert (await board.permissions.show())["bob"] == {"gone/go_away": False}
