"""G13: values that a configuration names are read when a server starts, and are masked from then on."""

import asyncio
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import InitError, KeyringLocked, PasswordSetError
from mcp_helpers import call, plain, runs, state, text, until

from keyring_files import keyring_in, used
from pegboard.config.inspection import load
from pegboard.core.model.masking import Masker
from pegboard.core.model.references import ByReference, Reference
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
from pegboard.sources.references import reading, value_text

pytestmark = pytest.mark.cover(1)

VALUE = "s3cret-of-the-test"
OP = f"""#!{sys.executable}
import sys
print("{VALUE}" if sys.argv[1:] == ["read", "op://Work/GitHub/token"] else "no")
"""
SCHEMES = {
    "keyring": "${keyring:GITHUB}",
    "op": "${op:Work/GitHub/token}",
    "file": "${file:token.txt}",
    "cmd": f"${{cmd:{sys.executable} -c 'print(open(\"token.txt\").read(), end=str())'}}",
}


@pytest.fixture
def masker() -> Masker:
    return Masker()


@pytest.fixture
async def source(masker: Masker, fast_path: bool) -> AsyncIterator[McpSource]:
    source = McpSource(mask=masker.text, learn=masker.learn, fast_path=fast_path)
    yield source
    await source.aclose()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep the value in every place that a reference can name; return the folder of the configuration."""
    (tmp_path / "token.txt").write_text(f"{VALUE}\n")
    (tmp_path / "bin").mkdir()
    op = tmp_path / "bin" / "op"
    op.write_text(OP)
    op.chmod(0o755)
    monkeypatch.setenv("PATH", f"{op.parent}{os.pathsep}{os.environ['PATH']}")
    with keyring_in(tmp_path / "keyring"):
        keyring.set_password("pegboard", "GITHUB", VALUE)
        yield tmp_path


def servers(folder: Path, **entries: Any) -> dict[str, ServerSpec]:
    """Return servers as a configuration in a folder has them."""
    path = folder / "pegboard.json"
    path.write_text(json.dumps({"servers": entries, "agents": {"default": {"discoverable": ["*"]}}}))
    found = load(path, registered={}, env={"HOME_OF": "${cmd:touch ran}"}).specs
    return {name: spec for name, spec in found.items() if isinstance(spec, ServerSpec)}


def stdio(folder: Path, **env: str) -> ServerSpec:
    spec = plain()
    return servers(folder, gh={"command": spec.command, "args": list(spec.args), "env": env})["gh"]


class Web(asyncio.Protocol):
    """A server over HTTP that answers only to the token of now, and remembers what it was sent."""

    token = VALUE
    seen: list[dict[str, str]]

    def __init__(self) -> None:
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self.buffer[:end].decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            length = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
            Web.seen.append({**headers, "path": first.split()[1], "body": body.decode()})
            self.answer(first.split()[0], headers, json.loads(body) if body else {})

    def answer(self, verb: str, headers: dict[str, str], message: dict[str, Any]) -> None:
        if headers.get("authorization") != f"Bearer {Web.token}":
            self.reply(401, f"no entry with {headers.get('authorization')}", "text/plain")
        elif verb != "POST" or "id" not in message:
            self.reply(202, "")
        elif message["method"] == "initialize":
            about = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "web"}}
            about["serverInfo"] = {"name": "web", "version": "1"}
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": about}))
        elif message["method"] == "tools/list":
            tools = [{"name": "echo", "inputSchema": {"type": "object"}}]
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": tools}}))
        elif message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]}
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        else:
            error = {"code": -32601, "message": "Method not found"}
            self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}))

    def reply(self, status: int, body: str, kind: str = "application/json") -> None:
        head = f"HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {len(body.encode())}\r\n\r\n"
        self.transport.write(head.encode() + body.encode())


@pytest.fixture
async def web() -> AsyncIterator[str]:
    """Return the address of a server that demands the token."""
    Web.seen, Web.token = [], VALUE
    server = await asyncio.get_running_loop().create_server(Web, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    server.close()


def calls() -> list[dict[str, str]]:
    return [seen for seen in Web.seen if '"tools/call"' in seen["body"]]


# -- read when it starts ---------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_g13_a_server_over_stdio_gets_its_value_from_where_it_is_kept(
    source: McpSource, masker: Masker, kept: Path, scheme: str
) -> None:
    spec = stdio(kept, TOKEN=SCHEMES[scheme], PLAIN="plain")
    assert not masker.values, "nothing is read before the server starts"
    assert text(await call(source, spec, "environment", name="TOKEN")) == VALUE
    assert text(await call(source, spec, "environment", name="PLAIN")) == "plain"
    assert masker.text(f"it is {VALUE}") == "it is ***"


@pytest.mark.both_paths
@pytest.mark.parametrize("scheme", SCHEMES)
async def test_g13_a_server_over_http_gets_its_value_from_where_it_is_kept(
    source: McpSource, kept: Path, web: str, scheme: str
) -> None:
    spec = servers(kept, gh={"url": web, "headers": {"Authorization": f"Bearer {SCHEMES[scheme]}"}})["gh"]
    assert text(await call(source, spec, "echo", text="hello")) == "hello"
    assert {seen["authorization"] for seen in Web.seen} == {f"Bearer {VALUE}"}


async def test_g13_arguments_and_the_url_have_values_too(source: McpSource, kept: Path, web: str) -> None:
    (kept / "path.txt").write_text("mcp")
    (kept / "log.txt").write_text(str(kept / "log"))
    command = plain()
    both = servers(
        kept,
        web={"url": web.replace("/mcp", "/${file:path.txt}"), "headers": {"Authorization": "Bearer ${file:token.txt}"}},
        plain={"command": command.command, "args": [*command.args, "--log", "${file:log.txt}"]},
    )
    assert text(await call(source, both["web"], "echo", text="a")) == "a"
    assert {seen["path"] for seen in Web.seen} == {"/mcp"}
    await call(source, both["plain"], "echo", text="a")
    assert "call:echo" in (kept / "log").read_text()


async def test_g13_what_a_variable_holds_is_never_run(source: McpSource, kept: Path) -> None:
    spec = stdio(kept, A="${HOME_OF}", B="$${cmd:touch ran}", TOKEN="${file:token.txt}")
    assert text(await call(source, spec, "environment", name="A")) == "${cmd:touch ran}"
    assert text(await call(source, spec, "environment", name="B")) == "${cmd:touch ran}"
    assert not (kept / "ran").exists()


async def test_g13_a_fingerprint_covers_where_a_value_is_kept_and_never_the_value(
    source: McpSource, kept: Path
) -> None:
    first = source.fingerprint(stdio(kept, TOKEN="${file:token.txt}", OTHER="a"))
    (kept / "token.txt").write_text("another")
    turned = stdio(kept, OTHER="a", TOKEN="${file:token.txt}")
    assert source.fingerprint(turned) == first
    assert source.fingerprint(stdio(kept, TOKEN="${file:./token.txt}", OTHER="a")) != first
    assert source.fingerprint(stdio(kept, TOKEN="$${file:token.txt}", OTHER="a")) != first


async def test_g13_each_start_reads_anew_and_in_the_order_of_the_file(source: McpSource, kept: Path) -> None:
    spec = stdio(kept, Z="1", TOKEN="${file:token.txt}", A="2")
    filled = await reading.fill_references(spec, lambda *_: None)
    assert list(filled.env) == ["Z", "TOKEN", "A"]
    assert text(await call(source, spec, "environment", name="TOKEN")) == VALUE
    (kept / "token.txt").write_text("the-second-value")
    await source.restart(spec)
    await until(lambda: state(source, "gh")["state"] == "up")
    assert text(await call(source, spec, "environment", name="TOKEN")) == "the-second-value"


# -- refused with 401 ------------------------------------------------------------------------------


@pytest.mark.both_paths
async def test_g13_a_rotated_value_is_read_again_after_a_401_and_the_call_runs(
    source: McpSource, masker: Masker, kept: Path, web: str
) -> None:
    spec = servers(kept, gh={"url": web, "headers": {"Authorization": "Bearer ${file:token.txt}"}})["gh"]
    await call(source, spec, "echo", text="before")
    Web.token = "the-rotated-value"
    (kept / "token.txt").write_text("the-rotated-value")
    assert text(await call(source, spec, "echo", text="after")) == "after"
    assert [seen["authorization"] for seen in calls()] == [
        f"Bearer {VALUE}", f"Bearer {VALUE}", "Bearer the-rotated-value",
    ]  # fmt: skip
    assert masker.text(f"{VALUE} the-rotated-value") == "*** ***"


@pytest.mark.both_paths
async def test_g13_several_calls_that_are_refused_at_once_read_the_value_once(
    source: McpSource, kept: Path, web: str
) -> None:
    count = kept / "count"
    command = f"{sys.executable} -c \"open('count', 'a').write('x'); print(open('token.txt').read())\""
    spec = servers(kept, gh={"url": web, "headers": {"Authorization": f"Bearer ${{cmd:{command}}}"}})["gh"]
    (kept / "token.txt").write_text(VALUE)
    await call(source, spec, "echo", text="before")
    Web.token = "the-rotated-value"
    (kept / "token.txt").write_text("the-rotated-value")
    answers = await asyncio.gather(*(call(source, spec, "echo", text=str(n)) for n in range(8)))
    assert [text(answer) for answer in answers] == [str(n) for n in range(8)]
    assert count.read_text() == "xx"


@pytest.mark.both_paths
async def test_g13_a_value_that_stays_wrong_is_read_once_more_and_then_not_for_a_while(
    source: McpSource, kept: Path, web: str
) -> None:
    command = f"{sys.executable} -c \"open('count', 'a').write('x'); print('{VALUE}')\""
    spec = servers(kept, gh={"url": web, "headers": {"Authorization": f"Bearer ${{cmd:{command}}}"}})["gh"]
    await call(source, spec, "echo", text="before")
    Web.token = "withdrawn"
    for _ in range(5):
        with pytest.raises(ToolUnavailableError, match="401") as caught:
            await call(source, spec, "echo", text="after")
        assert VALUE not in str(caught.value)
    assert (kept / "count").read_text() == "xx"


# -- what cannot be read ---------------------------------------------------------------------------


async def refused(source: McpSource, spec: ServerSpec) -> str:
    with pytest.raises(ToolUnavailableError) as caught:
        await source.describe(spec, {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("${keyring:NOBODY}", "${keyring:NOBODY} has no value. Run `pegboard secret set NOBODY`."),
        ("${file:nowhere}", "${file:nowhere} does not exist"),
        ("${file:bin}", "${file:bin} is a folder"),
        ("${file:/dev/null}", "is not a file"),
        ("${file:large}", "larger than 64 KiB"),
        ("${file:binary}", "is not UTF-8 text"),
        ("${file:empty}", "is empty"),
        ("${cmd:no-such-command}", "the command 'no-such-command' of"),
        ("${cmd:./token.txt}", "cannot be run: Permission denied"),
        ("${cmd:yes}", "prints more than 64 KiB"),
        ("${cmd:false}", "ended with code 1"),
        ("${cmd:true}", "is empty"),
        ("${cmd:cat}", "is empty"),
        ("${cmd:cat binary}", "prints text that is not UTF-8"),
    ],
)
async def test_g13_a_value_that_cannot_be_read_makes_its_server_unavailable_and_says_what_to_do(
    source: McpSource, kept: Path, value: str, why: str
) -> None:
    (kept / "large").write_text("x" * 65_537)
    (kept / "binary").write_bytes(b"\xff\xfe\x80")
    (kept / "empty").write_text("\n")
    said = await refused(source, stdio(kept, TOKEN=value))
    assert "Server 'gh' is not available: " in said
    assert why in said
    assert VALUE not in said


async def test_g13_a_file_is_read_up_to_the_limit_and_its_last_newline_is_none_of_the_value(kept: Path) -> None:
    (kept / "token.txt").write_bytes(b"two\nlines\r\n")
    filled = await reading.fill_references(stdio(kept, TOKEN="${file:token.txt}"), lambda *_: None)
    assert filled.env["TOKEN"] == "two\nlines"
    (kept / "token.txt").write_text("x" * 65_536)
    assert (
        len((await reading.fill_references(stdio(kept, TOKEN="${file:token.txt}"), lambda *_: None)).env["TOKEN"])
        == 65_536
    )


async def test_g13_a_file_may_lie_in_the_home_folder(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(kept / "bin"))
    (kept / "bin" / "mine").write_text(VALUE)
    filled = await reading.fill_references(stdio(kept, TOKEN="${file:~/mine}"), lambda *_: None)
    assert filled.env["TOKEN"] == VALUE


async def test_g13_a_value_that_would_break_a_header_is_refused_without_being_shown(
    source: McpSource, kept: Path, web: str
) -> None:
    (kept / "token.txt").write_text(f"{VALUE}\r\nX-More: {VALUE}")
    spec = servers(kept, gh={"url": web, "headers": {"Authorization": "Bearer ${file:token.txt}"}})["gh"]
    said = await refused(source, spec)
    assert "${file:token.txt} cannot be used in the header 'Authorization'" in said
    assert VALUE not in said
    assert Web.seen == []


async def test_g13_a_url_that_is_none_is_refused_without_being_shown(source: McpSource, kept: Path) -> None:
    said = await refused(source, servers(kept, gh={"url": "${file:token.txt}"})["gh"])
    assert "does not begin with http:// or https://" in said
    assert VALUE not in said


async def test_g13_nothing_that_a_command_prints_on_standard_error_is_shown(
    source: McpSource, kept: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = f"import sys; print('{VALUE[:6]}' + '{VALUE[6:]}', file=sys.stderr); sys.exit(3)"
    with caplog.at_level(logging.DEBUG):
        said = await refused(source, stdio(kept, TOKEN=f'${{cmd:{sys.executable} -c "{script}"}}'))
    assert "ended with code 3" in said
    assert VALUE not in said + caplog.text + json.dumps(source.states())


async def test_g13_a_command_that_hangs_is_killed_with_all_that_it_started(
    source: McpSource, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = "import os, time; open('pids', 'a').write(f'{os.getpid()} '); time.sleep(600)"
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', \"{child}\"]); {child}"
    (kept / "hang.py").write_text(script)
    monkeypatch.setattr(reading, "PATIENCE", 1.5)
    said = await refused(source, stdio(kept, TOKEN=f"${{cmd:{sys.executable} hang.py}}"))
    assert "did not end within 1.5 s, and was killed" in said
    pids = [int(pid) for pid in (kept / "pids").read_text().split()]
    assert len(pids) == 2
    await until(lambda: not any(runs(pid) for pid in pids))


async def test_g13_a_command_whose_server_is_not_wanted_any_more_is_killed(kept: Path) -> None:
    (kept / "hang.py").write_text("import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)")
    spec = stdio(kept, TOKEN=f"${{cmd:{sys.executable} hang.py}}")
    waiting = asyncio.create_task(reading.fill_references(spec, lambda *_: None))
    await until(lambda: (kept / "pid").exists() and (kept / "pid").read_text())
    waiting.cancel()
    await asyncio.wait({waiting})
    pid = int((kept / "pid").read_text())
    await until(lambda: not runs(pid))


class Broken(KeyringBackend):
    """A keyring that fails in one way."""

    priority = 1  # type: ignore[assignment]

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def get_password(self, service: str, username: str) -> str | None:
        raise self.error

    def set_password(self, service: str, username: str, password: str) -> None:
        raise self.error

    def delete_password(self, service: str, username: str) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KeyringLocked(VALUE), "the keyring is locked. Unlock it, then try again."),
        (InitError(VALUE), "the keyring could not be opened. Unlock it"),
        (PasswordSetError(VALUE), "the keyring rejects the value. It is full"),
        (OSError(VALUE), "the keyring failed (OSError). Keep the value elsewhere: ${file:PATH}"),
    ],
)
async def test_g13_a_keyring_that_fails_says_what_to_do_and_nothing_of_its_own(
    source: McpSource, kept: Path, error: Exception, why: str
) -> None:
    with used(Broken(error)):
        said = await refused(source, stdio(kept, TOKEN="${keyring:GITHUB}"))
    assert f"${{keyring:GITHUB}} cannot be read: {why}" in said
    assert VALUE not in said


async def test_g13_without_a_keyring_there_is_one_clear_error(source: McpSource, tmp_path: Path) -> None:
    said = await refused(source, stdio(tmp_path, TOKEN="${keyring:GITHUB}"))
    assert (
        "${keyring:GITHUB} cannot be read: this system has no keyring. Keep the value elsewhere: ${file:PATH}" in said
    )


async def test_g13_a_keyring_that_asks_for_its_password_keeps_nobody_waiting(
    source: McpSource, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asking(Broken):
        def get_password(self, service: str, username: str) -> str | None:
            time.sleep(1.0)
            return None

    monkeypatch.setattr(reading, "PATIENCE", 0.1)
    with used(Asking(ValueError())):
        said = await refused(source, stdio(kept, TOKEN="${keyring:GITHUB}"))
    assert "the keyring did not give ${keyring:GITHUB} within 0.1 s. Unlock the keyring, then try again." in said


async def test_g13_one_server_without_its_value_keeps_no_other_from_starting(source: McpSource, kept: Path) -> None:
    spec = plain()
    both = servers(
        kept,
        gone={"command": spec.command, "args": list(spec.args), "env": {"TOKEN": "${file:nowhere}"}},
        here={"command": spec.command, "args": list(spec.args)},
    )
    gone, here = await asyncio.gather(
        source.describe(both["gone"], {}), source.describe(both["here"], {}), return_exceptions=True
    )
    assert isinstance(gone, ToolUnavailableError)
    assert not isinstance(here, BaseException)
    assert state(source, "gone")["last_error"] == "${file:nowhere} does not exist"
    (kept / "nowhere").write_text("there-it-is")
    assert text(await call(source, both["gone"], "environment", name="TOKEN")) == "there-it-is"


def test_g13_nothing_that_reads_values_is_imported_where_nothing_refers_to_one() -> None:
    code = (
        "import sys; from pegboard.assembly import Pegboard; from pegboard.cli import serving, command_line; "
        "from pegboard.sources.mcp import McpSource; from pegboard.sources.mcp.connection import open_client; "
        "print([name for name in sys.modules if name.startswith(('pegboard.sources.references', 'keyring'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "[]\n"


def test_g13_of_each_source_the_newest_values_are_masked_without_end() -> None:
    masker = Masker(["given-value"])
    before = masker.forms
    for number in range(40):
        masker.learn("${cmd:mint}", f"minted-{number:04}")
    masker.learn("${file:other}", "other-value")
    assert masker.forms is not before
    assert masker.text("given-value minted-0039 minted-0024 other-value") == "*** *** *** ***"
    assert len(masker.values) == 2 + 16
    same = masker.forms
    masker.learn("${file:other}", "other-value")
    masker.add(["given-value"])
    assert masker.forms is same


def test_g13_pieces_are_put_together_in_their_order() -> None:
    one, two = Reference(scheme="keyring", target="A"), Reference(scheme="file", target="b")
    text = ByReference(part="args", key=1, pieces=("--a=", one, ",", two, one))
    assert text.filled({one: "1", two: "2"}) == "--a=1,21"
    assert value_text.without_newline("\n\n") == "\n"
