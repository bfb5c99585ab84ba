"""A first call to a server that no one has logged in to finishes in that same call (G11)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from authorization.conftest import running_site, site
from authorization.site import LoginSite
from gateway.clients import HANDSHAKE, MODERN, way_in

__all__ = ["running_site", "site"]

CALL = {"name": "linear__whoami", "arguments": {}}


@pytest.fixture
def config(site: LoginSite, tmp_path: Path) -> Path:
    config = tmp_path / "pegboard.yaml"
    config.write_text(
        f"servers: {{linear: {{url: '{site.url}'}}}}\nagents: {{default: {{discoverable: ['*'], dialect: pegboard}}}}\n"
    )
    return config


class Person:
    """The user of a client: opens the address that the client is asked to show, and logs in there."""

    def __init__(self, action: str = "accept") -> None:
        self.action = action
        self.asked: list[types.ElicitRequestURLParams] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestURLParams)
        self.asked.append(params)
        if self.action == "accept":
            self._tasks.append(asyncio.create_task(self.log_in(params.url)))
        return types.ElicitResult(action=self.action)  # type: ignore[arg-type]

    async def log_in(self, url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            assert (await browser.get(url)).status_code == 200


@asynccontextmanager
async def client_of(target: Any, era: str, person: Person | None) -> AsyncIterator[Client]:
    elicit = None if person is None else person.elicit
    async with httpx2.AsyncClient(timeout=60) as http:
        transport = streamable_http_client(target, http_client=http) if isinstance(target, str) else target
        async with Client(transport, mode=era, elicitation_callback=elicit) as client:
            yield client


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


@pytest.mark.parametrize(("era", "how"), [(MODERN, "http"), (HANDSHAKE, "stdio"), (HANDSHAKE, "http")])
async def test_g11_a_first_call_finishes_in_that_same_call(how: str, era: str, config: Path, site: LoginSite) -> None:
    person = Person()
    async with way_in(how, config) as target, client_of(target, era, person) as client:
        result = await client.call_tool("call_tool", CALL)
    assert not result.is_error, text_of(result)
    assert '"account": "ada"' in text_of(result)
    assert [one.url.startswith(site.origin) for one in person.asked] == [True]
    assert "linear" in person.asked[0].message
    assert site.counts["calls"] == 1


async def test_g11_a_load_finishes_in_that_same_load(config: Path) -> None:
    person = Person()
    async with way_in("http", config) as target, client_of(target, MODERN, person) as client:
        result = await client.call_tool("load_tools", {"names": ["linear"]})
    assert not result.is_error, text_of(result)
    assert "linear__whoami" in text_of(result)
    assert len(person.asked) == 1


@pytest.mark.parametrize("person", [None, Person("decline"), Person("cancel")], ids=["nobody", "declines", "cancels"])
async def test_g11_without_an_answer_the_address_comes_back_and_the_next_call_works(
    person: Person | None, config: Path
) -> None:
    async with way_in("http", config) as target, client_of(target, MODERN, person) as client:
        refused = await client.call_tool("call_tool", CALL)
        assert refused.is_error
        about = (refused.structured_content or {})["login"]
        assert about["url"] in text_of(refused)
        assert len(text_of(refused)) < 1_000
        await Person().log_in(about["url"])
        result = await client.call_tool("call_tool", CALL)
    assert '"account": "ada"' in text_of(result)
