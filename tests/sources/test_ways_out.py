"""Whoever is confined comes out by none of the ways that let others out (A7, P10)."""

import asyncio
import base64
import ctypes
import json
import os
import pty
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from mcp_helpers import SERVERS
from ways_out import PREAMBLE, STILL_OPEN, WAYS, WayOut

from pegboard import Pegboard
from pegboard.support import user_folders
from pegboard.support.user_token import make_token

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

FACES = ("server", "plugin")
EVERY = [*WAYS, *STILL_OPEN]
NAMES = [way.name for way in WAYS]
SECURITY = Path(__file__).parents[2] / "SECURITY.md"
MODULE = '''
import base64


def do(code: str) -> str:
    """Run code and return what it sets `answer` to."""
    names = {}
    exec(base64.b64decode(code), names)
    return names["answer"]
'''
VICTIM = """
import ctypes, mmap, os, signal, sys
os.chdir(sys.argv[1])
log = os.open("signals", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
signal.signal(signal.SIGUSR1, lambda number, frame: os.write(log, b"one"))
page = mmap.mmap(-1, 4096)
page[:8] = b"hunter22"
print(ctypes.addressof(ctypes.c_char.from_buffer(page)), flush=True)
while True:
    signal.pause()
"""
RUN = """
import json, os, select, signal, sys, traceback

def ran(program):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir({work!r})
            os.dup2(writing, 1)
            sys.stdout = open(writing, "w")
            exec(program, {{"WORLD": {world!r}}})
        except BaseException:
            os.write(writing, traceback.format_exc(limit=0).encode(errors="replace"))
        finally:
            os._exit(0)
    os.close(writing)
    said = b""
    while select.select([reading], [], [], 20)[0] and (part := os.read(reading, 1000)):
        said += part
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return said.decode(errors="replace")

answer = json.dumps({{name: ran(program) for name, program in {programs!r}.items()}})
"""
"""Code that runs programs, each in a child that is a copy: an interpreter for each would take long."""


class World:
    """What there is to reach: a project, the home of its user, and another process of theirs; all of it for a test."""

    def __init__(self, top: Path, ending: ExitStack) -> None:
        self.project, self.home, self.outside = top / "project", top / "home", top / "outside"
        self.label = f"pegboard-{uuid4().hex[:12]}"
        self.shared = Path("/dev/shm") / self.label
        ending.callback(self.shared.unlink, missing_ok=True)
        self.make()
        given = [sys.executable, "-S", "-c", VICTIM, str(self.outside)]
        self.victim = subprocess.Popen(given, stdout=subprocess.PIPE, env={"SECRET": "hunter22"})
        ending.callback(self._end)
        assert self.victim.stdout is not None
        self.reach: dict[str, object] = {
            "address": int(self.victim.stdout.readline()),
            "victim": self.victim.pid,
            "pegboard": os.getpid(),
            "label": self.label,
            "shared": str(self.shared),
            "project": str(self.project),
            "work": str(self.project / "work"),
            "home": str(self.home),
            "outside": str(self.outside),
            "configuration": str(self.project / "pegboard.yaml"),
            "module": str(self.project / "way_tools.py"),
            "env_file": str(self.project / ".env"),
            "notes": str(self.project / "private" / "notes.md"),
            "git": str(self.project / ".git"),
            "key": str(self.home / ".ssh" / "id"),
            "programs": str(self.home / "bin"),
            "packages": str(self.home / "packages"),
            "store": str(self.home / "state" / "store"),
            "state": str(self.home / "state"),
            "caches": str(self.home / "caches"),
            "token": str(self.home / "state" / "token"),
        }
        self._listen(ending)

    def make(self) -> None:
        """Write all files, as they were at the beginning."""
        for folder in (self.project, self.home):
            shutil.rmtree(folder, ignore_errors=True)
        for left in self.outside.glob("*"):
            left.write_text("") if left.name == "signals" else left.unlink()
        for folder in ("work", "data", "private", ".git/hooks", ".git/objects", ".git/refs"):
            (self.project / folder).mkdir(parents=True, exist_ok=True)
        for folder in (".ssh", "bin", "packages", "state", "caches"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        self.outside.mkdir(exist_ok=True)
        confine = {"write": ["work"], "read": ["data"], "network": "none"}
        document = {
            "reload": "all",
            "servers": {"reaching": {"command": sys.executable, "args": ["server.py"], "confine": confine}},
            "plugins": {"ways": {"python": "way_tools", "instance": "all", "confine": confine}},
            "agents": {"default": {"tools": ["reaching", "ways"]}},
        }
        texts = {
            self.project / "pegboard.yaml": json.dumps(document),
            self.project / "way_tools.py": MODULE,
            self.project / "server.py": (SERVERS / "reaching_server.py").read_text(),
            self.project / ".env": "TOKEN=hunter22",
            self.project / "private" / "notes.md": "hunter22",
            self.project / ".git" / "config": "[core]\n",
            self.project / ".git" / "HEAD": "ref: refs/heads/main\n",
            self.home / ".ssh" / "id": "hunter22",
            self.home / ".bashrc": "",
            self.home / "state" / "store": "",
            self.home / "state" / "token": "hunter22",
            self.outside / "file": "hunter22",
            self.outside / "secret": "hunter22",
            self.shared: "hunter22",
        }
        for path, text in texts.items():
            path.write_text(text)
        (self.home / "link").symlink_to("anywhere")

    def _listen(self, ending: ExitStack) -> None:
        """Listen as other programs of the user do, and have a terminal as they have."""
        main, terminal = pty.openpty()
        for each in (main, terminal):
            ending.callback(os.close, each)
        tcp = ending.enter_context(socket.create_server(("127.0.0.1", 0), backlog=100))
        udp = ending.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        names = {"agent": socket.SOCK_STREAM, "datagrams": socket.SOCK_DGRAM}
        for name, kind in names.items():
            self.reach[name] = str(self.home.parent / name)
            one = ending.enter_context(socket.socket(socket.AF_UNIX, kind))
            one.bind(str(self.reach[name]))
            if kind == socket.SOCK_STREAM:
                one.listen(100)
        hidden = ending.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind(f"\0{self.label}")
        hidden.listen(100)
        self.reach |= {"terminal": os.ttyname(terminal), "port": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
        shmget, shmctl = (194, 195) if os.uname().machine == "aarch64" else (29, 31)
        libc = ctypes.CDLL(None)
        self.reach["memory"] = libc.syscall(shmget, 0, 4096, 0o1600)
        ending.callback(libc.syscall, shmctl, self.reach["memory"], 0, None)
        left_open = os.open(self.outside / "secret", os.O_RDONLY)
        os.set_inheritable(left_open, True)
        self.reach["open"] = left_open
        ending.callback(os.close, left_open)

    def _end(self) -> None:
        self.victim.send_signal(signal.SIGCONT)
        self.victim.kill()
        self.victim.wait()
        assert self.victim.stdout is not None
        self.victim.stdout.close()

    def seen(self) -> dict[str, object]:
        """Return what is in every file that is not to be changed, and how the other process is."""
        found: dict[str, object] = {}
        for top in (self.project, self.home, self.outside, self.shared):
            for path in (top, *top.rglob("*")):
                if "work" not in path.relative_to(top.parent).parts:
                    kind = stat.S_IFMT(path.lstat().st_mode)
                    found[str(path)] = (kind, path.read_bytes() if kind == stat.S_IFREG else None)
        pid, process = self.victim.pid, Path(f"/proc/{self.victim.pid}")
        found["limits"] = resource.prlimit(pid, resource.RLIMIT_CORE)
        found["scheduling"] = (
            os.sched_getscheduler(pid),
            os.sched_getaffinity(pid),
            os.getpriority(os.PRIO_PROCESS, pid),
        )
        ioprio_get = 31 if os.uname().machine == "aarch64" else 252
        found["priority of the disk"] = ctypes.CDLL(None).syscall(ioprio_get, 1, pid)
        found["names"] = [(process / name).read_text() for name in ("comm", "coredump_filter")]
        return found


Runner = Callable[[str], Awaitable[str]]


async def said_by(world: World, run: Runner, ways: Sequence[WayOut]) -> dict[str, str]:
    """Return what each of some ways has printed."""
    programs = {way.name: f"{PREAMBLE}\n{way.code}\n" for way in ways}
    given = {"programs": programs, "world": json.dumps(world.reach), "work": world.reach["work"]}
    return json.loads(await run(RUN.format(**given)))


async def came_out_by(world: World, run: Runner, *, one_by_one: bool = False) -> dict[str, str]:
    """Return by which ways a process comes out, each with what shows that.

    They are tried ``one_by_one`` where the world is not the same after them.
    """
    before = world.seen()
    if not one_by_one:
        said = await said_by(world, run, EVERY)
        if world.seen() == before:
            return {name: text for name, text in said.items() if "OUT" in text.splitlines()}
    found: dict[str, str] = {}
    for way in EVERY:
        text = (await said_by(world, run, [way]))[way.name]
        after = world.seen()
        if "OUT" in text.splitlines():
            found[way.name] = text
        if after != before:
            changed = {key for key in after.keys() | before.keys() if after.get(key) != before.get(key)}
            found[way.name] = f"changed: {sorted(changed)}"
            if one_by_one:
                world.make()
            before = world.seen()
    return found


async def unconfined(code: str) -> str:
    """Run code in this process."""
    names: dict[str, str] = {}
    exec(code, names)
    return names["answer"]


async def confined(world: World) -> dict[str, dict[str, str]]:
    """Return by which ways a confined server and a confined plugin come out."""
    async with Pegboard.open(world.project / "pegboard.yaml") as board:
        session = await board.session(session_id="first")

        async def by_server(code: str) -> str:
            given = {"it": base64.b64encode(code.encode()).decode()}
            answer = await session.call("reaching__reach", {"attempts": given, "depth": 0})
            assert answer.result is not None, answer.message
            return json.loads(answer.result.content[0]["text"])["it"].removeprefix("done: ")

        async def by_plugin(code: str) -> str:
            answer = await session.call("do", {"code": base64.b64encode(code.encode()).decode()})
            assert answer.result is not None, answer.message
            return answer.result.content[0]["text"]

        for run in (by_server, by_plugin):
            assert await run("answer = 'it runs'") == "it runs"
        return {"server": await came_out_by(world, by_server), "plugin": await came_out_by(world, by_plugin)}


@pytest.fixture(scope="module")
def came_out(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, str]]]:
    """Return by which ways a process that is not confined comes out, a confined server, and a confined plugin."""
    with ExitStack() as ending, pytest.MonkeyPatch.context() as patched:
        free = World(tmp_path_factory.mktemp("free"), ending)
        found = {"free": asyncio.run(came_out_by(free, unconfined, one_by_one=True))}
        world = World(tmp_path_factory.mktemp("confined"), ending)
        patched.setenv("HOME", str(world.home))
        for name in ("CACHE", "STATE", "CONFIG", "DATA"):
            patched.setenv(f"XDG_{name}_HOME", str(world.home.parent / name))
        patched.chdir(world.project)
        token = make_token()
        world.reach |= {"token": str(token), "state": str(token.parent), "caches": str(user_folders.plugin_caches())}
        world.reach |= {"packages": str(Path(pytest.__file__).parents[1])}
        found |= asyncio.run(confined(world))
        yield found


@pytest.mark.parametrize("face", FACES)
def test_what_is_confined_does_not_come_out(came_out: dict[str, dict[str, str]], face: str) -> None:
    """A7, P10: a server and a plugin that may write a folder and read one, without network."""
    assert {name: text for name, text in came_out[face].items() if name in NAMES} == {}


def test_sixty_of_the_ways_let_others_out(came_out: dict[str, dict[str, str]]) -> None:
    """A7: what is tried is what works; some of it depends on the kernel and its settings."""
    assert len(NAMES) == len(set(NAMES))
    out = set(NAMES) & came_out["free"].keys()
    assert len(out) >= 60, sorted(set(NAMES) - out)


def test_what_no_filter_stops_is_named(came_out: dict[str, dict[str, str]]) -> None:
    """A7: SECURITY.md says of each that it is no wall."""
    named = " ".join(SECURITY.read_text().partition("## What is no wall")[2].split())
    assert [way.name for way in STILL_OPEN if way.name not in came_out["free"] or way.name not in named] == []
