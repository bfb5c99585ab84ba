"""Wrong tokens are answered later and later, right ones at once, and what is known of addresses is bounded."""

import asyncio
from pathlib import Path

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.gateway import serving
from pegboard.gateway.http.wrong_tokens import (
    ADDRESSES,
    AT_ONCE,
    FORGOTTEN,
    FREE,
    LONGEST,
    WrongTokenDelay,
    WrongTokens,
)

from .clients import until

TOKENS = 'tokens: {ada: {token: ada-ada-ada-ada, agents: ["*"], console: true}}\n'


def test_each_further_wrong_token_of_an_address_waits_longer_up_to_a_bound() -> None:
    """G2: a thousand of them take hours instead of seconds."""
    now = 0.0
    wrong = WrongTokens(lambda: now)
    delays = [wrong.add("10.0.0.1") for _ in range(1_000)]
    assert delays[:FREE] == [0.0] * FREE
    assert delays == sorted(delays)
    assert (delays[-1], sum(delays) > 9_000) == (LONGEST, True)
    assert wrong.add("10.0.0.2") == 0.0
    now = FORGOTTEN + 1
    assert wrong.add("10.0.0.1") == 0.0


def test_what_is_known_of_addresses_is_bounded() -> None:
    """G2: also of addresses of one network, which count together."""
    wrong = WrongTokens()
    for number in range(3 * ADDRESSES):
        wrong.add(f"10.{number >> 8}.{number & 255}.1")
    assert len(wrong) == ADDRESSES
    assert [wrong.add(f"2001:db8::{number}") > 0 for number in range(FREE + 1)] == [False] * FREE + [True]


class ConsoleAlone:
    """A gateway that serves nothing but a console."""

    def __init__(self, console: ConsoleApp) -> None:
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._console(scope, receive, send)

    async def close(self, *, grace: float) -> None:
        """Close the console."""
        await self._console.close()


async def test_a_right_token_never_waits_while_wrong_ones_do(tmp_path: Path) -> None:
    """G2: whatever the address has sent before; too many at once are refused without waiting."""
    (tmp_path / "pegboard.yaml").write_text(f"plugins: {{clock: {{python: pegboard.quickstart.clock}}}}\n{TOKENS}")
    woken = asyncio.Event()
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)
        if seconds:
            await woken.wait()

    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        console = ConsoleApp(board, OperatorAccess(lambda: board.configuration.tokens))

        app = WrongTokenDelay(ConsoleAlone(console), WrongTokens(), sleep)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8321") as client:

            async def asked(token: str) -> int:
                headers = {"authorization": f"Bearer {token}"}
                return (await client.get("/api/agents", headers=headers)).status_code

            attempts = [asyncio.create_task(asked(f"wrong-{number}")) for number in range(FREE + AT_ONCE)]
            await until(lambda: len(delays) == FREE + AT_ONCE)
            assert await asked("ada-ada-ada-ada") == 200
            assert await asked("one-more") == 429
            assert await asked("ada-ada-ada-ada") == 200
            sign_in = await client.post("/console/sign-in", data={"secret": "ada-ada-ada-ada"})
            assert sign_in.status_code == 303
            woken.set()
            assert {await attempt for attempt in attempts} == {401}
        await console.close()


@pytest.mark.parametrize("path", ["/mcp", "/api/agents", "/healthz"])
async def test_the_gateway_counts_wrong_tokens_on_every_path(tmp_path: Path, path: str) -> None:
    """G2: a right one is served between them."""
    (tmp_path / "pegboard.yaml").write_text(f"plugins: {{clock: {{python: pegboard.quickstart.clock}}}}\n{TOKENS}")
    async with (
        Pegboard.open(tmp_path / "pegboard.yaml") as board,
        serving(board, port=0) as url,
        httpx2.AsyncClient(base_url=url.removesuffix("/mcp")) as client,
    ):
        for token in ("a", "b", "ada-ada-ada-ada"):
            response = await client.get(path, headers={"authorization": f"Bearer {token}"})
            assert (response.status_code == 401) is (token in ("a", "b") and path == "/mcp")
