"""A server that wants a login says so wherever it shows, in a state of its own (G11)."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from authorization.site import LoginSite
from pegboard import Pegboard
from pegboard.cli import main
from pegboard.cli.rendering import Printer
from pegboard.core.access.instances import LoginOwner
from pegboard.gateway import serving
from pegboard.operators.attention import AttentionItem, find_attention
from pegboard.operators.servers import server_state, server_states
from pegboard.operators.subjects import make_subjects
from pegboard.served_board import noting_logins

from .conftest import Person

TOKENS = {
    "ada": {"token": "ada-ada-ada-ada-ada-ada", "agents": ["default"]},
    "eve": {"token": "eve-eve-eve-eve-eve-eve", "agents": ["other"]},
}


@pytest.fixture
def configuration(configuration: dict[str, Any]) -> dict[str, Any]:
    agents = {**configuration["agents"], "other": {"tools": []}}
    return {**configuration, "agents": agents, "tokens": TOKENS}


async def needing(board: Pegboard, agents: frozenset[str] | None = None) -> list[AttentionItem]:
    subjects = make_subjects(board.services)
    try:
        found = await find_attention(board.services, subjects.problems, board.configuration_state, (), agents=agents)
    finally:
        await subjects.aclose()
    return [one for one in found.items if one.kind in ("login", "server", "problem")]


async def test_g11_operators_see_whether_a_login_is_missing_and_whose_there_are(
    board: Pegboard, person: Person
) -> None:
    """G11, F5: a state of its own, one item that says so, and nothing of a server that would have to be started."""
    await board.ready()
    subjects = make_subjects(board.services)
    [linear] = await server_states(board.services, subjects.counting)
    assert (linear.state, linear.login, linear.logins) == ("needs_login", "needed", ())
    [item] = await needing(board)
    assert (item.kind, item.subject, item.action) == ("login", "linear", "log_in")
    assert await needing(board, frozenset({"default"})) == [item]
    assert await needing(board, frozenset({"other"})) == []
    pending = await subjects.logins.begin("linear", LoginOwner("ada"))
    assert pending is not None
    await person(pending.url, "ada")
    assert await subjects.logins.wait(pending) == "completed"
    linear = await server_state(board.services, "linear")
    assert (linear.state != "needs_login", linear.login, linear.logins, linear.tools > 0) == (
        True,
        "held",
        ("ada",),
        True,
    )
    assert await needing(board) == []
    assert await subjects.logins.end("linear", LoginOwner("ada"))
    assert (await server_state(board.services, "linear")).state == "needs_login"
    await subjects.aclose()


async def test_g11_health_names_it_to_those_who_may_use_it(board: Pegboard) -> None:
    await board.ready()
    async with serving(board, port=0) as url, httpx2.AsyncClient(trust_env=False) as http:
        health = url.replace("/mcp", "/healthz")
        bearing = [{"Authorization": f"Bearer {one['token']}"} for one in TOKENS.values()]
        ada, eve = [(await http.get(health, headers=headers)).json() for headers in bearing]
        assert "needs_login" not in (await http.get(health)).json()
    assert (ada["needs_login"], eve["needs_login"]) == (["linear"], [])


async def test_g11_serve_says_once_that_a_server_wants_a_login(
    board: Pegboard, capsys: pytest.CaptureFixture[str]
) -> None:
    board.on("catalog_changed", noting_logins(board, Printer(as_json=False).note))
    for _ in range(2):
        await board.ready()
    assert capsys.readouterr().err.strip() == "pegboard: server 'linear' requires a login: `pegboard login linear`."


@pytest.mark.parametrize("command", [("tools",), ("check", "--probe")])
def test_g11_commands_say_how_one_logs_in(
    command: tuple[str, ...], configuration: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """G11: never that `headers` should be corrected."""
    path = tmp_path / "pegboard.yaml"
    path.write_text(json.dumps(configuration))
    main([*command, "--json", "--config", str(path)])
    out = capsys.readouterr().out
    assert "requires a login. Log in: `pegboard login linear`" in out
    assert "headers" not in out
    assert ('"needs_login"' in out) is (command[0] == "check")


async def test_g11_a_login_of_the_gateway_is_its_own(configuration: dict[str, Any], site: LoginSite) -> None:
    auth = {"kind": "client_credentials", "client_id": "robot", "client_secret": "robot-secret-0003"}
    servers = {"linear": {"url": site.url, "auth": auth}}
    async with Pegboard.open({**configuration, "servers": servers}) as board:
        await board.ready()
        subjects = make_subjects(board.services)
        linear = await server_state(board.services, "linear")
        assert (linear.login, linear.logins, linear.state != "needs_login") == ("own", (), True)
        await subjects.aclose()


async def test_g11_a_trial_of_a_server_that_is_to_be_added_says_that_it_wants_a_login(
    site: LoginSite, tmp_path: Path
) -> None:
    path = tmp_path / "pegboard.yaml"
    path.write_text("agents: {default: {}}\n", encoding="utf-8")
    async with Pegboard.open(path) as board:
        trial = await board.servers_to_add.try_server("linear", {"url": site.url}, {})
    assert not trial.ok
    assert "it requires a login. Log in: `pegboard login linear`." in trial.message
    assert "registrations" not in site.counts
