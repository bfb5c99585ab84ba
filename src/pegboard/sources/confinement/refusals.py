"""What a confined process was refused, read from what it says of that: a path, a port, a socket (A7)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final, Literal, Protocol

from pegboard.core.access.named_paths import OwnPaths
from pegboard.core.model.naming import visible
from pegboard.core.model.specs import Confinement
from pegboard.core.model.tools import CallResult, Frozen, JsonObject
from pegboard.ports import RefusedAccess
from pegboard.sources.confinement.command import line_for
from pegboard.sources.confinement.policy import ConfinementPolicy

MOST_READ: Final = 1000
"""Lines that speak of a refusal which are read of one process, or of one error: what one prints has no end."""
_LONGEST_TEXT: Final = 64 * 1024
_LONGEST_LINE: Final = 2000
_LONGEST_PATH: Final = 1000
_MOST_OF_A_LINE: Final = 4
_BETWEEN: Final = 40
"""Characters between a path and the words that it was refused."""

_SAYS: Final = re.compile(
    r"permission ?denied|operation not permitted|\bEACCES\b|\bEPERM\b|read-?only (?:file system|database)"
    r"|unable to open database file|\[Errno 1[3]?\]",
    re.IGNORECASE,
)
_DATABASE: Final = re.compile(r"unable to open database|readonly database", re.IGNORECASE)
"""How sqlite says that it could not write: often without a path, and it needs the folder for a second file."""
_MOST_ARGUMENTS: Final = 20
_NO_NAMES: Final = re.compile(
    r"EAI_AGAIN|EAI_FAIL|failure in name resolution|could not resolve host|dns error|lookup [^\s/]{1,253}: ",
    re.IGNORECASE,
)
_WRITES: Final = re.compile(
    r"\b(?:creat\w{0,5}|mkdir\w{0,3}|writ\w{1,5}|unlink|remov\w{1,3}|renam\w{1,3}|rmdir|delet\w{1,3}|touch|sav\w{1,3}"
    r"|append\w{0,3}|truncate|copyfile|symlink|chmod|utimes?|mkstemp|mkdtemp)\b|read-?only",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"(['\"`])([^'\"`]{1,1000})\1")
_BARE: Final = re.compile(r"(?<![\w.~/'\"`:-])/[^\s:'\"`,;()<>\[\]{}|]{1,1000}")
_OPENS: Final = re.compile(r"(?:denied|permitted|database file|\)): ?$|\b[a-z]{2,12} $")
_ON_THE_NETWORK: Final = re.compile(
    r"\b(?:connect\w{0,5}|listen\w{0,3}|bind|dial|tcp|socket|address|https?)\b", re.IGNORECASE
)
_PORTS: Final = (
    re.compile(r"\bhttps?://[^\s/:'\"@]{1,253}:(\d{1,5})(?!\d)", re.IGNORECASE),
    re.compile(r"\bdial tcp\d? [^\s:]{1,253}:(\d{1,5})(?!\d)"),
    re.compile(r"(?:\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|\blocalhost|\]|::):(\d{1,5})(?!\d)"),
    re.compile(r"\bport ?=? ?(\d{1,5})(?!\d)", re.IGNORECASE),
    re.compile(r"\('[^'\s]{1,253}', (\d{1,5})(?!\d)"),
)
_SCHEMES: Final = (("https://", 443), ("http://", 80))


class PathProbe(Protocol):
    """What is asked of the machine about a path that a process names."""

    def resolve_path(self, path: str) -> str:
        """Return where a path leads, also one of which not all is there."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether something is there."""
        ...

    def may(self, path: str, key: Literal["write", "read"]) -> bool:
        """Return whether this user may do that with what is there: otherwise confinement is not what refused it."""
        ...


class ThisMachine:
    """The file system as this process sees it, which is not confined."""

    def resolve_path(self, path: str) -> str:
        """Return where a path leads, also one of which not all is there."""
        return os.path.realpath(path)

    def exists(self, path: str) -> bool:
        """Return whether something is there."""
        return os.path.lexists(path)

    def may(self, path: str, key: Literal["write", "read"]) -> bool:
        """Return whether this user may do that with what is there."""
        return os.access(path, os.W_OK if key == "write" else os.R_OK)


def refusal_lines(label: str, refused: Iterable[RefusedAccess]) -> list[str]:
    """Return a line for each thing that a process was refused, with the line that would allow it."""
    return [f"{label} is confined, and {one.text}." for one in dict.fromkeys(refused)]


def with_refusals(result: CallResult, label: str, refused: Iterable[RefusedAccess]) -> CallResult:
    """Return the result of a call that failed with what was refused to its process as a text more."""
    lines = refusal_lines(label, refused)
    if not lines:
        return result
    return replace(result, content=(*result.content, Frozen({"type": "text", "text": "\n".join(lines)})))


@dataclass(slots=True, kw_only=True)
class RefusalReader:
    """Reads what one process says: only what its policy does not grant, and its user may do, counts as refused.

    Attributes:
        policy: what the process may reach.
        confinement: what the configuration says.
        own: the files of Pegboard's own.
        folder: where it was started.
        given: the files that its arguments and its environment name, there or not.
        machine: what is asked about paths.
    """

    policy: ConfinementPolicy
    confinement: Confinement
    own: OwnPaths
    folder: str
    given: tuple[str, ...] = ()
    machine: PathProbe = field(default_factory=ThisMachine)
    _printed: int = 0

    def read(self, text: str, *, printed: bool = False) -> Iterator[RefusedAccess]:
        """Yield what a text says was refused.

        The text is a server's: what it says is no more than its word, and is read as far as that costs little.

        Args:
            text: a line on standard error, or the text of an error; without secrets.
            printed: it is the former, of which only the first that speak of a refusal are read.
        """
        read = self._printed if printed else 0
        for line in (whole[:_LONGEST_LINE] for whole in text[:_LONGEST_TEXT].splitlines()):
            if read >= MOST_READ:
                return
            says = _SAYS.search(line)
            if says is None and (self.policy.network is None or _NO_NAMES.search(line) is None):
                continue
            read += 1
            if printed:
                self._printed = read
            yield from self._refusals_in_line(line, says)

    def of_arguments(self, arguments: JsonObject) -> Iterator[RefusedAccess]:
        """Yield the paths in the arguments of a failed call that the process cannot read.

        A model chooses them, so the answer is that of the policy alone: it is the same whether or not something is
        there, and follows no link.
        """
        values = [value if isinstance(value, list | tuple) else (value,) for value in arguments.values()]
        texts = [text for inner in values for text in inner if isinstance(text, str) and text.startswith(("/", "~/"))]
        for text in texts[:_MOST_ARGUMENTS]:
            path = os.path.normpath(os.path.expanduser(text))  # noqa: PTH111
            if len(path) > _LONGEST_PATH or visible(path, limit=_LONGEST_PATH + 1) != path or self.policy.reads(path):
                continue
            if path != "/" and self.own.kind(path) is None:
                line = line_for(self.confinement, "read", path)
                yield RefusedAccess(kind="read", what=path, line=line, by="call")

    def _refusals_in_line(self, line: str, says: re.Match[str] | None) -> Iterator[RefusedAccess]:
        if says is None:
            yield from self._port(53)
            return
        ports = list(_ports(line)) if self.policy.network is not None else []
        for port in ports:
            yield from self._port(port)
        if not ports:
            paths = dict(_paths(line, says))
            if not paths and _DATABASE.search(line) is not None:
                paths = dict.fromkeys(self.given, True)
            for path, named in paths.items():
                yield from self._path(path, line, named=named)

    def _port(self, port: int) -> Iterator[RefusedAccess]:
        """Yield a port that is not among those granted."""
        if self.policy.network is not None and 0 < port < 65536 and port not in self.policy.network:
            yield RefusedAccess(kind="port", what=str(port), line=line_for(self.confinement, "network", str(port)))

    def _path(self, path: str, line: str, *, named: bool) -> Iterator[RefusedAccess]:
        """Yield a path that is not granted; ``named``: the error is about that path and no other."""
        if path == "/" or len(path) > _LONGEST_PATH or visible(path, limit=_LONGEST_PATH + 1) != path:
            return
        found = self.machine.resolve_path(os.path.join(self.folder, os.path.expanduser(path)))  # noqa: PTH111, PTH118
        there = self.machine.exists(found)
        if _DATABASE.search(line) is not None:
            place = self._existing_folder_above(found)
            if not self.policy.writes(place) and self.machine.may(place, "write"):
                yield self._refused_access("write", found, place)
            return
        if found.endswith(".sock") and _ON_THE_NETWORK.search(line):
            yield RefusedAccess(kind="socket", what=found, why="A confined server or plugin cannot have Unix sockets.")
            return
        writes = _WRITES.search(line) is not None or not there
        if not self.policy.reads(found) and not writes:
            key: Literal["write", "read"] = "read"
        elif not self.policy.writes(found) and (writes or (named and self.policy.reads(found))):
            key = "write"
        else:
            return
        place = found if there else self._existing_folder_above(found)
        if self.machine.may(place, key):
            yield self._refused_access(key, found, place)

    def _existing_folder_above(self, path: str) -> str:
        """Return the nearest folder above a path that is there."""
        return next((each for each in map(str, PurePath(path).parents) if self.machine.exists(each)), "/")

    def _refused_access(self, key: Literal["write", "read"], path: str, place: str) -> RefusedAccess:
        kind = self.own.kind(path)
        if kind is not None and (key == "write" or kind != "code"):
            return RefusedAccess(
                kind=key, what=path, why="It belongs to Pegboard: a confined server or plugin cannot have it."
            )
        home = f"{os.path.realpath(os.path.expanduser('~'))}/"  # noqa: PTH111
        shared = place in self.policy.split_folders or home.startswith(f"{place.rstrip('/')}/")
        if path == place and shared:
            return RefusedAccess(
                kind=key, what=path, why=f"List the paths that it needs there under `{key}`, not the whole folder."
            )
        if shared:
            made = f"{place.rstrip('/')}/{path.removeprefix(place).lstrip('/').partition('/')[0]}"
            return RefusedAccess(kind=key, what=path, why=f"Make {made!r} first, and name that under `{key}`.")
        return RefusedAccess(kind=key, what=path, line=line_for(self.confinement, key, place))


def _ports(line: str) -> Iterator[int]:
    """Yield the port that a line says was refused."""
    if _ON_THE_NETWORK.search(line) is None:
        return
    for form in _PORTS:
        if (found := form.search(line)) is not None:
            yield int(found[1])
            return
    lowered = line.lower()
    for scheme, port in _SCHEMES:
        if scheme in lowered:
            yield port
            return


def _paths(line: str, says: re.Match[str]) -> Iterator[tuple[str, bool]]:
    """Yield the paths that a line says were refused: those quoted after the words, else the one beside them."""
    after = [
        (found[2], True)
        for found in _QUOTED.finditer(line, says.end())
        if found[2].startswith(("/", "~/")) or _OPENS.search(line[: found.start()][-20:])
    ]
    if after:
        yield from after[:_MOST_OF_A_LINE]
        return
    before = [
        (found.end(), found[2]) for found in _QUOTED.finditer(line, 0, says.start()) if found[2].startswith(("/", "~/"))
    ]
    before += [(found.end(), found[0]) for found in _BARE.finditer(line, 0, says.start())]
    end, path = max(before, default=(0, ""))
    if path and says.start() - end <= _BETWEEN:
        yield path, False
    elif (bare := _BARE.search(line, says.end())) is not None:
        yield bare[0], True
