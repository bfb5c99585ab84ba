"""Logins of the principals of a gateway: only who proves to be a principal completes a login of theirs (G11)."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from gateway.clients import MODERN
from pegboard import Pegboard
from pegboard.gateway import serving

__all__ = ["running_site", "site"]

ODD = "odd <b> & x"
TOKENS = {"ada": "ada-ada-ada-ada-ada-ada", "bob": "bob-bob-bob-bob-bob-bob"}
CALL = {"name": "linear__whoami", "arguments": {}}
LOAD = {"names": [ODD]}


@pytest.fixture
async def gateway(tmp_path: Path, site: LoginSite) -> AsyncIterator[str]:
    configuration = {
        "store": f"sqlite:///{tmp_path}/pegboard.db",
        "servers": {"linear": {"url": site.url}, ODD: {"url": f"{site.url}?odd=1"}},
        "agents": {"default": {"discoverable": ["*"], "dialect": "pegboard"}},
        "tokens": {name: {"token": token, "agents": ["default"]} for name, token in TOKENS.items()},
    }
    async with Pegboard.open(configuration) as board, serving(board, port=0) as url:
        yield url


class Browser:
    """A browser without a script, with the cookies that it was given; it follows what a page of the gateway says."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def prove(self, address: str, token: str) -> httpx2.Response:
        """Open the address, and give a token."""
        assert 'name="token"' in (await self.http.get(address)).text
        return await self.http.post(address, data={"token": token})

    async def agree(self, proven: httpx2.Response, account: str) -> str:
        """Log in at the issuer; return the address of the gateway that it sends the browser back to."""
        url = proven.headers["refresh"].removeprefix("0; url=")
        answer = await self.http.get(f"{url}&{urlencode({'account': account})}")
        while urlsplit(answer.headers["location"]).path != "/login/callback":
            answer = await self.http.get(answer.headers["location"])
        return answer.headers["location"]

    async def log_in(self, address: str, token: str, account: str) -> httpx2.Response:
        """Do all of it."""
        return await self.http.get(await self.agree(await self.prove(address, token), account))


@pytest.fixture
async def browsers() -> AsyncIterator[list[Browser]]:
    async with AsyncExitStack() as stack:
        yield [Browser(await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))) for _ in range(2)]


@asynccontextmanager
async def client_of(url: str, name: str, era: str, elicit: Any = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {TOKENS[name]}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=era, elicitation_callback=elicit) as client:
            yield client


async def address_for(client: Client) -> str:
    """Return the address that a call without a login answers with."""
    answer = await client.call_tool("call_tool", CALL)
    assert answer.is_error
    return (answer.structured_content or {})["login"]["url"]


async def test_g11_a_call_finishes_once_its_principal_has_proven_who_they_are(
    gateway: str, browsers: list[Browser]
) -> None:
    """G11: the address that a client is asked to show is the gateway's own."""
    asked: list[str] = []

    async def elicit(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        asked.append(params.url)
        done = await browsers[0].log_in(params.url, TOKENS["bob"], "ben")
        assert (done.status_code, "You are logged in to <bdi>linear</bdi>" in done.text) == (200, True)
        return types.ElicitResult(action="accept")

    async with client_of(gateway, "bob", MODERN, elicit) as client:
        answer = await client.call_tool("call_tool", CALL)
    assert '"account": "ben"' in str(answer.content)
    assert [url.rpartition("/")[0] for url in asked] == [gateway.replace("/mcp", "/login")]


async def test_g11_nobody_uses_the_address_of_somebody_else(
    gateway: str, browsers: list[Browser], site: LoginSite
) -> None:
    """G11: two principals; neither another's token nor the answer in another's browser counts, nor one twice."""
    hers, his = browsers
    async with client_of(gateway, "ada", MODERN) as ada, client_of(gateway, "bob", MODERN) as bob:
        address = await address_for(ada)
        for wrong in (TOKENS["bob"], "", "nonsense"):
            refused = await his.prove(address, wrong)
            assert (refused.status_code, "refresh" in refused.headers, "set-cookie" in refused.headers) == (
                403,
                False,
                False,
            )
        proven = await hers.prove(address, TOKENS["ada"])
        cookie = proven.headers["set-cookie"].lower()
        assert all(part in cookie for part in ("httponly", "samesite=lax", "path=/login"))
        back = await hers.agree(proven, "ada")
        elsewhere = await his.http.get(back)
        assert elsewhere.status_code == 403
        assert (await hers.http.head(back)).status_code == 200
        assert (await hers.http.head(address)).status_code == 200
        done = await hers.http.get(back)
        assert done.status_code == 200
        again = await hers.http.get(back)
        assert again.status_code == 403
        assert (await hers.http.get(address)).status_code == 404
        assert '"account": "ada"' in str((await ada.call_tool("call_tool", CALL)).content)
        assert "/login/" in await address_for(bob)
    for page in (proven, elsewhere, done, again):
        texts = page.text + str(page.headers)
        assert [secret for secret in (*site.secrets, *TOKENS.values()) if secret in texts] == []


async def test_g11_a_page_of_another_port_sends_nobody_on_their_way(gateway: str, browsers: list[Browser]) -> None:
    """G11: bob's page posts bob's token in ada's browser, which has her account at the issuer."""
    [hers, _] = browsers
    async with client_of(gateway, "bob", MODERN) as bob:
        address = await address_for(bob)
        own = urlsplit(address)
        elsewhere = (
            {"Origin": "http://localhost:9"},
            {"Origin": f"{own.scheme}://{own.hostname}:9"},
            {"Origin": f"{own.scheme}://{own.netloc}", "Sec-Fetch-Site": "same-site"},
        )
        for headers in elsewhere:
            refused = await hers.http.post(address, data={"token": TOKENS["bob"]}, headers=headers)
            assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
            assert "nothing was done" in refused.text
        here = {"Origin": f"{own.scheme}://{own.netloc}", "Sec-Fetch-Site": "same-origin"}
        sent = await hers.http.post(address, data={"token": TOKENS["bob"]}, headers=here)
        assert (sent.status_code, "refresh" in sent.headers) == (200, True)


async def test_g11_who_has_no_token_is_sent_nowhere(gateway: str, browsers: list[Browser]) -> None:
    """G11, G2: nor another site, nor an address that someone has made up."""
    async with client_of(gateway, "ada", MODERN) as ada:
        address = await address_for(ada)
    http, base = browsers[0].http, gateway.replace("/mcp", "")
    forged = {"origin": "https://evil.example"}
    assert (await http.post(address, data={"token": TOKENS["ada"]}, headers=forged)).status_code == 403
    assert (await http.put(address)).status_code == 405
    for made_up in ("/login", "/login/", "/login/abc", "/login/..%2fmcp", "/login/callbacks"):
        assert (await http.get(f"{base}{made_up}")).status_code == 404
    for query in ("", "?state=", "?state=abc.def", f"?state={address.rpartition('/')[2]}", "?code=x&state=%00"):
        assert (await http.get(f"{base}/login/callback{query}")).status_code == 403
    asked = await http.get(address)
    assert asked.headers["content-security-policy"].startswith("default-src 'none'")


async def test_g11_the_name_of_a_server_is_no_markup(gateway: str, browsers: list[Browser]) -> None:
    async with client_of(gateway, "ada", MODERN) as ada:
        answer = await ada.call_tool("load_tools", LOAD)
    [address] = [word for word in str(answer.content).split() if "/login/" in word]
    page = (await browsers[0].http.get(address)).text
    assert "odd &lt;b&gt; &amp; x" in page
    assert "<b>" not in page
