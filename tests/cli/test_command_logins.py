"""Servers that want a login, as the command has them: taken over from a client, called once (G11)."""

import asyncio
import json
from pathlib import Path

import httpx2
import pytest
from command_support import Run, put

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from pegboard import Pegboard

__all__ = ["running_site", "site"]

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def config(run: Run, site: LoginSite) -> str:
    """Return the configuration that `init --install` made of a client's server that wants a login."""
    put(".cursor/mcp.json", json.dumps({"mcpServers": {"docs": {"url": site.url}}}))
    ran = run("init", "--install", "cursor")
    assert "docs requires a login: pegboard login docs" in ran.out.splitlines()
    return "pegboard.yaml"


async def logged_in(config: str) -> None:
    """Log the user in at the address that the library gives."""
    async with Pegboard.open(config) as board, httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        refused = await (await board.session()).call("docs__whoami", {})
        assert refused.login is not None, refused
        assert (await browser.get(f"{refused.login.url}&account=ada")).status_code == 200


def test_a_server_that_wants_a_login_is_taken_over_and_runs_once_somebody_has_logged_in(run: Run, config: str) -> None:
    assert run("call", "docs__whoami", "--config", config).code == 5
    asyncio.run(logged_in(config))
    assert run("session", "load", "docs", "--config", config).code == 0
    ran = run("call", "docs__whoami", "--config", config, "--json")
    assert (ran.code, ran.json["structured"]["account"]) == (0, "ada")


def test_measure_says_how_a_person_logs_in_and_begins_nothing(run: Run, site: LoginSite) -> None:
    """A header that someone has written is another matter: no one can log in there."""
    headers = {"Authorization": "Bearer wrong-wrong-wrong"}
    servers = {"docs": {"url": site.url}, "own": {"url": site.url, "headers": headers}}
    put(".cursor/mcp.json", json.dumps({"mcpServers": servers}))
    ran = run("measure", ".cursor/mcp.json", "--json")
    docs, own = (row["message"] for row in ran.json["servers"])
    assert ran.code == 6
    assert "it requires a login. Log in: `pegboard login docs`." in docs
    assert "Correct `headers`" not in docs
    assert "Correct `headers`" in own
    assert "registrations" not in site.counts


@pytest.mark.parametrize(("principal", "more"), [("local", ""), ("bob", " --principal bob")])
def test_a_call_of_the_command_shows_no_address_that_dies_with_it(
    run: Run, config: str, site: LoginSite, principal: str, more: str
) -> None:
    """What is to be typed is in its place, in text and JSON; nothing is begun with the issuer."""
    plain = run("call", "docs__whoami", "--principal", principal)
    ran = run("call", "docs__whoami", "--principal", principal, "--json")
    assert (plain.code, ran.code, ran.json["status"]) == (5, 5, "needs_login")
    assert ran.json["structured"]["login"] == {"server": "docs", "command": f"pegboard login docs{more}"}
    assert f"'docs' requires a login: `pegboard login docs{more}`." in plain.err
    assert "http" not in plain.out + plain.err + ran.out
    assert "registrations" not in site.counts
    assert Path(config).is_file()


@pytest.mark.parametrize(("principal", "more"), [("local", ""), ("bob", " --principal bob")])
def test_explain_says_who_has_no_login_and_what_makes_one(run: Run, config: str, principal: str, more: str) -> None:
    """F5: also of a tool that is known, since another has logged in."""
    asked = ("explain", "docs__whoami", "--config", config, "--principal", principal)
    assert run(*asked).out.splitlines()[-1].strip() == f"Next: Log in: pegboard login docs{more}"
    asyncio.run(logged_in(config))
    ran = run(*asked, "--json").json
    codes = [reason["code"] for reason in ran["reasons"]]
    assert ("needs_login" in codes) == (principal == "bob")
    assert not ran["callable"]
