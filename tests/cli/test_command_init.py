"""`pegboard init`: from a client's file, or a start of its own."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_support import Run, misfits

from pegboard.core.model.toolkits import UNCONFINED
from pegboard.support.own_folder import folder_of

CLIENT = {
    "mcpServers": {
        "git": {"command": "mcp-server-git", "args": ["--repository", "."], "env": {"LEVEL": "${LEVEL:-1}"}},
        "docs": {"type": "http", "url": "https://docs.example/mcp", "headers": {"X-Team": "a"}},
    }
}


def test_the_start_of_its_own_is_commented_valid_and_works_at_once(run: Run, folder: Path) -> None:
    ran = run("init")
    assert ran.code == 0
    assert ran.out.startswith("Wrote pegboard.yaml")
    written = (folder / "pegboard.yaml").read_text()
    assert written.count("#") > 5
    assert run("check", "--strict").code == 0
    names = [tool["name"] for tool in run("surface", "--json").json["tools"]]
    assert "search_tools" in names
    assert len(names) > 4
    assert run("session", "load", "code").code == 0


def test_a_clients_servers_are_taken_over_and_may_all_be_loaded(run: Run, folder: Path) -> None:
    source = folder / "client.json"
    source.write_text(json.dumps(CLIENT))
    ran = run("init", "--from", str(source), "--json")
    shape = {
        "written": str, "source": str, "servers": [str], "confined": [str], "keyring": [str], "staying": [dict],
        "backup": (str, type(None)), "problems": [dict],
    }  # fmt: skip
    assert (ran.code, misfits(ran.json, shape)) == (0, [])
    assert ran.json["servers"] == ["git", "docs"]
    assert run("check", "--strict").code == 0
    written = (folder / "pegboard.yaml").read_text()
    assert "${LEVEL:-1}" in written
    granted = run("explain", "git", "--json").json
    assert granted["permitted"] is True


def test_the_mcp_json_beside_it_is_taken_over_by_itself(run: Run, folder: Path) -> None:
    (folder / ".mcp.json").write_text(json.dumps(CLIENT))
    assert "with 2 servers from .mcp.json: git, docs" in run("init").out


def test_the_shapes_of_other_clients_and_what_they_filter_are_kept(run: Run, folder: Path) -> None:
    servers = {"servers": {"git": {"command": ["mcp-server-git", "-v"], "excludeTools": ["git_push"], "odd": 1}}}
    (folder / "settings.json").write_text(json.dumps(servers))
    ran = run("init", "--from", "settings.json")
    assert ran.code == 0
    assert "'odd'" in ran.err
    assert run("check", "--strict").code == 0
    text = (folder / "pegboard.yaml").read_text()
    assert "exclude_tools" in text
    assert "command: mcp-server-git" in text


def test_a_file_that_is_there_is_never_replaced_without_force(run: Run, project: Path) -> None:
    before = (project / "pegboard.yaml").read_text()
    refused = run("init", "--json")
    assert (refused.code, refused.json["error"]["code"]) == (3, "file_exists")
    assert (project / "pegboard.yaml").read_text() == before
    forced = run("init", "--force", "--json")
    copy = Path(forced.json["backup"])
    assert (copy.parent, copy.read_text()) == (folder_of(project / "pegboard.yaml"), before)
    assert run("init", "--force", "--json").json["backup"] not in (None, str(copy))


def test_the_file_is_as_private_as_the_one_that_it_was_taken_from(run: Run, folder: Path) -> None:
    (folder / "client.json").write_text(json.dumps(CLIENT))
    (folder / "client.json").chmod(0o600)
    run("init", "--from", "client.json")
    assert (folder / "pegboard.yaml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"mcpServers": ', "client.json:1:"),
        ('{"somethingElse": {}}', "no MCP servers"),
        ('{"mcpServers": []}', "mcpServers is not an object"),
        ("", "no MCP servers"),
        (None, "does not exist"),
    ],
)
def test_a_client_file_that_cannot_be_used_is_told_and_nothing_is_written(
    run: Run, folder: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (folder / "client.json").write_text(text)
    ran = run("init", "--from", "client.json")
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert not (folder / "pegboard.yaml").exists()


def test_a_folder_that_is_missing_is_told(run: Run, folder: Path) -> None:
    ran = run("init", "--config", "nowhere/pegboard.yaml")
    assert ran.code == 1
    assert "nowhere/pegboard.yaml" in ran.err


def test_confine_confines_servers_that_are_fetched_when_they_start_and_says_so(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10, A7: to their folder, and to what their settings name; the others are taken over as they are."""
    outside, inside = folder.parent / "outside", folder / "inside"
    for each in (outside / "below", inside):
        each.mkdir(parents=True)
    (outside / "notes.json").touch()
    servers: dict[str, dict[str, Any]] = {
        "plain": {"command": "npx", "args": ["-y", "some-server", str(inside), "/usr", "https://docs.example/mcp"]},
        "files": {"command": "/opt/node/bin/npx", "args": ["files", str(outside), str(outside / "below"), "no/thing"]},
        "memory": {"command": "uvx", "args": ["memory"], "env": {"FILE": f"{outside}/notes.json"}},
        "option": {"command": "pipx", "args": ["run", "option", f"--folder={outside}"]},
        "apart": {"command": "pnpx", "args": ["apart"], "cwd": str(outside)},
        "variable": {"command": "npm", "args": ["exec", "variable", "${INIT_TEST_FOLDER}"]},
        "says": {"command": "npx", "args": ["says"], "confine": {"write": []}},
        "all": {"command": "npx", "args": ["files", "/"]},
        "git": {"command": "mcp-server-git"},
        "pipx": {"command": "pipx", "args": ["list"]},
        "docs": {"url": "https://docs.example/mcp"},
        "bun": {"command": "bunx", "args": ["bun-server"]},
    }
    (folder / "client.json").write_text(json.dumps({"mcpServers": servers}))
    monkeypatch.setenv("INIT_TEST_FOLDER", str(outside))
    monkeypatch.setenv("PATH", "")  # nothing is installed
    ran = run("init", "--confine", "--from", "client.json")
    written = yaml.safe_load((folder / "pegboard.yaml").read_text())["servers"]
    assert {name: server.pop("confine", None) for name, server in written.items()} == {
        "plain": True, "files": True, "memory": {"write": [".", f"{outside}/notes.json"]},
        "option": True, "apart": True, "variable": True,
        "says": {"write": []}, "all": None, "git": None, "pipx": None, "docs": None, "bun": None,
    }  # fmt: skip
    assert written == {name: {k: v for k, v in server.items() if k != "confine"} for name, server in servers.items()}
    names = ["plain", "files", "memory", "option", "apart", "variable"]
    told = "Confined to their folder and what their settings name (`confine`; pegboard check says more): "
    assert [line for line in ran.out.splitlines() if "onfined (" in line or "onfined to" in line] == [
        f"{told}{', '.join(names)}.",
        "Fetched at start and not confined (bun reads every folder above its own): bun.",
    ]
    assert run("init", "--confine", "--from", "client.json", "--force", "--json").json["confined"] == names


def test_what_a_server_names_is_written_also_where_the_folder_of_the_configuration_is_made_later(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7: a database that is not there yet gets its folder, in the project and at user level alike."""
    from pegboard.confined_servers import confine_servers

    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    (folder / "project").mkdir()
    servers = {"notes": {"command": "uvx", "args": ["notes", "--db-path", str(folder / "project" / "data.db")]}}
    for configuration, own in (
        (folder / ".config" / "pegboard" / "pegboard.yaml", "notes-"),
        (folder / "pegboard.yaml", "notes-"),
        (folder / "made later" / "pegboard.yaml", "."),
    ):
        first, *others = confine_servers(servers, configuration).servers["notes"]["confine"]["write"]
        assert Path(first).name.startswith(own) or first == own
        assert others == [str(folder / "project")]


def test_where_nothing_can_be_confined_init_writes_none_and_says_why(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P10: a server that ran is not made unavailable."""
    (folder / ".mcp.json").write_text('{"mcpServers": {"notes": {"command": "npx", "args": ["notes"]}}}')
    monkeypatch.setattr(sys, "platform", "darwin")
    ran = run("init", "--confine")
    assert "confine" not in (folder / "pegboard.yaml").read_text()
    why = "on macOS it has not been tested yet"
    assert f"Fetched at start and not confined ({why}): notes." in ran.out
    assert run("init", "--confine", "--force", "--json").json["confined"] == []


@pytest.mark.usefixtures("own_folders_apart")
def test_the_start_of_its_own_says_how_what_writes_or_runs_is_confined(run: Run, folder: Path) -> None:
    """P10: every plugin of the one list is named; none is there before someone names it."""
    assert run("init").code == 0
    text = (folder / "pegboard.yaml").read_text()
    (line,) = (line for line in text.splitlines() if "confine: true" in line)
    assert set(UNCONFINED) <= set(re.findall(r"\w+", line))
    (folder / "pegboard.yaml").write_text(text.replace("[files]", "[files, shell]"))
    assert "unconfined" in {problem["code"] for problem in run("check", "--json").json["problems"]}
    (folder / "pegboard.yaml").write_text(
        text.replace(line, "  shell: {confine: true}").replace("[files]", "[files, shell]")
    )
    assert "unconfined" not in {problem["code"] for problem in run("check", "--json").json["problems"]}
