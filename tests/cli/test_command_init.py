"""`pegboard init`: from a client's file, or a start of its own."""

import json
from pathlib import Path

import pytest
from command_support import Run, misfits

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
        "written": str, "source": str, "servers": [str], "backup": (str, type(None)), "problems": [dict],
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
    assert (refused.code, refused.json["error"]["code"]) == (1, "file_exists")
    assert (project / "pegboard.yaml").read_text() == before
    forced = run("init", "--force", "--json")
    assert forced.json["backup"] == "pegboard.yaml.bak"
    assert (project / "pegboard.yaml.bak").read_text() == before
    assert run("init", "--force", "--json").json["backup"] == "pegboard.yaml.bak1"


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
        ("", "is empty"),
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
