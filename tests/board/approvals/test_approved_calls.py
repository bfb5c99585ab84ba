"""Calls that a person approves: asked, allowed, refused, resumed; and what must not run (A1–A3, T13)."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from approved_files import CONFIG, asked, ran, set_up

from pegboard import CallResult, Pegboard, Session, UsageError


async def test_a_marked_call_waits_and_runs_once_when_it_is_resumed(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """T13, A2, A3, X3: `needs_approval` has a handle; after `allow` the call runs once."""
    asked = await ada.call("delete_file", {"path": "a.txt"})
    assert (asked.status, asked.is_error) == ("needs_approval", True)
    assert asked.approval is not None
    (listed,) = await board.approvals.list()
    assert listed == asked.approval
    assert (listed.tool, dict(listed.arguments), listed.status) == ("delete_file", {"path": "a.txt"}, "waiting")
    again = await ada.resume(listed.id)
    assert (again.status, again.approval) == ("needs_approval", asked.approval)
    assert ran(tmp_path) == []

    await board.approvals.allow(listed.id, by="grace")
    done = await ada.resume(listed.id)

    assert (done.status, done.result.content[0]["text"]) == ("ok", "deleted a.txt")
    assert ran(tmp_path) == ["delete_file ('a.txt',)"]
    assert (await ada.resume(listed.id)).status == "refused"
    assert (await ada.call("delete_file", {"path": "a.txt"})).status == "needs_approval"
    assert len(ran(tmp_path)) == 1


async def test_the_same_call_made_again_after_the_approval_runs_once(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A3: without a handle to resume, the model makes the call again."""
    asked = await ada.call("delete_file", {"path": "a.txt"})
    assert (await ada.call("delete_file", {"path": "a.txt"})).approval == asked.approval
    assert asked.approval is not None
    await board.approvals.allow(asked.approval.id, by="grace")
    assert (await ada.call("delete_file", {"path": "b.txt"})).status == "needs_approval"
    assert (await ada.call("delete_file", {"path": "a.txt"})).status == "ok"
    assert (await ada.call("delete_file", {"path": "a.txt"})).status == "needs_approval"
    assert ran(tmp_path) == ["delete_file ('a.txt',)"]


async def test_a_refusal_reaches_the_model_with_the_words_of_the_operator(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A3: and the same call is not asked about again."""
    asked = await ada.call("delete_file", {"path": "a.txt"})
    assert asked.approval is not None
    await board.approvals.refuse(asked.approval.id, by="grace", reason="That is the only copy.")
    for answer in (await ada.resume(asked.approval.id), await ada.call("delete_file", {"path": "a.txt"})):
        assert answer.status == "refused"
        assert answer.message == "'delete_file' was not called. grace refused it: That is the only copy."
    assert ran(tmp_path) == []


async def test_fields_that_a_person_fills_in_are_never_the_models(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """T13: what is digested is what was filled in."""
    asked = await ada.call("pay", {"amount": 3})
    assert asked.approval is not None
    assert asked.approval.kind == "user_input"
    with pytest.raises(UsageError, match="required property"):
        await board.approvals.allow(asked.approval.id, by="grace")
    with pytest.raises(UsageError, match="no field 'cod'") as misfit:
        await board.approvals.allow(asked.approval.id, by="grace", fields={"cod": "x"})
    assert misfit.value.code == "bad_fields"
    await board.approvals.allow(asked.approval.id, by="grace", fields={"code": "1234"})
    assert (await ada.call("pay", {"amount": 3})).result.content[0]["text"] == "paid 3 with 1234"
    assert (await ada.call("pay", {"amount": 3})).status == "needs_approval"
    assert ran(tmp_path) == ["pay (3, '1234')"]


async def test_what_is_run_elsewhere_is_resumed_with_its_result(ada: Session, board: Pegboard, tmp_path: Path) -> None:
    """T13: it never runs here."""
    asked = await ada.call("sign", {"text": "x"})
    assert asked.approval is not None
    assert (asked.status, asked.approval.kind) == ("needs_approval", "external")
    with pytest.raises(UsageError, match="run by the host program") as elsewhere:
        await board.approvals.allow(asked.approval.id, by="grace")
    assert elsewhere.value.code == "approval_kind"
    done = await ada.resume(asked.approval.id, result={"signature": "abc"})
    assert (done.status, done.result.structured) == ("ok", {"signature": "abc"})
    assert (await ada.resume(asked.approval.id, result="again")).status == "refused"
    other = await ada.call("sign", {"text": "y"})
    assert other.approval is not None
    result = CallResult(content=({"type": "text", "text": "done"},))
    assert (await ada.resume(other.approval.id, result=result)).result == result
    assert ran(tmp_path) == []


async def test_an_approval_counts_for_nobody_else(board: Pegboard, ada: Session, tmp_path: Path) -> None:
    """A2, S1: not for another session, agent or principal, and none of them learns that it exists."""
    approval = await asked(ada)
    await board.approvals.allow(approval.id, by="grace")
    others = [
        await board.session(agent="ada", session_id="other"),
        await board.session(agent="bob", session_id="thread"),
        await board.session(agent="ada", session_id="thread", principal="eve"),
        await ada.child("general"),
    ]
    for other in others:
        resumed = await other.resume(approval.id)
        assert (resumed.status, resumed.message) == (
            "not_found",
            f"There is no approval and no waiting call '{approval.id}' in this session.",
        )
        assert (await other.call("delete_file", {"path": "a.txt"})).status == "needs_approval"
    assert (await ada.resume("unheard-of")).status == "not_found"
    assert ran(tmp_path) == []


async def test_an_approval_does_not_count_once_the_tool_or_its_rules_have_changed(config: Path, tmp_path: Path) -> None:
    """A2, A6: neither for `resume`, which says why, nor for the call made again."""
    changes = [
        ("Delete a file.", "Delete a file for good.", config.with_name("files_tools.py"), "the definition of the tool"),
        ("files_tools}", "files_tools, approve: {'*': always}}", config, "the rules in force"),
        ("files_tools}", "files_tools, guards: {delete_file: {path: {deny: [x]}}}}", config, "the rules in force"),
        ("[files]", "[{files: {}}]", config, ""),
    ]
    for old, new, file, why in changes:
        async with Pegboard.open(config) as board:
            session = await board.session(agent="ada", session_id=f"thread {new}")
            approval = await asked(session)
            await board.approvals.allow(approval.id, by="grace", lasts="session")
        before = file.read_text()
        file.write_text(before.replace(old, new))
        async with Pegboard.open(config) as board:
            session = await board.session(agent="ada", session_id=f"thread {new}")
            resumed, again = await session.resume(approval.id), await session.call("delete_file", {"path": "a.txt"})
            if why:
                assert resumed.message == (
                    f"'delete_file' was not called: approval {approval.id} no longer counts, since {why} "
                    f"{'for it have' if 'rules' in why else 'has'} changed since."
                )
                assert again.status == "needs_approval"
            else:
                assert (resumed.status, again.status) == ("ok", "ok")
        file.write_text(before)
    assert len(ran(tmp_path)) == 2


async def test_a_call_in_flight_goes_on_when_its_rules_change(tmp_path: Path) -> None:
    """A6: what a person allowed is running; the next call waits again."""
    (tmp_path / "slow_tools.py").write_text(
        "import asyncio\nfrom pathlib import Path\nHERE = Path(__file__).parent\n"
        "async def wipe() -> str:\n    (HERE / 'begun').touch()\n"
        "    while not (HERE / 'go').exists():\n        await asyncio.sleep(0.01)\n    return 'wiped'\n"
    )
    config = tmp_path / "pegboard.yaml"
    text = "plugins: {slow: {python: slow_tools, approve: {wipe: always}}}\nagents: {ada: {tools: [slow/wipe]}}\n"
    config.write_text(text)
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        waiting = (await session.call("wipe", {})).approval
        assert waiting is not None
        await board.approvals.allow(waiting.id, by="grace")
        running = asyncio.create_task(session.resume(waiting.id))
        async with asyncio.timeout(10):
            while not (tmp_path / "begun").exists():  # noqa: ASYNC110 - the file tells, and nothing else
                await asyncio.sleep(0.01)
        config.write_text(text.replace("{wipe: always}", "{'*': always}"))
        assert await board.reload() == []
        (tmp_path / "go").touch()
        assert (await running).status == "ok"
        assert (await session.call("wipe", {})).status == "needs_approval"


async def test_permission_is_asked_again_when_the_call_is_resumed(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """P4, A2, MR104: an approval grants nothing: the tool was switched off meanwhile."""
    approval = await asked(ada)
    await board.approvals.allow(approval.id, by="grace")
    await board.permissions.set("ada", "delete_file", False)
    assert (await ada.resume(approval.id)).status == "not_found"
    assert (await ada.call("delete_file", {"path": "a.txt"})).status == "not_found"
    assert ran(tmp_path) == []
    await board.permissions.set("ada", "delete_file", None)
    assert (await ada.resume(approval.id)).status == "ok"


async def test_an_approval_expires_for_waiting_and_for_being_used(config: Path, tmp_path: Path) -> None:
    """A2: after what the configuration says; then the call is asked about again."""
    set_up(config, CONFIG + "approvals: {expires: 1ms}\n")
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        approval = await asked(session)
        while await board.approvals.list():
            continue
        assert [one.status for one in await board.approvals.list(ended=True)] == ["expired"]
        with pytest.raises(UsageError, match="has expired") as ended:
            await board.approvals.allow(approval.id, by="grace")
        assert ended.value.code == "approval_ended"
        assert (await session.resume(approval.id)).message.endswith("no longer counts, since it has expired.")
        assert (await asked(session)).id != approval.id
    set_up(config, CONFIG)
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        allowed = await board.approvals.allow((await asked(session)).id, by="grace")
        assert allowed.expires_at is not None
        assert allowed.decided_at is not None
        assert allowed.expires_at - allowed.decided_at == pytest.approx(3600)
    assert ran(tmp_path) == []


async def test_racing_calls_run_an_approved_one_once(board: Pegboard, ada: Session, tmp_path: Path) -> None:
    """A2: resumed and made again at the same time, in two boards over one store."""
    approval = await asked(ada)
    await board.approvals.allow(approval.id, by="grace")
    async with Pegboard.open(tmp_path / "pegboard.yaml") as other:
        there = await other.session(agent="ada", session_id="thread")
        calls = [
            way
            for session in (ada, there)
            for _ in range(10)
            for way in (session.resume(approval.id), session.call("delete_file", {"path": "a.txt"}))
        ]
        answers = await asyncio.gather(*calls)
    assert Counter(answer.status for answer in answers)["ok"] == 1
    assert {answer.status for answer in answers} == {"ok", "refused", "needs_approval"}
    assert len(ran(tmp_path)) == 1


async def test_only_the_first_of_two_operators_decides(board: Pegboard, ada: Session) -> None:
    """A2: what was used or refused meanwhile is not allowed; what was allowed can be taken back before it is used."""
    approval = await asked(ada)
    await board.approvals.allow(approval.id, by="grace")
    refused = await board.approvals.refuse(approval.id, by="edsger", reason="Wait.")
    assert (refused.status, refused.by) == ("refused", "edsger")
    assert (await ada.resume(approval.id)).message.endswith("edsger refused it: Wait.")
    await board.approvals.allow(approval.id, by="grace")
    assert (await ada.resume(approval.id)).status == "ok"
    for decide in (board.approvals.allow, board.approvals.refuse):
        with pytest.raises(UsageError, match="was used already"):
            await decide(approval.id, by="grace")


async def test_an_approval_lasts_for_what_there_is(board: Pegboard, ada: Session) -> None:
    """A2, A3: a word of one's own is one clear error, and nothing is allowed."""
    approval = await asked(ada)
    lasts: Any = "ever"
    with pytest.raises(UsageError, match="`lasts` is none of once, session, always"):
        await board.approvals.allow(approval.id, by="grace", lasts=lasts)
    assert (await ada.resume(approval.id)).status == "needs_approval"


@pytest.mark.parametrize(("by", "why"), [("", "is empty"), ("  ", "is empty"), ("x" * 600, "600 characters")])
async def test_somebody_decides_and_says_who(board: Pegboard, ada: Session, by: str, why: str) -> None:
    """A2, X4: an approval that does not exist is answered with one error, too."""
    approval = await asked(ada)
    with pytest.raises(UsageError, match=why):
        await board.approvals.allow(approval.id, by=by)
    with pytest.raises(UsageError, match="There is no approval 'none'") as unknown:
        await board.approvals.refuse("none", by="grace")
    assert unknown.value.code == "unknown_approval"
    assert (await ada.resume(approval.id)).status == "needs_approval"


async def test_what_no_person_can_read_is_not_asked_about(board: Pegboard, ada: Session, tmp_path: Path) -> None:
    """A2: arguments of a megabyte, and more calls than anyone answers."""
    answer = await ada.call("delete_file", {"path": "x" * 2**20})
    assert answer.status == "refused"
    assert "at most 65,536 can be read by one" in answer.message
    assert len(answer.message) < 300
    assert await board.approvals.list() == ()
    for number in range(100):
        await asked(ada, path=f"{number}")
    answer = await ada.call("delete_file", {"path": "one more"})
    assert answer.message == (
        "100 calls of this session wait for the approval of a person. 'delete_file' was not called."
    )
    assert (await ada.call("delete_file", {"path": "99"})).status == "needs_approval"
    other = await board.session(agent="ada", session_id="other")
    assert (await other.call("delete_file", {"path": "99"})).status == "needs_approval"
    assert ran(tmp_path) == []


async def test_a_session_without_an_id_cannot_wait(board: Pegboard, tmp_path: Path) -> None:
    """A2, S4: there is nothing that an approval could be bound to."""
    session = await board.session(agent="ada")
    answer = await session.call("delete_file", {"path": "a.txt"})
    assert answer.status == "refused"
    assert answer.message.endswith("which requires a stable session_id.")
    assert ran(tmp_path) == []
