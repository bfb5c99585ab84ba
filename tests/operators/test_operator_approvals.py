"""What operators see of approvals: readable, masked, only of their agents, and whether an answer still counts."""

import json
import re
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from gateway.clients import until
from pegboard import Pegboard, UsageError
from pegboard.operators.approvals import OperatorApprovals

SERVER = str(Path(__file__).parent.parent / "servers" / "listed_server.py")
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "title": "The path at ftp://ada:pw@disk",
            "description": "What goes, with correct-horse-battery.",
        },
        "deep": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "many": {"type": ["array", "string"]},
    },
}
WIPE = {
    "title": "Wipe <b>",
    "description": "Wipe a disk.",
    "inputSchema": SCHEMA,
    "annotations": {"destructiveHint": True, "readOnlyHint": False},
}
CONFIG = """
store: sqlite:///state.db
models: {default: {key: "${THE_KEY}"}}
servers:
  disk: {command: PYTHON, args: [SERVER, "LIST"], approve: {wipe: always}}
plugins:
  money: {python: money_tools}
agents: {ada: {tools: [disk, money]}, bob: {tools: [disk, money]}}
"""
MONEY = '''
from typing import Literal

from pegboard import tool


@tool(user_input_fields=["code", "account", "note"])
def pay(amount: int, code: int, account: Literal["main", "savings"], note: str | None = None) -> str:
    """Pay an amount."""
    return f"paid {amount} with {code} from {account}"


@tool(external_execution=True)
def sign(text: str) -> str:
    """Sign a text."""
    return ""


__all__ = ["pay", "sign"]
'''
SECRET = "correct-horse-battery"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "list.json").write_text(json.dumps({"wipe": WIPE, "announce": True}))
    (tmp_path / "money_tools.py").write_text(MONEY)
    path = tmp_path / "pegboard.yaml"
    names = {"PYTHON": sys.executable, "SERVER": SERVER, "LIST": str(tmp_path / "list.json")}
    path.write_text(re.sub("|".join(names), lambda found: names[found.group()], CONFIG))
    return path


def opened(config: Path) -> AbstractAsyncContextManager[Pegboard]:
    return Pegboard.open(config, env={"THE_KEY": SECRET})


async def asked(board: Pegboard, name: str, agent: str = "ada", session: str = "thread", **arguments: object) -> str:
    answer = await (await board.session(agent=agent, session_id=session)).call(name, arguments)
    assert answer.approval is not None, answer
    return answer.approval.id


async def test_a_call_that_waits_is_readable_with_what_its_schema_has_of_each_argument(config: Path) -> None:
    """A1, X5: secrets are masked, in the title and the description of an argument too."""
    async with opened(config) as board:
        arguments = {"path": f"/{SECRET}", "deep": {"a": [1]}, "many": "two\nlines", "odd": None}
        asked_id = await asked(board, "disk__wipe", **arguments)
        found = (await OperatorApprovals(board.services).open()).waiting[0]
    assert (found.id, found.tool, found.plugin, found.title) == (asked_id, "disk__wipe", "disk", "Wipe <b>")
    assert (found.destructive, found.read_only, found.open_world) == (True, False, None)
    assert (found.reason, found.where.endswith("pegboard.yaml:5:3")) == ("approve.wipe is always", True)
    assert (found.principal, found.agent, found.session, found.turn) == ("local", "ada", "thread", 1)
    assert (found.may_last, found.outdated) == (("once", "session", "always"), "")
    assert [(one.name, one.title, one.type, one.text, one.structured) for one in found.arguments] == [
        ("path", "The path at ftp://***@disk", "string", "/***", False),
        ("deep", "", "object or null", '{\n  "a": [\n    1\n  ]\n}', True),
        ("many", "", "array or string", "two\nlines", False),
        ("odd", "", "", "null", False),
    ]
    assert found.arguments[0].description == "What goes, with ***."


async def test_what_was_allowed_stands_apart_and_what_has_ended_is_listed_by_itself(config: Path) -> None:
    """A3: once, for longer, and no more."""
    async with opened(config) as board:
        approvals = OperatorApprovals(board.services)
        names = ("waits", "once", "session", "always", "refused")
        ids = {name: await asked(board, "disk__wipe", session=name, path=name) for name in names}
        await board.approvals.allow(ids["once"], by="grace")
        await board.approvals.allow(ids["session"], by="grace", lasts="session")
        await board.approvals.refuse(ids["refused"], by="edsger", reason="No.")
        found = await approvals.open()
        assert [one.id for one in found.waiting] == [ids["always"], ids["waits"]]
        await board.approvals.allow(ids["always"], by="grace", lasts="always")
        found = await approvals.open()
        assert [[one.id for one in part] for part in (found.waiting, found.allowed, found.standing)] == [
            [ids["waits"]],
            [ids["once"]],
            [ids["always"], ids["session"]],
        ]
        assert found.next_end == min(one.expires_at for one in (*found.waiting, *found.allowed) if one.expires_at)
        ended = await approvals.ended()
        assert [(one.id, one.status, one.message) for one in ended.rows] == [(ids["refused"], "refused", "No.")]
        assert (await approvals.open(offset=1)).waiting == ()
        assert (ended.total, (await approvals.waiting()).count) == (1, 1)


async def test_of_agents_that_an_operator_does_not_see_there_is_nothing(config: Path) -> None:
    """G2: a name that is not theirs is answered like one that does not exist."""
    async with opened(config) as board:
        approvals = OperatorApprovals(board.services)
        mine, other = await asked(board, "disk__wipe"), await asked(board, "disk__wipe", agent="bob")

        def sees(agent: str) -> bool:
            return agent == "ada"

        assert [one.id for one in (await approvals.open(sees)).waiting] == [mine]
        assert ((await approvals.waiting(sees)).count, (await approvals.ended(sees)).total) == (1, 0)
        assert (await approvals.one(mine, sees)).agent == "ada"
        with pytest.raises(UsageError) as unseen:
            await approvals.one(other, sees)
        with pytest.raises(UsageError) as unknown:
            await approvals.one("none", sees)
        assert unseen.value.code == unknown.value.code == "unknown_approval"
        assert unseen.value.message.replace(other, "none") == unknown.value.message
        assert unseen.value.hint == unknown.value.hint
        with pytest.raises(UsageError, match="There is no approval"):
            await approvals.field_problems(other, {}, sees)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Wipe a disk.", "Wipe every disk.", "the definition of the tool has changed since"),
        ("wipe: always", '"*": always', "the rules in force for it have changed since"),
        ("approve: {wipe: always}", "timeout: 60s", "the rules in force for it have changed since"),
    ],
)
async def test_an_answer_that_counts_no_more_says_why(config: Path, old: str, new: str, why: str) -> None:
    """A2: as the next call finds it."""
    async with opened(config) as board:
        await board.approvals.allow(await asked(board, "disk__wipe"), by="grace", lasts="always")
        assert (await OperatorApprovals(board.services).open()).standing[0].outdated == ""
    for file in (config, config.with_name("list.json")):
        file.write_text(file.read_text().replace(old, new))
    async with opened(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        await session.call("disk__announce", {})  # the list of before is kept until the server says that it has changed

        async def outdated() -> bool:
            if await board.pins.list(waiting=True):  # what changed waits for a person, and cannot be called until then
                assert (await session.call("disk__wipe", {"path": "c"})).status == "tool_unavailable"
                await board.pins.accept(by="grace")
            (found,) = (await OperatorApprovals(board.services).open()).standing
            return found.outdated == why

        await until(outdated)
        answer = await session.call("disk__wipe", {"path": "c"})
        assert answer.status == ("ok" if "timeout" in new else "needs_approval")


async def test_the_fields_that_a_person_fills_in_are_a_form_with_their_problems(config: Path) -> None:
    """T13: each beside its own field; the kinds say what can be answered here."""
    async with opened(config) as board:
        approvals = OperatorApprovals(board.services)
        paying, signing = await asked(board, "pay", amount=3), await asked(board, "sign", text="x")
        found = await approvals.one(paying)
        assert [(one.name, one.type, one.choices, one.required) for one in found.fields] == [
            ("code", "integer", (), True),
            ("account", "string", ("main", "savings"), True),
            ("note", "string", (), False),
        ]
        assert (found.may_last, (await approvals.one(signing)).may_last) == (("once",), ())
        problems = await approvals.field_problems(paying, {"account": "other", "note": 3})
        assert [(one.name, one.text) for one in problems] == [
            ("code", "A value is required."),
            ("account", '"other" is not one of "main" or "savings"'),
            ("note", "3 is not valid under any of the schemas listed in the 'anyOf' keyword"),
        ]
        assert await approvals.field_problems(paying, {"account": "main", "code": 7}) == ()


async def test_arguments_that_are_nested_very_deeply_are_shown_or_reported(config: Path) -> None:
    async with opened(config) as board:
        deep: object = "bottom"
        for _ in range(300):
            deep = [deep]
        await asked(board, "disk__wipe", path="x", many=deep)
        found = (await OperatorApprovals(board.services).open()).waiting[0]
    assert [one.name for one in found.arguments] == ["path", "many"]
