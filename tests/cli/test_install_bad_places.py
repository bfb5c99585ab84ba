"""`init --install` where disks, servers and registries are not as they should be: one sentence, nothing half done.

What is odd in a client's file itself is in `test_install.py`; more clients of one user in `test_install_shared.py`.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_support import Run, put, servers_in
from test_install_shared import CONFIG, CURSOR, GIT, placed, written
from test_install_starts import program, programs, running

from pegboard.support import user_folders
from terminals import Terminal

__all__ = ["programs"]

SECRET = "a-secret-of-the-client-1"
INSTALL = ("init", "--no-check", "--no-keyring", "--install", "cursor")
pytestmark = pytest.mark.usefixtures("home")


def with_secret() -> bytes:
    """Write a client's file with a secret in plain, and return what is in it."""
    return placed(CURSOR, git={**GIT, "env": {"GIT_TOKEN": SECRET}})


# -- the state folder ------------------------------------------------------------------------------


@pytest.fixture
def other_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on another disk than that of the home folder."""
    places = [Path(name) for name in ("/dev/shm", "/var/tmp", tempfile.gettempdir(), str(Path.cwd()))]
    other = next(place for place in places if place.is_dir() and place.stat().st_dev != tmp_path.stat().st_dev)
    with tempfile.TemporaryDirectory(dir=other) as name:
        yield Path(name)


def test_a_state_folder_on_another_disk_is_as_good_as_any(
    run: Run, other_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G12: no file is moved from one to the other, which no system does in one step."""
    monkeypatch.setenv("XDG_STATE_HOME", str(other_disk / "state"))
    before = with_secret()
    for _ in range(2):
        assert run(*INSTALL).code == 0
        assert SECRET not in CONFIG.read_text()
        assert run("init", "--uninstall", "cursor", "--json").json["status"] == "restored"
        assert CURSOR.read_bytes() == before
    assert run("add", "extra", "--no-check", "--no-keyring", "--env", f"A_TOKEN={SECRET}", "--", "x").code == 0
    assert (other_disk / "state" / "pegboard").is_dir()


def on_a_full_disk(state: Path, *command: str) -> list[dict[str, Any]]:
    """Return what a command answers with less and less room for the state folder; see `full_disk.py`."""
    state.mkdir(exist_ok=True)
    script = [sys.executable, str(Path(__file__).with_name("full_disk.py")), str(state), *command]
    own = ["unshare", "--user", "--map-root-user", "--mount"]
    may_mount = shutil.which("unshare") and subprocess.run([*own, "true"], capture_output=True).returncode == 0
    ran = subprocess.run([*(own if may_mount else []), *script], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.mark.parametrize("there", ["", "servers: {other: {command: a}}\nagents: {default: {discoverable: [other]}}\n"])
def test_on_a_full_disk_an_installation_is_done_or_nothing_is(run: Run, folder: Path, there: str) -> None:
    """G12: whichever file is the one that no longer fits; the sentence says where there is no room."""
    with_secret()
    if there:
        put(str(CONFIG), there)
    changed = {str(path.relative_to("home")) for path in (CONFIG, CURSOR)}
    found = on_a_full_disk(folder / "user-state", *INSTALL)
    assert {one["code"] for one in found} == {0, 1}
    for one in found:
        assert {*one["changed"]} == (changed if one["code"] == 0 else set()), one
        if one["code"]:
            assert (one["err"].count("\n"), one["out"]) == (1, ""), one
            assert str(folder / "user-state") in one["err"], one
            assert "left as" in one["err"], one


def test_on_a_full_disk_a_client_gets_its_servers_back_or_nothing_changes(run: Run, folder: Path) -> None:
    with_secret()
    assert run(*INSTALL).code == 0
    found = on_a_full_disk(folder / "user-state", "init", "--uninstall", "cursor")
    assert {one["code"] for one in found} >= {0}
    for one in found:
        assert one["changed"] == ([".cursor/mcp.json"] if one["code"] == 0 else []), one


AS_ANOTHER = """
import ctypes, os, runpy, sys
libc = ctypes.CDLL(None, use_errno=True)
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
if os.getuid() == 0:  # who has every right lacks it for what is another's
    assert libc.capset(header, (ctypes.c_uint32 * 6)()) == 0
sys.argv = ["pegboard", *sys.argv[1:]]
runpy.run_module("pegboard", run_name="__main__")
"""


ADD = ("add", "extra", "--no-check", "--", "x")


@pytest.mark.parametrize(("owned", "command"), [("", INSTALL), ("configurations", INSTALL), ("accepted", ADD)])
def test_a_state_folder_of_another_user_is_one_sentence_and_nothing_changes(
    run: Run, folder: Path, owned: str, command: tuple[str, ...]
) -> None:
    before = with_secret()
    theirs = user_folders.state() / owned
    theirs.mkdir(parents=True)
    theirs.chmod(0o700 if os.getuid() == 0 else 0)
    if os.getuid() == 0:
        os.chown(theirs, 65534, 65534)
    try:
        with Terminal("y") as terminal:
            ran = subprocess.run(
                [sys.executable, "-c", AS_ANOTHER, *command],
                capture_output=True, text=True, timeout=60, start_new_session=True, preexec_fn=terminal.controls(),
            )  # fmt: skip
        assert ran.returncode not in (0, -1), ran
        assert (ran.stdout, ran.stderr.count("\n")) == ("", 1), ran.stderr
        assert str(theirs) in ran.stderr, ran.stderr
        assert (CURSOR.read_bytes(), CONFIG.exists(), list(folder.rglob(".*.??*"))) == (before, False, [])
    finally:
        if os.getuid() == 0:
            os.chown(theirs, 0, 0)
        theirs.chmod(0o700)


# -- servers that take long ------------------------------------------------------------------------

SLOW = "time.sleep(2)\n"


def test_a_server_that_needs_longer_than_three_minutes_moves_where_its_client_waits_for_it(
    run: Run, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G8: the client's own limit is taken over; the three minutes of a server that says nothing are one second here."""
    monkeypatch.setattr("pegboard.cli.server_starts.PATIENCE", 1.0)
    command = program(programs, "slow", SLOW)
    before = placed(CURSOR, slow={"command": command})
    ran = run("init", "--install", "cursor")
    assert (ran.code, CURSOR.read_bytes(), CONFIG.exists(), running(programs)) == (6, before, False, [])
    assert "slow: it does not start when Cursor starts it: it did not answer within 1 s" in ran.err
    path = put("home/.codex/config.toml", f"[mcp_servers.slow]\ncommand = '{command}'\nstartup_timeout_sec = 300\n")
    ran = run("init", "--install", "codex", "--json")
    assert (ran.code, ran.json["servers"], list(servers_in(path))) == (0, ["slow"], ["pegboard"])
    assert (written()["servers"]["slow"]["start"], running(programs)) == ("300s", [])


@pytest.fixture
def silent_registry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a registry of packages that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        for name in ("npm_config_registry", "UV_DEFAULT_INDEX"):
            monkeypatch.setenv(name, address)
        for name in ("npm_config_cache", "UV_CACHE_DIR"):
            monkeypatch.setenv(name, str(folder / "home" / name))
        yield address


@pytest.mark.parametrize(("runner", "more"), [("npx -y", ("--confine",)), ("uvx", ())], ids=["npx confined", "uvx"])
def test_a_registry_that_does_not_answer_is_one_sentence_and_nothing_changes(
    run: Run, silent_registry: str, monkeypatch: pytest.MonkeyPatch, runner: str, more: tuple[str, ...]
) -> None:
    """G8: the package is fetched within a limit, and nothing half fetched stays."""
    monkeypatch.setattr("pegboard.cli.server_starts.PATIENCE", 3.0)
    monkeypatch.setattr("pegboard.config.compile.INSTALLED_WITHIN", 4.0)  # what is left of it is waited for
    command, *args = [*runner.split(), "mcp-server-of-nobody"]
    before = placed(CURSOR, fetched={"command": command, "args": args})
    ran = run("init", "--install", "cursor", *more)
    assert (ran.code, ran.out, CURSOR.read_bytes(), CONFIG.exists()) == (6, "", before, False)
    assert "fetched: it does not start when Cursor starts it" in ran.err
    assert "did not answer within 3 s" in ran.err
    assert not list(Path("home/npm_config_cache").glob("_npx/*/node_modules"))
    ran = run("add", "fetched", *more, "--", command, *args)
    assert (ran.code, ran.out, CONFIG.exists()) == (6, "", False)
    assert "fetched is not added, because it does not start" in ran.err
    assert silent_registry in os.environ.values()


# -- a container -----------------------------------------------------------------------------------


def test_without_a_terminal_and_without_tokens_what_widens_says_what_stands_for_a_person(run: Run) -> None:
    """A5: as in a container that no one has opened with a terminal; what narrows is done."""
    before = put(str(CONFIG), "servers: {git: {command: a}}\nagents: {default: {discoverable: [git]}}\n").read_bytes()
    for command in (("add", "extra", "--", "x"), ("update", "git", "--", "x")):
        ran = subprocess.run(
            [sys.executable, "-m", "pegboard", *command], capture_output=True, text=True, start_new_session=True
        )
        assert (ran.returncode != 0, ran.stdout, ran.stderr.count("\n")) == (True, "", 1), ran.stderr
        assert "there is no terminal to ask in. Nothing was changed." in ran.stderr
        assert all(
            way in ran.stderr
            for way in ("`-it`", "the console", "`tokens:` of the configuration", "PEGBOARD_OPERATOR_TOKEN")
        )
    assert CONFIG.read_bytes() == before
    assert run("remove", "git").code == 0
