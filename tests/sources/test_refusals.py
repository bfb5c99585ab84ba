"""What a confined process was refused is read from what it says, and nothing else is blamed on its confinement (A7)."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from mcp_helpers import SERVERS, call, text

from pegboard.core.access.named_paths import OwnPaths, fold_path
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import Confinement, PythonSpec, ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, RefusedAccess
from pegboard.sources.confinement import ConfinementPolicy, RefusalReader, given_files
from pegboard.sources.mcp import McpSource
from pegboard.sources.plugin_process.source import PluginProcessSource

THERE = {"/", "/srv", "/srv/own", "/srv/data", "/srv/data/there", "/usr", "/usr/bin/dash", "/usr/bin/node", "/keys"}


class Disk:
    """A machine on which the paths above are, and `/keys` is no one's to read."""

    def resolve_path(self, path: str) -> str:
        return os.path.normpath(path)

    def exists(self, path: str) -> bool:
        return path in THERE

    def may(self, path: str, key: Literal["write", "read"]) -> bool:
        return path != "/keys" and not (key == "write" and path.startswith("/usr"))


def reader(network: tuple[int, ...] | None = None, own: OwnPaths | None = None) -> RefusalReader:
    """Return the reader of a process that may write `/srv/own` and read `/usr`."""
    policy = ConfinementPolicy(
        write=("/srv/own",), read=("/usr",), list_only=(), devices=(), network=network, split_folders=("/srv",)
    )
    confinement = Confinement(folder="/srv/own", network=network)
    return RefusalReader(
        policy=policy, confinement=confinement, own=own or OwnPaths(), folder="/srv/own", machine=Disk()
    )


READ = ("read", "/srv/data/there", "`confine: {read: [/srv/data/there]}`")
MADE = ("write", "/srv/data/new", "`confine: {write: [/srv/own, /srv/data]}`")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PermissionError: [Errno 13] Permission denied: '/srv/data/there'", READ),
        ("PermissionError: [Errno 13] Permission denied: '/srv/data/new'", MADE),
        ("PermissionError: [Errno 13] Permission denied: '../data/new'", MADE),
        ("PermissionError: [Errno 1] Operation not permitted: '/srv/data/new'", MADE),
        ("Error: EACCES: permission denied, open '/srv/data/there'", READ),
        ("[Error: EPERM: operation not permitted, mkdir '/srv/data/new'] {", MADE),
        ("/usr/bin/dash: 1: cannot create /srv/data/new: Permission denied", MADE),
        ("cat: /srv/data/there: Permission denied", READ),
        ("ls: cannot open directory '/srv/data/there': Permission denied", READ),
        ("2026/01/02 open /srv/data/there: permission denied", READ),
        ('Failed to read "/srv/data/there": Permission denied (os error 13)', READ),
        ("attempt to write a readonly database: /srv/data/new", MADE),
        ("unable to open database file: /srv/data/new", MADE),
    ],
)
def test_a_path_that_was_refused_is_read_with_the_line_that_allows_it(
    line: str, expected: tuple[str, str, str]
) -> None:
    """A7: as the usual languages and programs write it; the line grants the least that is there."""
    assert [(one.kind, one.what, one.line) for one in reader().read(f"at start\n{line}\n")] == [expected]


@pytest.mark.parametrize(
    ("line", "given", "expected"),
    [
        (
            "sqlite3.OperationalError: unable to open database file",
            ("/srv/data/new",),
            [("/srv/data/new", "/srv/data")],
        ),
        ("SqliteError: attempt to write a readonly database", ("/srv/data/there",), [("/srv/data/there", "/srv/data")]),
        ("unable to open database file", ("/srv/own/new", "/usr/bin/node"), []),
        ("unable to open database file", (), []),
        ("Permission denied", ("/srv/data/new",), []),
    ],
)
def test_a_database_without_a_path_is_the_one_that_the_arguments_name(
    line: str, given: tuple[str, ...], expected: list[tuple[str, str]]
) -> None:
    """A7: its folder is what it needs; nothing is guessed where it is granted, or no database is meant."""
    found = [(one.kind, one.what, one.line) for one in replace(reader(), given=given).read(line)]
    assert found == [("write", path, f"`confine: {{write: [/srv/own, {folder}]}}`") for path, folder in expected]


def test_what_a_failed_call_names_and_cannot_be_read_is_said() -> None:
    """A7: some programs say of a folder that they may not read that it is none of theirs, such as git."""
    own = OwnPaths(files={fold_path("/srv/data"): "configuration"})
    given = {
        "repo": "/srv/data/there",
        "others": ["/usr/bin/node", "/srv/own/x", "/keys"],
        "text": "a /srv/data",
        "n": 1,
    }
    found = list(reader().of_arguments(given))
    assert [(one.kind, one.what, one.line) for one in found] == [READ, ("read", "/keys", "`confine: {read: [/keys]}`")]
    assert found[0].text.startswith("it cannot read '/srv/data/there', which the call names: `confine:")
    assert list(reader(own=own).of_arguments({"path": "/srv/data", "odd": "/srv/data\0"})) == []


def test_what_a_call_names_is_answered_alike_whether_or_not_it_is_there() -> None:
    """A7, P10: a model that chooses the paths learns nothing of what is outside its confinement."""
    there, missing = (list(reader().of_arguments({"path": f"/srv/data/{name}"})) for name in ("there", "missing"))
    assert [one.text.replace("there", "missing") for one in there] == [one.text for one in missing] != []


def test_what_may_be_a_secret_or_a_package_is_no_file_that_is_given() -> None:
    """A7, X5: only what is written as a path, or as a file of a database, is named where one cannot be opened."""
    args = ("@scope/pkg", "--db", "data/notes.db", "--file=/srv/data/x", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    assert list(given_files(args, {"KEY": "a/b+c/d", "DB": "~/notes.sqlite"}, "/srv/own")) == [
        "/srv/own/data/notes.db",
        "/srv/data/x",
        f"{Path.home()}/notes.sqlite",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "PermissionError: [Errno 13] Permission denied: '/srv/own/file-of-mode-000'",
        "cat: /keys: Permission denied",
        "PermissionError: [Errno 13] Permission denied: '/usr/new'",
        "cat: /usr/bin/dash: Permission denied",
        "/srv/data/there was read; later something was logged at length, and Permission denied",
        "PermissionError: [Errno 13] Permission denied: '/srv/data/\u202ethere'",
        "connect EACCES 10.0.0.1:8080",
        "ERROR /usr/bin/node PermissionError: [Errno 13] Permission denied",
        "All is well in '/srv/data/there'",
    ],
)
def test_what_the_confinement_does_not_refuse_is_not_blamed_on_it(line: str) -> None:
    """A7: what is granted, what its user may not either, what hides characters, a network that is as it was."""
    assert list(reader().read(line)) == []


@pytest.mark.parametrize(
    ("line", "ports"),
    [
        ("Error: connect EACCES 10.0.0.1:8080", ["8080"]),
        ("dial tcp 10.0.0.1:8080: connect: permission denied", ["8080"]),
        ("error trying to connect to http://host.example:8080/x: Permission denied (os error 13)", ["8080"]),
        ("HTTPConnectionPool(host='host.example', port=8080): connect failed: [Errno 13] Permission denied", ["8080"]),
        ("[Errno 13] error while attempting to bind on address ('127.0.0.1', 8080): permission denied", ["8080"]),
        ("Error: listen EACCES: permission denied 0.0.0.0:8080", ["8080"]),
        ("fetch of https://host.example/x failed: Permission denied", []),
        ("fetch of http://host.example/x failed: Permission denied", ["80"]),
        ("Error: getaddrinfo EAI_AGAIN host.example", ["53"]),
        ("connect EACCES 10.0.0.1:99999", []),
    ],
)
def test_a_port_that_was_refused_is_read(line: str, ports: list[str]) -> None:
    """A7: where only some ports are granted, here 443."""
    found = list(reader(network=(443,)).read(line))
    assert [one.what for one in found] == ports
    assert [one.line for one in found] == [f"`confine: {{network: [443, {port}]}}`" for port in ports]


def test_what_no_line_allows_says_why() -> None:
    """P10: Pegboard's own files, Unix sockets, and new entries beside Pegboard's own files."""
    own = OwnPaths(files={fold_path("/srv/data/there"): "configuration"})
    lines = [
        "PermissionError: [Errno 13] Permission denied: '/srv/data/there'",
        "Error: connect EACCES /run/docker.sock",
        "PermissionError: [Errno 13] Permission denied: '/srv/new/file'",
    ]
    found = list(reader(own=own).read("\n".join(lines)))
    assert [one.line for one in found] == ["", "", ""]
    assert [one.why for one in found] == [
        "It belongs to Pegboard: a confined server or plugin cannot have it.",
        "A confined server or plugin cannot have Unix sockets.",
        "Make '/srv/new' first, and name that under `write`.",
    ]


def test_what_a_process_prints_without_end_is_read_up_to_a_limit() -> None:
    """X5: hostile lines cost no more than their length, and of many only the first are read."""
    quotes = "Permission denied" + "'/" * 500_000
    assert list(reader().read(quotes)) == []
    one = "cat: /srv/data/there: Permission denied\n"
    many = reader()
    assert sum(len(list(many.read(one * 500, printed=True))) for _ in range(10)) == 1000
    assert len(list(many.read(one))) == 1


@pytest.fixture
def outside() -> Iterator[Path]:
    """Return a folder that no default grants."""
    with tempfile.TemporaryDirectory(prefix=".pegboard-outside-", dir=Path.home()) as folder:
        yield Path(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
async def test_a_server_is_known_by_what_was_refused_to_it(outside: Path, tmp_path: Path) -> None:
    """A7, X5: at its start, in an error of a call, once each, at most 20, without secrets; no other error counts."""
    (outside / "s3cret-s3cret").write_text("x")
    code = f"""
import sys
for n in range(20_000):
    print("Permission denied: {str(tmp_path)!r}" + "'/x" * 20, file=sys.stderr)
try:
    open({str(outside / "s3cret-s3cret")!r})
except OSError as error:
    print(error, file=sys.stderr, flush=True)
"""
    spec = ServerSpec(
        name="needing",
        command=sys.executable,
        args=(str(SERVERS / "needing_server.py"), code),
        confine=Confinement(folder=str(tmp_path)),
    )
    source = McpSource(mask=Masker(["s3cret-s3cret"]).text)
    try:
        for n in range(30):
            answered = await call(source, spec, "do", code=_refused_read(outside / f"{n}"))
            assert text(answered).startswith("It failed: [Errno 13] Permission denied")
        await call(source, spec, "do", code=f"raise PermissionError(13, 'Permission denied', {str(tmp_path / 'x')!r})")
        (state,) = source.connections(spec)
        assert len(state.refused) == 20
        assert RefusedAccess(kind="write", what=str(outside / "0"), line=_line(tmp_path, outside)) in state.refused
        assert "s3cret" not in str(state.refused)
        assert str(tmp_path / "x") not in {one.what for one in state.refused}
        events = [line.text for line in source.printed(spec) if line.kind == "event" and "could not" in line.text]
        assert any(one.endswith("would allow it") for one in events)
    finally:
        await source.aclose()


def _refused_read(path: Path) -> str:
    return f"open({str(path)!r}, 'w')"


def _line(own: Path, more: Path) -> str:
    return f"`confine: {{write: [{own}, {more}]}}`"


STARTS = {
    "answers an error": """
import json
try:
    {refused}
except OSError as error:
    answer = {{"code": -32603, "message": str(error)}}
for line in sys.stdin:
    if "id" in (asked := json.loads(line)):
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "error": answer}}), flush=True)
""",
    "ends": "{refused}",
    "ends with a code, having said it": """
try:
    {refused}
except OSError as error:
    print(f"cannot start: {{error}}", file=sys.stderr, flush=True)
    sys.exit(3)
""",
    "never answers": """
import time
try:
    {refused}
except OSError as error:
    print(error, file=sys.stderr, flush=True)
    time.sleep(600)
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
@pytest.mark.parametrize("how", STARTS)
async def test_a_server_that_cannot_start_confined_says_what_would_allow_it(
    outside: Path, tmp_path: Path, how: str
) -> None:
    """A7: whichever way it fails, and not what helps where it is not confined."""
    code = f"import sys\n{STARTS[how].format(refused=_refused_read(outside / 'new'))}"
    spec = ServerSpec(
        name="needing",
        command=sys.executable,
        args=("-c", code),
        confine=Confinement(folder=str(tmp_path)),
        start=5.0,
    )
    source = McpSource()
    try:
        with pytest.raises(ToolUnavailableError) as caught:
            await source.describe(spec, {})
    finally:
        await source.aclose()
    assert "Server 'needing' is confined, and it" in caught.value.hint
    assert str(outside / "new") in caught.value.hint
    assert _line(tmp_path, outside) in caught.value.hint
    assert "See the server's command" not in caught.value.hint


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
async def test_a_confined_plugin_shows_its_process_and_what_was_refused_to_it(outside: Path, tmp_path: Path) -> None:
    """A7: where it is constructed, where it is called, and where its process was stopped since it cannot run."""
    (outside / "there").write_text("x")
    (tmp_path / "charts.py").write_text(
        f"import sys\nprint('drawn', file=sys.stderr)\n"
        f"def draw() -> str:\n    'Draw.'\n    return open({str(outside / 'there')!r}).read()\n"
    )
    spec = PythonSpec(name="charts", target="charts", folder=str(tmp_path), confine=Confinement(folder=str(tmp_path)))
    source = PluginProcessSource(McpSource(), env={})
    try:
        (tool,) = (await source.describe(spec, {})).tools
        assert [one.state for one in source.connections(spec)] == ["up"]
        answered = await source.call(spec, {}, tool, {}, CallContext(scope="ada"))
        assert "Permission denied" in text(answered)
        (state,) = source.connections(spec)
        assert [(one.kind, one.what) for one in state.refused] == [("read", str(outside / "there"))]
        assert "drawn" in {line.text for line in source.printed(spec)}
        before = source.activity()
        await source.restart(spec)
        assert source.activity().states > before.states
    finally:
        await source.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
async def test_a_server_that_says_no_word_of_what_was_refused_is_explained(outside: Path, tmp_path: Path) -> None:
    """A7: a database of its arguments, and a folder that a call names, as published servers fail at them."""
    spec = ServerSpec(
        name="needing",
        command=sys.executable,
        args=(str(SERVERS / "needing_server.py"), "", "--db-path", str(outside / "data.db")),
        confine=Confinement(folder=str(tmp_path)),
    )
    source = McpSource(mask=Masker(["s3cret-s3cret"]).text)
    try:
        connect = f"import sqlite3; sqlite3.connect({str(outside / 'data.db')!r}).execute('create table t (n)')"
        answered = await call(source, spec, "do", code=connect)
        assert "unable to open database file" in text(answered)
        assert _line(tmp_path, outside) in answered.content[-1]["text"]
        secret = tempfile.mkdtemp(prefix="s3cret-s3cret", dir=outside)
        for folder, explained in ((str(outside), True), (str(tmp_path), False), (secret, False)):
            answered = await call(source, spec, "do", code="raise ValueError('no repository')", folder=folder)
            assert ("which the call names" in str(answered.content)) == explained
        answered = await call(source, spec, "do", code="pass", folder=str(outside))
        assert "which the call names" not in str(answered.content)
    finally:
        await source.aclose()


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
async def test_what_was_refused_is_in_the_error_of_the_call_and_known_to_other_processes(
    outside: Path, tmp_path: Path
) -> None:
    """A7, X5: the call says which line would allow it; another process has it as long as it is confined likewise."""
    kept = tmp_path / "state" / "refused"
    spec = ServerSpec(
        name="needing",
        command=sys.executable,
        args=(str(SERVERS / "needing_server.py"), ""),
        confine=Confinement(folder=str(tmp_path)),
    )
    refused = RefusedAccess(kind="write", what=str(outside / "new"), line=_line(tmp_path, outside))
    source, other = McpSource(mask=Masker(["s3cret-s3cret"]).text), McpSource()
    try:
        source.keep_refusals(kept)
        other.keep_refusals(kept)
        answered = await call(source, spec, "do", code=_refused_read(outside / "new"))
        assert answered.content[-1]["text"] == f"Server 'needing' is confined, and {refused.text}."
        await call(source, spec, "do", code=_refused_read(outside / "s3cret-s3cret"))
        assert other.refused(spec)[-1] == refused
        assert "s3cret" not in str(other.refused(spec))
        (file,) = await asyncio.to_thread(lambda: list(kept.iterdir()))
        assert "s3cret" not in file.read_text()
        assert other.refused(replace(spec, confine=Confinement(folder=str(tmp_path), write=()))) == ()
        file.write_text('{"under": 1')
        assert other.refused(spec) == ()
    finally:
        await source.aclose()
        await other.aclose()
