"""Sub-apps over every way into the gateway, in both eras."""

import asyncio
from pathlib import Path

import httpx2
import pytest
from mcp import MCPError

from pegboard import Pegboard, UsageError
from pegboard.gateway import serving

from .clients import HANDSHAKE, MODERN, connected, edit, gateway, spawn, until

BILLING = '''
def invoice_list() -> str:
    """List invoices."""
    return "two invoices"


def invoice_send() -> str:
    """Send an invoice."""
    return "sent"
'''
CONFIG = """
store: sqlite:///state.db
plugins: {billing: {python: billing_tools}}
sub_apps:
  billing: {tool_names: [invoice_list]}
  sending: {tool_names: [invoice_send]}
  hidden: {tool_names: [invoice_send]}
agents:
  default: {sub_apps: [billing, sending]}
  other: {}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "billing_tools.py").write_text(BILLING)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


async def test_the_address_opens_a_sub_app_that_the_agent_lists(config: Path) -> None:
    """T9, G1, G4: its tools are there from the start for that address alone, and can be called there alone."""
    async with gateway(config) as running:
        async with connected(f"{running.url}/default?sub_app=billing", MODERN) as opened:
            assert await opened.names() == ["invoice_list"]
            assert await opened.text("invoice_list") == "two invoices"
            with pytest.raises(MCPError, match="'invoice_send' was not found"):
                await opened.call("invoice_send")
        async with connected(f"{running.url}?sub_app=sending", MODERN) as opened:
            assert await opened.names() == ["invoice_send"]
        async with connected(running.url, MODERN) as plain:
            assert await plain.names() == []
            with pytest.raises(MCPError, match="'invoice_list' was not found"):
                await plain.call("invoice_list")


@pytest.mark.parametrize(
    "query",
    [
        "sub_app=hidden",
        "sub_app=nope",
        "sub_app=",
        "sub_app=BILLING",
        "sub_app=%00",
        "sub_app=billing%0a",
        f"sub_app={'x' * 2000}",
    ],
)
async def test_another_sub_app_is_not_found(config: Path, query: str) -> None:
    """T9, P9: one that there is and one that there is not answer alike, and nothing is repeated."""
    async with gateway(config) as running, httpx2.AsyncClient() as http:
        for path in ("", "/default", "/other"):
            response = await http.post(f"{running.url}{path}?{query}", json={})
            assert response.status_code == 404
            assert response.json()["error"]["message"].startswith("There is no such sub-app here.")
        other = await http.post(f"{running.url}/other?sub_app=billing", json={})
        assert other.status_code == 404


async def test_a_client_that_is_spawned_has_the_sub_app_of_the_command(config: Path) -> None:
    """T9: `serve --stdio --sub-app`."""
    async with connected(spawn(config, "--sub-app", "billing"), MODERN) as opened:
        assert await opened.names() == ["invoice_list"]
        assert await opened.text("invoice_list") == "two invoices"


async def test_the_sub_app_of_the_command_is_that_of_the_agent_at_mcp(config: Path) -> None:
    """T9: an address with an agent in it says itself what it opens."""
    async with Pegboard.open(config) as board:
        async with serving(board, port=0, sub_app="billing") as url:
            for address, names in (
                (url, ["invoice_list"]),
                (f"{url}/default", []),
                (f"{url}?sub_app=sending", ["invoice_send"]),
            ):
                async with connected(address, MODERN) as opened:
                    assert await opened.names() == names
        with pytest.raises(UsageError, match=r"Agent 'default' has no sub-app 'hidden'\."):
            async with serving(board, port=0, sub_app="hidden"):
                pass


async def test_a_session_of_one_sub_app_answers_no_other_address(config: Path) -> None:
    """T9, G2: the transport's session belongs to the address under which it began."""
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    accepts = {"accept": "application/json, text/event-stream"}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "invoice_list", "arguments": {}}}
    async with gateway(config) as running, httpx2.AsyncClient(headers=accepts) as http:
        begun = await http.post(f"{running.url}?sub_app=billing", json=hello)
        headers = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await http.post(f"{running.url}?sub_app=billing", json=ready, headers=headers)).status_code == 202
        assert "two invoices" in (await http.post(f"{running.url}?sub_app=billing", json=call, headers=headers)).text
        for address in (running.url, f"{running.url}?sub_app=sending"):
            response = await http.post(address, json=call, headers=headers)
            assert response.status_code in (400, 404)
            assert "two invoices" not in response.text


async def test_a_sub_app_that_the_agent_lists_no_more_is_gone_for_its_clients(config: Path) -> None:
    """T9, P4: an edit of the file binds the next request of a client that has it open."""
    async with gateway(config) as running, connected(f"{running.url}?sub_app=billing", HANDSHAKE) as opened:
        assert await opened.text("invoice_list") == "two invoices"
        edit(config, "sub_apps: [billing, sending]", "sub_apps: [sending]")

        async def refused() -> bool:
            try:
                await opened.call("invoice_list")
            except MCPError:
                return True
            return False

        async with asyncio.timeout(20):
            await until(refused)


async def test_switches_bind_the_tools_of_a_sub_app_and_its_clients_hear_of_it(config: Path) -> None:
    """P4, G5, T9: the list of that address changes."""
    async with (
        Pegboard.open(config) as board,
        serving(board, port=0) as url,
        connected(f"{url}?sub_app=billing", HANDSHAKE) as opened,
    ):
        assert await opened.names() == ["invoice_list"]
        await opened.hears.wait()
        await board.permissions.set("default", "invoice_list", False, by="ada")
        await until(lambda: opened.changes() == 1)
        assert await opened.names() == []
