"""What happens to logins: two finish one, everyone is logged out, clocks differ, issuers say nothing (G11)."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from logins.test_library_logins import account_of, logged_in, session_of
from pegboard import Pegboard
from pegboard.core.access.instances import LoginOwner
from pegboard.errors import UsageError
from pegboard.operators.logins import OperatorLogins


async def came_back(url: str, account: str) -> str:
    """Return where the browser of an account is sent back to, without going there."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        to = f"{url}&account={account}"
        while urlsplit(to).path != "/callback":
            to = (await browser.get(to)).headers["location"]
        return to


async def test_g11_of_two_who_finish_one_login_at_once_one_does_and_the_other_is_told(
    board: Pegboard, site: LoginSite
) -> None:
    session = await session_of(board)
    refused = await session.call("linear__whoami", {})
    assert refused.login is not None
    accounts = ("ada", "ben")
    addresses = [await came_back(refused.login.url, account) for account in accounts]
    async with httpx2.AsyncClient(trust_env=False) as browser:
        pages = await asyncio.gather(*(browser.get(address) for address in addresses))
    statuses = [page.status_code for page in pages]
    assert sorted(statuses) == [200, 400]
    assert "Start the login again" in pages[statuses.index(400)].text
    assert account_of(await session.resume(refused.login.id)) == accounts[statuses.index(200)]
    assert site.counts["exchanges"] == 1


async def test_g11_of_two_processes_that_finish_one_login_at_once_one_does(
    board: Pegboard, site: LoginSite, configuration: dict[str, Any]
) -> None:
    session = await session_of(board)
    refused = await session.call("linear__whoami", {})
    assert refused.login is not None
    address = await came_back(refused.login.url, "ada")
    async with Pegboard.open(configuration) as other:
        logins = [OperatorLogins(each.services) for each in (board, other)]
        done = await asyncio.gather(
            *(each.complete("linear", address, LoginOwner("ada")) for each in logins), return_exceptions=True
        )
        assert sorted(type(each).__name__ for each in done) == ["NoneType", UsageError.__name__]
        assert account_of(await (await session_of(other)).call("linear__whoami", {})) == "ada"
    assert account_of(await session.resume(refused.login.id)) == "ada"
    assert site.counts["exchanges"] == 1


async def test_g11_when_everybody_is_logged_out_each_owner_is_asked_for_one_login(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    ada, bob = await logged_in(board, person), await logged_in(board, person, "bob", "ben")
    site.log_out_all()
    answers = await asyncio.gather(*(each.call("linear__whoami", {}) for each in (ada, bob) * 5))
    assert {answer.status for answer in answers} == {"needs_login"}
    asked = {answer.login.pending.url: answer.login for answer in answers if answer.login}
    assert len(asked) == 2
    assert {login.pending.owner.principal for login in asked.values()} == {"ada", "bob"}
    for login in asked.values():
        session, account = (ada, "ada") if login.pending.owner.principal == "ada" else (bob, "ben")
        await person(login.url, account)
        assert account_of(await session.resume(login.id)) == account
    assert site.counts["exchanges"] == 4


@pytest.mark.parametrize("seconds", [-600.0, 600.0])
async def test_g11_a_clock_that_differs_by_ten_minutes_costs_no_login_and_no_renewal(
    board: Pegboard, person: Person, site: LoginSite, seconds: float
) -> None:
    site.reset(clock=seconds)
    session = await logged_in(board, person)
    assert account_of(await session.call("linear__whoami", {})) == "ada"
    assert "refreshes" not in site.counts
    site.expire()
    assert account_of(await session.call("linear__whoami", {})) == "ada"
    assert (site.counts["refreshes"], site.counts["authorizations"]) == (1, 1)


async def test_g11_a_key_that_signs_by_a_clock_that_is_ten_minutes_off_is_refused_with_the_issuers_reason(
    configuration: dict[str, Any], site: LoginSite
) -> None:
    site.reset(clock=600.0)
    auth = {"kind": "private_key_jwt", "client_id": "signer", "client_secret": site.signer_key}
    servers = {"linear": {**configuration["servers"]["linear"], "auth": auth}}
    async with Pegboard.open({**configuration, "servers": servers}) as board:
        answer = await (await session_of(board)).call("linear__whoami", {})
    assert answer.status == "tool_unavailable"
    assert "the assertion has expired" in answer.message


HIDDEN = {"path_aware": True, "resource_metadata": False, "iss": ""}
"""No metadata anywhere, and the endpoints at the usual addresses, as in 2025-03-26."""


async def test_g11_an_issuer_without_metadata_is_asked_where_somebody_said_that_there_is_a_login(
    configuration: dict[str, Any], person: Person, site: LoginSite
) -> None:
    site.reset(**HIDDEN)
    servers = {"linear": {**configuration["servers"]["linear"], "auth": {"kind": "code"}}}
    async with Pegboard.open({**configuration, "servers": servers}) as board:
        await logged_in(board, person)


async def test_g11_a_server_that_answers_401_and_has_no_metadata_is_not_logged_in_to(
    board: Pegboard, site: LoginSite
) -> None:
    site.reset(**HIDDEN)
    [missing] = (await (await session_of(board)).surface()).missing
    assert "HTTP 401" in missing.reason
    assert "Correct `headers`" in missing.reason
    assert not {"/register", "/authorize"} & {request["path"] for request in site.requests}


async def test_g11_a_load_says_why_no_login_can_be_made(configuration: dict[str, Any], site: LoginSite) -> None:
    site.reset(registration=False, metadata_documents=False)
    agents = {"default": {"discoverable": ["linear"], "dialect": "pegboard"}}
    async with Pegboard.open({**configuration, "agents": agents}) as board:
        session = await session_of(board)
        answer = await session.call("load_tools", {"names": ["linear"]})
    said = " ".join(block["text"] for block in answer.result.content)
    assert answer.result.is_error
    assert "registers no clients" in said
    assert "auth: {client_id, client_secret}" in said


async def test_g11_a_server_that_refuses_a_renewed_login_asks_for_a_new_one_and_nothing_is_renewed_again(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await logged_in(board, person)
    site.change(resource_slash=True, protects=[site.url])  # from now on tokens count that are for another address
    refused = await session.call("linear__whoami", {})
    assert refused.login is not None
    again = await session.call("linear__whoami", {})
    assert again.login is not None
    assert again.login.pending == refused.login.pending
    assert site.counts["refreshes"] == 1
    await person(refused.login.url, "ada")
    assert account_of(await session.resume(refused.login.id)) == "ada"


async def test_g11_an_issuer_that_has_had_enough_is_asked_once_for_all_calls_that_come_meanwhile(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await logged_in(board, person)
    site.change(token_status=429)
    site.expire()
    before = len(requests_for_tokens(site))
    answers = await asyncio.gather(*(session.call("linear__whoami", {}) for _ in range(10)))
    assert {answer.status for answer in answers} == {"tool_unavailable"}
    assert len(requests_for_tokens(site)) == before + 1


def requests_for_tokens(site: LoginSite) -> list[dict[str, Any]]:
    return [request for request in site.requests if request["path"] == "/token"]
