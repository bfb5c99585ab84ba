"""`pegboard add`, `update` and `remove`: a server for all clients of a user, and away from them again (G12)."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_serving import serving, url_in
from command_support import Run, misfits, put
from mcp import Client
from test_install_shared import CONFIG, CURSOR, GIT, TIME, WINDSURF, installed, placed
from test_install_starts import began, program, programs

from pegboard.cli import person
from terminals import Terminal

__all__ = ["programs"]

SERVER = Path(__file__).resolve().parents[1] / "servers" / "plain_server.py"
COMMAND = ("--", sys.executable, str(SERVER))
ADDED = {
    "name": str, "config": str, "agents": [str], "tools": (int, type(None)), "needs_login": bool, "keyring": [str],
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("home")


def written() -> Any:
    return yaml.safe_load(CONFIG.read_text())


def test_one_command_gives_a_server_to_every_client_and_one_takes_it_away(run: Run) -> None:
    placed(CURSOR, git=GIT)
    placed(WINDSURF, time=TIME)
    for client in ("cursor", "windsurf"):
        installed(run, client)
    before = written()
    ran = run("add", "extra", "--json", *COMMAND)
    assert (ran.code, misfits(ran.json, ADDED)) == (0, [])
    assert (ran.json["agents"], ran.json["tools"]) == (["default", "windsurf"], 13)
    assert written()["servers"]["extra"] == {"command": sys.executable, "args": [str(SERVER)]}
    assert [agent["discoverable"] for agent in written()["agents"].values()] == [["git", "extra"], ["time", "extra"]]
    assert run("check", "--strict", "--config", str(CONFIG)).code == 0
    ran = run("remove", "extra", "--json")
    assert (ran.code, ran.json["agents"], written()) == (0, ["default", "windsurf"], before)


def test_one_agent_may_get_it_alone(run: Run) -> None:
    placed(CURSOR, git=GIT)
    placed(WINDSURF, time=TIME)
    for client in ("cursor", "windsurf"):
        installed(run, client)
    ran = run(
        "add",
        "docs",
        "http://127.0.0.1:9/mcp",
        "--no-check",
        "--agent",
        "windsurf",
        "--header",
        "Authorization: Bearer k3y-of-mine",
    )
    assert (ran.code, "for windsurf." in ran.out, "k3y-of-mine" in ran.out) == (0, True, False)
    assert "docs was not started, so it was not checked that it works." in ran.out
    assert written()["agents"]["default"]["discoverable"] == ["git"]
    assert "k3y-of-mine" not in CONFIG.read_text()


def test_the_first_server_makes_the_configuration(run: Run) -> None:
    assert run("add", "extra", "--env", "MODE=fast", *COMMAND).code == 0
    assert (CONFIG.stat().st_mode & 0o777, written()["servers"]["extra"]["env"]) == (0o600, {"MODE": "fast"})
    assert written()["agents"]["default"]["discoverable"] == ["extra"]
    assert run("remove", "extra").code == 0
    assert run("check", "--config", str(CONFIG)).code == 0


@pytest.mark.parametrize("answer", [None, "no"])
def test_adding_a_server_is_a_persons_to_decide_and_removing_one_is_not(
    run: Run, programs: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None
) -> None:
    """A5, P10: who says nothing, or no, changes nothing, and nothing was started before they were asked."""
    placed(CURSOR, git=GIT)
    installed(run, "cursor")
    before = CONFIG.read_text()
    command = ("--", program(programs, "extra"))
    for asked in (("add", "extra"), ("update", "git")):
        with Terminal(answer) as terminal:
            monkeypatch.setattr(person, "TERMINAL", terminal.name)
            ran = run(*asked, "--json", *command)
        assert ran.json["error"]["code"] == ("needs_operator" if answer is None else "declined")
        assert (CONFIG.read_text(), began(programs)) == (before, [])
    assert run("update", "git", "--description", "The history").code == 0
    assert run("remove", "git").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("git", "http://127.0.0.1:9/mcp"), 3, "already has a server or plugin 'git'"),
        (("a", "--env", "X=1", "http://127.0.0.1:9/mcp"), 2, "--env is for a command"),
        (("a", "--header", "X: 1", "--", "b"), 2, "--header is for an address"),
        (("a", "--env", "X", "--", "b"), 2, "Write --env NAME=VALUE"),
        (("a", "--agent", "nobody", "--", "b"), 3, "There is no agent 'nobody' in pegboard.yaml."),
        (("a", "--", "no-such-command"), 6, "a is not added, because it does not start: the command 'no-such-command'"),
        (("*", "--", "b"), 2, "The name of a server cannot contain '*', which is a wildcard"),
        (("tool:x", "--", "b"), 2, "'tool:x' means the tool 'x', and cannot be the name of a server"),
        (("", "--", "b"), 2, "The name of a server cannot be empty"),
        (("a/", "--", "b"), 2, "'a/' cannot be the name of a server"),
        (("a", "http://127.0.0.1:9/mcp", "--", "b"), 2, "either an address or a command"),
        (("a", "HTTPS://127.0.0.1:9/mcp", "http://127.0.0.1:9/mcp"), 2, "either an address or a command"),
        (("a",), 2, "Missing"),
    ],
)
def test_what_cannot_be_added_is_one_clear_error_and_nothing_changes(
    run: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    placed(CURSOR, git=GIT)
    installed(run, "cursor")
    before = CONFIG.read_text()
    ran = run("add", *arguments)
    assert (ran.code, message in ran.err, ran.out) == (code, True, ""), ran.err
    assert CONFIG.read_text() == before


def test_what_grants_a_server_goes_with_it_and_what_else_names_it_keeps_it(run: Run) -> None:
    put(
        str(CONFIG),
        "servers: {git: {command: a}, time: {command: b}}\n"
        "toolkits: {code: {tools: [git]}, more: {tools: [git, time]}}\n"
        "agents:\n"
        "  default: {tools: [{git: {include_tools: [log]}}], discoverable: [git], allowed_toolkits: [code, more]}\n"
        "  other: {discoverable: [time], permissions: {git: false, 'plugin:git': true, git/log: false}}\n"
        "  third: {discoverable: [time], permissions: {code: false, time: true, github: false}}\n",
    )
    assert "Did you mean 'git'?" in run("remove", "gti").err
    assert run("remove", "git").code == 0
    assert written() == {
        "servers": {"time": {"command": "b"}},
        "toolkits": {"more": {"tools": ["time"]}},
        "agents": {
            "default": {"allowed_toolkits": ["more"]},
            "other": {"discoverable": ["time"]},
            "third": {"discoverable": ["time"], "permissions": {"time": True, "github": False}},
        },
    }
    before = put(str(CONFIG), "servers: {minutes: {command: a}}\nagents: {default: {tools: ['plugin:minutes']}}\n")
    text = before.read_text()
    ran = run("remove", "minutes", "--json")
    assert (ran.code, ran.json["error"]["code"], CONFIG.read_text()) == (3, "server_in_use", text)


def test_what_is_served_has_the_server_at_once(run: Run) -> None:
    """P10: the person has agreed, so nothing waits for one."""
    first = json.dumps({"command": sys.executable, "args": [str(SERVER)]})
    agents = "agents: {default: {dialect: pegboard, discoverable: [first]}}\n"
    put(str(CONFIG), f"servers: {{first: {first}}}\n{agents}")

    async def loaded(url: str) -> str:
        async with Client(url) as client:
            return str((await client.call_tool("load_tools", {"names": ["second"]})).content)

    with serving("--port", "0", "--config", str(CONFIG)) as gateway:
        url = url_in(gateway.until("Pegboard serves MCP at "))
        added = run("add", "second", *COMMAND)
        assert added.code == 0, added.err
        gateway.until("the edited pegboard.yaml is in use now")
        assert "waits for a person" not in gateway.seen
        assert "second__echo" in asyncio.run(loaded(url))


UPDATED = {
    "name": str, "config": str, "changed": bool, "version": str, "agents": [str], "tools": (int, type(None)),
    "needs_login": bool, "keyring": [str],
}  # fmt: skip
KEPT = """\
# mine
servers:
  git:  # the history
    command: a
    args: [b]
    env: {LEVEL: high, MODE: fast}   # loud
    prefix: g
agents: {default: {discoverable: [git]}}
"""


def test_of_a_server_what_is_named_changes_and_everything_else_stays(run: Run) -> None:
    """G12: its secrets go where those of an added one go; a server of another kind keeps nothing of the old kind."""
    put(str(CONFIG), KEPT)
    ran = run("update", "git", "--env", "A_TOKEN=s3cret-of-mine-1", "--env", "MODE=", "--json", *COMMAND)
    assert (ran.code, misfits(ran.json, UPDATED), ran.json["changed"], ran.json["tools"]) == (0, [], True, 13)
    server = written()["servers"]["git"]
    assert (server["command"], server["args"], server["prefix"]) == (sys.executable, [str(SERVER)], "g")
    assert (list(server["env"]), server["env"]["LEVEL"]) == (["LEVEL", "A_TOKEN"], "high")
    assert "s3cret-of-mine-1" not in CONFIG.read_text() + ran.out + ran.err
    assert all(comment in CONFIG.read_text() for comment in ("# mine", "# the history"))
    assert run("update", "git", "--description", "Reads: the history").code == 0
    assert written()["servers"]["git"] == {**server, "description": "Reads: the history"}
    before = CONFIG.read_text()
    again = run("update", "git", "--no-check", "--json", "--env", "LEVEL=high")
    assert (again.json["changed"], CONFIG.read_text()) == (False, before)
    assert run("update", "git", "--no-check", "--header", "X-Team: a", "http://127.0.0.1:9/mcp").code == 0
    assert written()["servers"]["git"] == {
        "url": "http://127.0.0.1:9/mcp",
        "headers": {"X-Team": "a"},
        "prefix": "g",
        "description": "Reads: the history",
    }


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("gti", "--description", "x"), 3, "Did you mean 'git'?"),
        (("git",), 2, "There is nothing to change."),
        (("git", "--header", "X: 1"), 2, "--header is for an address"),
        (("git", "--env", "X"), 2, "Write --env NAME=VALUE"),
        (("git", "--", "no-such-command"), 6, "git is not changed, because it does not start"),
    ],
)
def test_what_cannot_be_changed_is_one_clear_error_and_nothing_changes(
    run: Run, arguments: tuple[str, ...], code: int, message: str
) -> None:
    put(str(CONFIG), KEPT)
    ran = run("update", *arguments)
    assert (ran.code, message in ran.err, ran.out) == (code, True, ""), ran.err
    assert CONFIG.read_text() == KEPT


def test_the_question_names_the_variables_and_headers_that_are_set(run: Run, terminal: Terminal) -> None:
    """P11: a person agrees to what is shown; values stay out of it."""
    for name, target, given, shown in (
        ("one", ["--", "python", "srv.py"], ("--env", "LD_PRELOAD=hidden-value"), "with the variables LD_PRELOAD"),
        ("two", ["https://tools.example/mcp"], ("--header", "X-Who: hidden-value"), "with the headers X-Who"),
    ):
        run("add", name, "--no-check", *given, *target)
        assert shown in terminal.asked
        assert "hidden-value" not in terminal.asked
