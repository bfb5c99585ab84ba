"""`pegboard measure`: what a client's servers cost today, measured at real ones."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_support import Run, misfits

from acceptance import accept_found
from pegboard.config.client_files.known import CLIENTS
from pegboard.config.documents import document
from pegboard.support.own_folder import folder_of
from sdk_servers import program_command

SERVER = str(Path(__file__).parent.parent / "servers" / "plain_server.py")
BIN = Path(sys.executable).parent
TIME = {"command": str(BIN / "mcp-server-time"), "args": ["--local-timezone", "Etc/UTC"]}
"""Its descriptions name the time zone of the machine."""
GIT = {"command": str(BIN / "mcp-server-git")}
COST = {"git": (12, 1137), "time": (2, 268)}
"""Tools and o200k tokens of name, description and input schema, at the pinned versions."""
AMOUNT = {"tools": int, "tokens": int, "sent": int, "share": float}
READ = {"on": str, "at": [str]}
IN_CLIENT = {"sends": str, "condition": str, "read": READ, "direct": AMOUNT, "pegboard": AMOUNT, "saved": int}
SHAPE = {
    "file": str, "client": str, "window": int,
    "servers": [{"name": str, "tools": int, "tokens": int, "sent": int, "share": float, "status": str, "message": str}],
    **IN_CLIENT, "clients": [{"client": str, **IN_CLIENT}], "plain_secrets": [dict],
}  # fmt: skip


def time() -> dict[str, Any]:
    """Return the server of times, in a process that has the SDK imported."""
    command, *args = program_command(TIME["command"], *TIME["args"])
    return {"command": command, "args": args}


def git() -> dict[str, Any]:
    """Return the server of git, in a process that has the SDK imported."""
    command, *args = program_command(GIT["command"])
    return {"command": command, "args": args}


def plain(*options: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER, *options], **more}


def write(path: Path, servers: dict[str, Any], root: str = "mcpServers") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({root: servers}))
    return path


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in document["servers"]}


@pytest.fixture(autouse=True)
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder, which has nothing in it yet; the current folder lies beside it."""
    home, here = folder / "home", folder / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.chdir(here)
    return home


def everything_below(path: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield str(file), file.read_bytes()


def test_f4_real_servers_cost_what_was_measured_before_and_nothing_is_written(run: Run, folder: Path) -> None:
    write(Path(".mcp.json"), {"git": GIT, "time": TIME})
    accept_found()
    before = list(everything_below(folder))
    ran = run("measure", ".mcp.json", "--json")
    assert (ran.code, misfits(ran.json, SHAPE)) == (0, [])
    assert {name: (row["tools"], row["tokens"]) for name, row in by_name(ran.json).items()} == COST
    assert (ran.json["direct"]["tools"], ran.json["direct"]["tokens"]) == (14, 1405)
    assert (ran.json["file"], ran.json["client"], ran.json["window"]) == (".mcp.json", "claude-code", 200_000)
    assert list(everything_below(folder)) == before


def test_f4_pegboard_instead_costs_what_its_own_gateway_lists(run: Run) -> None:
    write(Path(".mcp.json"), {"time": time()})
    instead = run("measure", "--json").json["pegboard"]
    assert instead["tools"] == 5
    assert 200 < instead["tokens"] < instead["sent"] < 500


def test_f4_each_client_is_judged_by_what_it_sends_itself(run: Run) -> None:
    """Definitions of all tools, their names, or a line on each server; below 30 tools Copilot CLI defers none."""
    write(Path("servers.json"), {"git": git(), "time": time(), "many": plain("--tools", "60")})
    found = run("measure", "servers.json", "--client", "all", "--json").json
    cost = {one["client"]: one for one in found["clients"]}
    assert [*cost] == [*CLIENTS]
    whole = cost["windsurf"]["direct"]
    assert whole["tokens"] <= whole["sent"], "what servers say of their use is sent, too"
    sent = {name: one["direct"]["sent"] for name, one in cost.items()}
    assert sent["codex"] < sent["cursor"] == sent["vscode"] == sent["copilot-cli"] < sent["zed"] == whole["sent"]
    assert [one["sends"] for one in (cost["codex"], cost["cursor"], cost["zed"])] == ["servers", "names", "definitions"]
    assert all(one["saved"] == one["direct"]["sent"] - one["pegboard"]["sent"] for one in cost.values())
    assert cost["claude-code"]["pegboard"]["sent"] == cost["zed"]["pegboard"]["sent"], "its entry keeps all in view"
    assert cost["cursor"]["pegboard"]["sent"] < cost["cursor"]["pegboard"]["tokens"]

    write(Path("few.json"), {"git": git(), "time": time()})
    few = run("measure", "few.json", "--client", "copilot-cli", "--json").json
    assert (few["sends"], few["direct"]["sent"]) == ("definitions", 1405)


def test_f4_where_pegboard_saves_nothing_it_says_so(run: Run) -> None:
    write(Path(".cursor/mcp.json"), {"time": time()})
    accept_found()
    ran = run("measure", ".cursor/mcp.json")
    assert "Cursor sends the names of tools with every request" in ran.out
    assert "Pegboard would save no tokens here" in ran.out
    assert "It defers Pegboard's 5 tools as well" in ran.out


def test_f4_a_server_that_its_entry_keeps_in_view_is_sent_whole(run: Run) -> None:
    write(Path(".mcp.json"), {"git": git(), "time": {**time(), "alwaysLoad": True}})
    accept_found()
    found = run("measure", "--json").json
    rows = by_name(found)
    assert rows["time"]["sent"] == rows["time"]["tokens"] == COST["time"][1]
    assert rows["git"]["sent"] < rows["git"]["tokens"]
    assert found["pegboard"]["tools"] == 5 + COST["time"][0], "what is kept in view is loaded from the start"


def test_a_client_that_is_not_known_is_refused(run: Run) -> None:
    write(Path("servers.json"), {"time": time()})
    ran = run("measure", "servers.json", "--client", "curser")
    assert (ran.code, "Did you mean 'cursor'?" in ran.err) == (2, True)


def test_people_get_a_table_the_total_and_what_would_be_saved(run: Run) -> None:
    write(Path(".junie/mcp/mcp.json"), {"many": plain("--tools", "60")})
    accept_found()
    ran = run("measure", "--window", "10000")
    assert ran.code == 0
    assert "Junie: .junie/mcp/mcp.json" in ran.out
    assert "total" in ran.out
    assert "with Pegboard" in ran.out
    assert "Pegboard would save" in ran.out
    assert "of a window of 10,000" in ran.out
    assert "1 of 1 servers asked; many:" in ran.err


def test_small_servers_are_told_to_be_small(run: Run) -> None:
    write(Path(".mcp.json"), {"time": time()})
    assert "Pegboard would save no tokens here" in run("measure").out


def test_p6_one_that_fails_or_hangs_is_told_and_the_others_are_measured(run: Run) -> None:
    servers = {
        "gone": {"command": "no-such-command-anywhere"},
        "mute": plain("--mute"),
        "broken": plain("--exit", "3", "--complain", "the key hunter22 is wrong", env={"APP_KEY": "hunter22"}),
        "time": time(),
        "later": {**time(), "disabled": True},
    }
    write(Path(".mcp.json"), servers)
    ran = run("measure", "--timeout", "5", "--json")
    rows = by_name(ran.json)
    assert ran.code == 0
    assert {name: row["status"] for name, row in rows.items()} == {
        "gone": "failed", "mute": "failed", "broken": "failed", "time": "ok", "later": "off",
    }  # fmt: skip
    assert "no-such-command-anywhere" in rows["gone"]["message"]
    assert "within 5 s" in rows["mute"]["message"]
    assert "exited with code 3" in rows["broken"]["message"]
    assert "hunter22" not in ran.out + ran.err
    assert rows["later"]["message"] == "it is switched off."
    assert ran.json["direct"]["tokens"] == rows["time"]["tokens"]
    assert ran.json["saved"] is None, "what three of the servers would cost is not known (F4)"


def test_where_nothing_can_be_measured_it_is_refused(run: Run) -> None:
    write(Path(".mcp.json"), {"gone": {"command": "no-such-command-anywhere"}})
    ran = run("measure")
    assert ran.code == 6
    assert "1 server could not be measured" in ran.out


def test_tools_that_the_client_leaves_out_are_not_counted(run: Run, home: Path) -> None:
    write(home / ".gemini" / "settings.json", {"time": {**time(), "excludeTools": ["convert_time"]}})
    (row,) = run("measure", "--json").json["servers"]
    assert row["tools"] == 1
    assert row["tokens"] < COST["time"][1]
    assert row["message"] == "hidden by the client: 1 tool."


def test_inputs_that_only_the_client_can_ask_for_get_a_placeholder(run: Run) -> None:
    text = {
        "inputs": [{"type": "promptString", "id": "key"}],
        "servers": {"time": {**time(), "env": {"KEY": "${input:key}"}}},
    }
    Path(".vscode").mkdir()
    Path(".vscode/mcp.json").write_text(f"// mine\n{json.dumps(text)}")
    (row,) = run("measure", "--json").json["servers"]
    assert (row["status"], row["message"]) == ("ok", "measured with a placeholder for key.")


def test_without_a_file_the_current_folder_comes_first_and_the_others_are_named(run: Run, home: Path) -> None:
    write(home / ".claude.json", {"git": git()})
    write(home / ".config" / "zed" / "settings.json", {}, "context_servers")
    write(Path(".cursor/mcp.json"), {"time": time()})
    ran = run("measure", "--json")
    assert (ran.json["client"], ran.json["file"]) == ("cursor", ".cursor/mcp.json")
    assert f"also found: Claude Code, {home / '.claude.json'}" in ran.err
    assert "Zed" not in ran.err


def test_a_file_of_codex_is_measured(run: Run, home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f'[mcp_servers.time]\ncommand = "{TIME["command"]}"\n')
    assert run("measure", "--json").json["client"] == "codex"


def test_our_own_file_is_measured_and_its_store_is_left_alone(run: Run) -> None:
    Path("pegboard.yaml").write_text(
        json.dumps({"servers": {"time": time()}, "agents": {"a": {"discoverable": ["*"]}}})
    )
    ran = run("measure", "pegboard.yaml", "--json")
    assert (ran.json["client"], ran.json["direct"]["tokens"]) == ("pegboard", COST["time"][1])
    assert not folder_of(Path(".mcp.json")).exists()


def test_where_pegboard_is_installed_the_servers_behind_it_are_measured(run: Run) -> None:
    Path("own.yaml").write_text(json.dumps({"servers": {"time": time()}}))
    entry = {"command": "pegboard", "args": ["serve", "--stdio", "--config", str(Path("own.yaml").absolute())]}
    write(Path(".mcp.json"), {"pegboard": entry})
    assert [row["name"] for row in run("measure", "--json").json["servers"]] == ["time"]
    assert not folder_of(Path(".mcp.json")).exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 1, "No MCP client's configuration with servers was found"),
        (["nowhere.json"], 1, "nowhere.json: does not exist"),
        (["empty.json"], 1, "there are no MCP servers in it"),
        (["broken.json"], 1, "broken.json:1:2"),
        (["empty.json", "--window", "0"], 2, "must be more than 0"),
        (["empty.json", "--timeout", "-1"], 2, "must be more than 0"),
    ],
)
def test_what_cannot_be_measured_is_told_in_one_line(run: Run, arguments: list[str], code: int, message: str) -> None:
    Path("empty.json").write_text('{"mcpServers": {}}')
    Path("broken.json").write_text("{,")
    ran = run("measure", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert run("measure", *arguments, "--json").json["error"]["message"]


def test_a_file_may_come_through_a_pipe(run: Run) -> None:
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_text, args=('{"mcpServers": {"time": {"disabled": true}}}',))
    writer.start()
    ran = run("measure", "pipe", "--json")
    writer.join()
    assert [(row["name"], row["status"]) for row in ran.json["servers"]] == [("time", "off")]


def test_a_file_may_come_on_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with write(Path("any.json"), {"time": {"disabled": True}}).open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        ran = run("measure", "-", "--json")
    assert (ran.json["file"], [row["name"] for row in ran.json["servers"]]) == ("standard input", ["time"])


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "ARRIVAL", 0.1)
    os.mkfifo("pipe")
    for arguments in (("measure", "pipe"), ("check", "--config", "pipe")):
        ran = run(*arguments)
        assert ran.code == 1
        assert "pipe: sent nothing for 0.1 s." in ran.out + ran.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("folder", None, "folder: is a folder"),
        ("/dev/null", None, "/dev/null: there are no MCP servers in it"),
        ("/dev/zero", None, "/dev/zero: is more than 10 MB"),
        ("binary.json", b"\xff\xfe\x00", "binary.json:1:1: is written in UTF-16"),
        ("huge.json", b" " * 10_000_001, "huge.json: is 10 MB; a configuration is at most 10 MB"),
        ("~no-such-user/mcp.json", None, "does not exist"),
    ],
)
def test_what_is_no_file_of_a_client_is_one_clear_error(
    run: Run, name: str, content: bytes | None, message: str
) -> None:
    Path("folder").mkdir()
    if content is not None:
        Path(name).write_bytes(content)
    ran = run("measure", name)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err


def test_a_client_that_there_is_not_is_refused_with_those_there_are(run: Run) -> None:
    ran = run("measure", "--client", "curser", "--json")
    assert ran.code == 2
    error = ran.json["error"]
    assert (error["code"], "'cursor'" in error["hint"]) == ("usage", True)


def test_f4_a_budget_is_kept_by_what_is_sent_as_the_file_is_now(run: Run) -> None:
    """F4: of a client's servers what the client sends, of Pegboard's own file what Pegboard lists."""
    write(Path("direct.json"), {"time": time()})
    Path("own.yaml").write_text(json.dumps({"servers": {"time": time()}}))
    through = {"command": "pegboard", "args": ["serve", "--stdio", "--config", str(Path("own.yaml").absolute())]}
    write(Path("through.json"), {"pegboard": through})
    for file, side in (("direct.json", "direct"), ("own.yaml", "pegboard"), ("through.json", "pegboard")):
        sent = run("measure", file, "--json").json[side]["sent"]
        assert run("measure", file, "--budget", str(sent)).code == 0
        over = run("measure", file, "--budget", str(sent - 1))
        assert over.code == 1
        assert f"{sent:,}" in over.err


def test_p6_a_budget_does_not_hide_that_nothing_could_be_measured(run: Run) -> None:
    write(Path("broken.json"), {"gone": {"command": "no-such-program"}})
    assert run("measure", "broken.json", "--budget", "0").code == 6
