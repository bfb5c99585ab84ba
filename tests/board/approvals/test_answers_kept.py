"""Answers of operators: for longer than once, demanded by hooks, kept, recorded (A1–A3, X4, X5)."""

import asyncio
from pathlib import Path

import pytest
from approved_files import CONFIG, asked, ran, set_up, written

from pegboard import Approval, Pegboard, Session, UsageError
from pegboard.core.model.delivery import GATEWAY


async def test_an_operator_allows_every_call_of_a_tool_in_a_session(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A3: it is not used up, counts in no other session, and can be taken back."""
    approval = await asked(ada)
    await board.approvals.allow(approval.id, by="grace", lasts="session")
    other = await board.session(agent="ada", session_id="other")
    for path in ("a", "b", "a"):
        assert (await ada.call("delete_file", {"path": path})).status == "ok"
    await asked(other)
    (standing,) = [one for one in await board.approvals.list() if one.status == "allowed"]
    assert (standing.lasts, standing.by, standing.expires_at) == ("session", "grace", None)
    await board.approvals.refuse(standing.id, by="grace")
    await asked(ada, path="c")
    assert len(ran(tmp_path)) == 3


async def test_always_is_for_the_agent_and_principal_in_any_session(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A3: and for no one else."""
    await board.approvals.allow((await asked(ada)).id, by="grace", lasts="always")
    other = await board.session(agent="ada", session_id="other")
    assert (await other.call("delete_file", {"path": "b"})).status == "ok"
    await asked(await board.session(agent="ada", session_id="other", principal="eve"))
    await asked(await board.session(agent="bob", session_id="other"))
    paying = await asked(ada, "pay", amount=3)
    with pytest.raises(UsageError, match="asks for its fields in every call"):
        await board.approvals.allow(paying.id, by="grace", lasts="always", fields={"code": "1"})
    with pytest.raises(UsageError, match="asks for no fields"):
        await board.approvals.allow((await asked(ada, "wipe", path="x")).id, by="grace", fields={"code": "1"})
    assert len(ran(tmp_path)) == 1


async def test_a_hook_sees_principal_and_arguments_and_demands_an_approval(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A1: it runs after the guards, and one that fails or hangs demands it."""
    small, large = {"path": "small"}, {"path": "large"}
    assert (await ada.call("wipe", small)).status == "ok"
    answer = await ada.call("wipe", large)
    assert answer.approval is not None
    assert answer.approval.reason == "local wipes something large"
    assert (await asked(ada, "wipe", path="broken")).reason == "its hook failed with ZeroDivisionError"
    guarded = await ada.call("wipe", {"path": "guarded"})
    assert (guarded.status, guarded.message) == ("refused", "wipe was refused by its guard: never")
    await board.approvals.allow(answer.approval.id, by="grace")
    assert (await ada.call("wipe", large)).status == "ok"
    assert ran(tmp_path) == ["wipe ('small',)", "wipe ('large',)"]


async def test_permission_arguments_and_guards_come_before_the_question(config: Path, tmp_path: Path) -> None:
    """A1: no one is asked about a call that would not run."""
    set_up(
        config,
        CONFIG.replace(
            "files_tools}",
            "files_tools, guards: {delete_file: {path: {deny: [secret]}}}, approve: {read_file: {path: ['*.key']}}}",
        ),
    )
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        assert (await session.call("delete_file", {"path": "secret"})).status == "refused"
        assert (await session.call("delete_file", {"file": "a"})).status == "invalid_arguments"
        assert (await session.call("read_file", {"path": "a.txt"})).status == "ok"
        assert await board.approvals.list(ended=True) == ()
        approval = await asked(session, "read_file", path="docs/../a.key")
        assert approval.reason == "its argument 'path' matches '*.key' (approve.read_file.path)"


@pytest.mark.parametrize("name", ["raed_file", ""])
async def test_a_rule_for_a_tool_that_does_not_exist_lets_nothing_through(config: Path, name: str) -> None:
    """A1, P6: the plugin is unavailable, and says why; a pattern may mean nothing."""
    set_up(config, CONFIG.replace("files_tools}", f"files_tools, approve: {{'{name}': always}}}}"))
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        answer = await session.call("read_file", {"path": "a.txt"})
        assert answer.status in ("not_found", "tool_unavailable")
        assert f"'approve' names '{name}'" in (await session.explain("plugin:files")).reasons[-1].text


async def test_an_approval_survives_a_restart(config: Path, tmp_path: Path) -> None:
    """A2: asked in one process, allowed in a second, resumed in a third."""
    async with Pegboard.open(config) as board:
        approval = await asked(await board.session(agent="ada", session_id="thread"))
        paying = await asked(await board.session(agent="ada", session_id="thread"), "pay", amount=3)
    async with Pegboard.open(config) as board:
        assert list(await board.approvals.list()) == [paying, approval]
        await board.approvals.allow(approval.id, by="grace")
        await board.approvals.allow(paying.id, by="grace", fields={"code": "1"})
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread")
        assert (await session.resume(approval.id)).status == "ok"
        assert (await session.resume(paying.id)).result.content[0]["text"] == "paid 3 with 1"
    assert len(ran(tmp_path)) == 2


async def test_a_secret_in_the_arguments_is_neither_shown_nor_stored(config: Path, tmp_path: Path) -> None:
    """X5, A2: the process that asked can resume the call, any other one runs it when it is made again."""
    secret = "correct-horse-battery"
    set_up(config, CONFIG + 'models: {default: {key: "${THE_KEY}"}}\n')
    arguments = {"path": f"/keys/{secret}"}
    async with Pegboard.open(config, env={"THE_KEY": secret}) as board:
        session = await board.session(agent="ada", session_id="thread")
        answer = await session.call("delete_file", arguments)
        assert answer.approval is not None
        assert dict(answer.approval.arguments) == {"path": "/keys/***"}
        assert secret not in answer.message
        await board.approvals.allow(answer.approval.id, by="grace")
        async with Pegboard.open(config, env={"THE_KEY": secret}) as other:
            there = await other.session(agent="ada", session_id="thread")
            assert "Make the same call again" in (await there.resume(answer.approval.id)).message
            assert (await there.call("delete_file", arguments)).status == "ok"
        again = await session.call("delete_file", arguments)
        assert again.approval is not None
        await board.approvals.allow(again.approval.id, by="grace")
        assert (await session.resume(again.approval.id)).status == "ok"
        with pytest.raises(UsageError, match="no result can be passed in"):
            await session.resume((await asked(session)).id, result="done")
    assert secret.encode() not in written(tmp_path)
    assert len(ran(tmp_path)) == 2


async def test_every_step_is_on_the_audit_trail_with_who_did_it(board: Pegboard, ada: Session) -> None:
    """X4: asked, allowed, used; and a refusal in its words; never the arguments."""
    seen: list[str] = []
    for event in ("approval_asked", "approval_decided", "approval_used"):
        board.on(event, lambda record: seen.append(f"{record['event']} {record['decision']} {record['outcome']}"))
    first, second = await asked(ada, path="first-file"), await asked(ada, path="second-file")
    await board.approvals.allow(first.id, by="grace")
    await board.approvals.refuse(second.id, by="edsger", reason="Not on a Friday.")
    await ada.resume(first.id)
    await ada.resume(second.id)
    records = await board.services.store.entries(kind="approval")
    assert [(one.decision, one.subject, one.outcome, one.session) for one in reversed(records)] == [
        ("asked", "files/delete_file", first.id, "thread"),
        ("asked", "files/delete_file", second.id, "thread"),
        ("allowed", "files/delete_file", first.id, "thread"),
        ("refused", "files/delete_file", second.id, "thread"),
        ("used", "files/delete_file", first.id, "thread"),
    ]
    assert [(one.by, one.reason) for one in records[1:3]] == [("edsger", "Not on a Friday."), ("grace", "For once.")]
    assert "file" not in "".join(f"{one.reason}{one.arguments}" for one in records)
    (called,) = await board.services.store.entries(kind="call")
    assert called.arguments == records[0].arguments != ""
    assert seen == [
        f"approval_asked asked {first.id}",
        f"approval_asked asked {second.id}",
        f"approval_decided allowed {first.id}",
        f"approval_decided refused {second.id}",
        f"approval_used used {first.id}",
    ]


async def test_of_two_operators_who_decide_at_once_one_wins_and_the_other_reads_who(
    board: Pegboard, ada: Session, tmp_path: Path
) -> None:
    """A2, A3: who says what they were shown changes nothing where it is something else by now."""
    approval = await asked(ada)
    answers = await asyncio.gather(
        board.approvals.allow(approval.id, by="grace", expected="waiting"),
        board.approvals.refuse(approval.id, by="edsger", expected="waiting"),
        return_exceptions=True,
    )
    (lost,) = [answer for answer in answers if isinstance(answer, UsageError)]
    (won,) = [answer for answer in answers if isinstance(answer, Approval)]
    assert lost.code == "approval_changed"
    assert lost.message == f"Approval '{approval.id}' is already {won.status}: '{won.by}' decided it in the meantime."
    assert await board.services.store.approval(approval.id) == won
    await board.approvals.allow(approval.id, by="grace", expected=won.status)
    assert (await ada.resume(approval.id)).status == "ok"
    with pytest.raises(UsageError, match=f"'{approval.id}' was used already: 'grace' had allowed it"):
        await board.approvals.refuse(approval.id, by="edsger", expected="waiting")
    assert len(ran(tmp_path)) == 1


async def test_waiting_for_a_person_is_no_failure_of_the_model(config: Path) -> None:
    """X3: made again as often as it likes, through `call_tool` too, the call waits and is never stopped."""
    set_up(
        config,
        CONFIG.replace("plugins: {", "plugins: {clock: {python: pegboard.quickstart.clock}, ").replace(
            "ada: {", 'ada: {discoverable: ["*"], '
        ),
    )
    async with Pegboard.open(config) as board:
        session = await board.session(agent="ada", session_id="thread", host=GATEWAY)
        arguments = {"name": "delete_file", "arguments": {"path": "a.txt"}}
        answers = [await session.call("call_tool", arguments) for _ in range(5)]
        assert {answer.status for answer in answers} == {"needs_approval"}
        assert len({answer.approval.id for answer in answers if answer.approval is not None}) == 1
        assert len(await board.approvals.list()) == 1


def test_the_blocking_twin_waits_and_resumes_alike(config: Path, tmp_path: Path) -> None:
    """A3: without an event loop."""
    with Pegboard.open_sync(config) as board:
        session = board.session(agent="ada", session_id="thread")
        approval = session.call("delete_file", {"path": "a.txt"}).approval
        assert approval is not None
        assert board.approvals.list(agent="ada") == (approval,)
        assert session.resume(approval.id).status == "needs_approval"
        board.approvals.allow(approval.id, by="grace")
        assert session.resume(approval.id).status == "ok"
        other = session.call("delete_file", {"path": "b.txt"}).approval
        assert other is not None
        board.approvals.refuse(other.id, by="grace", reason="No.")
        assert session.resume(other.id).status == "refused"
    assert len(ran(tmp_path)) == 1
