"""A gateway that is about to stop: no more requests are sent to it, those that are there end, and others take over."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.errors import UsageError
from pegboard.gateway import run_http

from .clients import ADA, HANDSHAKE, connected, gateway, modern_request, until
from .replica_helpers import INITIALIZE, NOBODY, PING, bearer, begun, error_of, mortal, served
from .test_lost_store import losing


def listening() -> dict[str, Any]:
    body, headers = modern_request("subscriptions/listen", notifications={"toolsListChanged": True})
    return {"json": body, "headers": headers}


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    body, headers = modern_request("tools/call", name=name, arguments=arguments)
    return {"json": body, "headers": headers}


async def test_a_gateway_is_ready_while_it_serves(config_with_tokens: Path) -> None:
    """G14: whoever asks needs no token, and reads nothing of what is served."""
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient() as http:
        answer = await http.get(f"{running.base}/readyz")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_a_gateway_whose_store_is_lost_is_ready_as_long_as_calls_go_on(config: Path) -> None:
    """G14: for the grace; then it says why it is not, and is again by itself."""
    async with losing(config) as running, httpx2.AsyncClient() as http:
        address = running.url.replace("/mcp", "/readyz")
        assert (await http.get(address)).status_code == 200
        running.double.lose()
        assert (await http.get(address)).status_code == 200
        running.clock[0] += 60
        answer = await http.get(address)
        assert (answer.status_code, answer.json()) == (503, {"status": "not_ready", "problem": "store_unavailable"})
        assert answer.headers["retry-after"] == "1"
        assert (await http.get(running.url.replace("/mcp", "/healthz"))).json()["status"] == "ok"
        await running.found()
        assert (await http.get(address)).status_code == 200


async def test_a_drained_gateway_serves_what_it_has_and_begins_nothing_more(config: Path) -> None:
    """G14: readiness goes first; calls and sessions go on, over connections that end with their responses."""
    async with mortal(config, "--drain", "60") as running, httpx2.AsyncClient(timeout=30) as http:
        base, url = running.url.removesuffix("/mcp"), running.url
        session = await begun(http, url)
        async with http.stream("GET", url, headers=session) as notified, http.stream("POST", url, **listening()) as own:
            assert (notified.status_code, own.status_code) == (200, 200)
            running.process.send_signal(signal.SIGTERM)

            async def drains() -> bool:
                return (await http.get(f"{base}/readyz")).status_code == 503

            await until(drains)
            assert (await http.get(f"{base}/readyz")).json() == {"status": "not_ready", "problem": "stopping"}
            assert (await http.get(f"{base}/healthz")).json()["status"] == "ok"
            called = await http.post(url, **calling("echo", text="still here"))
            assert called.json()["result"]["content"][0]["text"] == "still here"
            assert called.headers["connection"] == "close"
            assert (await http.post(url, json=PING, headers=session)).status_code == 200
            refused = [
                await http.post(url, json=INITIALIZE, headers=bearer(None)),
                await http.post(url, **listening()),
                await http.get(url, headers=session | {"mcp-session-id": f"gone-{NOBODY}"}),
            ]
            for answer in refused:
                assert (answer.status_code, error_of(answer)) == (503, "The gateway is stopping.")
                assert (answer.headers["retry-after"], answer.headers["connection"]) == ("1", "close")
            running.process.send_signal(signal.SIGTERM)  # whoever asks twice does not want to wait
            await notified.aread()  # both streams end as such, and are not broken off
            await own.aread()
        assert await asyncio.wait_for(running.process.wait(), 10) == 0


async def test_other_replicas_reach_a_drained_one_until_it_ends(config: Path) -> None:
    """G14: then it is withdrawn, and its clients begin again elsewhere."""
    async with served(config) as other, mortal(config, "--drain=60") as running, httpx2.AsyncClient(timeout=30) as http:
        session = await begun(http, running.url)
        running.process.send_signal(signal.SIGTERM)

        async def drains() -> bool:
            return (await http.get(running.url.replace("/mcp", "/readyz"))).status_code == 503

        await until(drains)
        assert (await http.post(other.url, json=PING, headers=session)).status_code == 200
        assert len(await other.replicas()) == 2
        assert await running.end(signal.SIGINT) == 0
        assert [replica.address for replica in await other.replicas()] == [other.base]
        assert (await http.post(other.url, json=PING, headers=session)).status_code == 404
        async with connected(other.url, HANDSHAKE) as pegboard:
            assert await pegboard.text("echo", text="anew") == "anew"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
async def test_nobody_waits_who_interrupts_or_serves_on_loopback(config: Path, how: signal.Signals) -> None:
    """G14: Ctrl-C drains nothing, whatever --drain says; SIGTERM nothing where only this machine is served."""
    options = ["--drain", "60"] if how == signal.SIGINT else []
    async with mortal(config, *options) as running:
        began = asyncio.get_running_loop().time()
        assert await running.end(how) == 0
        assert asyncio.get_running_loop().time() - began < 10


@pytest.mark.parametrize("seconds", [-1.0, 3601.0, float("nan"), float("inf")])
async def test_a_time_to_drain_that_cannot_be_meant_is_one_clear_error(config: Path, seconds: float) -> None:
    """G14: before anything is served."""
    async with Pegboard.open(config) as board:
        with pytest.raises(UsageError, match="is not a time to drain") as raised:
            await run_http(board, port=0, drain=seconds)
        assert raised.value.hint == "Give --drain a number from 0 to 3600."


async def test_a_token_that_is_not_known_says_nothing_of_readiness(config_with_tokens: Path) -> None:
    """G2, G14: the answer is the same with any token, and with none."""
    async with gateway(config_with_tokens) as running, httpx2.AsyncClient() as http:
        tokens = [{}, {"Authorization": "Bearer guess"}, {"Authorization": f"Bearer {ADA}"}]
        answers = [await http.get(f"{running.base}/readyz", headers=token) for token in tokens]
        assert {(answer.status_code, answer.text) for answer in answers} == {(200, answers[0].text)}
