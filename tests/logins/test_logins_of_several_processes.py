"""Several processes over one store: what one of them ends, makes or fails to renew counts in the others (G11)."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from logins.test_library_logins import account_of, logged_in, session_of
from logins.test_secrets_in_reprs import GRANT
from pegboard import Pegboard
from pegboard.core.access.instances import LoginOwner
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.operators.logins import OperatorLogins
from pegboard.sources.mcp.login import keeper, logins
from pegboard.sources.mcp.login.discovery import resource_of
from pegboard.sources.mcp.login.grant import LoginGrant
from pegboard.sources.mcp.login.keeper import GrantKeeper, LoginGrantKey
from pegboard.sources.mcp.login.logins import McpLogins
from pegboard.sources.mcp.login.token_requests import RefusedTokensError
from pegboard.stores.sql import MemoryStore
from pegboard.support.backoff import wait_until

KEY = LoginGrantKey(LoginOwner("ada"), GRANT.resource)


def unmasked(what: str, secret: str) -> None:
    """Learn a secret where nothing is written."""


async def test_g11_who_is_logged_out_by_one_process_is_so_in_the_others(
    configuration: dict[str, Any], person: Person, site: LoginSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.reset(revocation=False)
    monkeypatch.setattr(keeper, "FRESH", 0.0)  # what is held is read again at once, not after seconds
    async with Pegboard.open(configuration) as serving, Pegboard.open(configuration) as other:
        session = await logged_in(serving, person)
        await logged_in(serving, person, "bob", "ben")
        assert await OperatorLogins(other.services).end("linear", LoginOwner("ada"))
        assert (await session.call("linear__whoami", {})).status == "needs_login"
        assert account_of(await (await session_of(serving, "bob")).call("linear__whoami", {})) == "ben"
        await logged_in(other, person, "ada", "ben")
        assert account_of(await session.call("linear__whoami", {})) == "ben"


async def test_g11_a_login_that_was_made_later_counts_where_somebody_looked_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G11: also a server that gives something without one is asked with it from then on."""
    store, spec = MemoryStore(), ServerSpec(name="docs", url=GRANT.resource)
    before = McpLogins(store, unmasked)
    assert not await before.wants_login(spec)
    await GrantKeeper(store, unasked, unmasked).keep(LoginGrantKey(LoginOwner("ada"), resource_of(spec)), GRANT)
    monkeypatch.setattr(logins, "FRESH", 0.0)
    assert await before.wants_login(spec)


async def test_g11_the_gateways_own_login_is_made_once_by_all_that_need_it_at_once() -> None:
    store, made = MemoryStore(), 0

    async def make() -> LoginGrant:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return GRANT

    keepers = [GrantKeeper(store, unasked, unmasked) for _ in range(2)]
    await asyncio.gather(*(each.obtain_grant(KEY, make) for each in keepers for _ in range(5)))
    assert made == 1


@pytest.mark.parametrize(("lasts", "kept"), [(3600.0, True), (-1.0, False)])
async def test_g11_a_refusal_that_no_standard_names_costs_a_login_only_once_its_token_has_ended(
    lasts: float, kept: bool
) -> None:
    asked = 0

    async def refuses(_: LoginGrant) -> LoginGrant:
        nonlocal asked
        asked += 1
        raise RefusedTokensError("not_on_sundays", "")

    own = GrantKeeper(MemoryStore(), refuses, unmasked)
    held = await own.keep(KEY, replace(GRANT, expires_at=time.time() + lasts))
    if kept:
        with pytest.raises(ToolUnavailableError, match="not_on_sundays"):
            await own.grant_after_refusal(KEY, held.grant.access_token)
        assert await own.current_grant(KEY) == held
    else:
        assert await own.current_grant(KEY) is None
        assert (await own.read(KEY)).grant.refused.startswith("not_on_sundays")  # type: ignore[union-attr]
        assert await own.current_grant(KEY) is None
    assert asked == 1


async def test_g11_a_refresher_keeps_its_lease_for_as_long_as_its_issuer_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_LEASE_AGAIN", 0.01)
    answers, name = asyncio.Event(), f"renew {KEY.text}"

    taken: list[str] = []

    class Watched(MemoryStore):
        async def take_lease(self, name: str, holder: str, *, seconds: float) -> bool:
            taken.append(holder)
            return await super().take_lease(name, holder, seconds=seconds)

    async def slow(grant: LoginGrant) -> LoginGrant:
        await answers.wait()
        return replace(grant, access_token="renewed")

    store = Watched()
    own = GrantKeeper(store, slow, unmasked)
    held = await own.keep(KEY, replace(GRANT, expires_at=time.time() - 1))
    renewing = asyncio.create_task(own.current_grant(KEY))
    assert await wait_until(lambda: len(taken) >= 3, 30)
    assert len(set(taken)) == 1
    assert not await store.take_lease(name, "another", seconds=1.0)
    answers.set()
    renewed = await renewing
    assert renewed is not None
    assert (renewed.grant.access_token, renewed.version > held.version) == ("renewed", True)
    assert await store.take_lease(name, "another", seconds=1.0)


async def unasked(_: LoginGrant) -> LoginGrant:
    raise AssertionError("no issuer is to be asked")
