"""What operators see of servers and other plugins, and their restart: with real servers, also dying ones."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, ToolUnavailableError, UsageError
from pegboard.board.services import Services
from pegboard.operators.counting import CatalogCounting
from pegboard.operators.servers import ServerState, printed_lines, restart_plugin, server_state, server_states
from pegboard.testing import Adapters, FakeSource

SERVER = str(Path(__file__).resolve().parent.parent / "servers" / "plain_server.py")


def server(*options: str, **keys: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER, *options], **keys}


@asynccontextmanager
async def opened(
    folder: Path, servers: dict[str, Any], plugins: dict[str, Any] | None = None, env: dict[str, str] | None = None
) -> AsyncIterator[tuple[Pegboard, Services]]:
    """Open a configuration whose only agent has all of it."""
    config = {
        "store": "memory:",
        "servers": servers,
        "plugins": plugins or {},
        "agents": {"ada": {"tools": [*servers, *(plugins or {})]}, "bob": {"tools": []}},
    }
    path = folder / "pegboard.yaml"
    path.write_text(json.dumps(config, indent=1))
    async with Pegboard.open(path, env=env or {}) as board:
        yield board, board.services


async def until(services: Services, name: str, holds: Callable[[ServerState], object]) -> ServerState:
    """Return the state of a server once something holds of it."""
    async with asyncio.timeout(30):
        while not holds(state := await server_state(services, name)):  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(0.01)
    return state


async def call(board: Pegboard, name: str, **arguments: Any) -> Any:
    session = await board.session(agent="ada", session_id="s")
    return await session.call(name, arguments)


async def test_every_plugin_has_a_state_before_anything_was_started(tmp_path: Path) -> None:
    """F5: what was never needed is said to be not started; nothing is started to say it."""
    (tmp_path / "notes.py").write_text('def note(text: str) -> str:\n    """Write."""\n    return text\n')
    plugins = {"notes": {"python": "notes"}, "lost": {"python": "no_such_module"}}
    args = [SERVER, "--complain", "x", "--token=abc123456", "--api-key", "hunter2222"]
    servers = {
        "git": {"command": sys.executable, "args": args},
        "web": {"url": "https://ada:pw@example.invalid/mcp?key=1"},
        "keyed": server(env={"KEY": "${ABSENT_KEY}"}),
    }
    async with opened(tmp_path, servers, plugins) as (board, services):
        states = {state.name: state for state in await server_states(services, CatalogCounting(services))}
        assert {name: state.state for name, state in states.items()} == {
            "git": "not_started", "web": "not_started", "keyed": "unavailable",
            "notes": "not_started", "lost": "not_started",
        }  # fmt: skip
        assert states["git"].place.endswith("pegboard.yaml:4:3")
        assert states["git"].target.endswith("plain_server.py --complain x '--token=***' --api-key '***'")
        assert (states["web"].transport, states["web"].target) == ("http", "https://example.invalid/mcp")
        assert "ABSENT_KEY is not set" in states["keyed"].unavailable[0]
        assert not states["keyed"].restartable
        assert states["git"].restartable
        await board.ready("notes", "lost")
        states = {state.name: state for state in await server_states(services, CatalogCounting(services))}
        notes, lost = states["notes"], states["lost"]
        assert (notes.state, notes.kind, notes.tools, notes.agents, notes.known) == ("up", "python", 1, 1, True)
        while notes.tokens is None:  # they are counted beside everything else
            await asyncio.sleep(0)
            notes = await server_state(services, "notes")
        assert notes.tokens > 0
        assert (lost.state, lost.tools, lost.known) == ("unavailable", 0, False)
        assert "no module 'no_such_module'" in lost.unavailable[0]


async def test_a_server_that_is_up_says_what_it_is_what_it_offers_and_what_that_costs(tmp_path: Path) -> None:
    """F5: process, era, tools, those that are not listed with the reason, and who may use it."""
    async with opened(tmp_path, {"git": server()}) as (board, services):
        await board.ready("git")
        state = await server_state(services, "git")
        assert (state.state, state.kind, state.transport, state.era) == ("up", "server", "stdio", "2025-06-18")
        assert (state.restarts, state.agents, state.in_flight, state.last_error) == (0, 1, 0, "")
        assert state.pid is not None
        assert state.pid != os.getpid()
        assert state.since is not None
        assert state.started_at is not None
        assert state.since >= state.started_at - 1
        dropped = {item.name: item.reason for item in state.dropped}
        assert "Field required" in dropped["no_schema"]
        assert state.tools == len(board.world.catalog.plugins["git"].tools)
        assert state.tokens == board.services.prices(board.world.catalog.plugins["git"].tools)
        assert [one.scope for one in state.connections] == [""]
        assert [line.text for line in await printed_lines(services, "git")] == ["it is up"]


async def test_a_killed_server_is_down_with_the_reason_and_its_log_stays_readable_when_it_is_up_again(
    tmp_path: Path,
) -> None:
    """G8: since when, why, how often; the last lines of the dead process stay."""
    async with opened(tmp_path, {"git": server("--complain", "disk \x1b[31mnearly\x1b[0m full")}) as (
        board,
        services,
    ):
        await call(board, "git__echo", text="a")
        first = await server_state(services, "git")
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        state = await until(services, "git", lambda state: state.state == "down")
        assert "ended by SIGKILL" in state.last_error
        assert state.failed_at is not None
        assert first.since is not None
        assert state.since is not None
        assert state.since > first.since
        assert (state.pid, state.started_at) == (None, None)
        assert (await call(board, "git__echo", text="b")).status == "ok"
        again = await server_state(services, "git")
        assert (again.state, again.restarts) == ("up", 1)
        assert "ended by SIGKILL" in again.last_error
        lines = [(line.pid, line.kind, line.text) for line in await printed_lines(services, "git")]
        complaint = "disk \\x1b[31mnearly\\x1b[0m full"
        assert lines.count((first.pid, "stderr", complaint)) == 1
        assert (first.pid, "event", "it was ended by SIGKILL") in lines
        assert lines.index((first.pid, "stderr", complaint)) < lines.index((again.pid, "event", "it is up"))


async def test_a_megabyte_of_log_is_kept_within_bounds_without_secrets_and_without_control_characters(
    tmp_path: Path,
) -> None:
    """X5: what is cut was masked before, so that no half of a secret is left."""
    secret = "s3cr3t-" + "x" * 40
    line = f"\x1b[2J\u202e{secret}{'a' * 940}{secret}{'b' * 3000}"
    noise = "\n".join(f"{number} {line}" for number in range(250)) + "\n" + "z" * 100_000 + secret + "\n"
    (tmp_path / "noise").write_text(noise)
    assert len(noise) > 1_000_000
    env = {"KEY": secret}
    git = server("--noise", str(tmp_path / "noise"), env={"KEY": "${KEY}"})
    async with opened(tmp_path, {"git": git}, env=env) as (board, services):
        await board.ready("git")
        async with asyncio.timeout(30):
            while "zzz" not in "".join([line.text for line in await printed_lines(services, "git")]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        lines = await printed_lines(services, "git")
        text = "".join(line.text for line in lines)
        assert len(lines) <= 200
        assert len(text.encode()) <= 64 * 1024
        assert text.isprintable()
        assert "\\x1b[2J\\u202e" in text
        assert "***" in text
        assert "s3cr3t" not in text
        assert "s3cr" not in json.dumps(board.upstream_states())


async def test_a_server_that_never_starts_backs_off_and_a_restart_tries_at_once(tmp_path: Path) -> None:
    """G8: the reason, the log of what it printed on its way, and no waiting after an operator has mended it."""
    allowed = tmp_path / "allowed"
    program = tmp_path / "server.py"
    program.write_text(
        f"import runpy, sys, os\nif not os.path.exists({str(allowed)!r}): sys.exit('no licence')\n"
        f"sys.argv = [{SERVER!r}]\nrunpy.run_path({SERVER!r}, run_name='__main__')\n"
    )
    async with opened(tmp_path, {"git": {"command": sys.executable, "args": [str(program)]}}) as (board, services):
        for _ in range(4):
            await board.ready("git")
        state = await server_state(services, "git")
        assert (state.state, state.known, state.restarts, state.failures) == ("backing_off", False, 0, 3)
        assert "no licence" in state.last_error
        assert any("no licence" in reason for reason in state.unavailable)
        assert "no licence" in [line.text for line in await printed_lines(services, "git")]
        allowed.touch()
        state = await restart_plugin(services, "git", by="ada")
        assert (state.state, state.known, state.unavailable) == ("up", True, ())
        assert state.tools


async def test_a_restart_is_another_process_whose_tools_are_read_again_and_is_in_the_audit(tmp_path: Path) -> None:
    """X4: who restarted what; the stored list does not stay."""
    listed = tmp_path / "more"
    program = tmp_path / "server.py"
    program.write_text(
        f"import runpy, sys, os\nmore = '3' if os.path.exists({str(listed)!r}) else '1'\n"
        f"sys.argv = [{SERVER!r}, '--tools', more]\nrunpy.run_path({SERVER!r}, run_name='__main__')\n"
    )
    async with opened(tmp_path, {"git": {"command": sys.executable, "args": [str(program)]}}) as (board, services):
        before = await call(board, "git__pid")
        tools = (await server_state(services, "git")).tools
        listed.touch()
        state = await restart_plugin(services, "git", by="ada")
        assert (state.state, state.restarts, state.last_error) == ("up", 1, "")
        assert state.tools == tools + 2
        assert (await call(board, "git__pid")).result != before.result
        (record,) = await board.services.store.entries(kind="server")
        assert (record.subject, record.decision, record.by) == ("git", "restarted", "ada")


async def test_calls_under_way_during_a_restart_get_the_error_of_a_server_that_died(tmp_path: Path) -> None:
    """G8: clear, not repeated where it may have run, and the next call works."""
    async with opened(tmp_path, {"git": server()}) as (board, services):
        await call(board, "git__echo", text="a")
        slow = asyncio.create_task(call(board, "git__slow"))
        await until(services, "git", lambda state: state.in_flight == 1)
        await restart_plugin(services, "git")
        answer = await slow
        (block,) = answer.result.content
        assert answer.status == "error"
        assert "went away during the call of 'slow': an operator restarted it." in block["text"]
        assert "It may have run, so it was not repeated." in block["text"]
        assert (await call(board, "git__echo", text="b")).status == "ok"
        assert (await server_state(services, "git")).last_error == ""


async def test_two_operators_restart_one_server_at_once_and_one_process_is_left(tmp_path: Path) -> None:
    """G8: the second finds it starting already."""
    log = tmp_path / "log"
    async with opened(tmp_path, {"git": server("--log", str(log))}) as (board, services):
        await board.ready("git")
        states = await asyncio.gather(
            restart_plugin(services, "git", by="ada"), restart_plugin(services, "git", by="bob")
        )
        assert [state.state for state in states] == ["up", "up"]
        assert len({state.pid for state in states}) == 1
        assert [line.split()[0] for line in log.read_text().splitlines()].count("start") == 2


async def test_a_server_that_hangs_at_its_start_is_restarted_without_waiting_for_it(tmp_path: Path) -> None:
    """G8: whoever waits for the first start gets the second one."""
    go, log = tmp_path / "go", tmp_path / "log"
    async with opened(tmp_path, {"git": server("--wait-for", str(go), "--log", str(log))}) as (board, services):
        waiting = asyncio.create_task(call(board, "git__echo", text="a"))
        await until(services, "git", lambda state: state.state == "starting" and state.connections)
        await until(services, "git", lambda _: log.exists())
        restarting = asyncio.create_task(restart_plugin(services, "git"))
        await until(services, "git", lambda _: log.read_text().count("start") == 2)
        go.touch()
        assert (await restarting).state == "up"
        assert (await waiting).status == "ok"


async def test_what_cannot_be_restarted_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """P6: an unknown name, a plugin that works in this process, a missing variable, no one."""
    (tmp_path / "notes.py").write_text("def note(text: str) -> str:\n    return text\n")
    servers = {"git": server(env={"KEY": "${ABSENT_KEY}"})}
    async with opened(tmp_path, servers, {"notes": {"python": "notes"}}) as (board, services):
        await board.ready("notes")
        with pytest.raises(UsageError, match="no server or plugin 'gti'") as unknown:
            await restart_plugin(services, "gti")
        assert unknown.value.hint == "Did you mean 'git'?"
        with pytest.raises(UsageError, match="runs in the process of Pegboard"):
            await restart_plugin(services, "notes")
        with pytest.raises(ToolUnavailableError, match="ABSENT_KEY is not set"):
            await restart_plugin(services, "git")
        with pytest.raises(UsageError, match="`by` is empty"):
            await restart_plugin(services, "git", by="")
        assert not await board.services.store.entries(kind="server")


async def test_a_plugin_of_this_process_that_cannot_run_is_asked_again(tmp_path: Path) -> None:
    """P6: once what it lacks is there."""
    async with opened(tmp_path, {}, {"notes": {"python": "late_notes"}}) as (board, services):
        await board.ready("notes")
        assert (await server_state(services, "notes")).restartable
        (tmp_path / "late_notes.py").write_text("def note(text: str) -> str:\n    return text\n")
        state = await restart_plugin(services, "notes", by="ada")
        assert (state.state, state.tools, state.unavailable, state.restartable) == ("up", 1, (), False)


async def test_a_predicate_says_for_whom_a_plugin_cannot_run_and_why(tmp_path: Path) -> None:
    """T12: the newest answers, as sessions get them."""
    (tmp_path / "rules.py").write_text("def day(principal, agent, sub_app):\n    return 'It is Sunday.'\n")
    (tmp_path / "notes.py").write_text("def note(text: str) -> str:\n    return text\n")
    async with opened(tmp_path, {}, {"notes": {"python": "notes", "needs": {"when": "rules:day"}}}) as (
        board,
        services,
    ):
        await call(board, "note", text="a")
        (fault,) = (await server_state(services, "notes")).conditions
        assert (fault.condition, fault.principal, fault.agent) == ("rules:day", "local", "ada")
        assert fault.fault == "It is Sunday."


async def test_a_surface_names_the_server_of_a_single_static_tool_that_cannot_start(tmp_path: Path) -> None:
    """P6: `tools: [git/git_status]`; not where the tool is switched off."""
    program = {"command": sys.executable, "args": ["-c", "exit(3)"]}
    for permissions, names in (({}, ["git"]), ({"git": False}, [])):
        config = {
            "store": "memory:",
            "servers": {"git": program},
            "agents": {"ada": {"tools": ["git/git_status"], "permissions": permissions}},
        }
        async with Pegboard.open(config) as board:
            await board.ready("git")
            session = await board.session(agent="ada", session_id="s")
            missing = (await session.surface()).missing
            assert [one.plugin for one in missing] == names
            assert all("exited with code 3" in one.reason for one in missing)


async def test_a_tool_of_which_an_earlier_one_has_the_name_is_reported_with_the_fix() -> None:
    """G10, P6: on the page of its server, in `missing`; what has the name is the earlier of the file, for everyone."""
    config = {
        "store": "memory:",
        "servers": {"first": {"command": "none", "prefix": ""}, "mail": {"command": "none"}},
        "agents": {"ada": {"tools": ["first", "mail"]}, "bob": {"tools": ["mail"]}},
    }
    source = FakeSource({"first": {"mail__send": "other", "look": "x"}, "mail": {"send": "sent"}})
    async with Pegboard.open(config, adapters=Adapters(sources=[source])) as board:
        await board.ready("mail", "first")
        ada, bob = [await board.session(agent=agent, session_id="s") for agent in ("ada", "bob")]
        assert [(await one.call("mail__send", {})).result.content[0]["text"] for one in (ada, bob)] == ["other", "sent"]
        (missing,) = (await ada.surface()).missing
        assert (missing.plugin, (await bob.surface()).missing) == ("mail", ())
        states = {state.name: state for state in await server_states(board.services, CatalogCounting(board.services))}
        (excluded,) = states["mail"].dropped
        assert excluded.name == "send"
        assert all("'first/mail__send'" in text and "'mail/send'" in text for text in (missing.reason, excluded.reason))
        assert states["first"].dropped == ()


async def test_a_double_is_restarted_and_prints(tmp_path: Path) -> None:
    source = FakeSource({"git": {"log": "nothing"}})
    path = tmp_path / "pegboard.yaml"
    path.write_text("servers: {git: {command: nothing}}\nagents: {ada: {tools: [git]}}\nstore: 'memory:'\n")
    async with Pegboard.open(path, adapters=Adapters(sources=[source])) as board:
        services = board.services
        source.fail("git", "It is ill.")
        source.prints("git", "I am ill.")
        assert (await server_state(services, "git")).state == "down"
        assert [line.text for line in await printed_lines(services, "git")] == ["I am ill."]
        source.fail("git", None)
        state = await restart_plugin(services, "git")
        assert (state.state, state.restarts, state.tools) == ("up", 1, 1)
        assert source.restarted == ["git"]
