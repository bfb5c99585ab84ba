"""Resources, prompts and completions of a server that wants a login: each principal has their own (G7, G9, G11)."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError

from authorization.conftest import running_site, site
from authorization.protected_server import ME
from authorization.site import LoginSite
from gateway.clients import MODERN, gateway
from gateway.resource_helpers import configured
from gateway.test_login_pages import TOKENS, Browser, browsers, client_of
from pegboard.sources.mcp.login import keeper
from pegboard.sources.mcp.resources import lists

pytestmark = pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")

__all__ = ["browsers", "running_site", "site"]

GREETING = "linear__greeting"
COMPLETED = types.PromptReference(name=GREETING)
ANYTHING = {"name": "who", "value": ""}


@pytest.fixture(params=["shared", "user"])
async def url(request: pytest.FixtureRequest, tmp_path: Path, site: LoginSite) -> AsyncIterator[str]:
    """Return where a gateway is, for both scopes of connections: the default one first."""
    config = configured(
        tmp_path,
        {"linear": {"url": site.url}},
        agents={"default": {"discoverable": ["*"], "dialect": "pegboard", "worker_scope": request.param}},
        tokens={name: {"token": token, "agents": ["default"]} for name, token in TOKENS.items()},
    )
    async with gateway(config) as running:
        yield running.url


async def listed(client: Client) -> list[str]:
    return [str(one.uri) for one in (await client.list_resources(cache_mode="refresh")).resources]


async def told(client: Client) -> list[str]:
    """Return whose a resource, a prompt and a completion are, for a client."""
    [contents] = (await client.read_resource(ME, cache_mode="refresh")).contents
    [message] = (await client.get_prompt(GREETING)).messages
    values = (await client.complete(COMPLETED, ANYTHING)).completion.values
    assert isinstance(contents, types.TextResourceContents)
    assert isinstance(message.content, types.TextContent)
    return [contents.text, message.content.text, *values]


async def refused(client: Client) -> list[str]:
    """Return what a client without a login is told of each."""
    requests: list[Any] = [
        client.read_resource(ME, cache_mode="refresh"),
        client.get_prompt(GREETING),
        client.complete(COMPLETED, ANYTHING),
    ]
    if client.protocol_version != MODERN:
        requests.append(client.subscribe_resource(ME))  # that era has nothing else
    texts: list[str] = []
    for request in requests:
        with pytest.raises(MCPError) as caught:
            await request
        assert caught.value.error.data == {"code": "needs_login"}
        texts.append(caught.value.error.message)
    return texts


def address_in(text: str) -> str:
    [address] = re.findall(r"http://\S+/login/\S+", text)
    return address


async def test_g11_each_principal_reads_as_themselves_once_they_have_logged_in(
    url: str, browsers: list[Browser]
) -> None:
    """G11: no tool is called; who has not logged in is told where, and sees nothing of anyone else."""
    async with client_of(url, "ada", MODERN) as ada, client_of(url, "bob", MODERN) as bob:
        [hers] = {address_in(text) for text in await refused(ada)}
        await browsers[0].log_in(hers, TOKENS["ada"], "ada")
        assert await told(ada) == ["this is ada's", "I am ada", "ada"]
        assert await listed(ada) == [ME, "linear://notes/ada"]
        assert await listed(bob) == []
        texts = await refused(bob)
        [his] = {address_in(text) for text in texts}
        said = " ".join(texts).replace(his, "")  # whose ID is any
        assert (his != hers, "401" in said, "ada" in said) == (True, False, False)
        await browsers[1].log_in(his, TOKENS["bob"], "ben")
        assert await told(bob) == ["this is ben's", "I am ben", "ben"]
        assert await listed(bob) == [ME, "linear://notes/ben"]
        assert await listed(ada) == [ME, "linear://notes/ada"]
        assert await told(ada) == ["this is ada's", "I am ada", "ada"]


async def test_g11_nobody_reads_what_is_only_anothers(url: str, browsers: list[Browser]) -> None:
    async with client_of(url, "ada", MODERN) as ada, client_of(url, "bob", MODERN) as bob:
        for client, name, account, browser in ((ada, "ada", "ada", browsers[0]), (bob, "bob", "ben", browsers[1])):
            address = address_in((await refused(client))[0])
            await browser.log_in(address, TOKENS[name], account)
        assert (await ada.read_resource("linear://notes/ada")).contents
        with pytest.raises(MCPError, match="linear://notes/ada"):
            await bob.read_resource("linear://notes/ada")


async def test_g11_who_logs_in_as_somebody_else_is_listed_nothing_of_before(
    url: str, site: LoginSite, browsers: list[Browser]
) -> None:
    """G11: a list that was kept counts only for the login with which it was read."""
    async with client_of(url, "ada", MODERN) as ada:
        await browsers[0].log_in(address_in((await refused(ada))[0]), TOKENS["ada"], "ada")
        assert await listed(ada) == [ME, "linear://notes/ada"]
        site.log_out_all()
        address = address_in((await refused(ada))[0])
        assert await listed(ada) == []
        await browsers[0].log_in(address, TOKENS["ada"], "ben")
        assert await listed(ada) == [ME, "linear://notes/ben"]
        assert await told(ada) == ["this is ben's", "I am ben", "ben"]


async def test_g11_a_list_is_not_read_anew_because_its_login_is_looked_at_again(
    url: str, browsers: list[Browser], site: LoginSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with client_of(url, "ada", MODERN) as ada:
        await browsers[0].log_in(address_in((await refused(ada))[0]), TOKENS["ada"], "ada")
        monkeypatch.setattr(lists, "_FRESH", 60.0)
        monkeypatch.setattr(keeper, "FRESH", 0.0)
        first = await listed(ada)
        before = site.counts["lists"]
        assert await listed(ada) == first
        assert site.counts["lists"] == before


async def test_g8_a_kept_list_is_its_owners_over_a_restart(
    tmp_path: Path, site: LoginSite, browsers: list[Browser]
) -> None:
    """G8, G11: who has no login is given nothing that was kept of another, nor what was kept of a login of before."""
    tokens = {name: {"token": token, "agents": ["default"]} for name, token in TOKENS.items()}
    config = configured(tmp_path, {"linear": {"url": site.url}}, tokens=tokens)
    async with gateway(config) as running, client_of(running.url, "ada", MODERN) as ada:
        await browsers[0].log_in(address_in((await refused(ada))[0]), TOKENS["ada"], "ada")
        assert await listed(ada) == [ME, "linear://notes/ada"]
    async with (
        gateway(config) as running,
        client_of(running.url, "ada", MODERN) as ada,
        client_of(running.url, "bob", MODERN) as bob,
    ):
        assert await listed(ada) == [ME, "linear://notes/ada"]
        assert await listed(bob) == []
        site.log_out_all()
        address = address_in((await refused(ada))[0])
        await browsers[0].log_in(address, TOKENS["ada"], "ben")
    async with gateway(config) as running, client_of(running.url, "ada", MODERN) as ada:
        assert await listed(ada) == [ME, "linear://notes/ben"]
