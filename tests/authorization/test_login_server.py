"""The authorization server of the tests is a right one: the SDK's own clients log in, and its promises hold."""

import asyncio
from typing import Any

import httpx2
import pytest
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)

from authorization.clients import DEVICE_CODE
from authorization.raw_client import exchanged, logged_in, login_address, post, refreshed, registered, status_with
from authorization.sdk_client import REDIRECT, Kept, followed, sdk_client, sdk_login, whoami
from authorization.site import LoginSite, login_site
from gateway.clients import until

ALLOWED = 400  # past the guard: what the transport itself thinks of a request without a session
REFUSED = 401


async def named(site: LoginSite, auth: Any, mode: str = "auto") -> Any:
    async with sdk_client(site.url, auth, mode) as client:
        return await whoami(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_of_the_sdk_logs_in_and_calls_in_both_eras(site: LoginSite, mode: str) -> None:
    kept = Kept()
    who = await named(site, sdk_login(site.url, kept, "ben"), mode)
    assert kept.client is not None
    assert who == {"account": "ben", "client": kept.client.client_id, "scopes": ["read"]}
    assert site.counts["registrations"] == site.counts["authorizations"] == site.counts["exchanges"] == 1


async def test_an_expired_token_is_refreshed_without_a_person(site: LoginSite) -> None:
    kept = Kept()
    await named(site, sdk_login(site.url, kept))
    assert kept.tokens is not None
    first, kept.tokens.expires_in = kept.tokens.refresh_token, -1
    site.expire()
    provider = sdk_login(site.url, kept)
    provider.context.token_expiry_time = 1  # the SDK keeps no expiry
    assert (await named(site, provider))["account"] == "ada"
    assert (site.counts["refreshes"], site.counts["authorizations"]) == (1, 1)
    assert kept.tokens.refresh_token not in (first, None)


async def test_a_refresh_token_works_once_and_its_reuse_ends_the_whole_family(site: LoginSite) -> None:
    client = await registered(site)
    first = await logged_in(site, client)
    other = await logged_in(site, client, "ben")
    _, second = await refreshed(site, client, first["refresh_token"])
    assert await status_with(site, second["access_token"]) == ALLOWED
    status, problem = await refreshed(site, client, first["refresh_token"])
    assert (status, problem["error"]) == (400, "invalid_grant")
    assert await refreshed(site, client, second["refresh_token"]) == (status, problem)
    assert [await status_with(site, one["access_token"]) for one in (first, second)] == [REFUSED, REFUSED]
    assert await status_with(site, other["access_token"]) == ALLOWED
    assert (site.counts["refreshes"], site.counts["reuses"]) == (1, 1)


async def test_a_code_works_once_and_its_reuse_takes_the_tokens_back(site: LoginSite) -> None:
    client = await registered(site)
    back = await followed(login_address(site, client))
    _, tokens = await exchanged(site, client, back["code"])
    assert (back["state"], back["iss"]) == ("state-1", site.origin)
    status, problem = await exchanged(site, client, back["code"])
    assert (status, problem["error"]) == (400, "invalid_grant")
    assert await status_with(site, tokens["access_token"]) == REFUSED
    assert site.counts["codes_reused"] == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"code_verifier": "x" * 50}, "invalid_grant"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"redirect_uri": "http://127.0.0.1:3001/callback"}, "invalid_request"),
        ({"client_id": "nobody"}, "invalid_client"),
    ],
)
async def test_a_code_is_worth_nothing_with_anything_wrong(site: LoginSite, changes: Any, problem: str) -> None:
    client = await registered(site)
    back = await followed(login_address(site, client))
    _, answer = await exchanged(site, client, back["code"], **changes)
    assert answer["error"] == problem


async def test_what_is_wrong_with_a_login_comes_back_to_the_client(site: LoginSite) -> None:
    client = await registered(site)
    wrong = [{"resource": "https://other.example/mcp"}, {"scope": "everything"}]
    back = [await followed(login_address(site, client, **changes)) for changes in wrong]
    site.change(consent="refuse")
    back.append(await followed(login_address(site, client)))
    assert [one["error"] for one in back] == ["invalid_target", "invalid_scope", "access_denied"]
    assert {(one["state"], one["iss"]) for one in back} == {("state-1", site.origin)}


async def test_a_revoked_token_takes_its_family_with_it(site: LoginSite) -> None:
    client = await registered(site)
    tokens = await logged_in(site, client)
    assert await post(site, "/revoke", token=tokens["refresh_token"], client_id=client) == (200, {})
    assert await status_with(site, tokens["access_token"]) == REFUSED
    assert site.counts["revocations"] == 1


async def test_more_scopes_are_asked_for_where_a_tool_needs_them(site: LoginSite) -> None:
    async with sdk_client(site.url, sdk_login(site.url, Kept())) as client:
        await whoami(client)
        await client.call_tool("write", {"text": "x"})
        assert (await whoami(client))["scopes"] == ["read", "write"]
    assert (site.counts["authorizations"], site.counts["insufficient"]) == (2, 1)


async def test_a_machine_without_a_browser_is_logged_in_elsewhere(site: LoginSite) -> None:
    client = await registered(site)
    _, started = await post(site, "/device_authorization", client_id=client, scope="read", resource=site.url)
    form = {"grant_type": DEVICE_CODE, "device_code": started["device_code"], "client_id": client, "resource": site.url}
    assert await post(site, "/token", **form) == (400, {"error": "authorization_pending"})
    site.change(device_interval=60)
    assert await post(site, "/token", **form) == (400, {"error": "slow_down"})
    site.change(device_interval=0)
    page = await visited(f"{started['verification_uri_complete']}&account=ben")
    status, tokens = await post(site, "/token", **form)
    assert "The device is logged in" in page
    assert (status, await status_with(site, tokens["access_token"])) == (200, ALLOWED)
    assert (await post(site, "/token", **form))[1]["error"] == "invalid_grant"


async def visited(address: str) -> str:
    async with httpx2.AsyncClient(trust_env=False) as browser:
        return (await browser.get(address)).text


async def test_a_client_logs_in_for_itself_with_a_secret(site: LoginSite) -> None:
    secret = "robot-secret-0003"
    auth = ClientCredentialsOAuthProvider(site.url, Kept(), "robot", secret, scope="read", issuer=site.origin)
    assert (await named(site, auth))["account"] == "robot"
    assert site.counts["machine_logins"] == 1


@pytest.mark.parametrize("behind", [0, 600])
async def test_a_client_logs_in_for_itself_with_a_key_unless_the_clocks_differ(site: LoginSite, behind: float) -> None:
    signed = SignedJWTParameters(
        issuer="signer", subject="signer", signing_key=site.signer_key, signing_algorithm="ES256"
    )
    auth = PrivateKeyJWTOAuthProvider(
        site.url, Kept(), "signer", signed.create_assertion_provider(), issuer=site.origin, scope="read"
    )
    site.change(clock=behind)
    if behind:
        with pytest.raises(BaseExceptionGroup):
            await named(site, auth)
    else:
        assert (await named(site, auth))["account"] == "signer"


async def test_an_address_is_a_client_if_its_document_says_so(site: LoginSite) -> None:
    address = "https://client.example/client.json"
    document = {"client_id": address, "redirect_uris": [REDIRECT], "client_name": "Described"}
    site.change(client_documents={address: document})
    who = await named(site, sdk_login(site.url, Kept(), client_metadata_url=address))
    assert who["client"] == address
    assert "registrations" not in site.counts
    site.change(client_documents={address: {**document, "client_id": "https://other.example/client.json"}})
    with pytest.raises(AssertionError, match="not found"):
        await followed(login_address(site, address))


async def test_those_who_are_logged_out_log_in_again_and_those_who_are_forgotten_register_again(
    site: LoginSite,
) -> None:
    client = await registered(site)
    tokens = await logged_in(site, client)
    site.log_out_all()
    assert await status_with(site, tokens["access_token"]) == REFUSED
    assert (await refreshed(site, client, tokens["refresh_token"]))[1]["error"] == "invalid_grant"
    tokens = await logged_in(site, client)
    site.forget_clients()
    assert await status_with(site, tokens["access_token"]) == ALLOWED
    assert (await refreshed(site, client, tokens["refresh_token"]))[1]["error"] == "invalid_client"


async def test_an_answer_can_be_held_back_after_the_token_was_used_up(site: LoginSite) -> None:
    client = await registered(site)
    tokens = await logged_in(site, client)
    site.change(hold="after")
    waiting = asyncio.create_task(refreshed(site, client, tokens["refresh_token"]))
    await until(lambda: site.counts.get("held") == 1)
    assert site.counts["refreshes"] == 1
    site.change(hold="")
    assert (await waiting)[0] == 200


async def test_the_server_of_one_site_trusts_the_issuer_of_another(site: LoginSite) -> None:
    with login_site(protects=(site.url,)) as elsewhere:
        site.change(authorization_server=elsewhere.origin)
        assert (await named(site, sdk_login(site.url, Kept())))["account"] == "ada"
        assert elsewhere.counts["exchanges"] == 1
    assert "exchanges" not in site.counts


async def test_everything_that_was_given_out_is_known_to_the_test(site: LoginSite) -> None:
    client = await registered(site)
    tokens = await logged_in(site, client)
    assert {tokens["access_token"], tokens["refresh_token"]} < set(site.secrets)
    asked = [one["parameters"]["resource"] for one in site.requests if "resource" in one["parameters"]]
    assert asked == [site.url, site.url]
