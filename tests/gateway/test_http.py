"""What a server on a network has to bear."""

import asyncio
import json
import socket
import time
from pathlib import Path

import httpx2
import pytest

from .clients import ERAS, HANDSHAKE, MODERN, connected, edit, gateway, modern_request, process, serve, until
from .test_differential import hello, ready

GARBAGE = [
    b"", b"{", b"null", b"[]", b"5", b"\xff\xfe", b'{"jsonrpc": "2.0"}', b"[" * 100_000,
    b'{"jsonrpc":"2.0","id":1,"method":5}', b'{"jsonrpc":"2.0","id":1,"method":"no/such","params":{"_meta":[]}}',
]  # fmt: skip


@pytest.mark.both_paths
async def test_garbage_is_answered_and_the_gateway_goes_on(config: Path) -> None:
    """G1: a JSON-RPC error or a 4xx, never a traceback."""
    _, headers = modern_request("tools/list")
    handshake = {k: v for k, v in headers.items() if not k.startswith("mcp-")}
    async with gateway(config) as running, httpx2.AsyncClient() as http:
        for sent in GARBAGE:
            for kind in (headers, handshake):
                answer = await http.post(running.url, content=sent, headers=kind)
                assert 400 <= answer.status_code < 500, sent[:40]
                assert "Traceback" not in answer.text
        assert (await http.get(running.url)).status_code in (400, 405, 406)
        assert (await http.put(running.url, content=b"x")).status_code in (400, 405)
        assert (await http.get(f"{running.base}/nothing")).status_code == 404
        async with connected(running.url, MODERN) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"


async def test_an_unknown_method_is_not_found(config: Path) -> None:
    """G1: with the code of JSON-RPC."""
    body, headers = modern_request("tools/nothing")
    async with gateway(config) as running, httpx2.AsyncClient() as http:
        answer = await http.post(running.url, json=body, headers=headers)
        assert answer.json()["error"]["code"] == -32601


async def test_a_request_has_a_largest_size(config: Path) -> None:
    """G1: more is refused before it is read."""
    body, headers = modern_request("tools/call", name="echo", arguments={"text": "x" * 5_000_000})
    async with gateway(config) as running, httpx2.AsyncClient(timeout=60) as http:
        assert (await http.post(running.url, json=body, headers=headers)).status_code == 413


async def test_keys_that_the_sdk_does_not_know_pass_through(config: Path) -> None:
    """G7: lists and results are the same bytes for what their makers put in."""
    body, headers = modern_request("tools/list")
    async with gateway(config) as running, httpx2.AsyncClient() as http:
        first = await http.post(running.url, json=body, headers=headers)
        again = await http.post(running.url, json=body, headers=headers)
        assert first.content == again.content
        result = first.json()["result"]
        assert (result["resultType"], result["cacheScope"]) == ("complete", "public")
        assert result["tools"][0]["name"] == "echo"


async def test_a_client_that_vanishes_in_the_middle_of_a_call_cancels_it(config: Path) -> None:
    """G7: in the new era closing the connection is how a call is cancelled."""
    body, headers = modern_request("tools/call", name="up__slow", arguments={})
    async with gateway(config) as running, connected(running.url, MODERN) as pegboard:
        await pegboard.load("up")
        async with httpx2.AsyncClient() as http:
            with pytest.raises(httpx2.TimeoutException):
                await http.post(running.url, json=body, headers=headers, timeout=1.0)

        async def cancelled() -> bool:
            return await pegboard.text("up__cancelled") == "1"

        await until(cancelled)


@pytest.mark.parametrize("era", ERAS)
async def test_it_stops_within_seconds_though_streams_are_open(config: Path, era: str) -> None:
    """G1: on SIGTERM, with exit code 0 and no noise."""
    async with process(config) as running:
        body, headers = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
        async with httpx2.AsyncClient(timeout=60) as http:
            if era == MODERN:
                stream = http.stream("POST", running.url, json=body, headers=headers)
            else:
                start = {
                    "jsonrpc": "2.0", "id": 1, "method": "initialize",
                    "params": {
                        "protocolVersion": "2025-11-25", "capabilities": {},
                        "clientInfo": {"name": "t", "version": "1"},
                    },
                }  # fmt: skip
                accept = {"accept": "application/json, text/event-stream"}
                opened = await http.post(running.url, json=start, headers=accept)
                owned = {"mcp-session-id": opened.headers["mcp-session-id"], "accept": "text/event-stream"}
                stream = http.stream("GET", running.url, headers=owned)
            async with stream as answer:
                assert answer.status_code == 200
                began = time.monotonic()
                code, written = await running.stop()
                assert time.monotonic() - began < 5
                assert (code, "pegboard:" in written) == (0, False)


async def test_a_port_in_use_is_one_clear_error(config: Path) -> None:
    """G1: it says which, and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        child = await asyncio.create_subprocess_exec(*serve(config, f"--port={port}"), stderr=asyncio.subprocess.PIPE)
        written = (await asyncio.wait_for(child.communicate(), 20))[1].decode()
    assert child.returncode == 6
    assert written == f"pegboard: Port {port} on 127.0.0.1 is in use. Choose another with --port; 0 takes any.\n"


async def test_agents_that_an_edit_adds_are_served_at_once(config: Path) -> None:
    """G1: without a restart; one that it takes away is gone."""
    async with gateway(config) as running:
        async with connected(f"{running.url}/other", MODERN) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"
        edit(config, "  other:", "  added:")
        body, headers = modern_request("tools/list")
        async with httpx2.AsyncClient() as http:

            async def served() -> bool:
                return (await http.post(f"{running.url}/added", json=body, headers=headers)).status_code == 200

            await until(served)
            assert (await http.post(f"{running.url}/other", json=body, headers=headers)).status_code == 404


async def test_what_to_paste_into_a_client_works(config: Path) -> None:
    """G1: the printed entries are JSON, name this gateway, and hold no secret."""
    from pegboard.assembly import Pegboard
    from pegboard.gateway import announce, serving, spawned

    async with Pegboard.open(config) as board, serving(board, port=0) as url:
        text = announce(board, url)
        pasted, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        assert pasted["mcpServers"]["pegboard"]["url"] == url
        assert f"{url}/other" in text
        assert str(config) in spawned(board)["args"]
        async with connected(url, HANDSHAKE) as pegboard:
            assert await pegboard.text("echo", text="x") == "x"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", ["/", "/default", "/default/"])
async def test_a_slash_at_the_end_of_an_address_makes_no_difference(config: Path, era: str, path: str) -> None:
    """G1: it is answered as the address without one, not redirected: some clients lose the body of such a POST."""
    async with gateway(config) as running, httpx2.AsyncClient(timeout=60) as http:
        if era == MODERN:
            body, headers = modern_request("tools/list")
            answer = await http.post(running.url + path, json=body, headers=headers)
            assert answer.status_code == 200
            assert (
                answer.json()["result"] == (await http.post(running.url, json=body, headers=headers)).json()["result"]
            )
            return
        fixed = {"accept": "application/json, text/event-stream"}
        opened = await http.post(running.url + path, json=hello(), headers=fixed)
        assert opened.status_code == 200
        fixed |= {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        assert (await http.post(running.url + path, json=ready(), headers=fixed)).status_code == 202
        async with http.stream("GET", running.url + path, headers=fixed) as stream:
            assert stream.status_code == 200
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "x"}},
        }
        assert "error" not in (await http.post(running.url + path, json=call, headers=fixed)).text
        assert (await http.delete(running.url + path, headers=fixed)).status_code == 200


@pytest.mark.parametrize("path", ["/nobody", "/nobody/", "//"])
async def test_a_slash_makes_no_agent(config: Path, path: str) -> None:
    """G2: what is no agent without it is none with it."""
    body, headers = modern_request("tools/list")
    async with gateway(config) as running, httpx2.AsyncClient() as http:
        answer = await http.post(running.url + path, json=body, headers=headers)
        assert answer.status_code == (200 if path == "//" else 404)
