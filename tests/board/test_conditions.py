"""Predicates that say whether a tool can run now, through the library, the gateway and the command."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.clients import until
from pegboard import Pegboard, Session
from pegboard.board.catalog.availability import COUNTS
from pegboard.config.inspection import inspect
from pegboard.operators.sessions import describe_session
from pegboard.operators.subjects import make_subjects
from pegboard.testing import ManualClock

RULES = """
import asyncio
import threading

GO = threading.Event()
ANSWERS = {}
ASKED = []


def seats(principal, agent, sub_app):
    ASKED.append((principal, agent, sub_app))
    return ANSWERS.get(principal, True)


async def later(principal, agent, sub_app):
    await asyncio.sleep(0)
    return principal == "ada" or "Only ada works at night."


def hangs(principal, agent, sub_app):
    GO.wait(60)
    return True


async def hangs_for_ever(principal, agent, sub_app):
    await asyncio.Event().wait()


def raises(principal, agent, sub_app):
    raise RuntimeError("the meter is broken: hunter2-secret")


def leaves(principal, agent, sub_app):
    raise SystemExit(3)


def lies(principal, agent, sub_app):
    return 1


def nothing(principal, agent, sub_app):
    return None


def wrong_shape():
    return True
"""
DESK = '''
from pegboard import tool

OPEN = []


def is_available(principal, agent, sub_app):
    return bool(OPEN) or "The desk is closed."


@tool(is_available=lambda principal, agent, sub_app: agent == "ada" or "Only ada files.")
def file_form(text: str) -> str:
    """File a form."""
    return "filed"


def ring_bell() -> str:
    """Ring the bell."""
    return "ding"
'''
METER = '''
class Meter:
    """A meter."""

    def __init__(self, place: str = "cellar") -> None:
        self.place = place

    def is_available(self, principal: str, agent: str, sub_app: str | None) -> bool | str:
        return self.place == "cellar" or f"There is no meter in the {self.place}."

    def read_meter(self) -> str:
        """Read the meter."""
        return self.place
'''
PLAIN = '''
def book_seat(row: int) -> str:
    """Book a seat."""
    return f"seat {row}"


def list_seats() -> str:
    """List the seats."""
    return "all"
'''


@asynccontextmanager
async def opened(folder: Path, needs: Any, **more: Any) -> AsyncIterator[Pegboard]:
    """Open a board with one plugin that needs this."""
    for name, text in (("rules", RULES), ("desk", DESK), ("meters", METER), ("plain", PLAIN)):
        (folder / f"{name}.py").write_text(text)
    plugins = {"plain": {"python": "plain", "needs": needs}, **more.pop("plugins", {})}
    agents = more.pop("agents", {"ada": {"tools": list(plugins), "discoverable": ["*"]}})
    document = {"store": "sqlite:///state.db", "plugins": plugins, "agents": agents, **more}
    (folder / "pegboard.yaml").write_text(json.dumps(document))
    async with Pegboard.open(folder / "pegboard.yaml", env={"SECRET": "hunter2-secret"}) as board:
        yield board


async def session(board: Pegboard, agent: str = "ada", **more: Any) -> Session:
    return await board.session(agent=agent, session_id="thread", **more)


def module(board: Pegboard) -> Any:
    """Return the module of the rules, as the board imported it."""
    hooks: Any = board.services.hooks
    return hooks._made._known["rules:seats"].__globals__


async def test_model_and_operators_read_the_same_reason_everywhere(tmp_path: Path) -> None:
    """T12, P6: a call, a search, an explanation, and what operators see of the session."""
    why = "Ada has a seat already."
    async with opened(tmp_path, {"book_seat": {"when": "rules:seats"}}) as board:
        ada = await session(board)
        await ada.surface()
        module(board)["ANSWERS"]["local"] = why
        board.services.availability.clock = lambda: time.monotonic() + COUNTS
        assert (await ada.call("book_seat", {"row": 1})).message == f"'book_seat' is not available now: {why}"
        subjects = make_subjects(board.services)

        async def indexed() -> bool:
            return not (await subjects.search.for_agent("ada", "book a seat", session="thread")).indexing

        await until(indexed)
        (found,) = [one for one in (await ada.search("book a seat")).results if one.name == "book_seat"]
        hits = (await subjects.search.for_agent("ada", "book a seat", session="thread")).hits
        (hit,) = [one for one in hits if one.name == "book_seat"]
        overview = await describe_session(board.services, subjects.counting, ada.key)
        assert overview is not None
        assert hit.reason is not None
        (row,) = [one for one in overview.loaded if one.name == "book_seat"]
        explained = await ada.explain("book_seat")
        assert [found.reason, hit.reason.text, explained.reasons[-1].text, row.unavailable] == [why] * 4


async def test_a_predicate_is_asked_for_principal_agent_and_sub_app(tmp_path: Path) -> None:
    """T12, P6: a text is the reason; the others of the plugin are not touched, and nothing is unloaded."""
    needs = {"book_seat": {"when": "rules:seats"}}
    async with opened(tmp_path, needs, sub_apps={"night": {"tool_names": ["list_seats"]}}) as board:
        ada = await session(board, principal="ada", sub_app="night")
        assert "book_seat" in (await ada.surface()).names
        rules = module(board)
        assert rules["ASKED"] == [("ada", "ada", "night")]
        rules["ANSWERS"]["bob"] = "Bob has a seat already."
        bob = await session(board, principal="bob")
        surface = await bob.surface()
        assert ("book_seat" in surface.names, "list_seats" in surface.names) == (False, True)
        refused = await bob.call("book_seat", {"row": 1})
        assert (refused.status, refused.message) == (
            "tool_unavailable",
            "'book_seat' is not available now: Bob has a seat already.",
        )
        found = await bob.explain("book_seat")
        assert (found.permitted, found.loaded, found.visible, found.callable) == (True, True, False, False)
        assert [(r.code, r.text) for r in found.reasons if r.code == "unavailable"] == [
            ("unavailable", "Bob has a seat already.")
        ]
        assert (await ada.call("book_seat", {"row": 1})).status == "ok"


async def test_an_answer_counts_for_thirty_seconds(tmp_path: Path) -> None:
    """T12: then it is asked again, when a surface is made and before a call; events tell of a change."""
    changes: list[Any] = []
    async with opened(tmp_path, {"book_seat": {"when": "rules:seats"}}) as board:
        clock = ManualClock()
        board.services.availability.clock = clock
        ada = await session(board)
        assert (await ada.call("book_seat", {"row": 1})).status == "ok"
        board.on("catalog_changed", changes.append)
        rules = module(board)
        rules["ANSWERS"]["local"] = False
        clock.advance(29.0)
        assert (await ada.call("book_seat", {"row": 1})).status == "ok"
        assert len(rules["ASKED"]) == 1
        clock.advance(2.0)
        refused = await ada.call("book_seat", {"row": 1})
        assert (refused.status, "Its condition is not met now." in refused.message) == ("tool_unavailable", True)
        assert [change["plugin"] for change in changes] == ["plain"]
        rules["ANSWERS"]["local"] = True
        clock.advance(31.0)
        assert "book_seat" in (await ada.surface()).names
        assert (await ada.call("book_seat", {"row": 2})).status == "ok"
        assert len(rules["ASKED"]) == 3


async def test_an_approved_call_waits_while_the_condition_does_not_hold_and_keeps_its_approval(tmp_path: Path) -> None:
    """T12, A2: a call that is resumed is a call; one that cannot run uses no approval up."""
    plugins = {
        "meters": {"python": "meters:Meter", "approve": {"read_meter": "always"}, "needs": {"when": "rules:seats"}}
    }
    async with opened(tmp_path, {}, plugins=plugins) as board:
        clock = ManualClock()
        board.services.availability.clock = clock
        ada = await session(board)
        approval = (await ada.call("read_meter")).approval
        assert approval is not None
        await board.approvals.allow(approval.id, by="grace")
        module(board)["ANSWERS"]["local"] = "Nobody reads meters at night."
        clock.advance(31.0)
        refused = await ada.resume(approval.id)
        assert (refused.status, "at night" in refused.message) == ("tool_unavailable", True)
        module(board)["ANSWERS"].clear()
        clock.advance(31.0)
        assert (await ada.resume(approval.id)).status == "ok"


async def test_many_requests_at_once_ask_once(tmp_path: Path) -> None:
    """T12: and all of them get the answer."""
    async with opened(tmp_path, {"when": "rules:seats"}) as board:
        ada = await session(board)
        answers = await asyncio.gather(*(ada.call("list_seats") for _ in range(20)))
        assert {answer.status for answer in answers} == {"ok"}
        assert module(board)["ASKED"] == [("local", "ada", None)]


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        ("raises", "Its condition raised RuntimeError: the meter is broken: ***"),
        ("leaves", "Its condition raised SystemExit: 3"),
        ("lies", "Its condition answered with int, neither a boolean nor a reason."),
        ("nothing", "Its condition answered with NoneType, neither a boolean nor a reason."),
        ("wrong_shape", "Its condition raised TypeError: wrong_shape() takes 0 positional arguments but 3 were given"),
        ("absent", "Its condition raised AttributeError: module 'rules' has no attribute 'absent'"),
        ("hangs", "Its condition did not answer in 1 s."),
        ("hangs_for_ever", "Its condition did not answer in 1 s."),
    ],
)
async def test_a_predicate_that_fails_counts_as_unavailable_with_the_reason(
    tmp_path: Path, hook: str, reason: str
) -> None:
    """T12, P6, X5: the rest of the agent goes on; one that hangs is waited for once."""
    tokens = {"ada": {"token": "${SECRET}", "agents": ["*"]}}
    async with opened(tmp_path, {"book_seat": {"when": f"rules:{hook}"}}, tokens=tokens) as board:
        ada = await session(board)
        assert (await ada.call("list_seats")).status == "ok"
        refused = await ada.call("book_seat", {"row": 1})
        assert (refused.status, refused.message) == ("tool_unavailable", f"'book_seat' is not available now: {reason}")
        assert "book_seat" not in (await ada.surface()).names
        if hook.startswith("hangs"):
            clock = ManualClock()
            board.services.availability.clock = clock
            clock.advance(1_000_000.0)
            assert (await ada.call("list_seats")).status == "ok"
            assert len(board.services.availability._asking) == 1, "it is still busy with the first question"
        if hook == "hangs":
            hooks: Any = board.services.hooks
            go: threading.Event = hooks._made._known["rules:hangs"].__globals__["GO"]
            go.set()


async def test_a_predicate_whose_module_leaves_the_process_counts_as_unavailable(tmp_path: Path) -> None:
    """T12, P6: the process goes on, and so does the rest of the agent."""
    (tmp_path / "quits.py").write_text("import sys\nsys.exit(4)\n", encoding="utf-8")
    async with opened(tmp_path, {"book_seat": {"when": "quits:open"}}) as board:
        ada = await session(board)
        assert (await ada.call("list_seats")).status == "ok"
        refused = await ada.call("book_seat", {"row": 1})
        assert refused.status == "tool_unavailable"
        assert refused.message.endswith("raised ImportError: importing 'quits' failed: SystemExit: 4")


async def test_predicates_stand_in_code_beside_the_tools(tmp_path: Path) -> None:
    """T12: a module function, a method, a mark; none of them is a tool, and settings of a member reach its instance."""
    plugins = {"desk": {"python": "desk"}, "meter": {"python": "meters:Meter"}}
    agents = {"ada": {"tools": ["desk", "meter"]}, "bob": {"tools": ["desk", {"meter": {"place": "attic"}}]}}
    async with opened(tmp_path, {}, plugins=plugins, agents=agents) as board:
        clock = ManualClock()
        board.services.availability.clock = clock
        ada, bob = await session(board), await session(board, "bob")
        assert (await ada.surface()).names == ("read_meter",)
        assert (await bob.surface()).names == ()
        assert (await ada.explain("is_available")).reasons[0].code == "unknown"
        assert "There is no meter in the attic." in (await bob.call("read_meter")).message
        assert "The desk is closed." in (await ada.call("ring_bell")).message
        sys.modules["desk"].OPEN.append(True)
        clock.advance(31.0)
        assert (await ada.surface()).names == ("file_form", "ring_bell", "read_meter")
        assert (await bob.surface()).names == ("ring_bell",)
        assert "Only ada files." in (await bob.call("file_form", {"text": "x"})).message


async def test_a_load_of_what_a_predicate_holds_back_says_why(tmp_path: Path) -> None:
    """T12, S10: hints and search pass it over, a load answers with the reason."""
    agents = {"ada": {"discoverable": ["plain"]}}
    async with opened(tmp_path, {"when": "rules:later"}, agents=agents) as board:
        bob = await session(board, principal="bob")
        item = (await bob.load("plain")).items[0]
        assert item.status == "tool_unavailable"
        assert "book_seat: Only ada works at night." in item.message
        assert "book_seat" not in "\n".join((await bob.surface()).hints)
        ada = await session(board, principal="ada")
        assert (await ada.load("plain")).status == "ok"


async def test_needs_of_a_plugin_speak_of_all_of_its_tools(tmp_path: Path) -> None:
    """T12, P6: `needs: {env: […]}` without a tool; a tool that is called `env` is still spoken of by a mapping."""
    async with opened(tmp_path, {"env": ["SEATS_KEY"], "when": "rules:seats"}) as board:
        ada = await session(board)
        message = (await ada.call("list_seats")).message
        assert message == "'list_seats' is not available now: Set the environment variable SEATS_KEY."
    (tmp_path / "pegboard.yaml").write_text(
        '{"plugins": {"plain": {"python": "plain", "needs": {"env": {"env": ["A"]}, "when": "not a hook"}}}}'
    )
    _, problems = inspect(tmp_path / "pegboard.yaml", registered={})
    assert [str(problem).partition(": ")[2] for problem in problems] == [
        "plugins.plain.needs.when: is not module:function. Name a function of a module beside this file."
    ]
