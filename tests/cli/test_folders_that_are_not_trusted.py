"""A cloned folder that no one has accepted: no command runs, imports, resolves or sends anything of it."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer.main

from pegboard.cli import main, person
from pegboard.cli.command_line import app
from pegboard.config.acceptance import accept_text
from terminals import Terminal

INSTALLED = str(Path(sys.executable).with_name("pegboard"))
SECRET = "the-secret-of-the-user"
MODULE = """
from pathlib import Path

Path({marker!r}).touch()


def one() -> str:
    "Return one."
    return "1"


def hook(*given: object) -> str:
    return "yes"
"""
CONFIG = """\
store: sqlite:///shipped.db
servers:
  evil: {{command: {touch}, args: [{marker}]}}
  told: {{command: {touch}, env: {{VALUE: "${{cmd:touch {marker}}}"}}}}
  web: {{url: "{url}", headers: {{Authorization: "Bearer ${{STRANGE_SECRET}}"}}}}
plugins:
  stranger: {{python: stranger, needs: {{one: {{when: "stranger:hook"}}}}}}
toolkits:
  kit:
    tools: [stranger]
    policy: {{python: "stranger:hook"}}
    focus: [{{python: "stranger:hook", tools: [stranger]}}]
agents:
  default: {{tools: [stranger], allowed_toolkits: [kit], initial_toolkits: [kit], discoverable: ["*"]}}
"""
NO_CONFIGURATION = {
    "schema", "init", "add", "remove", "update", "secret set", "secret list", "secret delete",
    "daemon status", "daemon stop", "daemon restart", "daemon logs",
    "daemon install", "daemon uninstall",
}  # fmt: skip
"""The commands that need no configuration, do without one that is not accepted, or are about the user's own."""
GIVEN = {
    "call": ["one", "{}"],
    "search": ["one"],
    "doctor": ["evil"],
    "init": ["--install", "claude-code", "--dry-run"],
    "permissions set": ["evil", "true"],
}
INSTALL = ["--install", "claude-code"]
MORE = [
    *(("check", [option]) for option in ("--probe", "--json")),
    *(("init", words) for words in ([], INSTALL, [*INSTALL, "--no-check"])),
    *(("serve", ["--stdio"]), ("doctor", []), ("daemon stop", [])),
]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield every command of the command line, with what it needs to do something."""
    yield from _leaves(typer.main.get_command(app), "")
    yield from MORE


def _leaves(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    for part in getattr(command, "commands", ()):
        own = command.get_command(None, part)
        yield from _leaves(own, f"{name} {part}".strip())
    if not hasattr(command, "commands"):
        needed = [one for one in command.params if one.required]
        words = [["web"] if one.param_type_name == "argument" else [one.opts[0], "web"] for one in needed]
        yield name, GIVEN.get(name, [word for some in words for word in some])


@dataclass(frozen=True, kw_only=True)
class Clone:
    """A cloned folder, what its code would leave, and what its address was sent."""

    folder: Path
    marker: Path
    requests: list[dict[str, str]]

    def assert_untouched(self) -> None:
        assert not self.marker.exists()
        assert self.requests == []
        assert not (self.folder / "shipped.db").exists()


@pytest.fixture
def address() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Return the address of a server on loopback, and the headers of each request that it got."""
    requests: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(dict(self.headers))
            self.send_error(404)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/mcp", requests
    server.shutdown()
    server.server_close()
    thread.join()


def bring(folder: Path, files: dict[str, str]) -> None:
    """Write what a clone or a pull brings."""
    for name, text in files.items():
        (folder / name).write_text(text)


def become(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the user with this home folder."""
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(user))


@pytest.fixture
def clone(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: tuple[str, list[dict[str, str]]],
) -> Clone:
    """Return a clone of a stranger's repository, as the current folder of a user with a secret and no terminal."""
    url, requests = address
    marker = tmp_path / "marker"
    files = {"pegboard.yaml": CONFIG.format(touch="touch", marker=marker, url=url)}
    if getattr(request, "param", "") == ".mcp.json":
        servers = {
            "evil": {"command": "touch", "args": [str(marker)]},
            "web": {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${STRANGE_SECRET}"}},
        }
        files = {".mcp.json": json.dumps({"mcpServers": servers})}
    modules = {
        f"{name}.py": MODULE.format(marker=str(marker)) for name in ("stranger", "yaml", "typer", "platformdirs")
    }
    (tmp_path / "clone" / ".git").mkdir(parents=True)
    bring(tmp_path / "clone", {**files, **modules})
    monkeypatch.chdir(tmp_path / "clone")
    monkeypatch.setenv("STRANGE_SECRET", SECRET)
    become(tmp_path / "user", monkeypatch)
    monkeypatch.setattr(person, "TERMINAL", str(tmp_path / "no-terminal"))
    return Clone(folder=tmp_path / "clone", marker=marker, requests=requests)


def test_no_command_runs_imports_or_sends_anything_of_a_folder_that_is_not_accepted(
    clone: Clone, capsys: pytest.CaptureFixture[str]
) -> None:
    """P11: each command of the command line, those to come among them."""
    for command, arguments in commands():
        code = main([*command.split(), *arguments])
        said = capsys.readouterr()
        clone.assert_untouched()
        assert SECRET not in said.out + said.err, command
        if command not in NO_CONFIGURATION:
            assert code == 4, (command, said.err)
            assert "pegboard accept" in said.out + said.err, command
            assert "--config" in said.out + said.err, command


Here = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    """Return what runs the command in this process, at a terminal or at none."""

    def here(*arguments: str, terminal: Terminal | None = None) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch:
            if terminal is not None:
                patch.setattr(person, "TERMINAL", terminal.name)
            code = main(list(arguments))
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)

    return here


@pytest.mark.parametrize("clone", [".mcp.json"], indirect=True)
@pytest.mark.parametrize("words", [[], INSTALL, [*INSTALL, "--no-check"]], ids=" ".join)
def test_init_takes_no_servers_over_from_a_file_that_is_not_accepted(
    clone: Clone, here: Here, words: list[str]
) -> None:
    """P11: what it writes counts as accepted, so it asks first; nothing is written where no one can be asked."""
    before = {path: path.read_bytes() for path in clone.folder.iterdir() if path.is_file()}
    done = here("init", *words)
    assert (done.returncode, "pegboard accept" in done.stderr) == (4, True), done.stderr
    assert {path: path.read_bytes() for path in clone.folder.iterdir() if path.is_file()} == before
    clone.assert_untouched()


def ran(*arguments: str, terminal: Terminal | None = None, module: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the command in a process and a session of its own, at a terminal or at none."""
    command = [sys.executable, "-m", "pegboard"] if module else [INSTALLED]
    return subprocess.run(
        [*command, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
        start_new_session=True, preexec_fn=terminal.controls() if terminal is not None else None,
    )  # fmt: skip


def test_no_module_of_the_folder_takes_the_place_of_one_that_pegboard_imports(clone: Clone) -> None:
    """P11: `python -m` puts the current folder before everything else."""
    done = ran("tools", module=True)
    assert (done.returncode, done.stdout) == (4, ""), done.stderr
    assert done.stderr.count("\n") == 1
    clone.assert_untouched()


@pytest.mark.parametrize("answer", ["n", None])
def test_who_says_no_at_the_terminal_has_run_nothing(clone: Clone, answer: str | None) -> None:
    """P11: `serve` asks, with all that it would run."""
    with Terminal(answer) as terminal:
        done = ran("serve", "--port", "0", terminal=terminal)
    assert done.returncode == 4, done.stderr
    clone.assert_untouched()
    for line in (
        f"  servers.evil: run touch {clone.marker}\n",
        f"  servers.told.env.VALUE: read ${{cmd:touch {clone.marker}}}\n",
        "  servers.web: connect to http://127.0.0.1:",
        "  servers.web.headers.Authorization: read ${STRANGE_SECRET}\n",
        "  plugins.stranger: import stranger\n",
        "  plugins.stranger.needs.one: import stranger:hook\n",
        "  toolkits.kit.policy: import stranger:hook\n",
        "  toolkits.kit.focus[0]: import stranger:hook\n",
        "  store: connect to sqlite:///shipped.db\n",
        "Accept pegboard.yaml? [y/N] ",
    ):
        assert line in terminal.asked, terminal.asked


def test_what_one_user_accepts_runs_for_that_user_alone(
    clone: Clone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11: it is kept in the state folder of the user, not in the folder that everyone has."""
    with Terminal("y") as terminal:
        done = ran("accept", terminal=terminal)
    assert (done.returncode, done.stdout) == (0, "Nothing waits for a person.\n"), done.stderr
    assert done.stderr.startswith("pegboard: pegboard.yaml is accepted.\n")
    other = tmp_path / "other"
    become(other, monkeypatch)
    clone.requests.clear()
    clone.marker.unlink(missing_ok=True)
    assert ran("tools").returncode == 4
    assert (clone.marker.exists(), clone.requests) == (False, [])
    become(tmp_path / "user", monkeypatch)
    assert ran("tools").returncode == 0
    assert clone.marker.exists()
    assert f"Bearer {SECRET}" in [sent.get("Authorization") for sent in clone.requests]


def test_check_lists_what_waits(clone: Clone, here: Here) -> None:
    """P11: for people and for scripts."""
    people, scripts = here("check"), here("check", "--json")
    assert (people.returncode, scripts.returncode) == (4, 4)
    assert f"waits: servers.evil: run touch {clone.marker}\n" in people.stdout
    found = json.loads(scripts.stdout)
    assert (found["ok"], {problem["code"] for problem in found["problems"]}) == (False, {"not_accepted"})
    assert "plugins.stranger: import stranger: this waits." in [problem["message"] for problem in found["problems"]]
    clone.assert_untouched()


def test_what_is_listed_hides_no_code_and_no_line(clone: Clone, here: Here) -> None:
    """P11, X5: a secret is masked, a word that can be code is not."""
    server = {
        "command": "sh", "args": ["-c", "token=x\nfake: line", "--token", "a-secret-1", "--key", "a; touch b"],
        "cwd": "below", "envFile": "brought.env",
        "env": {"BROWSER": "./brought", "DB_PASSWORD": "a-secret-2", "MY_APIKEY": "a-secret-3"},
    }  # fmt: skip
    servers = {
        "one": server,
        "two": {"url": "https://example.org/mcp?a-secret-4#a-secret-5"},
        "three": {"command": "x" * 900},
    }
    (clone.folder / "pegboard.yaml").write_text(json.dumps({"servers": servers}))
    done = here("check")
    assert done.returncode == 4, done.stderr
    assert "waits: servers.one: run sh -c 'token=x\\nfake: line' --token '***' --key 'a; touch b'\n" in done.stdout
    for line in (
        "one: in the folder below\n",
        "one: read the variables in brought.env\n",
        "one: with BROWSER=./brought\n",
        "one: with DB_PASSWORD\n",
        "two: connect to https://example.org/mcp?…\n",
    ):
        assert f"waits: servers.{line}" in done.stdout, done.stdout
    assert "a-secret" not in done.stdout
    (long,) = [line for line in done.stdout.splitlines() if "servers.three" in line]
    assert long.endswith("x…")
    assert len(long) < 550


def test_a_configuration_that_is_named_is_accepted(clone: Clone, here: Here) -> None:
    """P11: to name it is to accept it."""
    assert here("tools", "--config", "pegboard.yaml").returncode == 0
    assert clone.marker.exists()
    assert f"Bearer {SECRET}" in [sent.get("Authorization") for sent in clone.requests]


def test_what_a_pull_brings_to_an_accepted_folder_waits(clone: Clone, here: Here, tmp_path: Path) -> None:
    """P10, P11: a command, code, a reference, an address, a hook: none runs, and the rest of the edit counts."""
    ran_by = {name: tmp_path / f"{name}-ran" for name in ("command", "module", "reference", "hook")}
    plain = {"store": "sqlite:///s.db", "agents": {"default": {"tools": ["calculator"], "discoverable": ["*"]}}}
    bring(clone.folder, {"pegboard.yaml": json.dumps(plain)})
    with Terminal("y") as terminal:
        assert here("tools", terminal=terminal).returncode == 0
    brought = {
        "servers": {
            "command": {"command": "touch", "args": [str(ran_by["command"])]},
            "reference": {"command": "true", "env": {"A": f"${{cmd:touch {ran_by['reference']}}}"}},
            "address": {"url": "http://127.0.0.1:9/mcp", "headers": {"A": "${STRANGE_SECRET}"}},
        },
        "plugins": {"module": {"python": "brought"}},
        "toolkits": {"hook": {"tools": ["diff"], "policy": {"python": "brought_hook:hook"}}},
    }
    kits = {"allowed_toolkits": ["hook"], "initial_toolkits": ["hook"]}
    agents = {"default": {"tools": ["calculator", "diff"], "discoverable": ["*"], **kits}}
    modules = {
        "brought.py": MODULE.format(marker=str(ran_by["module"])),
        "brought_hook.py": MODULE.format(marker=str(ran_by["hook"])),
    }
    bring(clone.folder, {"pegboard.yaml": json.dumps({**plain, **brought, "agents": agents}), **modules})
    surface = here("surface", "--json")
    assert {"add", "compare_files"} <= {tool["name"] for tool in json.loads(surface.stdout)["tools"]}, surface.stderr
    assert "wait for a person, and apply once `pegboard accept`" in surface.stderr
    here("tools")
    assert here("check", "--probe").stdout.count(": this grants more, so it waits for a person.") >= 5
    assert [name for name, marker in ran_by.items() if marker.exists()] == []
    assert "waiting " in here("doctor").stdout
    strict = here("serve", "--strict", "--port", "0")
    assert (strict.returncode, "`pegboard accept`" in strict.stderr) == (4, True), strict.stderr
    with Terminal("y") as terminal:
        accepted = here("accept", terminal=terminal)
    assert accepted.stdout.startswith("accepted: "), accepted.stderr
    here("surface")
    here("tools")
    assert [name for name, marker in ran_by.items() if not marker.exists()] == []


def test_a_store_that_the_folder_brings_accepts_nothing(
    clone: Clone, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10, P11: neither the folder itself, nor what a pull brings; nothing that it says counts.

    Who names the configuration has the store; what it calls accepted waits all the same.
    """
    text = (clone.folder / "pegboard.yaml").read_text()
    become(tmp_path / "stranger", monkeypatch)
    assert here("tools", "--config", "pegboard.yaml").returncode == 0  # the store calls every command accepted now
    clone.marker.unlink()
    shipped = (clone.folder / "shipped.db").read_bytes()
    become(tmp_path / "user", monkeypatch)
    assert (here("tools").returncode, clone.marker.exists()) == (4, False)
    plain = "store: sqlite:///shipped.db\nagents: {default: {discoverable: ['*']}}\n"
    (clone.folder / "pegboard.yaml").write_text(plain)
    with Terminal("y") as terminal:
        assert is_not_own(here("tools", "--json", terminal=terminal))
    without_store(clone)
    assert here("tools").returncode == 0
    (clone.folder / "pegboard.yaml").write_text(text)
    assert here("tools").returncode == 0
    without_store(clone)
    (clone.folder / "shipped.db").write_bytes(shipped)  # as a pull may
    assert is_not_own(here("tools", "--json"))
    for words in (["--config", "pegboard.yaml"], []):
        assert here("tools", *words).returncode == 0
        assert not clone.marker.exists()


def is_not_own(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether a command is refused for a store that may have come with the folder."""
    return (done.returncode, json.loads(done.stdout)["error"]["code"]) == (3, "store_not_own")


def without_store(clone: Clone) -> None:
    for file in clone.folder.glob("shipped.db*"):
        file.unlink()


def test_a_link_to_an_accepted_configuration_is_not_accepted(
    clone: Clone, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11: what counts is where it was found."""
    with Terminal("y") as terminal:
        assert here("accept", terminal=terminal).returncode == 0
    clone.marker.unlink(missing_ok=True)
    below = clone.folder / "below"
    below.mkdir()
    (below / "pegboard.yaml").symlink_to(clone.folder / "pegboard.yaml")
    monkeypatch.chdir(below)
    done = here("tools")
    assert (done.returncode, clone.marker.exists()) == (4, False), done.stderr


def test_an_edit_between_the_question_and_the_first_start_is_asked_about_again(clone: Clone, here: Here) -> None:
    """P11: what was read at the terminal is accepted, not the name of the file."""
    with (clone.folder / "pegboard.yaml").open("a") as file:
        file.write("# edited\n")
    accept_text(clone.folder / "pegboard.yaml", digest="0" * 32)
    assert here("tools").returncode == 4
    clone.assert_untouched()


def test_what_init_writes_is_accepted(clone: Clone, here: Here) -> None:
    """P11: its user has just asked for it."""
    (clone.folder / "pegboard.yaml").unlink()
    assert here("tools").returncode == 0  # the quickstart
    assert here("init").returncode == 0
    done = here("check")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    (clone.folder / "pegboard.yaml").write_text("agents: {default: {tools: [file]}}")
    assert here("tools").returncode == 4
