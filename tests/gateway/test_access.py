"""Who may come in, as whom, and to what."""

import itertools
from itertools import product
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from .clients import ADA, BOB, ERAS, HANDSHAKE, MODERN, connected, edit, gateway, modern_request, spawn, way_in

pytestmark = pytest.mark.cover(1)

ODD = ["🦜" * 100, "two\nlines", "a b/c?d=e&f", "\u202e\x00\x1b[31m", "x" * 512, "' OR 1=1 --", "../../etc"]


async def test_odd_session_ids_are_data(config: Path) -> None:
    """G1: each is a session of its own, whatever it is made of."""
    async with gateway(config) as running, connected(running.url, MODERN) as pegboard:
        await pegboard.names()
        for odd in ODD:
            meta = {"pegboard/session": odd}
            assert (await pegboard.call("note_add", meta, text="x")).is_error
            assert not (await pegboard.call("note_add", meta, text="x")).is_error
        assert (await pegboard.call("note_add", {"pegboard/session": "new"}, text="x")).is_error


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_a_label_that_cannot_be_meant_gets_one_clear_error(config: Path, kind: str) -> None:
    """G1, G3: the error names the field, and the gateway goes on."""
    wrong: list[Any] = ["x" * 10_000, "", 5, ["a"]]
    async with way_in(kind, config) as target, connected(target, HANDSHAKE) as pegboard:
        for key, value in product(["pegboard/session", "pegboard/turn"], wrong):
            with pytest.raises(MCPError) as raised:
                await pegboard.call("echo", {key: value}, text="x")
            assert raised.value.error.code == -32602
            assert key in raised.value.error.message
            assert len(raised.value.error.message) < 200
        assert await pegboard.text("echo", text="still here") == "still here"


async def test_the_session_is_named_by_meta_then_url_then_command_then_transport(config: Path) -> None:
    """G1: in this order; the handshake-era transport session counts only where nothing else does."""
    async with gateway(config, session="command") as running:
        async with connected(running.url, MODERN) as pegboard:
            await pegboard.load("notes")
        async with connected(f"{running.url}?session=command", HANDSHAKE) as pegboard:
            assert "note_add" in await pegboard.names()
        async with connected(f"{running.url}?session=url", MODERN) as pegboard:
            assert (await pegboard.call("note_add", text="x")).is_error
            assert not (await pegboard.call("note_add", {"pegboard/session": "command"}, text="x")).is_error
    async with gateway(config) as running:
        async with connected(running.url, HANDSHAKE) as one, connected(running.url, HANDSHAKE) as two:
            await one.load("notes")
            assert "note_add" not in await two.names()
        async with connected(running.url, MODERN) as one, connected(running.url, MODERN) as two:
            await one.load("notes")
            assert await two.text("note_add", text="tea") == "added tea"


async def test_over_stdio_the_session_outlives_the_process(config: Path) -> None:
    """G1: it is that of the client and the folder, never random."""
    async with connected(spawn(config), HANDSHAKE) as pegboard:
        await pegboard.load("notes")
    async with connected(spawn(config), HANDSHAKE) as pegboard:
        assert await pegboard.text("note_add", text="tea") == "added tea"


async def test_without_a_known_token_nothing_is_answered(config_with_tokens: Path) -> None:
    """G2: 401 with a challenge, for every path that says or does something."""
    body, headers = modern_request("tools/list")
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient() as http:
        paths = ("/mcp", "/mcp/default", "/mcp/nobody", "/sessions/x/end-turn")
        wrong = ("Bearer wrong", "Bearer", "Basic YTpi", f"bearer  {ADA}x", "Bearer \u00e9")
        # One path for each that is wrong: the answers to one address come later and later.
        for path, given in (*((path, None) for path in paths), *zip(itertools.cycle(paths), wrong, strict=False)):
            sent: Any = {**headers, **({"Authorization": given.encode("utf-8")} if given else {})}
            answer = await http.post(f"{running.base}{path}", json=body, headers=sent)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith('Bearer realm="pegboard"')
            assert ADA not in answer.text
        answer = await http.post(running.url, json=body, headers={**headers, "Authorization": f"Bearer {ADA}"})
        assert answer.status_code == 200


async def test_an_agent_that_the_token_does_not_list_looks_like_none(config_with_tokens: Path) -> None:
    """G2: the same status and the same bytes."""
    body, headers = modern_request("tools/list")
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient() as http:
        headers["Authorization"] = f"Bearer {ADA}"
        answers = [
            await http.post(f"{running.url}/{name}", json=body, headers=headers)
            for name in ("other", "nobody", "other/deep", "%00")
        ]
        assert {(answer.status_code, answer.text) for answer in answers} == {(404, answers[0].text)}
        headers["Authorization"] = f"Bearer {BOB}"
        assert (await http.post(f"{running.url}/other", json=body, headers=headers)).status_code == 200


async def test_a_client_cannot_say_whose_session_it_is(config_with_tokens: Path) -> None:
    """G2: the principal is the owner of the token, whatever the request claims."""
    async with gateway(config_with_tokens) as running:
        async with connected(f"{running.url}?session=s", MODERN, token=ADA) as ada:
            await ada.load("notes")
        claims = "?session=s&principal=ada"
        async with connected(f"{running.url}{claims}", MODERN, token=BOB) as bob:
            meta = {"pegboard/principal": "ada", "principal": "ada"}
            assert (await bob.call("note_add", meta, text="x")).is_error


@pytest.mark.both_paths
async def test_a_transport_session_answers_only_its_owner_and_agent(config_with_tokens: Path) -> None:
    """G2: another token, or another agent's path, finds no such session."""
    start = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    accept = {"accept": "application/json, text/event-stream"}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient(headers=accept) as http:
        bob = {"Authorization": f"Bearer {BOB}"}
        opened = await http.post(running.url, json=start, headers=bob)
        owned = {"mcp-session-id": opened.headers["mcp-session-id"]}
        assert (await http.post(running.url, json=ping, headers=owned | bob)).status_code == 200
        ada = {"Authorization": f"Bearer {ADA}"}
        assert (await http.post(running.url, json=ping, headers=owned | ada)).status_code == 404
        assert (await http.post(f"{running.url}/other", json=ping, headers=owned | bob)).status_code == 404


async def test_other_machines_are_not_served_without_tokens(config: Path) -> None:
    """G2: it does not start, and says why."""
    from pegboard.assembly import Pegboard
    from pegboard.errors import UsageError
    from pegboard.gateway import serving

    async with Pegboard.open(config) as board:
        for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
            with pytest.raises(UsageError, match="no tokens are configured"):
                async with serving(board, host=host, port=0):
                    pass


ORIGINS_AND_HOSTS = [
    (None, None, 200),
    ("http://localhost:3000", None, 200),
    ("https://127.0.0.1", "localhost:99", 200),
    (None, "[::1]:80", 200),
    ("https://example.org", None, 403),
    ("null", None, 403),
    ("http://localhost.example.org", None, 403),
    ("http://localhost@example.org", None, 403),
    (None, "example.org", 421),
    (None, "127.0.0.1.example.org:80", 421),
]


async def test_other_origins_and_hosts_are_refused(config: Path) -> None:
    """G2: no page of the web reaches the gateway through a browser on this machine."""
    body, headers = modern_request("tools/list")
    async with gateway(config) as running, httpx2.AsyncClient() as http:
        for origin, host, status in ORIGINS_AND_HOSTS:
            told = {**({"origin": origin} if origin else {}), **({"host": host} if host else {})}
            answer = await http.post(running.url, json=body, headers=headers | told)
            health = await http.get(f"{running.base}/healthz", headers=told)
            assert (answer.status_code, health.status_code) == (status, status), (origin, host)


async def test_health_is_told_to_all_and_what_is_behind_to_those_who_may(config_with_tokens: Path) -> None:
    """G1, G2, X5: no agent, server or secret without a token."""
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient() as http:
        url = f"{running.base}/healthz"
        public = (await http.get(url)).json()
        assert (public["status"], set(public)) == ("ok", {"status", "version"})
        ada = (await http.get(url, headers={"Authorization": f"Bearer {ADA}"})).json()
        assert ada["agents"] == ["default"]
        async with connected(running.url, MODERN, token=BOB) as pegboard:
            await pegboard.load("up")
        known = await http.get(url, headers={"Authorization": f"Bearer {BOB}"})
        assert known.json()["agents"] == ["default", "other"]
        assert "up" in known.text
        assert ADA not in known.text


async def test_health_says_nothing_of_servers_that_the_agents_of_a_token_may_not_use(config_with_tokens: Path) -> None:
    """G2: neither that there is one, nor its process, nor what it printed."""
    edit(config_with_tokens, 'default: {tools: [talk], discoverable: ["*"]}', "default: {tools: [talk]}")
    edit(config_with_tokens, "discoverable: [notes]", "discoverable: [notes, up]")
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient() as http:
        async with connected(f"{running.url}/other", MODERN, token=BOB) as pegboard:
            await pegboard.load("up")
        upstreams: dict[str, list[str]] = {}
        for token in (ADA, BOB):
            answer = await http.get(f"{running.base}/healthz", headers={"Authorization": f"Bearer {token}"})
            upstreams[token] = [state["name"] for state in answer.json()["upstreams"]]
        assert upstreams[ADA] == []
        assert set(upstreams[BOB]) == {"up"}


def withdraw(config: Path) -> None:
    """Take away ada's token and a tool of her agent in one edit."""
    text = config.read_text().replace("tools: [talk, notes]", "tools: [notes]")
    config.write_text(text.replace(f"  ada: {{token: {ADA}, agents: [default]}}\n", ""))


@pytest.mark.parametrize("era", ERAS)
async def test_a_stream_ends_with_the_token_that_opened_it(config_with_tokens: Path, era: str) -> None:
    """G2, P4: withdrawn while it is open, it ends; of what changed since then nothing is sent."""
    body, headers = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient(timeout=60) as http:
        headers["Authorization"] = f"Bearer {ADA}"
        asked: dict[str, Any] = {"method": "POST", "json": body, "headers": headers}
        if era == HANDSHAKE:
            client = {"capabilities": {}, "clientInfo": {"name": "t", "version": "1"}, "protocolVersion": "2025-11-25"}
            start = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
            opened = {"accept": headers["accept"], "Authorization": f"Bearer {ADA}"}
            answer = await http.post(running.url, json=start, headers=opened)
            opened["mcp-session-id"] = answer.headers["mcp-session-id"]
            await http.post(running.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=opened)
            await http.post(running.url, json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, headers=opened)
            asked = {"method": "GET", "headers": opened}
        async with http.stream(url=running.url, **asked) as stream:
            assert stream.status_code == 200
            lines = stream.aiter_lines()
            edit(config_with_tokens, 'default: {tools: [talk], discoverable: ["*"]', "default: {tools: [talk, notes]")
            if era == MODERN:  # the acknowledgement was sent when it was opened
                assert "acknowledged" in "".join([await anext(lines) for _ in range(2)])
            while "list_changed" not in await anext(lines):
                pass
            withdraw(config_with_tokens)
            async for line in lines:
                assert "list_changed" not in line
        assert (await http.post(running.url, json=body, headers=headers)).status_code == 401
