"""Ways out of a confinement, each as a program that tries it in a process of its own.

The program has ``W``, what there is to reach (see ``World`` in the test), and ``call``, a system call that raises. It
calls ``out()`` where it has come out; what it does to the world outside of itself is seen from there.
"""

from __future__ import annotations

import re
import textwrap
from typing import Final, NamedTuple

PREAMBLE: Final = '''
import ctypes, errno, fcntl, json, mmap, os, signal, socket, struct, subprocess, sys, time
W = json.loads(WORLD)
libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"

def out(*_):
    print("OUT", flush=True)

def call(x86, arm, *given):
    done = libc.syscall(ctypes.c_long(arm if ARM else x86), *(
        ctypes.c_long(one) if isinstance(one, int) else one for one in given))
    if done == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return done

def alone():
    """Become root of a namespace of its own."""
    if libc.unshare(0x10000000 | 0x00020000):
        raise OSError(ctypes.get_errno(), "unshare")
'''


class WayOut(NamedTuple):
    """One way: its name, and the program that tries it."""

    name: str
    code: str


READS: Final = """
env file: open(W["env_file"]).read() and out()
notes beside the code: open(W["notes"]).read() and out()
settings of git: open(W["git"] + "/config").read() and out()
configuration: open(W["configuration"]).read() and out()
private key: open(W["key"]).read() and out()
over the root of a process: open("/proc/self/root" + W["key"]).read() and out()
over the root of another: open(f"/proc/{W['victim']}/root{W['key']}").read() and out()
over the folder of another: open(f"/proc/{W['victim']}/cwd/secret").read() and out()
over dots: open("../" * 40 + W["key"]).read() and out()
after a change of folder: os.chdir(os.path.dirname(W["key"])); open(os.path.basename(W["key"])).read() and out()
over a link: os.symlink(W["key"], "way"); open("way").read() and out()
over a hard link: os.link(W["key"], "same"); open("same").read() and out()
by a copy of the kernel: a = os.open(W["key"], os.O_RDONLY); os.sendfile(os.open("copy", 65), a, 0, 9) and out()
over a folder by number:
    d = os.open(os.path.dirname(W["key"]), os.O_PATH)
    os.read(os.open("id", 0, dir_fd=d), 9) and out()
names in a folder of keys: os.listdir(os.path.dirname(W["key"])) and out()
by a shell: subprocess.run(["cat", W["key"]], capture_output=True).stdout and out()
by a mapped file: mmap.mmap(os.open(W["key"], os.O_RDONLY), 0, prot=mmap.PROT_READ)[:1] and out()
by git: subprocess.run(["git", "diff", "--no-index", "/dev/null", W["key"]], capture_output=True).stdout and out()
environment of another: b"hunter22" in open(f"/proc/{W['victim']}/environ", "rb").read() and out()
memory of another: open(f"/proc/{W['victim']}/maps").read() and open(f"/proc/{W['victim']}/mem", "rb") and out()
descriptors of another: os.readlink(f"/proc/{W['victim']}/fd/1") and out()
environment of Pegboard: open(f"/proc/{W['pegboard']}/environ", "rb").read() and out()
shared memory by name: open(W["shared"]).read() and out()
token of the gateway: open(W["token"]).read() and out()
by a newer call: os.read(call(437, 437, -100, W["key"].encode(), struct.pack("QQQ", 0, 0, 0), 24), 9) and out()
over the root of a thread: open("/proc/thread-self/root" + W["key"]).read() and out()
opened again: f = os.open(W["key"], os.O_PATH); open(f"/proc/self/fd/{f}").read() and out()
over a hard link of a descriptor:
    f = os.open(W["key"], os.O_PATH)
    call(265, 37, -100, f"/proc/self/fd/{f}".encode(), -100, b"got", 0x400)
    open("got").read() and out()
vector of another: open(f"/proc/{W['victim']}/auxv", "rb").read() and out()
pages of another by their numbers: open(f"/proc/{W['victim']}/pagemap", "rb").read(8) and out()
system call of another: open(f"/proc/{W['victim']}/syscall").read() and out()
input and output of another: open(f"/proc/{W['victim']}/io").read() and out()
"""

WRITES: Final = """
hook of git: open(W["git"] + "/hooks/post-commit", "w").write("x")
settings of git to run a program: subprocess.run(["git", "-C", W["project"], "config", "core.pager", "x"])
code that is imported: open(W["module"], "a").write("x")
module before others: open(W["project"] + "/json.py", "w").write("x")
kept form of a module: os.makedirs(W["project"] + "/__pycache__"); open(W["project"] + "/__pycache__/x.pyc", "w")
start file of Python: p = W["packages"] + "/way-out.pth"; open(p, "x").close(); os.remove(p); out()
module of every start: p = W["packages"] + "/usercustomize.py"; open(p, "x").close(); os.remove(p); out()
module of the user: os.makedirs(W["home"] + "/.local/lib"); open(W["home"] + "/.local/lib/usercustomize.py", "w")
start file of a shell: open(W["home"] + "/.bashrc", "a").write("x")
program before others: open(W["programs"] + "/git", "w").write("x")
settings of a package runner: open(W["home"] + "/.npmrc", "w").write("registry=http://127.0.0.1:9")
settings of another runner: open(W["project"] + "/uv.toml", "w").write("x")
file of a client: open(W["project"] + "/.mcp.json", "w").write("{}")
tasks of an editor: os.mkdir(W["project"] + "/.vscode"); open(W["project"] + "/.vscode/tasks.json", "w").write("{}")
edit of the configuration: open(W["configuration"], "a").write("# x")
switched file: open("new", "w").write("x"); os.replace("new", W["module"])
file by a renamed folder: os.rename(W["project"] + "/data", W["project"] + "/other")
exchange of two files: open("new", "w"); call(316, 276, -100, b"new", -100, W["module"].encode(), 2)
file taken in: os.rename(W["outside"] + "/file", "mine")
link put outside: os.symlink("/etc/hostname", W["outside"] + "/link")
hard link put outside: open("new", "w"); os.link("new", W["outside"] + "/new")
pipe put outside: os.mkfifo(W["outside"] + "/pipe")
socket put outside: socket.socket(socket.AF_UNIX).bind(W["outside"] + "/socket")
emptied file: os.truncate(W["outside"] + "/file", 0)
removed file: os.remove(W["outside"] + "/file")
file without a name:
    f = f"/proc/self/fd/{os.open('.', os.O_TMPFILE | os.O_WRONLY)}"
    call(265, 37, -100, f.encode(), -100, (W["outside"] + "/t").encode(), 0x400)
core of a process:
    die = "import resource, os, sys; resource.setrlimit(4, (-1, -1)); os.chdir(sys.argv[1]); os.abort()"
    subprocess.run([sys.executable, "-SEc", die, W["outside"]])
shared memory: open(W["shared"], "w").write("x")
temporary file of all: p = "/tmp/" + W["label"]; open(p, "x").close(); os.remove(p); out()
file of accounts: open("/etc/passwd", "a") and out()
timed program: p = "/var/spool/" + W["label"]; open(p, "x").close(); os.remove(p); out()
setting of the kernel: open("/proc/sys/kernel/core_pattern", "r+") and out()
request of the kernel: open("/proc/sysrq-trigger", "w") and out()
group of processes: open("/proc/self/oom_score_adj", "w") and out()
name of another process: open(f"/proc/{W['victim']}/comm", "w").write("taken") and out()
what a core of another has: open(f"/proc/{W['victim']}/coredump_filter", "w").write("0") and out()
memory of another, written: open(f"/proc/{W['victim']}/mem", "r+b") and out()
terminal of another: f = open(W["terminal"], "w"); fcntl.ioctl(f, 0x5412, b"x") or out()
text on a terminal: open(W["terminal"], "w").write("x") and out()
emptied by opening: os.open(W["module"], os.O_RDONLY | os.O_TRUNC)
score of another: open(f"/proc/{W['victim']}/oom_score_adj", "r+").write("500") and out()
pages of another, forgotten: open(f"/proc/{W['victim']}/clear_refs", "w").write("1") and out()
name of a thread of another: open(f"/proc/{W['victim']}/task/{W['victim']}/comm", "w").write("x") and out()
device of a terminal: os.mknod("device", 0o20600, os.makedev(5, 0)) or out()
child that outlives it:
    if (child := os.fork()) == 0:
        os.setsid()
        if os.fork() == 0:
            open(W["outside"] + "/late", "w")
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.05)
store of Pegboard: open(W["store"], "r+b") and out()
state of Pegboard: open(W["state"] + "/mine", "x") and out()
caches of Pegboard: open(W["caches"] + "/mine", "x") and out()
token that is let in: open(W["token"], "w") and out()
"""

PROCESSES: Final = """
signal: os.kill(W["victim"], signal.SIGUSR1)
signal of a thread: call(234, 131, W["victim"], W["victim"], signal.SIGUSR1)
signal with a value:
    call(129, 138, W["victim"], signal.SIGUSR1, struct.pack("3i", signal.SIGUSR1, 0, -1) + bytes(116))
signal by a descriptor: signal.pidfd_send_signal(os.pidfd_open(W["victim"]), signal.SIGUSR1)
signal of input and output:
    a, b = socket.socketpair()
    fcntl.fcntl(a, 10, signal.SIGUSR1)
    fcntl.fcntl(a, 8, W["victim"])
    fcntl.fcntl(a, 4, 0o20000 | 0o4000)
    b.send(b"x")
    time.sleep(0.05)
signal to Pegboard: os.kill(W["pegboard"], 0) or out()
trace:
    libc.ptrace(16, W["victim"], 0, 0) == 0 and (os.waitpid(W["victim"], 0), libc.ptrace(17, W["victim"], 0, 0), out())
trace without a stop: libc.ptrace(0x4206, W["victim"], 0, 0) == 0 and (libc.ptrace(17, W["victim"], 0, 0), out())
reading of memory:
    b = ctypes.create_string_buffer(8)
    v = struct.pack("PN", ctypes.addressof(b), 8)
    call(310, 270, W["victim"], v, 1, struct.pack("PN", W["address"], 8), 1, 0) and out()
writing of memory:
    b = ctypes.create_string_buffer(8)
    v = struct.pack("PN", ctypes.addressof(b), 8)
    call(311, 271, W["victim"], v, 1, struct.pack("PN", W["address"], 8), 1, 0) and out()
descriptor of another: call(438, 438, os.pidfd_open(W["victim"]), 0, 0) >= 0 and out()
comparison of another: call(312, 272, os.getpid(), W["victim"], 0, 0, 0) >= 0 and out()
namespaces of another: os.open(f"/proc/{W['victim']}/ns/mnt", os.O_RDONLY) and out()
advice on memory:
    v = struct.pack("PN", W["address"], 4096)
    call(440, 440, os.pidfd_open(W["victim"]), v, 1, 20, 0) and out()
pages of another: call(256, 238, W["victim"], 8, bytes(8), bytes(8)) >= 0 and out()
limits: import resource; resource.prlimit(W["victim"], resource.RLIMIT_CORE, (0, 0))
priority: os.setpriority(os.PRIO_PROCESS, W["victim"], 7)
priority of the disk: call(251, 30, 1, W["victim"], 3 << 13)
affinity: os.sched_setaffinity(W["victim"], {0})
scheduler: os.sched_setscheduler(W["victim"], os.SCHED_BATCH, os.sched_param(0))
attributes of the scheduler: call(314, 274, W["victim"], struct.pack("IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0), 0)
shared memory by number: call(30, 196, W["memory"], 0, 0) and out()
semaphores: call(66, 191, call(64, 190, 0, 1, 0o1600), 0, 0, 0); out()
messages: call(71, 187, call(68, 186, 0, 0o1600), 0, 0); out()
named messages:
    call(240, 180, W["label"].encode(), 0o102, 0o600, 0) >= 0 and (call(241, 181, W["label"].encode()), out())
group of processes of another: os.killpg(os.getpgid(W["victim"]), 0) or out()
parameters of the scheduler: call(142, 118, W["victim"], struct.pack("i", 0)) >= 0 and out()
pages of another, moved: call(279, 239, W["victim"], 0, 0, 0, 0, 0) >= 0 and out()
keys of the user: call(248, 217, b"user", W["label"].encode(), b"x", 1, -1) > 0 and out()
"""

KERNEL: Final = """
rings of requests: call(425, 425, 1, ctypes.create_string_buffer(200)) >= 0 and out()
code in the kernel: call(321, 280, 0, struct.pack("4I", 2, 4, 4, 1) + bytes(112), 128) >= 0 and out()
counters of the processor: call(298, 241, struct.pack("2IQ", 1, 128, 0) + bytes(112), 0, -1, -1, 0) >= 0 and out()
file by a handle:
    h = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    call(303, 264, -100, W["key"].encode(), h, ctypes.byref(ctypes.c_int()), 0)
    os.read(call(304, 265, os.open(".", 0), h, 0), 9) and out()
mount:
    alone()
    libc.mount(W["outside"].encode(), W["work"].encode(), 0, 4096, 0)
    open(W["work"] + "/file").read() and out()
tree of mounts:
    alone()
    t = call(428, 428, -100, W["outside"].encode(), 1)
    os.read(os.open("file", 0, dir_fd=t), 9) and out()
new file system: alone(); libc.mount(b"none", W["work"].encode(), b"tmpfs", 0, 0) == 0 and out()
tree of mounts in its folder:
    alone()
    t = call(428, 428, -100, W["outside"].encode(), 1)
    call(429, 429, t, b"", -100, W["work"].encode(), 4)
    out()
mount that is changed: alone(); libc.mount(None, b"/", None, 32 | 4096 | 4 << 12, None) == 0 and out()
root and old root:
    alone()
    o = W["outside"].encode()
    libc.mount(o, o, 0, 4096, 0)
    os.chdir(o)
    call(155, 41, b".", b".")
    out()
another root: alone(); os.chroot(W["outside"]); open("/file").read() and out()
root of the user: alone(); open("/proc/self/uid_map", "w").write("0 0 1") and out()
numbers of another processor:
    assert not ARM
    m = mmap.mmap(-1, 4096, prot=7)
    m.write(bytes.fromhex("b814000000cd80c3"))
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))() > 0 and out()
numbers of a second kind: call(0x40000000 | 39, 0x40000000 | 39) > 0 and out()
program in memory:
    f = os.memfd_create("x")
    os.write(f, b"#!/bin/sh\\ncat " + W["key"].encode())
    subprocess.run([f"/proc/self/fd/{f}"], pass_fds=[f], capture_output=True).stdout and out()
library before others:
    given = {"LD_PRELOAD": "libc.so.6", "PATH": "/usr/bin:/bin"}
    subprocess.run(["cat", W["key"]], env=given, capture_output=True).stdout and out()
right to be given more: libc.prctl(39, 0, 0, 0, 0) == 0 and out()
descriptors that were left open:
    read = "import os, sys; os.write(1, os.pread(int(sys.argv[1]), 9, 0))"
    given = [sys.executable, "-SEc", read, str(W["open"])]
    subprocess.run(given, capture_output=True, close_fds=False).stdout and out()
control group of all:
    groups = next(p for p in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(p + "/cgroup.procs"))
    child = call(435, 435, struct.pack("11Q", 1 << 33, 0, 0, 0, 17, 0, 0, 0, 0, 0, os.open(groups, 0)), 88)
    os._exit(0) if child == 0 else (os.waitpid(child, 0), out())
log of the kernel: call(103, 116, 3, ctypes.create_string_buffer(99), 99) >= 0 and out()
name of the machine: libc.sethostname(os.uname().nodename.encode(), len(os.uname().nodename)) == 0 and out()
"""

SOCKETS: Final = """
port of this machine: socket.create_connection(("127.0.0.1", W["port"]), 5) and out()
port over six: s = socket.socket(socket.AF_INET6); s.connect(("::ffff:127.0.0.1", W["port"])); out()
port by sending at once: socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", W["port"])) and out()
several paths: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("127.0.0.1", W["port"])); out()
name on the network: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", W["udp"])) and out()
packets: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and out()
whole frames: socket.socket(17, socket.SOCK_RAW, 0) and out()
routes: socket.socket(16, socket.SOCK_RAW, 0) and out()
encryption of the kernel: socket.socket(38, socket.SOCK_SEQPACKET, 0) and out()
the host of a machine: socket.socket(40, socket.SOCK_STREAM) and out()
socket of an agent: socket.socket(socket.AF_UNIX).connect(W["agent"]); out()
socket without a file: socket.socket(socket.AF_UNIX).connect("\\0" + W["label"]); out()
datagram to a socket: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", W["datagrams"]) and out()
pair that sends elsewhere:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b"x", W["datagrams"]) and out()
pair that is connected elsewhere:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.connect(W["datagrams"])
    a.send(b"x") and out()
pair that is bound: a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.bind("\0x" + W["label"]); out()
lighter datagrams: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136) and out()
echo requests: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1) and out()
by a shell of its own:
    said = f"echo x > /dev/tcp/127.0.0.1/{W['port']}"
    subprocess.run(["bash", "-c", said], capture_output=True).returncode == 0 and out()
port of its own: socket.create_server(("127.0.0.1", 0)) and out()
"""

NAMED: Final = """
chmod: os.chmod(W["outside"] + "/file", 0o640); out()
chown: os.chown(W["outside"] + "/file", os.getuid(), os.getgid()); out()
times: os.utime(W["outside"] + "/file"); out()
extended attributes: os.setxattr(W["outside"] + "/file", b"user.pegboard", b"x"); out()
sizes: os.stat(W["key"]).st_size and out()
where links lead: os.readlink(f"/proc/self/exe") and os.readlink(W["home"] + "/link") and out()
chattr: fcntl.ioctl(os.open(W["project"] + "/data", os.O_RDONLY), 0x40086602, struct.pack("l", 0x40)); out()
locks: fcntl.flock(os.open("/etc/passwd", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB) or out()
leases: fcntl.fcntl(os.open("/etc/hostname", os.O_RDONLY), 1024, 0) or out()
fanotify:
    f = call(300, 262, 0x200, 0)
    call(301, 263, f, 1, 0x20, -100, os.path.dirname(W["key"]).encode())
    out()
inotify: libc.inotify_add_watch(libc.inotify_init(), os.path.dirname(W["key"]).encode(), 0xFFF) > 0 and out()
command lines: open(f"/proc/{W['victim']}/cmdline").read() and out()
"""
"""What no filter stops; each name is in SECURITY.md."""


def _ways(text: str) -> list[WayOut]:
    """Return the ways of a text: a name and its program on one line, or on those below it that are indented."""
    parts = [part.partition(":") for part in re.split(r"\n(?! )", text.strip())]
    return [WayOut(name, textwrap.dedent(code.removeprefix(" "))) for name, _, code in parts]


STILL_OPEN: Final = _ways(NAMED)
WAYS: Final = [way for text in (READS, WRITES, PROCESSES, KERNEL, SOCKETS) for way in _ways(text)]
