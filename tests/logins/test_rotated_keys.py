"""Logins of two principals over two replicas while the key is changed: no one logs in again (G11)."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from logins.test_library_logins import account_of, logged_in, session_of
from pegboard import Pegboard
from pegboard.board.session import Session
from pegboard.cli import main

OLD, NEW = (base64.b64encode(byte * 32).decode() for byte in (b"o", b"n"))


@pytest.fixture(params=["sqlite", "postgres"])
def shared(request: pytest.FixtureRequest, configuration: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration over a store of each kind that several processes share."""
    if request.param == "postgres":
        configuration["store"] = request.getfixturevalue("postgres").address()
    return configuration


def given(patch: pytest.MonkeyPatch, key: str, second: str = "") -> None:
    patch.setenv("PEGBOARD_KEY", key)
    patch.setenv("PEGBOARD_SECOND_KEY", second)


async def store(
    verb: str, configuration: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Return what a command says of the store, which it may change."""
    config = folder / "pegboard.json"
    config.write_text(json.dumps(configuration))
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["store", verb, "--config", str(config), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


async def renewed(site: LoginSite, one: Session, other: Session) -> None:
    """Let a login of ada's be renewed at one replica, and what that stored be used at the other."""
    site.expire()
    for session in (one, other):
        assert account_of(await session.call("linear__whoami", {})) == "ada"


async def test_g11_nobody_logs_in_anew_while_the_key_is_changed(
    shared: dict[str, Any],
    person: Person,
    site: LoginSite,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G11: ada's tokens are renewed at each step, and bob completes after it the login that he was asked for before."""
    given(monkeypatch, OLD, NEW)
    async with Pegboard.open(shared) as older:
        ada = await logged_in(older, person)
        bob = await session_of(older, "bob")
        asked = (await bob.call("linear__whoami", {})).login
        assert asked is not None
        given(monkeypatch, NEW, OLD)
        async with Pegboard.open(shared) as newer:
            also_ada = await session_of(newer)
            await renewed(site, ada, also_ada)
            await renewed(site, also_ada, ada)
            there = (await store("rekey", shared, tmp_path, capsys))["there"]
            assert there >= 3, "a grant, a login that waits, and what the issuer knows us as"
            await renewed(site, ada, also_ada)
            await renewed(site, also_ada, ada)
            assert (await person(asked.url, "ben")).status_code == 200
            assert account_of(await bob.resume(asked.id)) == "ben"
            assert account_of(await (await session_of(newer, "bob")).call("linear__whoami", {})) == "ben"
    await store("rekey", shared, tmp_path, capsys)
    given(monkeypatch, NEW)
    sealed = (await store("check", shared, tmp_path, capsys))["sealed"]
    assert sealed["opened"] == {"variable": sealed["there"]}
    async with Pegboard.open(shared) as last:
        for principal, account in (("ada", "ada"), ("bob", "ben")):
            site.expire()
            assert account_of(await (await session_of(last, principal)).call("linear__whoami", {})) == account
    assert site.counts["authorizations"] == 2
    assert "reuses" not in site.counts
