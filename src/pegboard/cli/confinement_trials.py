"""Real starts of a confined server or plugin with more than the file gives it, until it comes up; then with less."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pegboard.assembly import plugin_processes
from pegboard.cli.plugin_problems import own_paths
from pegboard.cli.rendering import Printer
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import PegboardError
from pegboard.sources.confinement import line_of, wider

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.access.named_paths import OwnPaths
    from pegboard.core.model.specs import Confinement, PluginSpec
    from pegboard.ports import RefusedAccess

MOST_TRIALS: Final = 60
_MOST_ENTRIES: Final = 500
_DEEPEST: Final = 4
_SAID: Final = 8
"""How many times what it says was refused is granted before it is looked for without its word."""
_KEYS: Final = frozenset(
    (
        *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".password-store"),
        *(".pki", ".mozilla", ".thunderbird", ".pgpass", ".my.cnf", ".vault-token"),
    )
)
"""What no trial grants: keys of other services, by their names in a home folder."""
_NOT_FILES: Final = frozenset({"/dev", "/proc", "/sys", "/boot", "/lost+found"})


class TrialGrant(NamedTuple):
    """One thing that is granted besides: a path to write or to read, or the network (a port, or as it is)."""

    key: Literal["write", "read", "network"]
    value: str


ALL_PORTS: Final = TrialGrant("network", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One start: what was granted besides, in words, and whether it came up."""

    granted: str
    came_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What the trials came to: the line under which it came up, if under any; ``cut``: there were no more trials."""

    line: str
    trials: tuple[Trial, ...]
    cut: bool


class _NoMoreError(Exception):
    """As many trials were made as there are."""


async def tried(board: Pegboard, name: str, printer: Printer) -> TrialResult:
    """Return the smallest widening of a plugin's confinement that was found under which it comes up."""
    trials = Trials(board, board.services.loader.specs[name], printer)
    try:
        await trials.search()
        cut = False
    except _NoMoreError:
        cut = True
    line = "" if trials.best is None else line_of(trials.widened(trials.best))
    return TrialResult(line=line, trials=tuple(trials.made), cut=cut)


class Trials:
    """The trials of one plugin: ``made`` are those so far, ``best`` the least under which it came up."""

    def __init__(self, board: Pegboard, spec: PluginSpec, printer: Printer) -> None:
        assert spec.confine is not None
        self.made: list[Trial] = []
        self.best: Sequence[TrialGrant] | None = None
        self._spec = spec
        self._began = time.time()
        self._confinement: Confinement = spec.confine
        self._printer = printer
        self._masker = board.services.masker
        self._own: OwnPaths = own_paths(board.configuration)
        self._known: dict[frozenset[TrialGrant], bool] = {}
        self._refused: tuple[RefusedAccess, ...] = ()

    async def search(self) -> None:
        """Look for what it lacks: first by its own word, then by everything of one kind, then by everything."""
        said = await self._by_its_word()
        if self.best is None:
            groups = [group for group in self._groups() if group]
            every = [grant for group in groups for grant in group]
            for group in (*groups, every):
                if await self._comes_up([*said, *group]):
                    break
        if self.best is not None:
            await self._narrow(list(self.best))

    async def _by_its_word(self) -> list[TrialGrant]:
        """Grant what it says it was refused, as long as it says more; return that."""
        said: list[TrialGrant] = []
        for _ in range(_SAID):
            if await self._comes_up(said):
                break
            more = [grant for one in self._refused if (grant := self._grant(one)) is not None and grant not in said]
            if not more:
                break
            said += more
        return said

    def _grant(self, one: RefusedAccess) -> TrialGrant | None:
        if not one.line or one.kind == "socket":
            return None
        if one.kind == "port":
            return TrialGrant("network", one.what)
        path = one.what
        while not os.path.lexists(path):
            path = os.path.dirname(path)  # noqa: PTH120
        return None if _is_key(path) else TrialGrant(one.kind, path)

    def _groups(self) -> Iterator[list[TrialGrant]]:
        """Yield what is granted at once: the network as it is, its own folder, home and system to read, to write."""
        if self._confinement.network is not None:
            yield [ALL_PORTS]
        folder = self._confinement.folder
        home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
        if folder and "." not in self._confinement.write and folder not in (home, "/"):
            yield [TrialGrant("write", folder)]
        places = [*self._entries(home)], [*self._entries("/")]
        for key in ("read", "write"):
            for paths in places:
                yield [TrialGrant(key, path) for path in paths if f"{home}/".startswith(f"{path}/") is False]

    def _entries(self, folder: str) -> Iterator[str]:
        """Yield what lies in a folder and may be granted for a trial."""
        try:
            names = sorted(os.listdir(folder))[:_MOST_ENTRIES]  # noqa: PTH208
        except OSError:
            return
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118
            if os.path.islink(path) or path in _NOT_FILES or _is_key(path) or self._own.kind(path) is not None:  # noqa: PTH114
                continue
            yield path

    async def _narrow(self, grants: list[TrialGrant]) -> None:
        """Drop what is not needed, then grant of each folder only what is."""
        grants = await self._least(grants, [], changed=False)
        for _ in range(_DEEPEST):
            deeper: list[TrialGrant] = []
            for at, grant in enumerate(grants):
                rest = [*deeper, *grants[at + 1 :]]
                inside = [] if grant.key == "network" else [*self._inside(grant)]
                if inside and await self._comes_up([*rest, *inside]):
                    deeper += await self._least(inside, rest, changed=False)
                else:
                    deeper.append(grant)
            if deeper == grants:
                return
            grants = deeper

    def _inside(self, grant: TrialGrant) -> Iterator[TrialGrant]:
        """Yield what lies in a folder that is granted, but for files that a trial made or changed.

        Next time it may be another one that it makes there.
        """
        for path in self._entries(grant.value):
            if grant.key == "read" or os.path.isdir(path) or os.lstat(path).st_ctime < self._began:  # noqa: PTH112
                yield TrialGrant(grant.key, path)

    async def _least(self, part: list[TrialGrant], kept: list[TrialGrant], *, changed: bool) -> list[TrialGrant]:
        """Return a part of ``part`` without any of which it does not come up; with all of it and ``kept`` it does."""
        if changed and await self._comes_up(kept):
            return []
        if len(part) <= 1:
            return part
        half = len(part) // 2
        second = await self._least(part[half:], [*kept, *part[:half]], changed=True)
        first = await self._least(part[:half], [*kept, *second], changed=bool(second))
        return [*first, *second]

    def widened(self, grants: Sequence[TrialGrant]) -> Confinement:
        """Return the confinement with these grants besides."""
        found = self._confinement
        for grant in grants:
            if grant == ALL_PORTS:
                continue
            if grant not in self._given():
                found = wider(found, grant.key, grant.value)
        return replace(found, network=None) if ALL_PORTS in grants else found

    def _given(self) -> set[TrialGrant]:
        paths = {TrialGrant("write", each) for each in self._confinement.write}
        return paths | {TrialGrant("read", each) for each in self._confinement.read}

    async def _comes_up(self, grants: Sequence[TrialGrant]) -> bool:
        """Start it with these grants besides, and return whether it comes up and lists its tools."""
        key = frozenset(grants)
        if key in self._known:
            return self._known[key]
        if len(self.made) >= MOST_TRIALS:
            raise _NoMoreError
        came_up = await self._start(self.widened(grants))
        self._known[key] = came_up
        self.made.append(Trial(granted=_words(grants), came_up=came_up))
        self._printer.note(f"trial {len(self.made)}: {self.made[-1].granted}: {'it comes up' if came_up else 'no'}")
        if came_up and (self.best is None or len(grants) <= len(self.best) or set(grants) != set(self.best)):
            self.best = tuple(grants)
        return came_up

    async def _start(self, confinement: Confinement) -> bool:
        from pegboard.sources.mcp import McpSource

        spec = replace(self._spec, confine=confinement)
        source = (
            McpSource(mask=self._masker.text, learn=self._masker.learn, asks=False)
            if isinstance(spec, ServerSpec)
            else plugin_processes(self._masker, env=os.environ)
        )
        source.keep_from(lambda: self._own)
        try:
            await source.describe(spec, {})
        except PegboardError:
            return False
        finally:
            found = [one for connection in source.connections(spec) for one in connection.refused]
            self._refused = tuple(dict.fromkeys(found))
            await source.aclose()
        return True


def _is_key(path: str) -> bool:
    return any(part in _KEYS for part in path.split("/"))


def _words(grants: Sequence[TrialGrant]) -> str:
    """Return in a few words what is granted besides."""
    if not grants:
        return "as it is configured"
    said = ["the network as it is" if one == ALL_PORTS else f"{one.key} {one.value}" for one in grants[:3]]
    more = f" and {len(grants) - 3} more" if len(grants) > 3 else ""
    return f"with {', '.join(said)}{more}"
