"""Logins at servers and issuers that redirect within their origin, and elsewhere (G11)."""

from typing import Any

from authorization.site import LoginSite, login_site
from pegboard import Pegboard

from .conftest import Person

SLASHES = {"/mcp": "/mcp/", "/token": "/token/", "/register": "/register/"}


async def account_of(board: Pegboard, principal: str, person: Person) -> str:
    """Return the account that a call is made with, after a login where one is needed."""
    session = await board.session(agent="default", session_id="t", principal=principal)
    answer = await session.call("linear__whoami", {})
    if answer.login is not None:
        assert (await person(answer.login.url, principal)).status_code == 200
        answer = await session.call("linear__whoami", {})
    assert answer.result is not None, answer
    assert answer.result.structured is not None, answer
    return answer.result.structured["account"]


async def test_g11_logins_are_made_and_renewed_over_redirects(board: Pegboard, site: LoginSite, person: Person) -> None:
    """G11: of the server, its registration and its tokens; each principal keeps the own account."""
    site.change(redirects=SLASHES)
    assert [await account_of(board, name, person) for name in ("ada", "ben")] == ["ada", "ben"]
    site.expire()
    assert [await account_of(board, name, person) for name in ("ada", "ben")] == ["ada", "ben"]
    assert (site.counts["authorizations"], site.counts["refreshes"]) == (2, 2)


async def test_g11_a_token_request_is_not_redirected_to_another_origin(
    configuration: dict[str, Any], site: LoginSite
) -> None:
    """G11: a secret goes to the issuer alone."""
    auth = {"kind": "client_credentials", "client_id": "robot", "client_secret": "robot-secret-0003"}
    configuration["servers"]["linear"]["auth"] = auth
    with login_site() as other:
        site.change(redirects={"/token": f"{other.origin}/token"})
        async with Pegboard.open(configuration) as board:
            session = await board.session(agent="default", session_id="t", principal="ada")
            [missing] = (await session.surface()).missing
        assert f"it redirects to {other.origin}/token, another origin, which is not followed" in missing.reason
        assert other.requests == []
        assert "robot-secret" not in missing.reason


async def test_g11_a_token_request_that_is_redirected_in_a_circle_ends_with_a_reason(
    configuration: dict[str, Any], site: LoginSite
) -> None:
    """G11: whatever is in the circle; the secret is not in the reason, and nothing hangs."""
    auth = {"kind": "client_credentials", "client_id": "robot", "client_secret": "robot-secret-0003"}
    configuration["servers"]["linear"]["auth"] = auth
    for redirects in ({"/token": "/token"}, {"/token": "/other", "/other": "/token"}):
        site.change(redirects=redirects)
        async with Pegboard.open(configuration) as board:
            session = await board.session(agent="default", session_id="t", principal="ada")
            [missing] = (await session.surface()).missing
        assert "it redirects more than 5 times, at last from " in missing.reason
        assert "robot-secret" not in missing.reason
