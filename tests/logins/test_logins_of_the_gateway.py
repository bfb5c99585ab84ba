"""Logins without a browser: the gateway's own, by a secret or a key, and a person's, by a code (G11)."""

import asyncio
from typing import Any

import httpx2
import pytest

from authorization.site import LoginSite
from pegboard import Pegboard
from pegboard.core.access.instances import LoginOwner
from pegboard.operators.logins import OperatorLogins


def configured(configuration: dict[str, Any], auth: dict[str, Any]) -> dict[str, Any]:
    return {**configuration, "servers": {"linear": {**configuration["servers"]["linear"], "auth": auth}}}


async def client_of(board: Pegboard, principal: str) -> Any:
    session = await board.session(agent="default", session_id="t", principal=principal)
    answer = await session.call("linear__whoami", {})
    assert answer.result.structured is not None, answer
    return answer.result.structured["client"]


@pytest.mark.parametrize("kind", ["client_credentials", "private_key_jwt"])
async def test_g11_the_gateway_logs_in_for_itself_and_for_all_who_use_it(
    kind: str, configuration: dict[str, Any], site: LoginSite
) -> None:
    own = {"client_id": "robot", "client_secret": "robot-secret-0003"}
    signed = {"client_id": "signer", "client_secret": site.signer_key}
    auth = {"kind": kind, **(signed if kind == "private_key_jwt" else own)}
    async with Pegboard.open(configured(configuration, auth)) as board:
        assert [await client_of(board, name) for name in ("ada", "bob")] == [auth["client_id"]] * 2
        site.expire()
        assert await client_of(board, "ada") == auth["client_id"]
        [login] = await OperatorLogins(board.services).listed()
        assert (login.principal, login.server) == ("", "linear")
    assert site.counts["machine_logins"] == 2


async def test_g11_a_server_that_the_gateways_login_is_not_enough_for_asks_no_person(
    configuration: dict[str, Any], site: LoginSite
) -> None:
    auth = {"kind": "client_credentials", "client_id": "robot", "client_secret": "robot-secret-0003"}
    async with Pegboard.open(configured(configuration, auth)) as board:
        session = await board.session(agent="default", session_id="t", principal="ada")
        answer = await session.call("linear__write", {"text": "x"})
    assert (answer.status, answer.login) == ("tool_unavailable", None)
    assert "it requires one that allows write" in answer.message
    assert "Correct `auth` in `servers: linear`" in answer.message
    assert "authorizations" not in site.counts


async def test_g11_a_client_that_its_issuer_refuses_says_so_without_its_secret(configuration: dict[str, Any]) -> None:
    auth = {"kind": "client_credentials", "client_id": "robot", "client_secret": "wrong-secret-0009"}
    async with Pegboard.open(configured(configuration, auth)) as board:
        session = await board.session(agent="default", session_id="t", principal="ada")
        [missing] = (await session.surface()).missing
    assert "its issuer refuses `robot` of `auth` (" in missing.reason
    assert "wrong-secret" not in missing.reason


async def test_g11_a_code_that_is_typed_elsewhere_completes_a_login(board: Pegboard, site: LoginSite) -> None:
    logins = OperatorLogins(board.services)
    pending = await logins.begin("linear", LoginOwner("ada"), device=True)
    assert pending is not None
    assert pending.code_url == f"{site.origin}/device"
    waiting = asyncio.create_task(logins.wait(pending))
    async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        typed = {"user_code": pending.code, "account": "ben"}
        assert (await browser.get(pending.code_url, params=typed)).status_code == 200
    assert await asyncio.wait_for(waiting, 30) == "completed"
    session = await board.session(agent="default", session_id="t", principal="ada")
    assert ((await session.call("linear__whoami", {})).result.structured or {})["account"] == "ben"


async def test_g11_no_code_is_shown_that_would_be_typed_at_an_address_that_is_not_safe(
    board: Pegboard, site: LoginSite
) -> None:
    site.reset(verification_uri="http://10.255.255.1/device")
    pending = await OperatorLogins(board.services).begin("linear", LoginOwner("ada"), device=True)
    assert pending is not None
    assert (pending.code, pending.code_url) == ("", "")
    assert pending.url.startswith(site.origin)


async def test_g11_kind_none_never_asks_for_a_login(configuration: dict[str, Any]) -> None:
    async with Pegboard.open(configured(configuration, {"kind": "none"})) as board:
        session = await board.session(agent="default", session_id="t", principal="ada")
        [missing] = (await session.surface()).missing
    assert "HTTP 401" in missing.reason
    assert "wants a login" not in missing.reason
