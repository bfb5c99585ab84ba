"""Many processes share one login whose refresh tokens may be used once: none of them loses it for the others (G11)."""

import asyncio
from pathlib import Path

import pytest

from authorization.site import LoginSite
from logins.callers import callers, started
from logins.conftest import Person
from pegboard import Pegboard
from pegboard.core.access.instances import LoginOwner
from pegboard.operators.logins import OperatorLogins
from pegboard.sources.mcp.login.keeper import LoginGrantKey
from pegboard.support.backoff import wait_until

EXPIRIES = 25
PROCESSES = 8


@pytest.fixture
async def config(site: LoginSite, tmp_path: Path, person: Person) -> Path:
    """Return a configuration over which `local` has logged in."""
    config = tmp_path / "pegboard.yaml"
    config.write_text(f"servers: {{linear: {{url: '{site.url}'}}}}\nagents: {{default: {{tools: [linear]}}}}\n")
    async with Pegboard.open(config) as board:
        session = await board.session(agent="default", session_id="t", principal="local")
        refused = await session.call("linear__whoami", {})
        assert refused.login is not None
        await person(refused.login.url, "ada")
        assert (await session.resume(refused.login.id)).status == "ok"
    return config


async def test_g11_eight_processes_refresh_once_for_each_expiry_and_lose_no_login(
    config: Path, site: LoginSite
) -> None:
    async with callers(config, PROCESSES) as running:
        for _ in range(EXPIRIES):
            site.expire()
            assert await asyncio.gather(*(caller.call() for caller in running)) == ["ok"] * PROCESSES
    assert site.counts["refreshes"] == EXPIRIES
    assert "reuses" not in site.counts


async def test_g11_a_refresher_that_died_holds_nobody_up_for_longer_than_its_lease(
    config: Path, site: LoginSite
) -> None:
    async with Pegboard.open(config) as board:
        session = await board.session(agent="default", session_id="t", principal="local")
        key = LoginGrantKey(LoginOwner("local"), site.url).text
        assert await board.services.store.take_lease(f"renew {key}", "dead", seconds=1.0)
        site.expire()
        assert (await asyncio.wait_for(session.call("linear__whoami", {}), 10)).status == "ok"
    assert site.counts["refreshes"] == 1


async def test_g11_a_kill_between_the_answer_and_our_commit_costs_that_one_login_and_it_is_said_once(
    config: Path, site: LoginSite
) -> None:
    first, second = await started(config), await started(config)
    try:
        site.change(hold="after")
        site.expire()
        under_way = asyncio.create_task(first.call())
        assert await wait_until(lambda: bool(site.counts.get("refreshes")), 30)
        await first.kill()
        await under_way
        site.change(hold="")
        assert await asyncio.wait_for(second.call(), 30) == "needs_login"
    finally:
        await asyncio.gather(first.kill(), second.kill())
    async with Pegboard.open(config) as board:
        [login] = await OperatorLogins(board.services).listed()
        assert login.refused.startswith("invalid_grant")
