"""Many calls wait for one login, and each is gone on with by an id of its own (G11)."""

import asyncio
from typing import Any

import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from pegboard import Pegboard
from pegboard.board.services import AwaitingCall, CallsAwaitingLogin
from pegboard.board.session import Session
from pegboard.core.access.logins import AwaitedLogin
from pegboard.core.model.delivery import GATEWAY
from pegboard.core.state.call_plans import CallAnswer
from pegboard.errors import UsageError
from pegboard.ports import SessionKey


async def session_of(board: Pegboard, session_id: str = "t", principal: str = "ada") -> Session:
    return await board.session(agent="default", session_id=session_id, principal=principal)


async def asked(session: Session, text: str) -> AwaitedLogin:
    """Return the login that a call waits for, which would say this text."""
    refused = await session.call("linear__echo", {"text": text})
    assert refused.login is not None, refused
    return refused.login


def said(answer: CallAnswer) -> Any:
    assert answer.status == "ok", answer
    return answer.result.content[0]["text"]


async def test_g11_two_parallel_calls_each_run_once_with_their_own_arguments_after_one_login(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await session_of(board)
    first, second = await asyncio.gather(asked(session, "A"), asked(session, "B"))
    assert first.pending == second.pending
    await person(first.url, "ada")
    assert said(await session.resume(first.id)) == "A"
    assert said(await session.resume(second.id)) == "B"
    assert site.counts["calls"] == 2
    assert site.counts["authorizations"] == 1


async def test_g11_two_sessions_of_one_principal_both_go_on_after_one_login(board: Pegboard, person: Person) -> None:
    one, other = await session_of(board, "one"), await session_of(board, "other")
    first, second = await asked(one, "A"), await asked(other, "B")
    await person(second.url, "ada")
    assert (await other.resume(first.id)).status == "not_found"
    assert said(await one.resume(first.id)) == "A"
    assert said(await other.resume(second.id)) == "B"


async def test_g11_a_waiting_call_runs_once_however_often_it_is_resumed(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await session_of(board)
    login = await asked(session, "A")
    await person(login.url, "ada")
    together = await asyncio.gather(*(session.resume(login.id) for _ in range(5)))
    assert sorted(answer.status for answer in together) == ["ok", *["refused"] * 4]
    again = await session.resume(login.id)
    assert (again.status, again.is_error) == ("refused", True)
    assert again.message == (f"'linear__echo' was not called: the waiting call {login.id} has been resumed already.")
    assert site.counts["calls"] == 1


async def test_g11_a_call_that_is_resumed_before_the_login_waits_on_under_its_id(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await session_of(board)
    first, second = await asked(session, "A"), await asked(session, "B")
    early = await session.resume(first.id)
    assert (early.status, early.login) == ("needs_login", first)
    await person(first.url, "ada")
    assert said(await session.resume(first.id)) == "A"
    assert said(await session.resume(second.id)) == "B"
    assert site.counts["calls"] == 2


async def test_g11_no_result_is_handed_in_for_a_waiting_call_and_it_waits_on(board: Pegboard, person: Person) -> None:
    session = await session_of(board)
    login = await asked(session, "A")
    await person(login.url, "ada")
    with pytest.raises(UsageError, match="'linear__echo' runs here") as caught:
        await session.resume(login.id, result="A was said")
    assert caught.value.code == "approval_kind"
    assert said(await session.resume(login.id)) == "A"


async def test_g11_a_waiting_call_is_neither_resumed_by_another_principal_nor_by_the_id_of_its_login(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    ada, bob = await session_of(board), await session_of(board, principal="bob")
    login = await asked(ada, "A")
    await person(login.url, "ada")
    refused = [await bob.resume(login.id), await ada.resume(login.pending.id)]
    assert [answer.status for answer in refused] == ["not_found"] * 2
    assert "calls" not in site.counts
    assert said(await ada.resume(login.id)) == "A"


async def test_g11_calls_of_one_session_push_out_no_waiting_call_of_another(board: Pegboard, person: Person) -> None:
    """Of each session the newest are kept, so that what waits takes no room without end."""
    quiet, busy = await session_of(board, "quiet"), await session_of(board, "busy")
    login = await asked(quiet, "A")
    many = [await asked(busy, str(number)) for number in range(300)]
    await person(login.url, "ada")
    assert said(await quiet.resume(login.id)) == "A"
    assert said(await busy.resume(many[-1].id)) == "299"
    assert (await busy.resume(many[0].id)).status == "not_found"


async def test_g6_a_call_that_was_to_read_only_runs_nothing_else_after_the_login(
    configuration: dict[str, Any], person: Person, site: LoginSite
) -> None:
    """Before the login no one knows whether its tool only reads."""
    configuration["toolkits"] = {"kit": {"tools": ["linear"]}}
    configuration["agents"] = {"default": {"allowed_toolkits": ["kit"], "dialect": "pegboard", "unloaded_call": "run"}}
    through = "call_read_only_tool", {"name": "linear__echo", "arguments": {"text": "A"}}
    async with Pegboard.open(configuration) as board:
        session = await board.session(agent="default", session_id="t", principal="ada", host=GATEWAY)
        refused = await session.call(*through)
        assert refused.login is not None, refused
        await person(refused.login.url, "ada")
        resumed = await session.resume(refused.login.id)
        assert (resumed.status, resumed.reason) == ("refused", "not_read_only")
    assert "calls" not in site.counts


async def test_g11_a_waiting_call_that_a_person_has_to_approve_goes_on_by_its_approval_and_runs_once(
    configuration: dict[str, Any], person: Person, site: LoginSite
) -> None:
    """G11, A3: also where the person allows it for the whole session."""
    configuration["servers"]["linear"]["approve"] = {"*": "always"}
    async with Pegboard.open(configuration) as board:
        session = await session_of(board)
        login = await asked(session, "A")
        await person(login.url, "ada")
        waits = (await session.resume(login.id)).approval
        assert waits is not None
        assert (await session.resume(login.id)).status == "refused"
        await board.approvals.allow(waits.id, by="grace", lasts="session")
        assert said(await session.resume(waits.id)) == "A"
        assert (await session.resume(login.id)).status == "refused"
        assert site.counts["calls"] == 1


async def test_g11_sessions_of_one_principal_push_out_no_waiting_call_of_another() -> None:
    calls = CallsAwaitingLogin()
    keys = [SessionKey(principal="eve", agent="default", session=str(number)) for number in range(200)]
    ada = SessionKey(principal="ada", agent="default", session="t")
    for key in (ada, *keys):
        calls.put(key, AwaitingCall("id", "linear__echo", {"text": key.principal}))
    assert calls.waiting_call(ada, "id") is not None
    assert calls.waiting_call(keys[0], "id") is None
    assert calls.waiting_call(keys[-1], "id") is not None
