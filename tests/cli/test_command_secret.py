"""G13: secrets go into the keyring by the command, from the terminal or standard input, and never come out of it."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from command_support import ERROR, Run, misfits, put

from keyring_files import keyring_in
from pegboard.config.clients.plain_secrets import file_reference_in
from pegboard.support.installed import install_hint, install_line
from pegboard.support.own_folder import folder_of

VALUE = "hunter22-of-the-command"
CONFIG = """
servers:
  gh: {command: gh-server, env: {GITHUB_TOKEN: "${keyring:GH}", A: "${file:nowhere}", B: "${cmd:touch ran}"}}
  docs: {url: "https://example.org/mcp", headers: {Authorization: "Bearer ${op:Work/Docs/token}"}}
"""
PLAIN = {
    "gh": {"command": sys.executable, "args": ["-c", "0", "--token=plain-token-1"], "env": {"GITHUB_TOKEN": VALUE}},
    "docs": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": f"Bearer {VALUE}-2", "X-Team": "research"}},
}


@pytest.fixture
def kept(folder: Path) -> Iterator[Path]:
    with keyring_in(folder / "keyring"):
        yield folder


def given(run: Run, monkeypatch: pytest.MonkeyPatch, value: bytes, *arguments: str):
    """Run the command with a value on standard input."""
    read, write = os.pipe()
    os.write(write, value)
    os.close(write)
    with open(read) as stream:  # noqa: PTH123 - a pipe has no path
        monkeypatch.setattr(sys, "stdin", stream)
        return run(*arguments)


def test_a_value_from_standard_input_is_kept_without_its_newline(
    kept: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = given(run, monkeypatch, f"{VALUE}\n".encode(), "secret", "set", "GH", "--json")
    assert ran.code == 0
    assert misfits(ran.json, {"name": str, "reference": str, "keyring": str}) == []
    assert ran.json["reference"] == "${keyring:GH}"
    assert keyring.get_password("pegboard", "GH") == VALUE
    assert VALUE not in ran.out + ran.err


def test_a_value_is_typed_at_the_terminal_and_shown_nowhere(kept: Path) -> None:
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    child = subprocess.Popen(
        [sys.executable, "-m", "pegboard", "secret", "set", "GH"],
        stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: os.close(os.open(name, os.O_RDWR)),
    )  # fmt: skip
    shown = b""
    while b"Value of GH: " not in shown:
        shown += os.read(master, 1024)
    os.write(master, f"{VALUE}\n".encode())
    out, err = child.communicate(timeout=30)
    os.set_blocking(master, False)
    shown += os.read(master, 1024)
    os.close(slave)
    os.close(master)
    assert child.returncode == 0, err
    assert b"Write ${keyring:GH} in place of the value." in out
    assert VALUE.encode() not in shown + out + err
    assert keyring.get_password("pegboard", "GH") == VALUE


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"a\0b", "zero byte"),
        (b"x" * 65_537, "larger than 64 KiB"),
    ],
)
def test_what_is_no_value_is_not_kept(
    kept: Path, run: Run, monkeypatch: pytest.MonkeyPatch, value: bytes, why: str
) -> None:
    (kept / "value").write_bytes(value)
    with (kept / "value").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        ran = run("secret", "set", "GH")
    assert ran.code == 2
    assert why in ran.err
    assert keyring.get_password("pegboard", "GH") is None


@pytest.mark.parametrize("arguments", [["GH", VALUE], [f"GH={VALUE}"], ["GH", "--json", VALUE]])
def test_a_value_is_never_an_argument_and_is_not_repeated(kept: Path, run: Run, arguments: list[str]) -> None:
    ran = run("secret", "set", *arguments)
    assert ran.code == 2
    assert VALUE not in ran.out + ran.err
    assert keyring.get_password("pegboard", "GH") is None


def test_the_list_has_names_places_and_what_has_no_value_and_runs_nothing(
    kept: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("pegboard.yaml", CONFIG)
    given(run, monkeypatch, VALUE.encode(), "secret", "set", "UNUSED")
    shape = [
        {
            "name": (str, type(None)), "reference": str, "has_value": str, "reason": str,
            "used": [{"file": str, "line": int, "column": int, "path": str}],
        }
    ]  # fmt: skip
    listed = run("secret", "list", "--json").json
    assert misfits([{**row, "has_value": str(row["has_value"])} for row in listed], shape) == []
    assert [(row["reference"], row["has_value"], [one["path"] for one in row["used"]]) for row in listed] == [
        ("${keyring:GH}", False, ["servers.gh.env.GITHUB_TOKEN"]),
        ("${keyring:UNUSED}", True, []),
        ("${file:nowhere}", False, ["servers.gh.env.A"]),
        ("${cmd:touch ran}", None, ["servers.gh.env.B"]),
        ("${op:Work/Docs/token}", None, ["servers.docs.headers.Authorization"]),
    ]
    shown = run("secret", "list")
    assert "${keyring:GH} has no value. Run `pegboard secret set GH`." in shown.out
    assert VALUE not in shown.out + json.dumps(listed)
    assert not (kept / "ran").exists()


def test_a_value_is_deleted_and_where_it_is_still_named_is_said(
    kept: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("pegboard.yaml", CONFIG)
    given(run, monkeypatch, VALUE.encode(), "secret", "set", "GH")
    ran = run("secret", "delete", "GH")
    assert (ran.code, ran.out) == (0, "'GH' is deleted. It is still referred to in pegboard.yaml:3:48.\n")
    assert keyring.get_password("pegboard", "GH") is None
    again = run("secret", "delete", "GH", "--json")
    assert again.code == 3
    assert misfits(again.json, ERROR) == []
    assert again.json["error"]["code"] == "unknown_secret"


@pytest.mark.parametrize("command", [["set", "GH"], ["delete", "GH"]])
def test_without_a_keyring_one_error_says_what_to_do(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    ran = given(run, monkeypatch, VALUE.encode(), "secret", *command, "--json")
    assert ran.code == 6
    assert ran.json["error"]["code"] == "keyring_failed"
    assert "this system has no keyring" in ran.json["error"]["message"]
    assert "${file:PATH}" in ran.json["error"]["hint"]
    assert VALUE not in ran.out + ran.err


@pytest.mark.parametrize("command", [["set", "GH"], ["delete", "GH"], ["list"]])
def test_without_the_package_the_line_that_installs_it_is_given(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    put("pegboard.yaml", CONFIG)
    monkeypatch.setitem(sys.modules, "keyring", None)
    ran = given(run, monkeypatch, VALUE.encode(), "secret", *command)
    assert "the package keyring is not installed" in ran.out + ran.err
    assert install_line(extra="keyring") in ran.out + ran.err
    (problem,) = [one for one in run("check", "--json").json["problems"] if one["code"] == "keyring_missing"]
    assert (problem["line"], problem["hint"]) == (3, install_hint(extra="keyring"))


# -- what check and measure say --------------------------------------------------------------------


def test_check_opens_no_keyring_and_runs_no_command_and_says_what_it_cannot_know(kept: Path, run: Run) -> None:
    put("pegboard.yaml", CONFIG)
    ran = run("check")
    assert ran.code == 0
    assert "note: ${keyring:GH} is read when a server starts, so it is unknown here whether it has a value" in ran.out
    assert "(servers.gh.env.GITHUB_TOKEN)" in ran.out
    assert not (kept / "ran").exists()
    assert not list((kept / "keyring").rglob("*.cfg"))


def test_check_says_where_others_can_read_a_secret_in_plain(folder: Path, run: Run) -> None:
    """X5: also of a token, which may stand in a file of the operator's own."""
    text = (
        f"servers:\n  gh: {{command: {sys.executable}, env: {{GITHUB_TOKEN: {VALUE}}}}}\n"
        f"tokens:\n  ada: {{token: {VALUE}, agents: ['*']}}\n  bob: {{token: '${{BOB:-}}x', agents: ['*']}}\n"
    )
    put("pegboard.yaml", text)
    readable, ran = "others on this machine can read (mode 0644)", run("check", "--json")
    found = {one["path"]: one for one in ran.json["problems"]}
    assert list(found) == ["servers.gh.env.GITHUB_TOKEN", "tokens.ada.token"]
    assert all(readable in one["message"] for one in found.values())
    assert "chmod 600 pegboard.yaml" in found["tokens.ada.token"]["hint"]
    assert VALUE not in ran.out
    put("pegboard.yaml", text, mode=0o600)
    (own,) = run("check", "--json").json["problems"]
    assert (own["path"], "can read" in own["message"]) == ("servers.gh.env.GITHUB_TOKEN", False)


def test_check_warns_of_a_secret_in_plain_with_the_line_that_replaces_it(folder: Path, run: Run) -> None:
    put("pegboard.yaml", f"servers:\n  gh:\n    command: {sys.executable}\n    env: {{GITHUB_TOKEN: {VALUE}}}\n")
    ran = run("check", "--json")
    (problem,) = ran.json["problems"]
    assert (problem["code"], problem["severity"]) == ("plain_secret", "warning")
    assert (problem["line"], problem["path"]) == (4, "servers.gh.env.GITHUB_TOKEN")
    write = 'write GITHUB_TOKEN: "${keyring:GITHUB_TOKEN}" here.'
    assert problem["hint"] == f"Run `pegboard secret set GITHUB_TOKEN`, and {write}"
    assert VALUE not in ran.out
    assert run("check", "--strict").code == 1
    put("pegboard.yaml", Path("pegboard.yaml").read_text().replace(VALUE, '"${keyring:GITHUB_TOKEN}"'))
    assert run("check", "--strict").code == 0


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("servers: {a: {command: x, env: {T: '${keyrng:A}'}}}", "bad_reference", "Did you mean 'keyring'?"),
        ("servers: {a: {command: x, env: {T: '${op:item}'}}}", "bad_reference", "vault/item/field"),
        ("servers: {a: {command: '${cmd:which x}'}}", "misplaced_reference", "`env`, `headers`, `args`, `url`"),
        ("models: {default: {api_key: '${keyring:A}'}}", "misplaced_reference", "Write ${NAME} here"),
    ],
)
def test_a_reference_that_cannot_be_meant_is_an_error_with_what_would_be_right(
    folder: Path, run: Run, text: str, code: str, said: str
) -> None:
    put("pegboard.yaml", text)
    ran = run("check", "--json")
    assert ran.code == 1
    (problem,) = ran.json["problems"]
    assert problem["code"] == code
    assert said in f"{problem['message']} {problem['hint']}"
    assert problem["line"] == 1


def test_measure_says_which_secrets_stand_in_plain_in_a_clients_file(folder: Path, run: Run) -> None:
    put("mcp.json", json.dumps({"mcpServers": {"gh": {"command": "no-such-server", "env": {"GITHUB_TOKEN": VALUE}}}}))
    ran = run("measure", "mcp.json")
    assert '  gh: GITHUB_TOKEN: "${keyring:GITHUB_TOKEN}"' in ran.out
    assert "`pegboard init --install " in ran.out
    found = run("measure", "mcp.json", "--json").json["plain_secrets"]
    replacement = 'GITHUB_TOKEN: "${keyring:GITHUB_TOKEN}"'
    assert found == [{"server": "gh", "path": "env.GITHUB_TOKEN", "name": "GITHUB_TOKEN", "replacement": replacement}]
    assert VALUE not in ran.out + ran.err


# -- what init moves -------------------------------------------------------------------------------


def installed_file(home: Path) -> Path:
    return put("home/.cursor/mcp.json", json.dumps({"mcpServers": PLAIN}, indent=1))


def test_init_install_moves_secrets_into_the_keyring_when_the_person_agrees_and_back_when_it_is_undone(
    home: Path, kept: Path, run: Run, terminal
) -> None:
    file = installed_file(home)
    before = file.read_bytes()
    ran = run("init", "--no-check", "--install", "cursor")
    assert ran.code == 0, ran.err
    assert "Move them into the keyring of the system? [y/N]" in terminal.asked
    assert "Moved into the keyring: GH_TOKEN, GITHUB_TOKEN, DOCS_TOKEN." in ran.out.replace(
        "GITHUB_TOKEN, GH_TOKEN", "GH_TOKEN, GITHUB_TOKEN"
    )
    written = (home / ".config/pegboard/pegboard.yaml").read_text()
    assert "${keyring:GITHUB_TOKEN}" in written
    assert "--token=${keyring:GH_TOKEN}" in written
    assert "Bearer ${keyring:DOCS_TOKEN}" in written
    assert "X-Team: research" in written
    for secret in (VALUE, "plain-token-1"):
        assert secret not in written + file.read_text() + ran.out + ran.err + terminal.asked
    assert keyring.get_password("pegboard", "GITHUB_TOKEN") == VALUE
    assert keyring.get_password("pegboard", "DOCS_TOKEN") == f"{VALUE}-2"
    assert [row["has_value"] for row in run("secret", "list", "--json").json] == [True] * 3
    assert run("init", "--uninstall", "cursor").code == 0
    assert file.read_bytes() == before
    again = run("init", "--no-check", "--install", "cursor", "--json")
    assert again.code == 0, "the configuration of before has the same servers"
    assert "${keyring:GITHUB_TOKEN}" in (home / ".config/pegboard/pegboard.yaml").read_text()


def secret_files(config: Path) -> dict[str, str]:
    """Return the secrets that are in files of Pegboard's own, which are for their owner alone."""
    files = list((folder_of(config) / "secrets").iterdir())
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    return {file.name: file.read_text() for file in files}


def test_init_without_a_person_writes_secrets_into_files_of_their_own(home: Path, kept: Path, run: Run) -> None:
    """And a configuration that has them so is the same one for the next installation."""
    file = installed_file(home)
    before = file.read_bytes()
    ran = run("init", "--no-check", "--install", "cursor", "--json")
    assert ran.json["keyring"] == []
    config = home / ".config/pegboard/pegboard.yaml"
    written = config.read_text()
    assert f"GITHUB_TOKEN: ${{{file_reference_in(config).format(name='GITHUB_TOKEN')}}}" in written
    assert f"Bearer ${{{file_reference_in(config).format(name='DOCS_TOKEN')}}}" in written
    assert (VALUE in written, config.stat().st_mode & 0o777) == (False, 0o600)
    assert secret_files(config) == {
        "GITHUB_TOKEN": f"{VALUE}\n", "DOCS_TOKEN": f"{VALUE}-2\n", "GH_TOKEN": "plain-token-1\n"
    }  # fmt: skip
    assert keyring.get_password("pegboard", "GITHUB_TOKEN") is None
    assert run("init", "--uninstall", "cursor").code == 0
    assert file.read_bytes() == before
    assert run("init", "--no-check", "--install", "cursor", "--json").code == 0
    assert config.read_text() == written


def test_init_writes_a_secret_over_no_other_one_of_the_same_name(folder: Path, run: Run) -> None:
    put("one.json", json.dumps({"mcpServers": {"gh": {"command": "gh", "env": {"GITHUB_TOKEN": "first-token-1"}}}}))
    assert run("init", "--from", "one.json", "--config", "one.yaml", "--no-keyring").code == 0
    assert secret_files(Path("one.yaml")) == {"GITHUB_TOKEN": "first-token-1\n"}
    put("two.json", json.dumps({"mcpServers": {"gh": {"command": "gh", "env": {"GITHUB_TOKEN": "second-token-2"}}}}))
    assert run("init", "--from", "two.json", "--config", "one.yaml", "--no-keyring", "--force").code == 0
    assert secret_files(Path("one.yaml")) == {"GITHUB_TOKEN": "first-token-1\n", "GITHUB_TOKEN_2": "second-token-2\n"}
    assert "/secrets/GITHUB_TOKEN_2}" in Path("one.yaml").read_text()


def test_init_without_a_keyring_says_where_the_secrets_are(home: Path, run: Run, terminal) -> None:
    installed_file(home)
    ran = run("init", "--no-check", "--install", "cursor")
    assert ran.code == 0
    place = folder_of(home / ".config/pegboard/pegboard.yaml") / "secrets"
    assert f"In {place}, not in pegboard.yaml: " in ran.out
    assert "This system has no keyring." in ran.out
    assert terminal.asked == ""
    assert VALUE not in ran.out + ran.err


def test_init_overwrites_no_other_value_of_the_same_name(home: Path, kept: Path, run: Run) -> None:
    keyring.set_password("pegboard", "GITHUB_TOKEN", "somebody-else-set-this")
    put(".mcp.json", json.dumps({"mcpServers": {"gh": PLAIN["gh"]}}))
    ran = run("init", "--keyring", "--json")
    assert ran.json["keyring"] == ["GITHUB_TOKEN_2", "GH_TOKEN"]
    assert keyring.get_password("pegboard", "GITHUB_TOKEN") == "somebody-else-set-this"
    assert keyring.get_password("pegboard", "GITHUB_TOKEN_2") == VALUE
    assert "${keyring:GITHUB_TOKEN_2}" in Path("pegboard.yaml").read_text()


def test_init_that_cannot_move_all_changes_nothing(home: Path, run: Run) -> None:
    file = installed_file(home)
    before = file.read_bytes()
    ran = run("init", "--no-check", "--install", "cursor", "--keyring", "--json")
    assert ran.code == 6
    assert ran.json["error"]["code"] == "keyring_failed"
    assert file.read_bytes() == before
    assert not (home / ".config/pegboard/pegboard.yaml").exists()
    assert not folder_of(home / ".config/pegboard/pegboard.yaml").exists()
