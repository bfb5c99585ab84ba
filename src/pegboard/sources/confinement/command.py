"""A command as it is started confined, and the folders that are made for it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import Final, Literal

from pegboard.core.access.named_paths import OwnPaths
from pegboard.core.model.specs import CONFINE_DEFAULT, OWN_FOLDER, Confinement
from pegboard.sources.confinement.disk import (
    SYSTEM,
    RealDisk,
    is_or_holds,
    module_folders,
    program,
    script_files,
    withheld_paths,
)
from pegboard.sources.confinement.plan import ConfinedPlugin, plan
from pegboard.sources.confinement.policy import ConfinementPolicy
from pegboard.support import user_folders

LAUNCHER: Final = str(Path(__file__).with_name("launcher.py"))
_CACHE: Final = "XDG_CACHE_HOME"
_OF_GIT: Final = ("~/.gitconfig", "~/.config/git/config")
_TEMPORARY: Final = ("TMPDIR", "TMP", "TEMP")
_TO_SOCKETS: Final = frozenset(
    (
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"),
        *("XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "NOTIFY_SOCKET", "LISTEN_FDS", "TMUX"),
    )
)
_PLAIN: Final = re.compile(r"[\w./~][\w./~@+-]*(?: [\w./~@+-]+)*")
_PATHS: Final = ("/", "./", "../", "~/")
_DATABASES: Final = frozenset({".db", ".db3", ".duckdb", ".sqlite", ".sqlite3"})
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@cache
def available(network: tuple[int, ...] | None = None) -> str | None:
    """Return why this system cannot confine a process, or None where it can.

    Args:
        network: the ports that are asked for, where they are.
    """
    if sys.platform == "darwin":
        return None if shutil.which("sandbox-exec") else "there is no `sandbox-exec`"
    if sys.platform != "linux":
        return "only Linux and macOS can"
    from pegboard.sources.confinement.launcher import missing_support

    return missing_support(network) or None


def policy_for(
    confinement: Confinement,
    *,
    name: str,
    command: str,
    args: Sequence[str] = (),
    env: Mapping[str, str],
    cwd: str | None = None,
    own: OwnPaths | None = None,
    reads: Sequence[str] = (),
    temporary: str = "",
) -> ConfinementPolicy:
    """Return what the process of a plugin may reach, as things lie now; nothing is made or changed.

    Args:
        confinement: what the configuration says.
        name: the plugin's.
        command: the program, as it is started.
        args: its arguments.
        env: the environment that it gets, to find it in.
        cwd: where it is started.
        own: the files of Pegboard's own.
        reads: what else its program consists of.
        temporary: a folder made for this start, see :func:`made_temporary`.

    Raises:
        ToolUnavailableError: what is stated cannot be granted.
    """
    _, roots = program(command, env, cwd)
    folder = os.path.abspath(confinement.folder or cwd or os.getcwd())  # noqa: PTH100, PTH109
    code = (*reads, *script_files((command, *args), cwd, folder))
    roots = [each for each in roots if not is_or_holds(each, os.path.realpath(folder))]
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    known = own or OwnPaths()
    if OWN_FOLDER in confinement.write:
        named = _folders_named(args, cwd or folder, known)
        confinement = replace(confinement, write=(*confinement.write, *named))
    subject = ConfinedPlugin(
        name=name,
        folder=folder,
        reads=(*roots, *code),
        lists=tuple(module_folders(code, home)),
        home=home,
        withheld=withheld_paths(),
        caches=str(caches_of(name, folder)),
        temporary=temporary,
    )
    return plan(confinement, subject, RealDisk(), known, SYSTEM)


def _folders_named(args: Sequence[str], base: str, own: OwnPaths) -> Iterator[str]:
    """Yield the folders that arguments name, but for the user's, the system's, Pegboard's own, and those of code."""
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    for text in args:
        for named in dict.fromkeys((text, text.partition("=")[2])):
            path = os.path.join(base, os.path.expanduser(named))  # noqa: PTH111, PTH118
            if os.sep not in named or "\0" in named or not os.path.isdir(path):  # noqa: PTH112
                continue
            found = os.path.realpath(path)
            of_system = any(f"{found}/".startswith(f"{each}/") for each in SYSTEM)
            above_home = f"{home}/".startswith(f"{found.rstrip('/')}/")
            if not (of_system or above_home or own.kind(found) or any(own.started_in(found))):
                yield path


def caches_of(name: str, folder: str) -> Path:
    """Return the folder for the caches of a plugin: apart for each name and each folder of its own."""
    digest = hashlib.sha256(f"{name}\0{os.path.abspath(folder)}".encode()).hexdigest()[:12]  # noqa: PTH100
    return user_folders.plugin_caches().absolute() / f"{_OTHERS.sub('-', name)[:40]}-{digest}"


def made_temporary(name: str) -> str:
    """Make the temporary folder of one start; whoever starts the process removes it with :func:`removed`."""
    made = tempfile.mkdtemp(prefix=f"pegboard-{_OTHERS.sub('-', name)[:20]}-")
    return os.path.realpath(made)


def remove_folder(temporary: str) -> None:
    """Remove the temporary folder of one start, once its process has ended."""
    if temporary:
        shutil.rmtree(temporary, ignore_errors=True)


def confined_command(
    command: str, args: Sequence[str], env: Mapping[str, str], policy: ConfinementPolicy, *, cwd: str | None = None
) -> tuple[str, tuple[str, ...], dict[str, str]]:
    """Return what is started in place of a command, and with which environment, so that it is confined.

    The folder for its caches is made. A command that cannot be found is returned as it is: starting it says so.

    Raises:
        ToolUnavailableError: the policy is too long for this system.
    """
    found, _ = program(command, env, cwd)
    own = environment(env, policy)
    if found is None:
        return command, tuple(args), own
    Path(policy.caches).mkdir(parents=True, exist_ok=True, mode=0o700)
    settled = replace(policy, write=tuple(_resolve_path(each) for each in policy.write))
    absolute = os.path.abspath(found)  # noqa: PTH100
    if sys.platform == "darwin":
        from pegboard.sources.confinement.seatbelt import profile

        return "/usr/bin/sandbox-exec", ("-p", profile(settled), absolute, *args), own
    return sys.executable, ("-I", "-S", LAUNCHER, settled.text(), absolute, *args), own


def _resolve_path(path: str) -> str:
    return os.path.realpath(path)


def environment(env: Mapping[str, str], policy: ConfinementPolicy) -> dict[str, str]:
    """Return an environment with caches and temporary folder of the process's own, and no way to sockets."""
    kept = {name: value for name, value in env.items() if not points_to_socket(name, value)}
    if not (_CACHE in kept and policy.writes(os.path.realpath(kept[_CACHE]))):
        kept[_CACHE] = policy.caches
    if policy.temporary:
        kept |= dict.fromkeys(_TEMPORARY, policy.temporary)
    if policy.network and 53 in policy.network:
        kept.setdefault("RES_OPTIONS", "use-vc")  # names are asked for by TCP: there is no UDP
    settings = [os.path.expanduser(each) for each in _OF_GIT]  # noqa: PTH111
    if any(os.path.exists(each) and not policy.reads(_resolve_path(each)) for each in settings):  # noqa: PTH110
        kept.setdefault("GIT_CONFIG_GLOBAL", os.devnull)  # git ends where its settings are there and may not be read
    return kept


def named_paths(args: Iterable[str], env: Mapping[str, str], folder: str) -> Iterator[tuple[str, str]]:
    """Yield what is there of what the arguments and the environment of a server name, each with what names it."""
    for what, text in (*(("argument", each) for each in args), *((f"`{name}`", each) for name, each in env.items())):
        for named in dict.fromkeys((text, text.partition("=")[2])):
            if os.sep not in named or "\0" in named:
                continue
            path = os.path.realpath(os.path.join(folder, os.path.expanduser(named)))  # noqa: PTH111, PTH118
            if os.path.exists(path):  # noqa: PTH110
                yield what, path


def given_files(args: Iterable[str], env: Mapping[str, str], folder: str) -> Iterator[str]:
    """Yield the paths that are no folders, there or not, which the arguments and the environment of a server name.

    They are told where a database cannot be opened: a text that only has a slash in it may be a secret or a package.
    """
    for text in (*args, *env.values()):
        for named in dict.fromkeys((text, text.partition("=")[2])):
            path = os.path.join(folder, os.path.expanduser(named))  # noqa: PTH111, PTH118
            if not named.startswith(_PATHS) and PurePath(named).suffix not in _DATABASES:
                continue
            if os.sep in named and not set("\0:") & set(named) and not os.path.isdir(path):  # noqa: PTH112
                yield path


def points_to_socket(name: str, value: str) -> bool:
    """Return whether a variable of an environment leads to a socket of this machine."""
    if name in _TO_SOCKETS or value.startswith("unix:"):
        return True
    if not value.startswith("/"):
        return False
    try:
        return stat.S_ISSOCK(os.stat(value).st_mode)  # noqa: PTH116
    except (OSError, ValueError):
        return False


def line_for(confinement: Confinement, key: Literal["write", "read", "network"], *values: str) -> str:
    """Return the line that grants paths, or ports, besides what is granted."""
    if key == "network":
        more = replace(confinement, network=(*(confinement.network or ()), *map(int, values)))
    elif key == "read":
        more = replace(confinement, read=(*confinement.read, *values))
    else:
        written = tuple(confinement.folder if each == OWN_FOLDER else each for each in confinement.write)
        more = replace(confinement, write=(*written, *values))
    said = [f"write: [{', '.join(map(_scalar, more.write))}]"] if more.write != CONFINE_DEFAULT.write else []
    said += [f"read: [{', '.join(map(_scalar, more.read))}]"] if more.read else []
    if more.network is not None:
        said.append(f"network: {list(more.network) or 'none'}")
    said += [f"{flag}: true" for flag in ("if_possible", "scripts") if getattr(more, flag)]
    return f"`confine: {{{', '.join(said)}}}`" if said else "`confine: true`"


def _scalar(text: str) -> str:
    """Return a text as YAML takes it between brackets."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
