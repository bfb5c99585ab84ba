"""What a confined server cannot reach, by itself or through the children of its children (A7)."""

import asyncio
import base64
import contextlib
import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mcp_helpers import SERVERS, call, runs, text, until

from pegboard import Pegboard
from pegboard.config.acceptance import key_of, record_of
from pegboard.config.accepted_files import accepted_files
from pegboard.core.access.named_paths import OwnPaths, fold_path
from pegboard.core.model.specs import CONFINE_DEFAULT, Confinement, ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.confinement import caches_of
from pegboard.sources.mcp import McpSource
from pegboard.support.own_folder import store_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

DEPTHS = [0, 2]
REFUSED = ("refused: PermissionError", "refused: OSError")


@pytest.fixture
def outside() -> Iterator[Path]:
    """Return a folder that no default grants: the user's own is one, in which secrets lie."""
    with tempfile.TemporaryDirectory(prefix=".pegboard-outside-", dir=Path.home()) as folder:
        yield Path(folder)


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    (folder := tmp_path / "inside").mkdir()
    return folder


def reaching(folder: Path, **more: Any) -> ServerSpec:
    """Return the server that tries, confined to a folder."""
    confine = Confinement(folder=str(folder), **more)
    return ServerSpec(
        name="reaching", command=sys.executable, args=(str(SERVERS / "reaching_server.py"),), confine=confine
    )


async def reached(source: McpSource, spec: ServerSpec, attempts: dict[str, str], depth: int = 0) -> dict[str, str]:
    """Return what became of each attempt."""
    return json.loads(text(await call(source, spec, "reach", attempts=encoded(attempts), depth=depth)))


def encoded(attempts: dict[str, str]) -> dict[str, str]:
    """Return attempts in a form that no guard on arguments reads."""
    return {name: base64.b64encode(textwrap.dedent(code).encode()).decode() for name, code in attempts.items()}


def came_through(found: dict[str, str]) -> dict[str, str]:
    """Return the attempts that no one refused."""
    return {name: how for name, how in found.items() if not how.startswith(REFUSED)}


@contextlib.contextmanager
def listening(path: str | Path) -> Iterator[socket.socket]:
    """Listen on a Unix socket, as Docker, D-Bus and an ssh agent do; one without a file begins with a NUL."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield listener


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_confined_server_writes_its_folder_and_nothing_outside(
    source: McpSource, inside: Path, outside: Path, depth: int
) -> None:
    "A7: what it writes lies in its folder, its caches and its temporary folder."
    (outside / "there").write_text("before")
    (inside / "link").symlink_to(outside)
    attempts = {
        "new": f"open({str(outside / 'new')!r}, 'w')",
        "append": f"open({str(outside / 'there')!r}, 'a')",
        "truncate": f"import os; os.truncate({str(outside / 'there')!r}, 0)",
        "empty by reading": f"import os; os.open({str(outside / 'there')!r}, os.O_RDONLY | os.O_TRUNC)",
        "remove": f"import os; os.remove({str(outside / 'there')!r})",
        "rename": f"import os; os.rename({str(outside / 'there')!r}, {str(inside / 'mine')!r})",
        "link": f"import os; os.link({str(outside / 'there')!r}, {str(inside / 'mine')!r})",
        "folder": f"import os; os.mkdir({str(outside / 'folder')!r})",
        "over a link": f"open({str(inside / 'link' / 'new')!r}, 'w')",
        "dots": f"open({str(inside / '..' / 'beside')!r}, 'w')",
        "temporary folder of all": "open('/tmp/pegboard-was-here', 'w')",
        "shared memory": "open('/dev/shm/pegboard-was-here', 'w')",
        "device": f"import os; os.mknod({str(inside / 'disk')!r}, 0o60600, os.makedev(254, 0))",
        "shell": f"import subprocess; 1 / (subprocess.run(['sh', '-c', 'echo x > {outside}/sh']).returncode == 0)",
    }
    spec = reaching(inside)
    found = await reached(source, spec, attempts, depth)
    shell = found.pop("shell")
    assert came_through(found) == {}
    assert shell.startswith("refused: ZeroDivisionError")
    assert await asyncio.to_thread(os.listdir, outside) == ["there"]
    assert (outside / "there").read_text() == "before"
    allowed = {
        "folder": f"open({str(inside / 'new')!r}, 'w').write('x')",
        "temporary": "import tempfile; tempfile.NamedTemporaryFile().write(b'x')",
        "caches": "import os; open(os.path.join(os.environ['XDG_CACHE_HOME'], 'x'), 'w').write('x')",
    }
    assert all(how.startswith("done") for how in (await reached(source, spec, allowed, depth)).values())


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_confined_server_reads_no_secrets_of_its_user(
    source: McpSource, inside: Path, outside: Path, depth: int
) -> None:
    "A7: a folder like ~/.ssh, and what other processes were started with, are out of its reach."
    (outside / "id_ed25519").write_text("secret")
    attempts = {
        "file": f"open({str(outside / 'id_ed25519')!r}).read()",
        "list": f"import os; os.listdir({str(outside)!r})",
        "copy": f"import shutil; shutil.copy({str(outside / 'id_ed25519')!r}, {str(inside)!r})",
        "environment": f"open('/proc/{os.getpid()}/environ').read()",
        "memory": f"open('/proc/{os.getpid()}/mem', 'rb').read()",
        "through its root": f"open('/proc/{os.getpid()}/root{outside}/id_ed25519').read()",
        "through its folder": f"import os; os.listdir('/proc/{os.getpid()}/cwd/.')",
        "signal": f"import os; os.kill({os.getpid()}, 0)",
    }
    assert came_through(await reached(source, reaching(inside), attempts, depth)) == {}


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_confined_server_reaches_no_socket_of_this_machine(
    source: McpSource, inside: Path, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    "A7: neither docker.sock nor D-Bus nor an ssh agent, even in its own folder; pairs of its own it has."
    agent = inside / "agent.sock"
    hidden = f"\0pegboard-{uuid4().hex}"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(inside))
    connect = "import socket; socket.socket(socket.AF_UNIX, socket.{kind}).connect({name!r})"
    ring = "import ctypes; 1 / (ctypes.CDLL(None, use_errno=True).syscall(425, 1, bytes(200)) >= 0)"
    keys = "import ctypes, os; r = ctypes.CDLL(None, use_errno=True).syscall({}, 0, -3, 0); 1 / (r >= 0)"
    with listening(agent), listening(hidden):
        attempts = {
            "ssh agent": connect.format(kind="SOCK_STREAM", name=str(agent)),
            "docker": connect.format(kind="SOCK_STREAM", name="/var/run/docker.sock"),
            "D-Bus": connect.format(kind="SOCK_STREAM", name="/run/dbus/system_bus_socket"),
            "abstract": connect.format(kind="SOCK_STREAM", name=hidden),
            "datagrams": connect.format(kind="SOCK_DGRAM", name=str(agent)),
            "pair of datagrams": "import socket; socket.socketpair(type=socket.SOCK_DGRAM)",
            "host": "import socket; socket.socket(40, socket.SOCK_STREAM)",
            "packets": "import socket; socket.socket(17, socket.SOCK_RAW)",
        }
        spec = reaching(inside)
        assert came_through(await reached(source, spec, attempts, depth)) == {}
        ways_around = {"io_uring": ring, "keys": keys.format(250 if os.uname().machine == "x86_64" else 219)}
        around = await reached(source, spec, ways_around, depth)
        assert all(how.startswith("refused: ZeroDivisionError") for how in around.values())
        pair = {
            "pair": "import socket; a, b = socket.socketpair(); a.send(b'x'); answer = b.recv(1)",
            "variables": "import os; answer = [n for n in os.environ if n in ('SSH_AUTH_SOCK', 'XDG_RUNTIME_DIR')]",
            "itself": "import os; answer = len(open('/proc/self/environ').read()) > 0",
        }
        assert (await reached(source, spec, pair, depth)) == {
            "pair": "done: b'x'",
            "variables": "done: []",
            "itself": "done: True",
        }


OF_OTHERS = {
    "limits": "import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE, (8, 8))",
    "limits read": "import resource; resource.prlimit({pid}, resource.RLIMIT_NOFILE)",
    "affinity": "import os; os.sched_setaffinity({pid}, {{0}})",
    "scheduler": "import os; os.sched_setscheduler({pid}, os.SCHED_IDLE, os.sched_param(0))",
    "parameters": "import os; os.sched_setparam({pid}, os.sched_param(0))",
    "priority": "import os; os.setpriority(os.PRIO_PROCESS, {pid}, 19)",
    "priority of a group": "import os; os.setpriority(os.PRIO_PGRP, {group}, 19)",
    "priority of the user": "import os; os.setpriority(os.PRIO_USER, os.getuid(), 19)",
    "attributes": "import ctypes; fails({attributes}, {pid}, bytes([48, 0, 0, 0, 5]) + bytes(43), 0)",
    "priority of the disk": "import ctypes; fails({disk}, 1, {pid}, 3 << 13)",
    "memory": "fails({memory}, {key}, 0, 0)",
    "attached memory": "fails({attach}, {shared}, 0, 0)",
    "semaphores": "fails({semaphores}, {key}, 1, 0o1666)",
    "messages": "fails({messages}, {key}, 0o1666)",
    "named messages": "fails({named}, b'pegboard-' + str({key}).encode(), 0o102, 0o600, 0)",
}
_CALLS = {
    "x86_64": {"attributes": 314, "disk": 251, "memory": 29, "attach": 30, "semaphores": 64, "messages": 68,
               "named": 240},
    "aarch64": {"attributes": 274, "disk": 30, "memory": 194, "attach": 196, "semaphores": 190, "messages": 186,
                "named": 180},
}  # fmt: skip
FAILS = """
import ctypes, os
def fails(number, *given):
    if ctypes.CDLL(None, use_errno=True).syscall(number, *given) == -1:
        raise OSError(ctypes.get_errno(), "refused")
"""


@contextlib.contextmanager
def shared_memory() -> Iterator[tuple[int, int]]:
    """Make System V memory that every process of this user may attach; yields its key and its number."""
    libc, calls = ctypes.CDLL(None, use_errno=True), _CALLS[os.uname().machine]
    key = 1 + uuid4().int % 0x7FFFFFF0
    number = libc.syscall(calls["memory"], key, 4096, 0o1666)
    assert number >= 0, os.strerror(ctypes.get_errno())
    try:
        yield key, number
    finally:
        libc.syscall({"x86_64": 31, "aarch64": 195}[os.uname().machine], number, 0, None)


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_confined_server_sets_nothing_of_other_processes(source: McpSource, inside: Path, depth: int) -> None:
    "A7: limits, priority and scheduling of the gateway, and System V memory, are out of its reach; no attempt ends it."
    own = limits_and_priority()
    with shared_memory() as (key, number):
        given = {"pid": os.getpid(), "group": os.getpgid(0), "key": key, "shared": number, **_CALLS[os.uname().machine]}
        attempts = {name: FAILS + code.format(**given) for name, code in OF_OTHERS.items()}
        found = await reached(source, reaching(inside), attempts, depth)
    assert {name: how for name, how in found.items() if how != "refused: PermissionError 1"} == {}
    assert limits_and_priority() == own


def limits_and_priority() -> tuple[object, ...]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits, os.sched_getaffinity(0), os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_confined_server_sets_its_own_limits_priority_and_scheduling(
    source: McpSource, inside: Path, depth: int
) -> None:
    "A7: interpreters and libraries do so when they start; they name themselves by 0."
    attempts = {
        "limits": "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
        "affinity": "import os; os.sched_setaffinity(0, os.sched_getaffinity(0))",
        "scheduler": "import os; os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
        "priority": "import os; os.setpriority(os.PRIO_PROCESS, 0, 5)",
        "nice": "import os; answer = os.nice(1) > 0",
        "a process": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import ctypes'], check=True)",
    }
    found = await reached(source, reaching(inside), attempts, depth)
    assert {name: how for name, how in found.items() if not how.startswith("done")} == {}


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_server_without_network_has_none_and_one_with_ports_has_those(
    source: McpSource, inside: Path, depth: int
) -> None:
    "A7: `network: none` is neither TCP nor UDP; ports are TCP to those, and nothing goes around them."
    with socket.create_server(("127.0.0.1", 0)) as here, socket.create_server(("127.0.0.1", 0)) as other:
        allowed, refused = here.getsockname()[1], other.getsockname()[1]
        attempts = {
            "tcp": f"import socket; socket.create_connection(('127.0.0.1', {refused}), 5)",
            "udp": "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
            "raw": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
            "routes": "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
            "several paths": "import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
            "listen": f"import socket; socket.create_server(('127.0.0.1', {refused - 1}))",
            "fast open": f"""
                import socket
                socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {refused}))
            """,
        }
        alone = await reached(source, reaching(inside, network=()), attempts, depth)
        assert came_through(alone) == {}
        spec = reaching(inside, network=(allowed,))
        assert came_through(await reached(source, spec, attempts, depth)) == {}
        through = {"tcp": f"import socket; socket.create_connection(('127.0.0.1', {allowed}), 5)"}
        assert (await reached(source, spec, through, depth)) == {"tcp": "done: "}
        whole = {name: attempts[name] for name in ("tcp", "udp", "routes")}
        assert all(how.startswith("done") for how in (await reached(source, reaching(inside), whole, depth)).values())


CONFIGURED = """
servers:
  reaching: {{command: {python}, args: [{server}], confine: true}}
plugins:
  mine: {{python: my_tools}}
agents:
  ada: {{tools: [reaching]}}
"""
WAYS = {
    "write": "open({0!r}, 'w').write('x')",
    "append": "open({0!r}, 'a').write('x')",
    "replace": "import os; open({1!r}, 'w').write('x'); os.replace({1!r}, {0!r})",
    "rename": "import os; os.rename({0!r}, {1!r})",
    "remove": "import os; os.remove({0!r})",
    "truncate": "import os; os.truncate({0!r}, 0)",
}


@pytest.fixture
async def board(tmp_path: Path) -> AsyncIterator[Pegboard]:
    """Open a configuration in a folder that its server may write."""
    (tmp_path / "my_tools.py").write_text("def one() -> str:\n    return '1'\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes.txt").write_text("before")
    (tmp_path / ".mcp.json").write_text("{}")
    given = CONFIGURED.format(python=sys.executable, server=SERVERS / "reaching_server.py")
    (tmp_path / "pegboard.yaml").write_text(given)
    async with Pegboard.open(tmp_path / "pegboard.yaml") as board:
        yield board


async def test_a_confined_server_changes_nothing_of_pegboards_own_in_thirty_ways(
    board: Pegboard, tmp_path: Path
) -> None:
    "P10: the store, what was accepted and the copies of it are out of its reach; the folder that it works in is not."
    session = await board.session(session_id="first")

    async def tried_there(attempts: dict[str, str]) -> dict[str, str]:
        answer = await session.call("reaching__reach", {"attempts": encoded(attempts), "depth": 0})
        assert answer.status == "ok", answer.message
        assert answer.result is not None
        return json.loads(text(answer.result))

    file = tmp_path / "pegboard.yaml"
    accepted = accepted_files(file)
    assert accepted is not None
    store = store_of(file)
    copies = [accepted.copy(file, "text"), accepted.copy(tmp_path / "my_tools.py", "code")]
    own = [store, store.with_name(f"{store.name}-wal"), record_of(key_of(file)), *accepted.watched_files][:4] + copies
    before = {path: path.read_bytes() for path in (*own[2:], file)}
    spare = str(tmp_path / "notes" / "spare")
    attempts = {f"{way} {path}": code.format(str(path), spare) for path in own for way, code in WAYS.items()}
    assert len(attempts) == 36
    assert came_through(await tried_there(attempts)) == {}
    assert {path: path.read_bytes() for path in before} == before
    reads = {f"read {path}": f"open({str(path)!r}).read()" for path in own[:5]}
    assert came_through(await tried_there(reads)) == {}
    allowed = {
        "its code": f"answer = open({str(tmp_path / 'my_tools.py')!r}).read()[:3]",
        "a file": f"open({str(tmp_path / 'notes.txt')!r}, 'w').write('after')",
        "a new file": f"open({str(tmp_path / 'new.txt')!r}, 'w').write('x')",
        "a folder": f"open({spare!r}, 'w').write('x')",
        "the names": f"import os; answer = 'pegboard.yaml' in os.listdir({str(tmp_path)!r})",
    }
    assert (await tried_there(allowed)) == {
        "its code": "done: def",
        "a file": "done: ",
        "a new file": "done: ",
        "a folder": "done: ",
        "the names": "done: True",
    }


async def refusal(source: McpSource, spec: ServerSpec) -> str:
    """Return why a server is not available."""
    with pytest.raises(ToolUnavailableError) as caught:
        await source.describe(spec, {})
    return caught.value.text


async def test_what_cannot_be_granted_is_said_with_its_path(source: McpSource, inside: Path, outside: Path) -> None:
    "A7: a path that is not there, is everything, or leads over a link that the server could have set."
    (inside / "link").symlink_to(outside)
    gone = await refusal(source, reaching(inside, write=(str(inside / "gone"),)))
    assert f"`confine: {{write: [...]}}` of 'reaching' names '{inside / 'gone'}', which does not exist" in gone
    assert gone.endswith("Make it, or correct the path.")
    assert "which is everything" in await refusal(source, reaching(inside, read=("/",)))
    link = await refusal(source, reaching(inside, write=(".", str(inside / "link"))))
    assert "leads over a link" in link
    assert link.endswith("Name where the link leads instead.")
    assert "its folder" in await refusal(source, reaching(inside / "gone"))
    source.keep_from(lambda: OwnPaths(files={fold_path(str(inside / "own.yaml")): "configuration"}))
    (inside / "own.yaml").write_text("")
    own = await refusal(source, reaching(inside, read=(str(inside / "own.yaml"),)))
    assert "which is Pegboard's own" in own


async def test_a_path_with_dots_and_a_file_mean_what_they_lead_to(
    source: McpSource, inside: Path, outside: Path
) -> None:
    "A7: a file in place of a folder is granted alone; `..` is followed."
    (outside / "one").write_text("1")
    (outside / "two").write_text("2")
    spec = reaching(inside, write=(str(outside / "three" / ".." / "one"),))
    (outside / "three").mkdir()
    attempts = {
        "one": f"open({str(outside / 'one')!r}, 'w').write('x')",
        "two": f"open({str(outside / 'two')!r}).read()",
        "beside": f"open({str(outside / 'new')!r}, 'w')",
    }
    found = await reached(source, spec, attempts)
    assert found["one"].startswith("done")
    assert set(came_through(found)) == {"one"}


async def test_the_users_folder_is_not_given_away_by_true(source: McpSource) -> None:
    "A7: a server whose own folder is the user's, or above it, gets caches and a temporary folder only."
    spec = reaching(Path.home())
    found = await reached(source, spec, {"home": f"open({str(Path.home() / 'pegboard-was-here')!r}, 'w')"})
    assert came_through(found) == {}


async def test_what_lives_on_stays_confined_and_the_temporary_folder_goes(
    source: McpSource, inside: Path, outside: Path
) -> None:
    "A7: a child that leaves the group of its server is as confined as before; nothing of a start stays."
    child = f"""
        import subprocess, sys
        code = '''
        import time, os
        while not os.path.exists({str(inside / "go")!r}): time.sleep(0.01)
        try: open({str(outside / "new")!r}, "w"); said = "written"
        except PermissionError: said = "refused"
        open({str(inside / "said.part")!r}, "w").write(said)
        os.rename({str(inside / "said.part")!r}, {str(inside / "said")!r})
        '''
        import textwrap
        null = subprocess.DEVNULL
        started = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)], start_new_session=True, stdin=null, stdout=null, stderr=null
        )
        answer = started.pid
    """
    where = "import os; answer = os.environ['TMPDIR']"
    found = await reached(source, reaching(inside), {"child": child, "temporary": where})
    pid, temporary = int(found["child"].removeprefix("done: ")), Path(found["temporary"].removeprefix("done: "))
    assert await asyncio.to_thread(temporary.is_dir)
    await source.aclose()
    assert runs(pid)
    (inside / "go").write_text("")
    await until((inside / "said").exists)
    assert (inside / "said").read_text() == "refused"
    await until(lambda: not temporary.exists())


HIDING = """
import asyncio, logging, sys
from pegboard.core.model.specs import Confinement
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
logging.basicConfig(level=logging.WARNING)

async def main(if_possible: bool) -> None:
    source = McpSource()
    confine = Confinement(folder=sys.argv[1], if_possible=if_possible)
    for name in ("one", "one"):
        spec = ServerSpec(name=name, command=sys.executable, args=(sys.argv[2],), confine=confine)
        try:
            print([tool.name for tool in (await source.describe(spec, {})).tools])
        except ToolUnavailableError as refused:
            print(refused)
        await source.retain([])
    await source.aclose()

for if_possible in (False, True):
    asyncio.run(main(if_possible))
"""


@pytest.mark.parametrize(("hidden", "lacks"), [("landlock", "no Landlock"), ("seccomp", "no filter on system calls")])
def test_without_kernel_support_a_server_is_unavailable_or_runs_with_a_warning(
    tmp_path: Path, hidden: str, lacks: str
) -> None:
    "A7: where the kernel cannot, the reason is said; `if_possible` runs it, and says so once (P6)."

    program = [sys.executable, "-c", HIDING, str(tmp_path), str(SERVERS / "reaching_server.py")]
    hiding = [sys.executable, str(SERVERS / "without_landlock.py"), hidden, *program]
    ran = subprocess.run(hiding, capture_output=True, text=True, check=True)
    *strict, first, second = ran.stdout.splitlines()
    reason = f"Server 'one' is not available: it has to be confined, and cannot be: this kernel has {lacks}"
    assert [reason in line for line in strict] == [True, True]
    assert "`if_possible: true` under `confine` in `servers: one` runs it unconfined there." in strict[0]
    assert first == second == "['reach']"
    assert ran.stderr.count("server 'one' RUNS UNCONFINED, with all rights of its user") == 1


@pytest.fixture
def repository(inside: Path) -> Path:
    subprocess.run(["git", "-C", str(inside), "init", "-q"], check=True)
    return inside


async def test_a_published_server_answers_confined_as_it_does_by_itself(
    source: McpSource, repository: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    "A7: also git, which ends where its user's settings are there and may not be read: it does without them."
    (outside / ".gitconfig").write_text("[user]\n\tname = Ada\n")
    monkeypatch.setenv("HOME", str(outside))
    alone = ServerSpec(name="git", command=sys.executable, args=("-m", "mcp_server_git"))
    own = (await source.describe(alone, {})).tools
    said = await call(source, alone, "git_status", repo_path=str(repository))
    assert not said.is_error
    for name, read in {"without": (), "with": (str(outside / ".gitconfig"),)}.items():
        confine = Confinement(write=(str(repository),), read=read, network=(), folder=str(repository))
        confined = replace(alone, name=name, confine=confine)
        assert [replace(tool, plugin="git") for tool in (await source.describe(confined, {})).tools] == list(own)
        answer = await call(source, confined, "git_status", repo_path=str(repository))
        assert (answer.content, answer.structured) == (said.content, said.structured)


async def test_caches_of_two_servers_are_apart(source: McpSource, inside: Path) -> None:
    "A7: each plugin has a folder for caches of its own."
    found = await reached(source, reaching(inside), {"it": "import os; answer = os.environ['XDG_CACHE_HOME']"})
    folder = caches_of("reaching", str(inside))
    assert found["it"] == f"done: {folder}"
    assert caches_of("another", str(inside)) != folder
    assert CONFINE_DEFAULT.write == (".",)
