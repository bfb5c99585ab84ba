"""People and tokens: a person is granted and revoked in a few clicks, and no token is kept anywhere (G2, A5)."""

from pathlib import Path

from playwright.async_api import Browser, expect

from pegboard.console.app import ConsoleApp
from pegboard.core.principals.bearer_tokens import Token, digest_of, token_of

from .browser import broken_words, findings, opened, tab_to
from .programs import Program, program
from .running import running
from .test_editing_page import ADA, EVE, app, config, eve, text_of, write

__all__ = ["app", "config", "eve"]


def test_the_digest_of_a_token_is_no_token() -> None:
    """G2: who reads the file gets in with nothing that is there."""
    known = [Token(principal="zoe", value=digest_of("zoe-secret"))]
    assert token_of("zoe-secret", known) is known[0]
    assert token_of(digest_of("zoe-secret"), known) is None
    assert token_of("other", known) is None


async def test_a_person_is_granted_and_revoked_in_a_browser(browser: Browser, config: Path, axe_core: str) -> None:
    """G2: three presses to grant; the token is shown once, works at once, and ends with its revocation."""
    async with running(config) as console, opened(browser, console.origin, expected="401|403") as page:
        await console.sign_in(page, EVE)
        await page.get_by_role("link", name="People and tokens").click()
        assert await findings(page, axe_core) == []
        assert await broken_words(page) == []
        await page.get_by_label("Name").fill("zoe")
        await page.get_by_label("helper").check()
        await tab_to(page, page.get_by_role("button", name="Grant and show the token"))
        await page.keyboard.press("Enter")
        token = await page.locator("#token").inner_text()
        assert await findings(page, axe_core) == []
        assert token not in text_of(config)
        assert digest_of(token) in text_of(config)
        async with console.client("2026-07-28", agent="helper", token=token) as client:
            assert await client.names()
        await page.get_by_role("link", name="People and tokens").last.click()
        await expect(page.get_by_role("row", name="zoe")).to_contain_text("only its digest is kept")
        assert token not in await page.content()
        await page.get_by_role("button", name="Revoke zoe").click()
        await expect(page.get_by_role("button", name="Save")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Saved: Revoke zoe")
        assert "zoe" not in text_of(config)
        assert token_of(token, console.board.configuration.tokens) is None


async def test_what_is_wrong_with_a_grant_stays_as_it_was_typed(eve: Program, config: Path) -> None:
    """A5: and nothing is written."""
    forms: tuple[tuple[dict[str, str], str], ...] = (
        ({"name": "bob", "agent": "helper"}, "token of this name"),
        ({"name": "zo\ne", "agent": "helper"}, "name"),
        ({"name": "zoe"}, "No agent is chosen"),
    )
    for form, wrong in forms:
        response = await eve.client.post("/console/people/grant", data=form)
        assert (response.status_code, wrong in response.text) == (422, True)
        assert ("checked" in response.text) is ("agent" in form)
    before = text_of(config)
    again = {"name": "bob", "agents": ["helper"], "rights": ["see"]}
    code, _, _ = await eve.refused("POST", "/api/people", 409, json=again)
    assert code == "name_taken"
    made = await eve.ask("POST", "/api/people", json={"name": "zoe", "agents": ["helper"], "rights": ["see"]})
    assert text_of(config) == before
    await eve.ask("POST", f"/api/configuration/edits/{made['edit']['id']}/save")
    assert [one["name"] for one in await eve.ask("GET", "/api/people")] == ["eve", "ada", "bob", "zoe"]
    assert made["token"] not in str(await eve.ask("GET", "/api/configuration/file"))


async def test_people_are_for_operators_of_every_agent(app: ConsoleApp) -> None:
    """A5: the right to configure some agents gives no one a token."""
    async with program(app, ADA) as ada:
        assert (await ada.refused("GET", "/api/people", 403))[0] == "every_agent_required"
        body = {"name": "zoe", "agents": ["helper"]}
        assert (await ada.refused("POST", "/api/people", 403, json=body))[0] == "every_agent_required"


async def test_the_first_token_keeps_somebody_who_may_edit(browser: Browser, config: Path) -> None:
    """A5: else no one could."""
    lines = text_of(config).splitlines(keepends=True)
    write(config, "".join(line for line in lines if not line.startswith(("tokens", "  eve", "  ada", "  bob"))))
    async with running(config) as console, opened(browser, console.origin, expected="422|401") as page:
        await console.sign_in(page)
        await page.goto("/console/people")
        await page.get_by_label("Name").fill("zoe")
        await page.get_by_label("helper").check()
        await page.get_by_role("button", name="Grant and show the token").click()
        await expect(page.get_by_role("alert").first).to_contain_text("The first token has to be for every agent")
        await page.get_by_label("Every agent").check()
        await page.get_by_label("Edit the configuration").check()
        await page.get_by_role("button", name="Grant and show the token").click()
        token = await page.locator("#token").inner_text()
        await console.sign_in(page, token)
