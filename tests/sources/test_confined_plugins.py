"""Python plugins and toolkits of Agno that are confined: what they reach by no way, and what works (A7)."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard

SETTINGS: dict[str, Any] = {"evil": {"python": "evil_c", "instance": "all"}}
"""What a plugin of the configuration has beside its confinement."""
OVERRIDES = {"sql": {"sql": {"db_url": "sqlite:///./work/data.db"}}}
"""How an agent's tools name a plugin that needs a setting."""

EVIL = '''
import os
import subprocess
import sys


def do(code: str) -> str:
    """Run code and return what it sets `result` to, or what it raises."""
    names = {}
    try:
        exec(code, names)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return str(names.get("result", "done"))


def in_a_child(code: str) -> str:
    """Run code in a child of a child."""
    run = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    subprocess.run([sys.executable, "-c", run, code], timeout=60)
    return "done"
'''

WRITES = r"""
open to write: open(T, "w").write("x")
open to append: open(T, "a").write("x")
open to change: open(T, "r+b").write(b"x")
by number: os.write(os.open(T, os.O_WRONLY | os.O_TRUNC), b"x")
truncate: os.truncate(T, 0)
pathlib: pathlib.Path(T).write_text("x")
replace: open("work/n", "w").write("x"); os.replace("work/n", T)
rename away: os.rename(T, "work/taken")
rename the folder: os.rename(F, F + "2")
unlink: os.unlink(T)
link in: os.link(T, "work/linked"); open("work/linked", "w").write("x")
link out: open("work/o", "w").write("x"); os.unlink(T); os.link("work/o", T)
a link of its own: os.symlink(T, "work/way"); open("work/way", "w").write("x")
a link in its place: os.unlink(T); os.symlink("/etc/hostname", T)
a link to its folder: os.symlink(F, "work/up"); open("work/up/" + N, "w").write("x")
copy: open("work/c", "w").write("x"); shutil.copy("work/c", T)
move: open("work/m", "w").write("x"); shutil.move("work/m", T)
map: f = open(T, "r+b"); mmap.mmap(f.fileno(), 0)[0:1] = b"x"
splice: r, w = os.pipe(); os.write(w, b"x"); os.splice(r, os.open(T, os.O_WRONLY), 1)
a folder by number: d = os.open(F, os.O_PATH); os.write(os.open(N, os.O_WRONLY, dir_fd=d), b"x")
the root of a process: open("/proc/self/root" + T, "w").write("x")
the root of the parent: open(f"/proc/{os.getppid()}/root" + T, "w").write("x")
the memory of the parent: open(f"/proc/{os.getppid()}/mem", "r+b").seek(1)
sqlite: c = sqlite3.connect(T); c.execute("create table stolen (a)"); c.commit()
ATTACH: c = sqlite3.connect("work/a"); c.execute(f"attach '{T}' as o"); c.execute("create table o.stolen (a)")
VACUUM INTO: os.unlink(T); sqlite3.connect(":memory:").execute(f"vacuum into '{T}'")
a shell: os.system(f"echo x > {T}")
tee: subprocess.run(["tee", T], input=b"x")
dd: subprocess.run(["dd", "if=/dev/zero", f"of={T}", "bs=1", "count=1"])
sed: subprocess.run(["sed", "-i", "s/./x/", T])
a daemon: subprocess.run(["sh", "-c", f"setsid sh -c 'echo x > {T}' &"]); time.sleep(0.2)
a log: logging.FileHandler(T).emit(logging.makeLogRecord({"msg": "x"}))
an archive: open("work/" + N, "w"); shutil.make_archive("work/a", "tar", "work"); shutil.unpack_archive("work/a.tar", F)
numpy: numpy.arange(3).tofile(T)
to_csv: pandas.DataFrame({"a": [1]}).to_csv(T)
a file beside it: open(os.path.join(F, "sitecustomize.py"), "w").write("x")
a folder beside it: os.mkdir(os.path.join(F, "loadouts2"))
a pipe in its place: os.unlink(T); os.mkfifo(T)
a mount over it: c = ctypes.CDLL(None); c.unshare(0x10000000); c.mount(b"work", F.encode(), 0, 4096, 0); open(T, "w")
remove the folder: shutil.rmtree(F)
"""
"""Forty ways to change the file T, whose folder is F and whose name there is N."""


WORK = {"write": ["work"]}
"""What beside Pegboard's own files they may write; a folder with a store in it nothing that is confined may."""


class Place:
    """A configuration with all that is Pegboard's own, a home with secrets, and a folder to work in."""

    def __init__(self, top: Path) -> None:
        self.folder, self.home, self.outside = top / "project", top / "home", top / "outside"
        for folder in (self.folder / "work", self.home / ".ssh", self.home / ".cache" / "pegboard", self.outside):
            folder.mkdir(parents=True)
        self.configuration = self.folder / "pegboard.yaml"
        self.targets = {
            "configuration": self.configuration,
            "env file": self.folder / ".env",
            "module": self.folder / "evil_c.py",
            "store": self.folder / "pegboard.db",
            "cache": self.home / ".cache" / "pegboard" / "kept.json",
            "outside": self.outside / "file.txt",
        }
        (self.home / ".ssh" / "id_ed25519").write_text("PRIVATE KEY")
        self.targets["cache"].write_text("{}")
        self.targets["outside"].write_text("outside")
        self.targets["env file"].write_text("TOKEN=hunter22\n")
        self.targets["module"].write_text(EVIL)

    def write(self, *plugins: str, confine: object = WORK) -> None:
        """Write a configuration with an agent that has these plugins, each confined."""
        document = {
            "reload": "all",
            "store": "sqlite:///pegboard.db",
            "servers": {"unused": {"command": "python3", "env_file": ".env"}},
            "plugins": {name: {**SETTINGS.get(name, {}), "confine": confine} for name in plugins},
            "agents": {"main": {"tools": [OVERRIDES.get(name, name) for name in plugins]}},
        }
        self.configuration.write_text(json.dumps(document))

    def seen(self) -> dict[str, object]:
        """Return what is in every file, and which there are."""
        found: dict[str, object] = {}
        for top in (self.folder, self.home, self.outside):
            for path in top.rglob("*"):
                inside = path.relative_to(top.parent).parts
                if {"work", "pegboard-plugins", "configurations"} & {*inside} or path.name.startswith("pegboard.db-"):
                    continue
                if path == self.targets["store"]:
                    with sqlite3.connect(path) as store:
                        found[str(path)] = store.execute(
                            "select name from sqlite_master where name = 'stolen'"
                        ).fetchall()
                else:
                    found[str(path)] = path.read_bytes() if path.is_file() and not path.is_symlink() else path.is_dir()
        return found


@pytest.fixture
def place(tmp_path, monkeypatch):
    made = Place(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made.folder)
    return made


@asynccontextmanager
async def opened(place: Place, *plugins: str, confine: object = WORK):
    """Yield what calls a tool and returns what it says."""
    place.write(*plugins, confine=confine)
    async with Pegboard.open(place.configuration) as board:
        session = await board.session(agent="main", session_id="s")
        await session.load(*plugins)

        async def call(tool: str, **arguments) -> str:
            answer = await session.call(tool, arguments)
            if answer.result is None:  # it was refused before anything ran
                return f"{answer.status}: {answer.message}"
            return " ".join(str(block.get("text")) for block in answer.result.content)

        yield call


TRY_ALL = """
import ctypes, json, logging, mmap, numpy, os, pandas, pathlib, shutil, sqlite3, subprocess, time
F, N = os.path.split(T)
outcomes = {}
for line in WRITES.strip().splitlines():
    way, _, code = line.partition(": ")
    try:
        exec(code)
        outcomes[way] = "done"
    except BaseException as error:
        outcomes[way] = f"{type(error).__name__}: {error}"
result = json.dumps(outcomes, indent=1)
"""


def every_way(target: Path) -> str:
    """Return code that tries every way to change a file, one after the other."""
    return f"T = {str(target)!r}\nWRITES = {WRITES!r}\n{TRY_ALL}"


def test_at_least_thirty_of_the_ways_change_a_file_that_is_not_out_of_reach(tmp_path):
    kept_back = ("the memory of the parent", "the root of the parent", "a mount over it", "a pipe in its place")
    ways = "\n".join(line for line in WRITES.strip().splitlines() if not line.startswith(kept_back))
    (tmp_path / "work").mkdir()
    script = f"""
import os, sqlite3
changed = 0
ways = {ways!r}
for number, line in enumerate(ways.splitlines()):
    T = os.path.abspath(f"case-{{number}}/target")
    os.mkdir(os.path.dirname(T))
    made = sqlite3.connect(T)
    made.execute("create table t (a)")
    made.close()
    before = open(T, "rb").read(), os.listdir(os.path.dirname(T)), os.lstat(T).st_ino
    exec({TRY_ALL!r}, {{"T": T, "WRITES": line, "__builtins__": __builtins__}})
    try:
        after = open(T, "rb").read(), os.listdir(os.path.dirname(T)), os.lstat(T).st_ino
    except OSError:
        after = None
    changed += before != after
print()
print(changed)
"""
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert int(ran.stdout.split()[-1]) >= 30, ran.stderr.decode()


async def test_a7_p10_no_way_of_a_python_plugin_changes_what_lies_outside_its_folder(place):
    async with opened(place, "evil") as call:
        await call("do", code="result = 1")
        before = place.seen()
        for name, target in place.targets.items():
            outcomes = await call("do", code=every_way(target))
            assert place.seen() == before, f"{name}: {outcomes}"
            assert len(json.loads(outcomes)) == 40


async def test_a7_children_of_children_are_confined_too(place):
    async with opened(place, "evil") as call:
        await call("do", code="result = 1")
        before = place.seen()
        for name in ("configuration", "store", "outside"):
            told = place.folder / "work" / f"told of {name}"
            code = f"{every_way(place.targets[name])}\nopen({str(told)!r}, 'w').write(result)"
            await call("in_a_child", code=code)
            assert len(json.loads(told.read_text())) == 40
            assert place.seen() == before, f"{name}: {told.read_text()}"


async def test_a7_p10_toolkits_of_agno_change_nothing_outside_their_folder(place):
    async with opened(place, "evil", "file", "shell", "python", "pandas", "sql") as call:
        await call("save_file", contents="x", file_name="work/first.txt")
        before = place.seen()
        for target in map(str, place.targets.values()):
            code = f"open({target!r}, 'w').write('x')"
            for tool, arguments in (
                ("run_shell_command", {"args": ["sh", "-c", f"echo x > {target}"]}),
                ("run_shell_command", {"args": ["sh", "-c", f"cp work/first.txt {target}"]}),
                ("run_python_code", {"code": code}),
                ("save_to_file_and_run", {"file_name": "work/run.py", "code": code}),
                ("save_to_file_and_run", {"file_name": target, "code": "x = 1"}),
                ("run_sql_query", {"query": f"attach database '{target}' as other"}),
                ("run_sql_query", {"query": "create table other.stolen (a)"}),
            ):
                await call(tool, **arguments)
                assert place.seen() == before, f"{tool}: {arguments}"
        await call(
            "create_pandas_dataframe",
            dataframe_name="frame",
            create_using_function="DataFrame",
            function_parameters={"data": {"a": [1]}},
        )
        for target in map(str, place.targets.values()):
            await call(
                "run_dataframe_operation",
                dataframe_name="frame",
                operation="to_csv",
                operation_parameters={"path_or_buf": target},
            )
            assert place.seen() == before


async def test_a7_inside_its_folder_a_confined_plugin_works(place):
    async with opened(place, "evil", "file", "shell", "python", "sql") as call:
        assert await call("do", code="open('work/a.txt', 'w').write('a'); result = open('work/a.txt').read()") == "a"
        await call("save_file", contents="b", file_name="work/b.txt")
        assert "c" in await call("run_shell_command", args=["sh", "-c", "echo c > work/c.txt; cat work/c.txt"])
        await call("save_to_file_and_run", file_name="work/d.py", code="open('work/d.txt', 'w').write('d')")
        await call("run_sql_query", query="create table t as select 'e' as letter")
        assert "e" in await call("run_sql_query", query="select letter from t")
        assert {path.name for path in (place.folder / "work").iterdir()} >= {
            "a.txt",
            "b.txt",
            "c.txt",
            "d.txt",
            "data.db",
        }


async def test_a7_it_reads_neither_secrets_of_the_user_nor_of_pegboard(place, monkeypatch):
    monkeypatch.setenv("CREDENTIAL", "hunter33")
    secrets = {
        "the keys of the user": place.home / ".ssh" / "id_ed25519",
        "the env file": place.targets["env file"],
        "the configuration": place.configuration,
        "the store": place.targets["store"],
        "the environment of the parent": Path(f"/proc/{os.getpid()}/environ"),
        "the memory of the parent": Path(f"/proc/{os.getpid()}/mem"),
        "a file outside": place.targets["outside"],
    }
    async with opened(place, "evil", "shell") as call:
        for what, path in secrets.items():
            said = await call("do", code=f"result = open({str(path)!r}, 'rb').read(1)")
            assert said.startswith("PermissionError"), f"{what}: {said}"
        for folder in (place.home / ".ssh", place.home, place.outside):
            assert (await call("do", code=f"import os; result = os.listdir({str(folder)!r})")).startswith(
                "PermissionError"
            )
        assert "None" in await call("do", code="import os; result = os.environ.get('CREDENTIAL')")
        assert "PRIVATE" not in await call(
            "run_shell_command", args=["sh", "-c", f"cat {place.home}/.ssh/id_ed25519; env"]
        )


def printed_by(code: str) -> str:
    """Return code that runs other code in a child, for what that prints."""
    child = f"[sys.executable, '-c', {code!r}]"
    return f"import subprocess, sys; result = subprocess.run({child}, capture_output=True).stdout"


def _listening(kind: int, address: Any) -> socket.socket:
    made = socket.socket(kind, socket.SOCK_STREAM)
    made.bind(address)
    made.listen()

    def accept() -> None:
        while True:
            try:
                made.accept()[0].close()
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    return made


async def test_a7_no_socket_of_this_machine_is_reached(place, monkeypatch):
    docker, bus, agent = (place.outside / name for name in ("docker.sock", "bus", "agent"))
    inside = place.folder / "work" / "inside.sock"
    abstract = f"\0pegboard-{os.getpid()}"
    sockets = [_listening(socket.AF_UNIX, str(path)) for path in (docker, bus, agent, inside)]
    sockets.append(_listening(socket.AF_UNIX, abstract))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={bus}")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{docker}")
    try:
        async with opened(place, "evil") as call:
            for address in (str(docker), str(bus), str(agent), str(inside), abstract):
                code = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r})"
                assert (await call("do", code=code)).startswith("PermissionError"), address
                child = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r}); print('reached')"
                assert "reached" not in await call("do", code=printed_by(child))
            names = "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST"
            said = await call("do", code=f"import os; result = [os.environ.get(name) for name in {names}]")
            assert said == "[None, None, None]"
            pair = "import socket; a, b = socket.socketpair(); a.send(b'x'); result = b.recv(1)"
            assert await call("do", code=pair) == "b'x'"
    finally:
        for one in sockets:
            one.close()


async def test_a7_without_a_network_neither_tcp_nor_udp_is_reached(place):
    listening = _listening(socket.AF_INET, ("127.0.0.1", 0))
    port = listening.getsockname()[1]
    tcp = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5); result = 'reached'"
    udp = (
        f"import socket; result = socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))"
    )
    bound = "import socket; socket.socket().bind(('127.0.0.1', 0)); result = 'bound'"
    try:
        async with opened(place, "evil") as call:
            assert await call("do", code=tcp) == "reached"
        async with opened(place, "evil", confine={**WORK, "network": "none"}) as call:
            for code in (tcp, udp, bound):
                assert (await call("do", code=code)).startswith(("PermissionError", "OSError")), code
            for code in (tcp, udp):
                assert "reached" not in await call("do", code=printed_by(f"{code}; print('reached')"))
        async with opened(place, "evil", confine={**WORK, "network": [port]}) as call:
            assert await call("do", code=tcp) == "reached"
            other = tcp.replace(str(port), "9")
            assert (await call("do", code=other)).startswith("PermissionError")
    finally:
        listening.close()


async def test_a7_p6_a_plugin_whose_own_package_is_out_of_reach_says_which_line_lets_it_read_that(place):
    package = place.outside / "needed_c"
    package.mkdir()
    (package / "__init__.py").write_text("VALUE = 1\n")
    place.targets["module"].write_text("from needed_c import VALUE\ndef go() -> int: return VALUE\n")
    sys.path.append(str(place.outside))
    try:
        place.write("evil")
        async with Pegboard.open(place.configuration) as board:
            session = await board.session(agent="main", session_id="s")
            (item,) = (await session.load("evil")).items
            assert item.status == "tool_unavailable"
            assert f"{package} is out of reach, because the plugin is confined." in item.message
            assert f"`confine: {{read: [{place.outside}]}}`" in item.message
        place.write("evil", confine={**WORK, "read": [str(place.outside)]})
        async with Pegboard.open(place.configuration) as board:
            session = await board.session(agent="main", session_id="s")
            await session.load("evil")
            assert (await session.call("go", {})).result.content[0]["text"] == "1"
    finally:
        sys.path.remove(str(place.outside))
    assert not {"evil_c", "needed_c"} & sys.modules.keys()
