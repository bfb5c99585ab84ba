"""Which servers of a client `init --confine` confines, and to what (A7, P10)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.config.documents.document import is_list, is_mapping
from pegboard.config.documents.expansion import Expansion
from pegboard.config.schema.fetched import fetched_by, is_fetched
from pegboard.core.model.specs import CONFINE_DEFAULT
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ToolUnavailableError
from pegboard.support import user_folders

OUTSIDE: Final = frozenset({"bun", "bunx"})
"""What does not start confined: it reads every folder above its own."""

if TYPE_CHECKING:
    from pegboard.config.client_files.server_files import ServerFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedServers:
    """The servers of a client as they are written, and which of them are confined.

    ``names`` are those that are fetched when they start; ``not_here`` says why none of them is confined.
    ``sandboxed`` are those that the client ran in a sandbox, ``outside`` those whose program does not start confined.
    """

    servers: Mapping[str, Any] = field(default=EMPTY)
    names: tuple[str, ...] = ()
    not_here: str = ""
    sandboxed: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """Return what a person is told; nothing where no server is fetched or was in a sandbox."""
        found: list[str] = []
        if self.sandboxed:
            kept = "Confined as in their sandbox; of your files they read only their own folder"
            found.append(f"{kept}: {', '.join(self.sandboxed)}.")
        listed = ", ".join(self.names)
        if listed and self.not_here:
            found.append(f"Fetched at start and not confined ({self.not_here}): {listed}.")
        elif listed:
            kept = "Confined to their folder and what their settings name (`confine`; pegboard check says more)"
            found.append(f"{kept}: {listed}.")
        if self.outside:
            why = "bun reads every folder above its own"
            found.append(f"Fetched at start and not confined ({why}): {', '.join(self.outside)}.")
        return found

    @property
    def done(self) -> list[str]:
        """Return the names of the servers that are confined."""
        return [*self.sandboxed, *(() if self.not_here else self.names)]


def confine_servers(
    servers: Mapping[str, Any], configuration: Path, *, sandboxed: tuple[str, ...] = ()
) -> ConfinedServers:
    """Return servers with `confine` for those that are fetched when they start and say nothing of it.

    One that is given all of the disk is left unchanged: no confinement grants that.

    Args:
        servers: in our own shape, as they are to be written.
        configuration: the file that they are written into.
        sandboxed: those that are confined as their client's sandbox confined them.
    """
    folder = configuration.absolute().parent
    found = {name: said for name, entry in servers.items() if (said := _confine(name, entry, folder)) is not None}
    reason = _why_not_confined() if found else ""
    written = {
        name: {**entry, "confine": found[name]} if name in found and not reason else entry
        for name, entry in servers.items()
    }
    outside = tuple(name for name, entry in servers.items() if _may_be_confined(entry) and fetched_by(entry) in OUTSIDE)
    return ConfinedServers(servers=written, names=tuple(found), not_here=reason, sandboxed=sandboxed, outside=outside)


def confinable(file: ServerFile) -> ServerFile:
    """Return a client's file that leaves with the client what this system cannot confine as its sandbox does."""
    return replace(file, unconfinable=_why_not_confined(network=()) if file.sandboxed_servers() else "")


def _why_not_confined(network: tuple[int, ...] | None = None) -> str:
    """Return why nothing is confined that the file does not say: what this system has not, or no one has tried."""
    from pegboard.sources.confinement import available

    if sys.platform == "darwin":
        return "on macOS it has not been tested yet"
    return available(network) or ""


def _may_be_confined(entry: Any) -> bool:
    """Return whether a server is fetched when it starts, and says nothing of how it is confined."""
    return is_mapping(entry) and "confine" not in entry and is_fetched(entry)


def _confine(name: str, entry: Any, folder: Path) -> Any:
    """Return what `confine` of a server is to say, or None where it is not to be there."""
    from pegboard.sources.confinement import named_paths, policy_for

    if not _may_be_confined(entry) or fetched_by(entry) in OUTSIDE:
        return None
    given = Expansion(env=os.environ).value(entry)
    args = [each for each in _list(given.get("args")) if isinstance(each, str)]
    env = {key: value for key, value in _as_mapping(given.get("env")).items() if isinstance(value, str)}
    cwd = entry.get("cwd") if isinstance(entry.get("cwd"), str) else None
    of_user = cwd is None and user_folders.is_of_user(folder)
    own = user_folders.data_of_plugin(name, folder) if of_user else folder / Path(given.get("cwd") or ".").expanduser()
    granted = CONFINE_DEFAULT if own.is_dir() else replace(CONFINE_DEFAULT, write=())  # its folder is made later
    try:
        policy = policy_for(
            replace(granted, folder=str(own)),
            name=name, command=str(given["command"]), args=args, env={**os.environ, **env}, cwd=str(own),
        )  # fmt: skip
    except ToolUnavailableError:  # its folder is not there: `check` says so
        return True
    named = {path for _, path in named_paths(args, env, str(own))} | {*_folders_of_new_files(args, own)}
    paths = sorted(path for path in named if not policy.reads(path))
    if "/" in paths:
        return None
    outermost = [path for path in paths if not path.startswith(tuple(f"{other}/" for other in paths))]
    return {"write": [str(own) if of_user else cwd or ".", *outermost]} if outermost else True


def _folders_of_new_files(args: list[str], own: Path) -> Iterator[str]:
    """Yield the folders of files that arguments name and that are not there yet: a database has others beside it."""
    for text in args:
        path = Path(os.path.realpath(own / Path(text.rpartition("=")[2]).expanduser()))
        in_home = path.parent != Path.home() and path.is_relative_to(Path.home())
        if os.sep in text and path.suffix and not path.exists() and path.parent.is_dir() and in_home:
            yield str(path.parent)


def _list(value: Any) -> list[Any]:
    return list(value) if is_list(value) else []


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if is_mapping(value) else EMPTY
