"""Logging in to a server and out of it in the console: each operator for themselves, and no one for another (G11)."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.async_api import Browser, expect

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from pegboard import Pegboard
from pegboard.operators.logins import OperatorLogins

from .addresses import Visitor, visitor
from .browser import findings, opened, tab_to
from .programs import ORIGIN, program, serving
from .running import running

__all__ = ["running_site", "site"]

ODD = 'odd/<b> & "näme"'
TOKENS = {
    "ada": {"token": "ada-ada-ada-ada-ada-ada", "agents": ["*"], "console": True},
    "bob": {"token": "bob-bob-bob-bob-bob-bob", "agents": ["user"], "console": ["see"]},
    "eve": {"token": "eve-eve-eve-eve-eve-eve", "agents": ["idler"], "console": True},
}


@pytest.fixture
def config(tmp_path: Path, site: LoginSite) -> Path:
    path = tmp_path / "pegboard.yaml"
    content = {
        "store": f"sqlite:///{tmp_path}/pegboard.db",
        "servers": {ODD: {"url": site.url}},
        "agents": {"user": {"discoverable": [ODD], "dialect": "pegboard"}, "idler": {"tools": []}},
        "tokens": TOKENS,
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
async def visitors(config: Path) -> AsyncIterator[dict[str, Visitor]]:
    """Return a browser without a script for each operator, and one that no one has signed in with."""
    async with Pegboard.open(config) as board, serving(board) as (app, access), AsyncExitStack() as stack:
        await board.ready()
        found = {
            name: await stack.enter_async_context(visitor(app, access, one["token"])) for name, one in TOKENS.items()
        }
        nobody = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ORIGIN)
        await stack.enter_async_context(nobody)
        yield {**found, "nobody": Visitor(nobody, found["ada"].sign_in)}


async def begin(visitor: Visitor) -> str:
    """Press the button; return where the browser is sent on to."""
    begun = await visitor.client.post("/console/login", data={"name": ODD, "csrf": visitor.sign_in.csrf})
    assert begun.status_code == 200, begun.text
    return begun.headers["refresh"].removeprefix("0; url=")


async def agree(url: str, account: str) -> str:
    """Log in at the issuer; return the address of the console that the browser is sent back to."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(f"{url}&{urlencode({'account': account})}")
        while answer.is_redirect and urlsplit(answer.headers["location"]).path != "/console/login/callback":
            answer = await browser.get(answer.headers["location"])
    back = answer.headers["location"]
    assert back.startswith(f"{ORIGIN}/console/login/callback?")
    return back


async def test_g11_an_operator_logs_in_and_out_with_the_keyboard(
    browser: Browser, config: Path, site: LoginSite, axe_core: str
) -> None:
    """G11: from the start page to the issuer, which is another site, and back to the server's page, with its tools."""
    site.change(consent="page")
    async with running(config) as served:
        console = replace(served, origin=served.origin.replace("127.0.0.1", "localhost"))
        await console.board.ready()
        async with opened(browser, console.origin, site.origin, theme="dark", width=400) as page:
            await console.sign_in(page, TOKENS["ada"]["token"])
            await page.goto("/console/servers")
            await expect(page.locator("#server-1")).to_contain_text("login required")
            await page.goto("/console")
            await expect(page.locator("#need-1")).to_contain_text(f"Server '{ODD}' needs a login")
            assert await findings(page, axe_core) == []
            await tab_to(page, page.get_by_role("button", name=f"Log in to {ODD}"))
            await page.keyboard.press("Enter")
            await tab_to(page, page.get_by_role("link", name="Continue as ada"))
            await page.keyboard.press("Enter")
            finish = page.get_by_role("button", name=f"Finish the login to '{ODD}' as ada")
            await expect(finish).to_be_focused()
            assert await findings(page, axe_core) == []
            await page.keyboard.press("Enter")
            await expect(page.locator("#notices")).to_contain_text(f"You are logged in to '{ODD}'.")
            await expect(page.get_by_role("heading", level=1)).to_contain_text(ODD)
            await expect(page.locator(".login")).to_contain_text("Logged in: ada.")
            await expect(page.locator("#tool-1")).to_be_visible()
            assert await findings(page, axe_core) == []
            await tab_to(page, page.locator("#log-out"))
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("dialog")).to_contain_text("revokes it at the server that issued it")
            assert await findings(page, axe_core) == []
            await page.keyboard.press("Enter")
            await expect(page.locator("#notices")).to_contain_text(f"You are logged out of '{ODD}'.")
            await page.reload()
            await expect(page.locator("h1")).to_contain_text("login required")
            await expect(page.locator("#log-in")).to_be_visible()


async def test_g11_a_principal_of_a_gateway_logs_in_at_its_page_with_the_keyboard(
    browser: Browser, config: Path, site: LoginSite, axe_core: str
) -> None:
    """G11: the issuer is another site, and the browser comes back as the one that was proven."""
    site.change(consent="page")
    async with running(config) as console:
        url = console.origin.replace("127.0.0.1", "localhost")
        await console.board.ready()
        headers = {"Authorization": f"Bearer {TOKENS['bob']['token']}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp/user", http_client=http), mode="legacy") as client,
            opened(browser, url, site.origin) as page,
        ):
            answer = await client.call_tool("load_tools", {"names": [ODD]})
            [address] = [word for word in str(answer.content).split() if "/login/" in word]
            assert address.startswith(f"{url}/login/")
            await page.goto(address)
            await expect(page.get_by_label("Your token for this gateway")).to_be_focused()
            assert await findings(page, axe_core) == []
            await page.keyboard.type(str(TOKENS["bob"]["token"]))
            await page.keyboard.press("Enter")
            await tab_to(page, page.get_by_role("link", name="Continue as ben"))
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("heading", name="Logged in")).to_be_visible()
            assert await findings(page, axe_core) == []
            await client.call_tool("load_tools", {"names": [ODD]})
        assert [one.principal for one in await OperatorLogins(console.board.services).listed()] == ["bob"]


async def test_g11_nobody_completes_the_login_of_another_operator(
    visitors: dict[str, Visitor], site: LoginSite
) -> None:
    """G11: two operators; whoever only looks uses nothing up, and each address counts once."""
    ada, bob = visitors["ada"], visitors["bob"]
    back = await agree(await begin(ada), "ada")
    assert (await bob.client.get(back)).status_code == 403
    refused = await bob.client.post(back)
    assert (refused.status_code, "belongs to another person" in refused.text) == (403, True)
    assert (await ada.client.head(back)).status_code == 200
    shown = await ada.client.get(back)
    assert "as <bdi>ada</bdi>" in shown.text
    assert "<b>" not in shown.text
    done = await ada.client.post(back)
    assert (done.status_code, done.headers["location"].partition("?")[0]) == (303, "/console/server")
    again = await ada.client.post(back)
    assert again.status_code == 403
    page = (await ada.client.get(done.headers["location"])).text
    assert "Logged in:" in page
    for text in (shown.text, page, refused.text, again.text, (await ada.client.get("/api/servers")).text):
        assert [secret for secret in site.secrets if secret in text] == []


async def test_g11_another_site_completes_nothing(visitors: dict[str, Visitor]) -> None:
    """G11, G2: the button is this console's own."""
    ada = visitors["ada"]
    back = await agree(await begin(ada), "ada")
    assert (await ada.client.post(back, headers={"origin": "https://evil.example"})).status_code == 403
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert (await ada.client.post(back, headers=foreign)).status_code == 403
    assert (await ada.client.get(back, headers=foreign)).status_code == 200
    assert (await ada.client.post(back)).status_code == 303


async def test_g11_who_is_not_signed_in_signs_in_first_and_goes_on(visitors: dict[str, Visitor]) -> None:
    nobody = visitors["nobody"].client
    back = await agree(await begin(visitors["bob"]), "ben")
    asked = await nobody.post(back)
    assert (asked.status_code, 'name="secret"' in asked.text) == (200, True)
    for wrong, status in (("nonsense", 401), (TOKENS["ada"]["token"], 403)):
        assert (await nobody.post(back, data={"secret": wrong})).status_code == status
        nobody.cookies.clear()
    done = await nobody.post(back, data={"secret": TOKENS["bob"]["token"]})
    assert (done.status_code, done.headers["location"]) == (303, "/console")
    assert "You are logged in to" in (await nobody.get("/console")).text


async def test_g11_programs_begin_and_end_logins_of_their_operator(config: Path) -> None:
    """G11: to see an agent that may use the server is enough; another's login is neither seen nor ended."""
    address = f"/api/logins/{ODD.replace('/', '%2F')}"
    async with Pegboard.open(config) as board, serving(board) as (app, access), AsyncExitStack() as stack:
        await board.ready()
        ada, bob, eve = [await stack.enter_async_context(program(app, one["token"])) for one in TOKENS.values()]
        browser = await stack.enter_async_context(visitor(app, access, TOKENS["bob"]["token"]))
        assert await eve.ask("GET", "/api/logins") == []
        assert (await eve.refused("POST", address, 404))[0] == "unknown_name"
        missing = {"server": ODD, "login": "needed", "mine": False, "principals": []}
        assert await bob.ask("GET", "/api/logins") == await ada.ask("GET", "/api/logins") == [missing]
        begun = await bob.ask("POST", address)
        assert begun == await bob.ask("POST", address)
        assert (await browser.client.post(await agree(begun["url"], "ben"))).status_code == 303
        assert await bob.ask("GET", "/api/logins") == [{**missing, "login": "held", "mine": True}]
        assert await ada.ask("GET", "/api/logins") == [{**missing, "login": "held", "principals": ["bob"]}]
        [state] = await ada.ask("GET", "/api/servers")
        assert (state["login"], state["logins"]) == ("held", ["bob"])
        assert (await bob.refused("POST", address, 400))[1].endswith("requires no login, or you have a valid one.")
        assert await ada.ask("DELETE", address) == {"ended": False}
        assert await bob.ask("DELETE", address) == {"ended": True}
        assert await ada.ask("GET", "/api/logins") == [missing]
