"""`pegboard serve`: what it says on standard error, what it picks up, and how it ends."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

from command_serving import DEADLINE, serving, url_in
from command_support import Run

from sdk_servers import pegboard_command


def test_it_says_what_to_paste_into_a_client_and_ends_cleanly_when_told_to(project: Path) -> None:
    with serving("--port", "0", "--agent", "assistant", cold=True) as running:
        message = running.until('"--config"')
        with urllib.request.urlopen(url_in(message).replace("/mcp", "/healthz"), timeout=DEADLINE) as answer:
            assert answer.status == 200
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(timeout=DEADLINE) == 0
    assert '"mcpServers"' in message
    assert "Traceback" not in running.seen


def test_the_quickstart_says_that_it_is_one_and_how_to_get_a_configuration(folder: Path) -> None:
    with serving("--port", "0") as running:
        message = running.until("Pegboard serves MCP at ")
    assert "read-only" in message
    assert "`pegboard init`" in message


def test_every_command_says_that_the_quickstart_is_in_use_unless_a_script_reads(run: Run, folder: Path) -> None:
    assert "`pegboard init`" in run("tools").err
    scripted = run("tools", "--json")
    assert (scripted.code, scripted.err) == (0, "")
    assert scripted.json


def test_an_edit_is_taken_up_or_refused_and_both_are_told(project: Path) -> None:
    config = project / "pegboard.yaml"
    with serving("--port", "0", "--agent", "assistant") as running:
        running.until('"--config"')
        config.write_text(config.read_text() + "  third: {}\n")
        running.until("the edited pegboard.yaml is in use now.\n")
        config.write_text(f"reload: ask\n{config.read_text()}  fourth: {{}}\n")
        running.until("apply once `pegboard accept` or the console accepts it: agents.fourth\n")
        running.until("the edited pegboard.yaml is in use now, without what waits for a person.\n")
        config.write_text("agents: 3\n")
        assert "pegboard.yaml:1:9" in running.until("the last valid one stays in use")


def test_a_port_that_is_taken_is_told_with_what_to_do(run: Run, project: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = run("serve", "--agent", "assistant", "--port", str(taken.getsockname()[1]))
    assert (ran.code, ran.out) == (6, "")
    assert "is in use" in ran.err
    assert "--port" in ran.err


def test_g2_other_machines_are_not_let_in_without_tokens(run: Run, project: Path) -> None:
    ran = run("serve", "--agent", "assistant", "--host", "0.0.0.0", "--port", "0")
    assert ran.code == 2
    assert "tokens" in ran.err


def test_stdio_needs_an_agent_and_writes_nothing_but_the_protocol(project: Path) -> None:
    command = pegboard_command("serve", "--stdio")
    without = subprocess.run(command, input="", capture_output=True, text=True, timeout=DEADLINE)
    assert (without.returncode, without.stdout) == (2, "")
    assert "--agent" in without.stderr
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        },
    }  # fmt: skip
    ran = subprocess.run(
        [*command, "--agent", "assistant"], input=json.dumps(hello) + "\n", capture_output=True, text=True,
        timeout=DEADLINE,
    )  # fmt: skip
    assert ran.returncode == 0
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [1]


def test_garbage_is_looked_for_seldom_once_it_serves() -> None:
    code = """
import gc
from pegboard import served_board
gc.disable()
served_board._collect_rarely()
print(gc.isenabled(), gc.get_freeze_count() > 1000, gc.get_threshold()[0] > 700)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True True\n"
