"""Logins in the library: asked for once, kept for each principal, renewed by themselves (G11)."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from pegboard import Pegboard
from pegboard.board.session import Session
from pegboard.core.access.instances import LoginOwner
from pegboard.core.state.call_plans import CallAnswer
from pegboard.errors import UsageError
from pegboard.operators.logins import OperatorLogins
from pegboard.support.backoff import wait_until


async def session_of(board: Pegboard, principal: str = "ada") -> Session:
    return await board.session(agent="default", session_id="t", principal=principal)


async def logged_in(board: Pegboard, person: Person, principal: str = "ada", account: str = "ada") -> Session:
    session = await session_of(board, principal)
    refused = await session.call("linear__whoami", {})
    assert refused.login is not None, refused
    assert (await person(refused.login.url, account)).status_code == 200
    assert (await session.resume(refused.login.id)).status == "ok"
    return session


def account_of(answer: CallAnswer) -> Any:
    assert answer.result.structured is not None, answer
    return answer.result.structured["account"]


async def test_g11_a_call_says_where_to_log_in_and_goes_on_after_it(board: Pegboard, person: Person) -> None:
    session = await session_of(board)
    refused = await session.call("linear__whoami", {})
    assert refused.status == "needs_login"
    assert refused.login is not None
    assert refused.login.url in refused.message
    assert (await session.resume(refused.login.id)).status == "needs_login"
    await person(refused.login.url, "ada")
    assert account_of(await session.resume(refused.login.id)) == "ada"


async def test_g11_nothing_is_configured_and_the_missing_tools_say_what_to_do(board: Pegboard) -> None:
    missing = (await (await session_of(board)).surface()).missing
    assert [one.plugin for one in missing] == ["linear"]
    assert "it requires a login" in missing[0].reason
    assert "pegboard login linear" in missing[0].reason
    assert "headers" not in missing[0].reason


async def test_g11_two_principals_have_a_login_each_and_neither_uses_the_others(
    board: Pegboard, person: Person
) -> None:
    ada = await logged_in(board, person)
    bob = await session_of(board, "bob")
    refused = await bob.call("linear__whoami", {})
    assert refused.status == "needs_login"
    assert refused.login is not None
    assert (await ada.resume(refused.login.id)).status == "not_found"
    await person(refused.login.url, "ben")
    assert account_of(await bob.resume(refused.login.id)) == "ben"
    assert account_of(await ada.call("linear__whoami", {})) == "ada"


async def test_g11_a_pending_login_is_asked_for_once_and_completed_once(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await session_of(board)
    first, second = await asyncio.gather(*(session.call("linear__whoami", {}) for _ in range(2)))
    assert first.login is not None
    assert second.login is not None
    assert first.login.pending == second.login.pending
    done = await person(first.login.url, "ada")
    assert done.status_code == 200
    again = await person(str(done.url), "ben")
    assert again.status_code == 400
    assert "No login is pending" in again.text
    assert site.counts["exchanges"] == 1


async def test_g11_an_expired_token_is_renewed_once_by_all_the_calls_that_need_it(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await logged_in(board, person)
    for expiry in range(1, 4):
        site.expire()
        answers = await asyncio.gather(*(session.call("linear__whoami", {}) for _ in range(20)))
        assert {answer.status for answer in answers} == {"ok"}
        assert site.counts["refreshes"] == expiry
    assert "reuses" not in site.counts


async def test_g11_calls_do_not_wait_for_each_other(board: Pegboard, person: Person) -> None:
    session = await logged_in(board, person)
    started = time.monotonic()
    answers = await asyncio.gather(*(session.call("linear__slow", {"seconds": 0.5}) for _ in range(8)))
    assert {answer.status for answer in answers} == {"ok"}
    assert time.monotonic() - started < 3.0  # one after the other they take 4; measured: python -m benchmarks logins


async def test_g11_a_login_outlives_the_process(
    board: Pegboard, person: Person, site: LoginSite, configuration: dict[str, Any]
) -> None:
    await logged_in(board, person)
    async with Pegboard.open(configuration) as other:
        assert account_of(await (await session_of(other)).call("linear__whoami", {})) == "ada"
    assert site.counts["authorizations"] == 1


async def test_g11_a_scope_that_is_missing_is_asked_for_with_those_of_before(board: Pegboard, person: Person) -> None:
    session = await logged_in(board, person)
    refused = await session.call("linear__write", {"text": "x"})
    assert refused.status == "needs_login"
    assert refused.login is not None
    assert "scope=read+write" in refused.login.url
    await person(refused.login.url, "ada")
    assert (await session.resume(refused.login.id)).status == "ok"
    assert (await session.call("linear__whoami", {})).result.structured == {
        **((await session.call("linear__whoami", {})).result.structured or {}),
        "scopes": ["read", "write"],
    }


async def test_g11_a_scope_that_is_missing_is_asked_for_whatever_is_answered_meanwhile(
    configuration: dict[str, Any], person: Person, site: LoginSite
) -> None:
    """G11: on one connection, a call is answered between the head of a refusal and its end."""
    async with Pegboard.open(configuration, fast_path=False) as board:
        session = await logged_in(board, person)
        site.change(late_refusals=True)
        writing = asyncio.create_task(session.call("linear__write", {"text": "x"}))
        assert await wait_until(lambda: bool(site.counts.get("slow")), 30)
        assert account_of(await session.call("linear__whoami", {})) == "ada"
        site.release()
        refused = await asyncio.wait_for(writing, 30)
    assert refused.status == "needs_login", refused
    assert refused.login is not None
    assert "scope=read+write" in refused.login.url


async def test_g11_what_one_login_lacks_is_not_asked_for_in_the_login_of_another(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    ada, bob = await logged_in(board, person), await session_of(board, "bob")
    lacking = await ada.call("linear__write", {"text": "x"})
    refused = await bob.call("linear__whoami", {})
    assert refused.login is not None
    assert ("scope=read&" in f"{refused.login.url}&", "write" in refused.login.url) == (True, False)
    await person(refused.login.url, "ben")
    site.log_out_all()
    assert (await bob.call("linear__whoami", {})).status == "needs_login"
    assert lacking.login is not None
    await person(lacking.login.url, "ada")
    assert (await ada.resume(lacking.login.id)).status == "ok"


async def test_g11_who_logs_out_is_asked_for_what_everybody_is(board: Pegboard, person: Person) -> None:
    session = await logged_in(board, person)
    lacking = await session.call("linear__write", {"text": "x"})
    assert lacking.login is not None
    await person(lacking.login.url, "ada")
    assert await OperatorLogins(board.services).end("linear", LoginOwner("ada"))
    refused = await session.call("linear__whoami", {})
    assert refused.login is not None, refused
    await person(refused.login.url, "ada")
    assert account_of(await session.resume(refused.login.id)) == "ada"


async def test_g11_who_was_logged_out_by_the_issuer_is_asked_again_once(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await logged_in(board, person)
    site.log_out_all()
    refused = await session.call("linear__whoami", {})
    assert refused.status == "needs_login"
    again = await session.call("linear__whoami", {})
    assert refused.login is not None
    assert again.login is not None
    assert again.login.pending == refused.login.pending
    await person(refused.login.url, "ada")
    assert account_of(await session.resume(refused.login.id)) == "ada"


async def test_g11_logins_are_shown_without_secrets_and_can_be_ended(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    await logged_in(board, person)
    logins = OperatorLogins(board.services)
    listed = await logins.listed()
    assert [(one.server, one.principal, one.scopes, one.renewable) for one in listed] == [
        ("linear", "ada", ("read",), True)
    ]
    assert not any(secret in repr(listed) for secret in site.secrets)
    assert await logins.end("linear", LoginOwner("ada"))
    assert not await logins.end("linear", LoginOwner("ada"))
    assert site.counts["revocations"] >= 1
    assert (await (await session_of(board)).call("linear__whoami", {})).status == "needs_login"


async def test_x5_no_token_stands_in_the_store_in_plain(
    board: Pegboard, person: Person, site: LoginSite, configuration: dict[str, Any]
) -> None:
    session = await logged_in(board, person)
    site.expire()
    await session.call("linear__whoami", {})
    await board.aclose()
    folder = Path(configuration["store"].removeprefix("sqlite:///")).parent
    stored = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    found = [secret for secret in site.secrets if secret.encode() in stored]
    assert len(site.secrets) >= 4
    assert found == []
    assert (folder / "pegboard.db.key").stat().st_mode & 0o777 == 0o600


async def test_g11_an_address_that_belongs_to_no_pending_login_is_refused_in_one_sentence(board: Pegboard) -> None:
    logins = OperatorLogins(board.services)
    with pytest.raises(UsageError) as caught:
        await logins.complete("linear", "http://127.0.0.1:1/callback?state=abc&code=def")
    assert caught.value.code == "login_failed"
    with pytest.raises(UsageError, match="state="):
        await logins.complete("linear", "http://127.0.0.1:1/callback")
