"""The console of several gateways on one store, behind a proxy that knows nothing of sessions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from gateway.clients import ERAS, until
from gateway.question_helpers import client
from gateway.round_robin import RoundRobin, round_robin
from gateway.test_approvals_over_the_wire import Decider, text

from .running import Console, running
from .waiting_calls import CONFIG, TOKENS, set_up

ADA = "ada-s3cret-token"
CLIENT_ANSWERS = "approvals: {by: client}\n"
OTHER_OPERATOR = "  bob: {token: bob-s3cret-token, agents: [default], console: true}\n"


@dataclass
class Consoles:
    """Two gateways with their consoles, and a proxy in front."""

    first: Console
    second: Console
    proxy: RoundRobin
    origin: str


@asynccontextmanager
async def consoles(folder: Path) -> AsyncIterator[Consoles]:
    config = set_up(folder, CONFIG + TOKENS + OTHER_OPERATOR + CLIENT_ANSWERS)
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(running(config)) for _ in range(2)]
        origin, proxy = await stack.enter_async_context(round_robin(first.origin, second.origin))
        yield Consoles(first, second, proxy, origin)


def browser(origin: str) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=origin, timeout=30, headers={"origin": origin})


async def signed_in(visitor: httpx2.AsyncClient, token: str = ADA) -> None:
    await visitor.get("/console/sign-in")
    answer = await visitor.post("/console/sign-in", data={"secret": token})
    assert answer.headers["location"] == "/console"


async def test_an_operator_stays_signed_in_whichever_replica_a_request_comes_to(tmp_path: Path) -> None:
    """G14: two operators at once, each with the replica that they came to."""
    async with consoles(tmp_path) as two, browser(two.origin) as ada, browser(two.origin) as bob:
        await signed_in(ada)
        await bob.get("/console/sign-in")  # so that they do not take turns
        await signed_in(bob, "bob-s3cret-token")
        for _ in range(3):
            for visitor in (ada, bob):
                assert (await visitor.get("/console/approvals")).status_code == 200
        assert "mailer" in (await ada.get("/console/access")).text
        assert {base for base, _ in two.proxy.served} == {two.first.origin, two.second.origin}


async def test_the_cookie_of_a_replica_that_is_none_opens_nothing(tmp_path: Path) -> None:
    """G14: whoever names one that has ended, or anything else, is served where they come to, and is not signed in."""
    async with consoles(tmp_path) as two:
        port = two.first.origin.rpartition(":")[2]
        for named in ("gone", "../x", "A" * 99, ""):
            async with browser(two.first.origin) as visitor:
                answer = await visitor.get("/console/approvals", headers={"cookie": f"pegboard_replica_{port}={named}"})
                assert answer.headers["location"] == "/console/sign-in"
                given = answer.headers["set-cookie"]
                assert given.startswith(f"pegboard_replica_{port}=")
                assert given.endswith("; Path=/; HttpOnly; SameSite=Lax")


async def test_a_console_that_is_alone_names_no_replica(tmp_path: Path) -> None:
    """G14."""
    async with running(set_up(tmp_path, CONFIG + TOKENS)) as alone, browser(alone.origin) as visitor:
        assert "set-cookie" not in (await visitor.get("/console/sign-in")).headers


async def test_an_operator_answers_at_one_replica_what_waits_at_another(tmp_path: Path) -> None:
    """G14, A3: it is listed there, in pages and in JSON, and the call goes on where it waits."""
    async with consoles(tmp_path) as two:
        for era in ERAS:
            person = Decider(hold=True)
            async with (
                client(f"{two.first.origin}/mcp/mailer?session={era}", era, person, token=ADA) as connected,
                browser(two.second.origin) as operator,
            ):
                calling = asyncio.ensure_future(connected.call_tool("delete_file", {"path": f"{era}.txt"}))
                await until(lambda person=person: bool(person.asked))
                await signed_in(operator)
                assert f"{era}.txt" in (await operator.get("/console/approvals")).text
                own = {"Authorization": f"Bearer {ADA}"}
                (waits,) = (await operator.get("/api/approvals", headers=own)).json()["waiting"]
                answer = await operator.post(f"/api/approvals/{waits['id']}/allow", json={}, headers=own)
                assert answer.status_code == 200, answer.text
                ran = tmp_path / "ran"
                await until(lambda era=era, ran=ran: ran.exists() and f"deleted {era}.txt" in ran.read_text())
                person.go.set()
                assert text(await calling) == f"deleted {era}.txt"
