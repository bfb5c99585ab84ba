"""`envFile`: a file of variables for one server."""

import pytest
from config_support import Writer
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.client_files.server_files import read_client_file
from pegboard.config.clients.compiled_servers import servers_of
from pegboard.config.documents.expansion import variables
from pegboard.config.location import Machine
from pegboard.core.model.specs import ServerSpec

CLIENT = '{"servers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"B": "near"}}}}'


def server(writer: Writer, text: str, name: str = "pegboard.yaml") -> ServerSpec:
    spec = writer.loaded(text, name).specs["a"]
    assert isinstance(spec, ServerSpec)
    return spec


def test_what_is_written_beside_it_goes_before_the_file(writer: Writer) -> None:
    """The path is relative to the configuration, and a client's own variables stand in it."""
    writer.file("A=far\nB=far\n", ".env")
    ours = server(writer, "servers: {a: {command: x, envFile: .env, env: {B: near}}}")
    assert dict(ours.env) == {"A": "far", "B": "near"}
    assert dict(server(writer, CLIENT, ".vscode/mcp.json").env) == {"A": "far", "B": "near"}


def test_p6_without_the_file_the_server_is_unavailable_and_everything_else_works(writer: Writer) -> None:
    text = "servers: {a: {command: x, envFile: gone.env}, b: {command: y}}"
    where = writer.folder / "gone.env"
    assert writer.messages(text) == [
        (
            f"pegboard.yaml:1:36: servers.a.envFile: its envFile {where} does not exist; the server is unavailable "
            "until then. Correct the path or remove it."
        )
    ]
    assert server(writer, text).unavailable == f"its envFile {where} does not exist."


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot be read: Is a directory"), (b"A=\xff", "cannot be read: it is not UTF-8 text"), (b"A=x\0y", "NUL")],
)
def test_p6_a_file_that_cannot_be_used_says_why(writer: Writer, content: bytes | None, message: str) -> None:
    path = writer.folder / ".env"
    path.mkdir() if content is None else path.write_bytes(content)
    assert message in server(writer, "servers: {a: {command: x, envFile: .env}}").unavailable


def test_x5_what_is_named_like_a_secret_in_it_is_never_shown(writer: Writer) -> None:
    writer.file("API_TOKEN=abcdef123456\nMODE=production\n", ".env")
    secrets = writer.loaded("servers: {a: {command: x, envFile: .env}}").secrets
    assert "abcdef123456" in secrets
    assert "production" not in secrets


def test_a_change_of_the_file_is_a_change_of_the_configuration(writer: Writer) -> None:
    path = writer.file("A=1", ".env")
    assert path in writer.loaded("servers: {a: {command: x, envFile: .env}}").files


def test_a_client_whose_servers_are_measured_has_it_too(writer: Writer) -> None:
    writer.file("A=far\n", ".env")
    path = writer.file(CLIENT, ".vscode/mcp.json")
    machine = Machine(folder=writer.folder, home=writer.folder, system="linux", env={})
    assert dict(servers_of(read_client_file(path, machine), machine).specs["a"].env) == {"A": "far", "B": "near"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A=1", {"A": "1"}),
        ("  export  A = 1  ", {"A": "1"}),
        ("A='$x ${Y}'", {"A": "$x ${Y}"}),
        ('A="say \\"hi\\"" # said', {"A": 'say "hi"'}),
        ("A=x#y", {"A": "x#y"}),
        ("A= #y", {"A": ""}),
        ("A='one\ntwo'\nB=\"x\n y\"", {"A": "one\ntwo", "B": "x\n y"}),
        ("A='open\nB=1", {"B": "1"}),
        ("A=${B}\nB=1", {"A": "${B}", "B": "1"}),
        ("A=1\r\nA=2\r\n", {"A": "2"}),
        ("\ufeffA=1", {"A": "1"}),
        ("=1\n1A=2\nA B=3\n[section]", {}),
    ],
)
def test_variables_are_read_as_editors_read_them(text: str, found: dict[str, str]) -> None:
    assert variables(text) == found


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """No line costs the others."""
    assert variables(f"{text}\nLAST=1")["LAST"] == "1"
