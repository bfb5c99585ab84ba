"""What Pegboard keeps beside a configuration: nothing of it is committed, and nothing that is confined changes it."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from command_support import Run, put

from pegboard.cli.plugin_problems import own_paths
from pegboard.config.inspection import load
from pegboard.core.access.named_paths import SECRET
from pegboard.support.own_folder import folder_of

SERVERS = Path(__file__).resolve().parents[1] / "servers"
TOKEN = "a-secret-of-the-client-1"
PLAIN = {
    "command": sys.executable,
    "args": [str(SERVERS / "plain_server.py"), "--babble", "ok"],
    "env": {"GITHUB_TOKEN": TOKEN, "LEVEL": "high"},
}
pytestmark = pytest.mark.usefixtures("home")


def git(*arguments: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True, env=env).stdout


def mcp_json(**servers: object) -> Path:
    return put(".mcp.json", json.dumps({"mcpServers": servers}, indent=2))


def test_of_pegboard_git_sees_the_configuration_alone_and_no_secret(run: Run, folder: Path) -> None:
    """The store, its key, secrets and copies of files are in the user's state folder, for their owner alone."""
    git("init", "--quiet")
    put(".gitignore", "/home/\n/user-*/\n")
    git("add", ".gitignore")
    mcp_json(plain=PLAIN)
    assert run("init", "--install", "claude-code").code == 0
    assert run("init", "--config", "other.yaml").code == 0
    put("other.yaml", "agents: {}\n")
    assert run("init", "--config", "other.yaml", "--force").code == 0
    assert run("session", "list", "--config", "pegboard.yaml").code == 0
    places = [folder_of(Path(name)) for name in ("pegboard.yaml", "other.yaml")]
    own = {path.name for place in places for path in place.rglob("*")}
    assert {"pegboard.db", "GITHUB_TOKEN"} <= own
    assert sum(1 for name in own if name.endswith(".backup")) == 2
    git("add", "-A")
    staged = git("status", "--short").split()
    assert staged[1::2] == [".gitignore", ".mcp.json", "other.yaml", "pegboard.yaml"]
    assert TOKEN not in git("diff", "--cached")
    assert "LEVEL: high" in Path("pegboard.yaml").read_text()
    assert {path.stat().st_mode & 0o077 for place in places for path in (place, *place.rglob("*"))} == {0}


def test_a_configuration_with_what_may_be_a_secret_is_for_its_owner_alone(run: Run) -> None:
    mcp_json(plain={**PLAIN, "env": {"LEVEL": "something-else-1"}})
    Path(".mcp.json").chmod(0o644)
    assert run("init", "--install", "claude-code").code == 0
    assert Path("pegboard.yaml").stat().st_mode & 0o777 == 0o600


def test_copies_and_secrets_are_pegboards_own_wherever_the_store_is(folder: Path) -> None:
    """P10: no tool reads or changes them."""
    put("pegboard.yaml", "store: 'sqlite:///elsewhere/pegboard.db'\n")
    own = own_paths(load(folder / "pegboard.yaml", registered={}))
    for name in ("mcp.json.20261128T121322Z.backup", "secrets/GITHUB_TOKEN", "pegboard.db"):
        assert own.kind(str(folder_of(folder / "pegboard.yaml") / name)) in SECRET
    assert own.kind(str(folder / "elsewhere" / "pegboard.db.key")) in SECRET


def test_what_a_server_makes_of_the_copy_is_not_given_to_the_client(run: Run, folder: Path) -> None:
    """P10, A7: it is not confined here, so that it can write there; nothing is changed, and one sentence says why."""
    path = mcp_json(reaching={"command": sys.executable, "args": [str(SERVERS / "reaching_server.py")]})
    assert run("init", "--install", "claude-code").code == 0
    (copy,) = folder_of(Path("pegboard.yaml")).glob("*.backup")
    before = path.read_bytes()
    evil = json.dumps({"mcpServers": {"reaching": {"command": "sh", "args": ["-c", "true"]}}})
    code = base64.b64encode(f"open({str(copy.absolute())!r}, 'w').write({evil!r})".encode()).decode()
    arguments = ["reaching__reach", json.dumps({"attempts": {"copy": code}}), "--config", "pegboard.yaml"]
    run("session", "load", "reaching", "--config", "pegboard.yaml")
    assert run("call", *arguments).code == 0
    assert copy.read_text() == evil
    ran = run("init", "--uninstall", "claude-code")
    assert (ran.code, ran.out, path.read_bytes()) == (1, "", before)
    assert "was changed after that, so it is not put back. Nothing was changed." in ran.err
    assert f"The servers are in {folder / 'pegboard.yaml'}. Put them back by hand." in ran.err


def test_a_copy_that_something_else_puts_there_is_not_taken_for_the_one_that_was_kept(run: Run) -> None:
    path = mcp_json(plain=PLAIN)
    before = path.read_bytes()
    assert run("init", "--install", "claude-code").code == 0
    (copy,) = folder_of(Path("pegboard.yaml")).glob("*.backup")
    copy.with_name(".mcp.json.29991231T235959Z.backup").write_text('{"mcpServers": {}}')
    assert run("init", "--uninstall", "claude-code").code == 0
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_a_confined_server_cannot_change_the_copy_that_is_put_back(run: Run, folder: Path) -> None:
    """A7, P10: nor the digest in the user's state folder, by which it would be found out."""
    path = mcp_json(reaching={"command": sys.executable, "args": [str(SERVERS / "reaching_server.py")]})
    before = path.read_bytes()
    assert run("init", "--install", "claude-code").code == 0
    config = Path("pegboard.yaml")
    value = yaml.safe_load(config.read_text())
    value["servers"]["reaching"]["confine"] = True
    config.write_text(yaml.safe_dump(value))
    (copy,) = folder_of(Path("pegboard.yaml")).glob("*.backup")
    (record,) = (folder / "user-state" / "pegboard" / "copies").iterdir()
    attempts = {
        f"{way} {file.name}": base64.b64encode(code.format(str(file.absolute())).encode()).decode()
        for file in (copy, record)
        for way, code in {
            "write": "open({0!r}, 'w')",
            "remove": "import os; os.remove({0!r})",
            "rename": "import os; os.rename({0!r}, {0!r} + '2')",
        }.items()
    }
    run("session", "load", "reaching", "--config", "pegboard.yaml")
    given = json.dumps({"attempts": attempts})
    ran = run("call", "reaching__reach", given, "--config", "pegboard.yaml", "--json")
    assert ran.code == 0, ran.out
    found = json.loads(ran.json["content"][0]["text"])
    assert len(found) == 6
    assert [way for way, how in found.items() if not how.startswith("refused: ")] == []
    assert run("init", "--uninstall", "claude-code").code == 0
    assert path.read_bytes() == before
