"""Which configuration is meant, what it is read from, and what installed packages add to it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.specs import RegisteredSpec, ServerSpec
from pegboard.core.model.tools import EMPTY, Frozen
from pegboard.errors import UsageError
from pegboard.problems import Problem

if TYPE_CHECKING:
    from pegboard.config.accepted_files import AcceptedFiles
    from pegboard.config.additions import GivenLoadout, GivenParts, GivenToolkit
    from pegboard.config.schema.configuration import Configuration
    from pegboard.core.access.grants import GrantChange
    from pegboard.core.model.catalog import Catalog
    from pegboard.core.model.masking import Masker
    from pegboard.operators.configuration import ConfigurationState, ShownProblem

log = logging.getLogger("pegboard")

QUICKSTART = Path(__file__).parent / "quickstart" / "quickstart.yaml"
IN_CODE = "pegboard.yaml"
"""Where a mapping counts as lying: paths and modules in it are looked for beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSource:
    """What a configuration is read from: a file or a mapping, and what code gives beside it (T11)."""

    path: Path
    value: Mapping[str, Any] | None = None
    toolkits: tuple[GivenToolkit, ...] = ()
    loadouts: tuple[GivenLoadout, ...] = ()

    @property
    def name(self) -> str:
        """Return how messages name it."""
        if self.value is None:
            from pegboard.config.documents.document import display_path

            return display_path(self.path)
        from pegboard.config.accepted_files import MAPPING

        return MAPPING

    @property
    def key(self) -> str:
        """Return its absolute path without dots, under which the store keeps what it grants."""
        from pegboard.config.acceptance import key_of

        return key_of(self.path)

    @property
    def is_file(self) -> bool:
        """Return whether a file is all of it."""
        return self.value is None and not self.toolkits and not self.loadouts

    def at(self, path: Path) -> ConfigurationSource:
        """Return it for another file."""
        return replace(self, path=path)

    def with_toolkit(self, toolkit: GivenToolkit) -> ConfigurationSource:
        """Return it with a toolkit more, in place of one of the same name."""
        kept = (one for one in self.toolkits if one.get("name") != toolkit.get("name"))
        return replace(self, toolkits=(*kept, toolkit))

    def with_loadout(self, loadout: Loadout) -> ConfigurationSource:
        """Return it with a loadout more, in place of one of the same name."""
        kept = (one for one in self.loadouts if _name(one).casefold() != loadout.name.casefold())
        return replace(self, loadouts=(*kept, loadout))

    def written(self, file: str, env: Mapping[str, str]) -> str | None:
        """Return the text of a file that it is read from, by its name in messages; None where that is no such file."""
        from pegboard.config.accepted_files import accepted_path
        from pegboard.config.documents.document import UnreadableError, display_path, read_text
        from pegboard.config.reading import ConfigurationReading

        folders = set(ConfigurationReading(path=self.path, env=env).folders())
        path = self.path if file == display_path(self.path) else Path(file).absolute()
        of_loadouts = path.parent in folders and path.suffix in (".yaml", ".yml")
        if self.value is not None or not (path == self.path or of_loadouts) or not path.is_file():
            return None
        try:
            return read_text(accepted_path(self.path, path), file=file)
        except UnreadableError:
            return None

    def inspect(
        self,
        *,
        registered: Mapping[str, RegisteredSpec],
        packages: Sequence[GivenParts],
        env: Mapping[str, str],
        tools: Mapping[str, Collection[str]] = EMPTY,
        text: str | None = None,
        as_written: bool = False,
    ) -> tuple[Configuration | None, list[Problem]]:
        """Return the configuration of now, or None if it has an error, and every problem; ``text`` is as if in it.

        ``as_written``: what waits of files that something confined may write counts, too.
        """
        from pegboard.config.additions import GivenParts
        from pegboard.config.inspection import inspect

        code = GivenParts(toolkits=self.toolkits, loadouts=self.loadouts)
        additions = (code, *packages) if self.toolkits or self.loadouts else tuple(packages)
        return inspect(
            self.path,
            registered=registered,
            env=env,
            tools=tools,
            text=text,
            value=self.value,
            additions=additions,
            as_written=as_written,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestReading:
    """What the newest reading of a configuration came to; times are in seconds since the epoch."""

    at: float = 0.0
    in_force_since: float = 0.0
    refused: bool = False
    problems: tuple[ShownProblem, ...] = ()

    def then(
        self, problems: Sequence[Problem], *, in_force: bool, masker: Masker, written: Callable[[str], str | None]
    ) -> NewestReading:
        """Return a reading after this one; ``written`` gives the text of a file by its name in its problems."""
        now = time.time()
        shown: tuple[ShownProblem, ...] = ()
        if problems:
            from pegboard.config.schema.sections import every_key
            from pegboard.operators.configuration import shown_problems

            shown = shown_problems(problems, masker, written, every_key())
        since = now if in_force else self.in_force_since
        return NewestReading(at=now, in_force_since=since, refused=not in_force, problems=shown)

    def state(self, file: str) -> ConfigurationState:
        """Return what operators see of it; ``file`` is the configuration's, as messages name it."""
        from pegboard.operators.configuration import ConfigurationState

        return ConfigurationState(
            file=file,
            in_force_since=self.in_force_since,
            read_at=self.at,
            refused=self.refused,
            problems=self.problems,
        )


def _name(loadout: GivenLoadout) -> str:
    return loadout.name if isinstance(loadout, Loadout) else str(loadout.get("name", ""))


def registered_plugins() -> Mapping[str, RegisteredSpec]:
    """Return the plugins that are known by name; those of installed packages come first."""
    from pegboard.sources.packages import installed_plugins
    from pegboard.sources.registry import registered_plugins as built_in

    return {**built_in(), **installed_plugins()}


def packages() -> tuple[GivenParts, ...]:
    """Return the toolkits and loadouts that installed packages bring (T11)."""
    from pegboard.config.additions import GivenParts
    from pegboard.sources.packages import packaged_toolkits

    return tuple(
        GivenParts(
            origin=f"package {found.package}",
            toolkits=cast("tuple[GivenToolkit, ...]", found.toolkits),
            loadouts=cast("tuple[GivenLoadout, ...]", found.loadouts),
            packaged=True,
        )
        for found in packaged_toolkits()
    )


def known_tools(catalog: Catalog) -> Mapping[str, Collection[str]]:
    """Return the own names of the tools of plugins that are known, by plugin."""
    known = {plugin.name: tuple(tool.name for tool in plugin.tools) for plugin in catalog.plugins.values()}
    return {name: tools for name, tools in known.items() if tools}


def choose(path: str | Path | None, folder: Path | None = None) -> tuple[Path, bool]:
    """Return the configuration that is meant, else that of a folder or of the user; and whether it is the quickstart.

    Raises ``NotAcceptedError`` for one that was found, and that this user has not accepted (P11).
    """
    from pegboard.config.acceptance import require_accepted
    from pegboard.config.location import users

    if path is not None:
        return Path(path), False
    found = _configuration_in(folder or Path.cwd())
    if found is None:
        own = users()
        return (QUICKSTART, True) if own is None else (own, False)
    require_accepted(found)
    return found, False


def _configuration_in(folder: Path) -> Path | None:
    """Return the configuration of a folder: also one that something confined has removed, of which a copy counts."""
    from pegboard.config.accepted_files import accepted_files
    from pegboard.config.location import NAME

    path = folder / NAME
    if path.is_file() or ((known := accepted_files(path)) is not None and known.key(path) in known.files):
        return path
    return None


def keep(path: Path, env: Mapping[str, str] | None = None) -> bool:
    """Keep what a configuration compiles to for the next start; return whether it is kept.

    It goes to the user's cache folder; what cannot be written, or has a secret in it, is not kept.
    """
    from pegboard.config.cache.writer import write

    return write(path, os.environ if env is None else env, _compile_source)


def kept_configuration(path: Path, env: Mapping[str, str]) -> Configuration | None:
    """Return the configuration that an earlier start kept, or None where something of it has changed."""
    from pegboard.config.cache.reader import read_cached

    return read_cached(path, env)


def _compile_source(path: Path, env: Mapping[str, str]) -> Configuration:
    from pegboard.config.inspection import load

    return load(path, registered=registered_plugins(), env=env, additions=packages())


def source_of(
    config: str | Path | Mapping[str, Any] | None,
    toolkits: Sequence[GivenToolkit],
    loadouts: Sequence[GivenLoadout],
    folder: Path | None = None,
) -> tuple[ConfigurationSource, bool]:
    """Return what the configuration is read from, and whether it is the packaged quickstart."""
    value = config if isinstance(config, Mapping) else None
    if value is None and not isinstance(config, str | os.PathLike | None):
        hint = "Give a path, a mapping, or nothing."
        raise UsageError(f"A configuration cannot be a value of the type {type(config).__name__}.", hint=hint)
    path, quickstart = choose(IN_CODE if value is not None else cast("str | Path | None", config), folder)
    source = ConfigurationSource(path=path, value=value, toolkits=tuple(toolkits), loadouts=tuple(loadouts))
    return source, quickstart


def load_source(source: ConfigurationSource, env: Mapping[str, str]) -> Configuration:
    """Return what a source says; raises ``ConfigError`` with all of its problems."""
    from pegboard.config.inspection import refusal

    configuration, problems = source.inspect(registered=registered_plugins(), packages=packages(), env=env)
    if configuration is None:
        raise refusal(source.name, problems)
    report(problems)
    return configuration


def from_accepted_files(
    configuration: Configuration, start: Path | None = None
) -> tuple[Configuration, AcceptedFiles | None]:
    """Return a configuration that runs of a project the code that was accepted, and what was accepted of its files.

    That is all of the files as they are, and none, where nothing confined may write any (A7).

    Raises:
        StoreError: what was accepted cannot be read or kept.
    """
    from pegboard.config.accepted_files import accepted_files, path_of

    confined = any(spec.confine is not None for spec in configuration.specs.values())
    known = accepted_files(path_of(configuration))
    if not confined and known is None:
        return configuration, None
    from pegboard.config.counted_files import bind, release, with_accepted_code

    if known is not None and release(configuration, known):
        return configuration, None
    accepted = bind(configuration, start)
    return with_accepted_code(configuration, accepted, start), accepted


def waiting_files(
    configuration: Configuration,
    accepted: AcceptedFiles | None,
    written: Callable[[], Configuration | None],
    start: Path | None = None,
) -> tuple[GrantChange, ...]:
    """Return what differs of files that something confined may write: it waits for a person (A7).

    ``written`` gives the configuration as it is written, which may be read from other files.
    """
    if accepted is None:
        return ()
    from pegboard.config.counted_files import counted_files

    named = counted_files(configuration, accepted, start)
    changes = accepted.changes(named)
    if any(change.key[1] == "text" for change in changes) and (other := written()) is not None:
        changes = accepted.changes({**named, **counted_files(other, accepted, start)})
    return changes


_NAMED: Final = 5
"""How many of the changes that wait are named."""


def runnable(configuration: Configuration) -> Configuration:
    """Return a configuration whose servers are unavailable where the extra that they need is missing; log it (P6)."""
    from pegboard.mcp_extra import missing_requirements
    from pegboard.support.installed import install_hint

    servers = [spec for spec in configuration.specs.values() if isinstance(spec, ServerSpec)]
    if not servers or not (missing := missing_requirements()):
        return configuration
    install = install_hint(extra="mcp")
    log.warning("servers need the extra mcp: %s. Everything else works. %s", missing, install)
    fault = f"the extra mcp is missing: {missing}. {install}"
    absent = {spec.name: replace(spec, unavailable=spec.unavailable or fault) for spec in servers}
    return replace(configuration, specs=Frozen({**configuration.specs, **absent}))


def waiting_text(name: str, waiting: Sequence[GrantChange]) -> str:
    """Return the line that says what of a configuration waits for a person (P10)."""
    places = [change.name for change in waiting[:_NAMED]]
    places += [f"{len(waiting) - _NAMED} more"] if len(waiting) > _NAMED else []
    accepts = "`pegboard accept` or the console accepts it"
    return f"edits of {name} that grant more wait for a person, and apply once {accepts}: {', '.join(places)}"


def report(problems: Iterable[Problem]) -> None:
    """Log what may be wrong with what code gives: no check of a file shows it (L3, T11)."""
    for problem in problems:
        if problem.code == "shadowed" or (problem.place is not None and problem.place.file == "code"):
            log.warning("%s", problem)
