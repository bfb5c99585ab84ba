"""The composition root: the only place that picks adapters."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pegboard.accepted_grants import AcceptedGrants, waiting_problems
from pegboard.arguments import SchemaValidator
from pegboard.board import Board
from pegboard.board.board import BoardAdapters
from pegboard.board.permissions import require_name
from pegboard.config.accepted_files import code_folder
from pegboard.configuration_source import (
    NewestReading,
    from_accepted_files,
    kept_configuration,
    known_tools,
    load_source,
    packages,
    registered_plugins,
    report,
    runnable,
    source_of,
    waiting_files,
    waiting_text,
)
from pegboard.core.access.grants import FILES
from pegboard.core.access.permissions import LOCAL
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.dialects.names import Dialects
from pegboard.errors import ConfigError, StoreError
from pegboard.ports import Adapters, Source, Store, TokenCounter
from pegboard.problems import Problem
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import ToolRanker
from pegboard.sources.lazy import LazyHooks, local_sources
from pegboard.support.own_folder import folder_of, store_of
from pegboard.tokens import OfflineTokenCounter, default_memory

if TYPE_CHECKING:
    from pegboard.board.blocking import SyncPegboard
    from pegboard.config.accepted_files import AcceptedFiles
    from pegboard.config.additions import GivenLoadout, GivenToolkit
    from pegboard.config.own_files import ConfiguredFiles
    from pegboard.config.schema.configuration import Configuration
    from pegboard.configuration_editing import EditableFile
    from pegboard.configuration_source import ConfigurationSource
    from pegboard.core.access.grants import GrantChange
    from pegboard.core.access.named_paths import OwnPaths
    from pegboard.core.model.loadouts import Loadout
    from pegboard.operators.configuration import ConfigurationState
    from pegboard.ports.store_copies import StoreCopies
    from pegboard.server_trials import ServerFinderOfBoard
    from pegboard.sources.mcp.source import McpSource
    from pegboard.sources.plugin_process.source import PluginProcessSource
    from pegboard.stores.urls import StorePlace

log = logging.getLogger("pegboard")

WATCH_SECONDS = 0.5
HOOK_SECONDS = 2.0
"""How long a focus hook may take, its import included."""


class Pegboard(Board):
    """Agents over one configuration: it hands out sessions.

    ::

        async with Pegboard.open("pegboard.yaml") as board:
            session = await board.session(agent="assistant", session_id="thread-42")
    """

    configuration: Configuration
    quickstart: bool
    fast_path: bool
    """Whether calls and first lists may go around the MCP SDK."""
    from_cache: bool
    """Whether it was opened with the configuration that was kept."""
    _upstreams: McpSource
    _apart: PluginProcessSource
    _env: Mapping[str, str]
    _source: ConfigurationSource
    _brought: Path | None
    _looked_at: Hashable = None
    _seen: tuple[tuple[str, int, int], ...] = ()
    _stores: frozenset[Path] = frozenset()
    _read = NewestReading()
    _own_paths: Callable[[], OwnPaths]
    _hooks: LazyHooks
    _accepted: AcceptedFiles | None = None
    _folder: Path | None = None
    _waiting_files: tuple[GrantChange, ...] = ()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        config: str | Path | Mapping[str, Any] | None = None,
        *,
        toolkits: Sequence[GivenToolkit] = (),
        loadouts: Sequence[GivenLoadout] = (),
        watch: bool = False,
        env: Mapping[str, str] | None = None,
        adapters: Adapters | None = None,
        fast_path: bool | None = None,
        cached: bool = False,
        idle: float | None = None,
        folder: Path | None = None,
    ) -> AsyncGenerator[Pegboard]:
        """Open a configuration; None takes ``./pegboard.yaml``, the user's, else the packaged quickstart.

        Args:
            config: a ``pegboard.yaml``, any client's ``.mcp.json``, or a mapping as if such a file lay in this folder.
            toolkits: toolkits in code (T11), each with its ``name`` and the keys of a file, which counts on one name.
            loadouts: loadouts in code, likewise.
            watch: whether edits are taken up while it is open.
            env: the variables that the configuration may name; None is the environment.
            adapters: the host's own, or a test's doubles.
            fast_path: False keeps every request on the MCP SDK's own path; None is False for PEGBOARD_FAST_PATH=0.
            cached: whether to take what an earlier start compiled, where nothing that it was made from has changed.
            idle: seconds without a call after which what a plugin constructed is closed; None keeps it (G9).
            folder: where a configuration is looked for and servers without a ``cwd`` start; None is the current one.

        Returns:
            A context manager; at its end what was started is stopped and what is left to write is written.

        Raises:
            ConfigError: the configuration cannot be used; it has every problem with its place.
            StoreError: the store cannot be opened.
        """
        env = os.environ if env is None else env
        source, quickstart = source_of(config, toolkits, loadouts, folder)
        configuration = (
            known := kept_configuration(source.path, env) if cached and source.is_file else None
        ) or load_source(source, env)
        masker, own = Masker(configuration.secrets), adapters or Adapters()
        store = own.store or _store(configuration, quickstart=quickstart)
        fast = env.get("PEGBOARD_FAST_PATH") != "0" if fast_path is None else fast_path
        upstreams = cls._servers(masker, fast_path=fast, store=store, folder=folder)
        apart = plugin_processes(masker, fast_path=fast, idle=idle, store=store, env=env)
        beside = None if own.store else _file_of(configuration, quickstart=quickstart)
        sources = (*own.sources, upstreams, apart, *_local_sources(beside, store=store, idle=idle))
        _keep_refusals(source, upstreams, apart)
        brought = _store_file_for(configuration, beside) if config is None and not quickstart else None
        await store.open()
        counter = OfflineTokenCounter(default_memory() if configuration.store != "memory:" else None)
        hooks = LazyHooks(source.path.absolute().parent, apart)
        board = cls(_parts(store, sources, counter, own, hooks, Embedding()), masker=masker, env=env)
        board.quickstart, board._upstreams, board._apart, board._env = quickstart, upstreams, apart, env
        board._source, board._brought, board.fast_path, board.from_cache = source, brought, fast, known is not None
        board._hooks, board._folder = hooks, folder
        async with board._run_with(configuration, hooks, counter, watch=watch):
            yield board

    @classmethod
    @contextmanager
    def open_sync(
        cls,
        config: str | Path | Mapping[str, Any] | None = None,
        *,
        toolkits: Sequence[GivenToolkit] = (),
        loadouts: Sequence[GivenLoadout] = (),
        watch: bool = False,
        env: Mapping[str, str] | None = None,
        adapters: Adapters | None = None,
        fast_path: bool | None = None,
        cached: bool = False,
        idle: float | None = None,
        folder: Path | None = None,
    ) -> Generator[SyncPegboard]:
        """Open a configuration for code without an event loop: everything blocks.

        Args:
            config: the configuration, as ``open`` takes it.
            toolkits: toolkits in code, as ``open`` takes them.
            loadouts: loadouts in code, as ``open`` takes them.
            watch: whether edits are taken up while it is open.
            env: the variables that the configuration may name; None is the environment.
            adapters: the host's own, or a test's doubles.
            fast_path: False keeps every request to a server or of a client on the MCP SDK's own path; None is False
                where the variable ``PEGBOARD_FAST_PATH`` is 0.
            cached: whether to take what an earlier start compiled, where nothing that it was made from has changed.
            idle: seconds without a call after which what a plugin constructed is closed; None keeps it (G9).
            folder: where a configuration is looked for and servers without a ``cwd`` start; None is the current one.

        Returns:
            A context manager; its event loop runs in a thread until the end.

        Raises:
            ConfigError: the configuration cannot be used.
            StoreError: the store cannot be opened.
        """
        from anyio.from_thread import start_blocking_portal

        from pegboard.board.blocking import OwnLoop, SyncPegboard

        opened = cls.open(
            config,
            toolkits=toolkits,
            loadouts=loadouts,
            watch=watch,
            env=env,
            adapters=adapters,
            fast_path=fast_path,
            cached=cached,
            idle=idle,
            folder=folder,
        )
        with start_blocking_portal(name="pegboard") as portal, portal.wrap_async_context_manager(opened) as board:
            loop = OwnLoop(portal.call(asyncio.get_running_loop))
            try:
                yield SyncPegboard(board, board.reload, board.accept, lambda: board.waiting, loop)
            finally:
                portal.call(loop.end)

    async def _take_edit(self, edited: Configuration, *, by: str = "") -> None:
        waited = self.waiting
        taken = await self._grants.take(edited, by=by)
        self._follow_own_files(taken)
        counting, self._accepted = await asyncio.to_thread(from_accepted_files, taken, self._folder)
        self._waiting_files = await asyncio.to_thread(
            waiting_files, taken, self._accepted, self._configuration_as_written, self._folder
        )
        configuration = runnable(counting)
        self._require_here(configuration)
        self._hooks.look_in(code_folder(self._source.path.absolute().parent, self._accepted))
        self.configuration = configuration
        self.services.tokens.in_force = configuration.tokens
        if self.waiting and self.waiting != waited:
            log.warning("%s", waiting_text(self._source.name, self.waiting))
        masker = self.services.masker
        masker.add(configuration.secrets)
        problems = [*configuration.problems, *self._waiting_problems()]
        self._note_read(problems, in_force=True, masker=masker)
        await self.adopt(configuration.world(Catalog()), configuration.specs, masker=masker)
        servers = [spec for spec in configuration.specs.values() if isinstance(spec, ServerSpec)]
        await self._upstreams.retain(servers)
        await self._apart.retain(configuration.specs.values())

    @classmethod
    def _servers(cls, masker: Masker, *, fast_path: bool, store: Store, folder: Path | None) -> McpSource:
        """Return the source of its servers."""
        from pegboard.sources.mcp import McpSource

        return McpSource(mask=masker.text, learn=masker.learn, fast_path=fast_path, store=store, folder=folder)

    def _require_here(self, taken: Configuration) -> None:
        """Raise where this process is not to run a configuration; the one before it stays."""

    @property
    def env(self) -> Mapping[str, str]:
        """Return the variables that the configuration may name."""
        return self._env

    @cached_property
    def _reload_lock(self) -> asyncio.Lock:
        """Return what is held while an edit is taken up, or written."""
        return asyncio.Lock()

    @property
    def editable(self) -> EditableFile:
        """Return the file of the configuration for operators who edit it."""
        from pegboard.configuration_editing import EditableFile

        return EditableFile(
            source=lambda: self._source,
            quickstart=lambda: self.quickstart,
            env=self._env,
            known=lambda: known_tools(self.world.catalog),
            grants=lambda: self._grants,
            reloading=self._reload_lock,
            reload=self._reload,
            services=self.services,
            file_waits=self._file_waits,
            accepted=lambda: self._accepted,
        )

    async def create_configuration(self, *, by: str) -> str:
        """Write ``pegboard.yaml`` into the current folder in place of the quickstart, and take it up.

        Args:
            by: who does, for the audit trail.

        Returns:
            The name of the file.

        Raises:
            ConfigError: there is a configuration already, or the file cannot be written.
        """
        from pegboard.configuration_editing import write_first

        async with self._reload_lock:
            if not self.quickstart:
                raise ConfigError("There is a configuration already.", code="file_exists", hint="Edit that.")
            path = await asyncio.to_thread(write_first, Path.cwd() / "pegboard.yaml", self._source.path)
            self._source = self._source.at(path)
            self.quickstart = False
            del self.__dict__["_grants"]
            await self._reload(by=by)
        return self._source.name

    @property
    def servers_to_add(self) -> ServerFinderOfBoard:
        """Return what finds and tries servers for operators who add them."""
        from pegboard.server_trials import ServerFinderOfBoard

        return ServerFinderOfBoard(
            path=lambda: self._source.path,
            env=self._env,
            opened=trial,
            own_paths=lambda: self._own_paths(),  # noqa: PLW0108 - of the configuration of then
            others=lambda: {name: list(tools) for name, tools in known_tools(self.world.catalog).items()},
            masker=lambda: self.services.masker,
        )

    @cached_property
    def _grants(self) -> AcceptedGrants:
        """Return what was accepted of the configuration; of a mapping and the quickstart it ends with the process."""
        lasts = self._source.value is None and not self.quickstart
        return AcceptedGrants(self.services, self._source.key if lasts else None, brought=self._brought)

    def _follow_own_files(self, configuration: Configuration) -> None:
        """Let the files of this configuration be guarded, and kept from what is confined (P10)."""
        store = _file_of(configuration, quickstart=self.quickstart)
        self._stores |= {store} if store is not None else set()  # the one that is open stays so
        stores = tuple(sorted(self._stores))

        def find() -> ConfiguredFiles:
            from pegboard.config.own_files import ConfiguredFiles

            return ConfiguredFiles(configuration=configuration, env=self._env, stores=stores, start=self._folder)

        def paths() -> OwnPaths:
            return find().kept_from_confined

        self._own_paths = paths
        self.services.own_files.follow(find)
        self._upstreams.keep_from(paths)
        self._apart.keep_from(paths)

    async def reload(self) -> list[Problem]:
        """Take an edit up; a broken one is refused whole and the last good one stays.

        Returns:
            The problems of the file: warnings where it was taken, errors where it was not. Under ``reload: ask`` what
            waits for a person is among them, each change with the code ``waits``.
        """
        async with self._reload_lock:
            return await self._reload()

    async def _reload(self, *, by: str = "", saved: str | None = None) -> list[Problem]:
        """Take an edit up, in the name of who has made it and may widen; one reading at a time does.

        ``saved`` is what they have just put into the file: that counts, with the files that it names.
        """
        if saved is not None and self._accepted is not None:
            named = await asyncio.to_thread(
                waiting_files, self.configuration, self._accepted, self._configuration_as_written, self._folder
            )
            await asyncio.to_thread(self._accepted.accept_saved, self._source.path, saved, named)
        configuration, problems = self._inspect_source(self._source)
        if configuration is None:
            errors = "; ".join(str(p) for p in problems if p.severity == "error")
            log.warning("the edited configuration is not valid, the last valid one stays in use: %s", errors)
            self._note_read(problems, in_force=False)
            self.services.events.emit("configuration_refused", {"problems": [str(p) for p in problems]})
            return problems
        await self._take_edit(configuration, by=by)
        return [*problems, *self._waiting_problems()]

    @property
    def waiting(self) -> tuple[GrantChange, ...]:
        """Return what the newest edits would widen, and what waits for a person therefore (P10)."""
        return (*self._waiting_files, *self._grants.waiting)

    async def accept(self, shown: Sequence[GrantChange] | None = None, *, by: str = LOCAL) -> tuple[GrantChange, ...]:
        """Accept changes of the configuration that wait: they count from the next request on, in every process.

        Args:
            shown: those that a person has seen; what was edited since waits on. None is all that wait now.
            by: who accepts them, for the audit trail.

        Returns:
            What was accepted.

        Raises:
            StoreError: it cannot be stored.
            UsageError: ``by`` is no short text.
        """
        require_name(by)
        shown = self.waiting if shown is None else shown
        async with self._reload_lock:
            files = await self._accept_files([change for change in shown if change.key[0] == FILES], by=by)
            others = await self._grants.accept([change for change in shown if change.key[0] != FILES], by=by)
            await self._reload(by=by if files else "")  # all that an accepted text says was accepted with it
        return (*files, *others)

    async def _accept_files(self, shown: Sequence[GrantChange], *, by: str) -> tuple[GrantChange, ...]:
        """Let files that something confined may write count as a person has seen them (A7)."""
        if not shown or self._accepted is None:
            return ()
        written, problems = await asyncio.to_thread(self._inspect_source, self._source, as_written=True)
        if written is None and any(change.key[1] == "text" for change in shown):
            from pegboard.config.inspection import refusal

            raise refusal(self._source.name, problems)
        accepted = await asyncio.to_thread(self._accepted.accept, shown)
        await self._grants.note(accepted, by=by)
        return accepted

    def _configuration_as_written(self) -> Configuration | None:
        return self._inspect_source(self._source, as_written=True)[0]

    def _file_waits(self) -> bool:
        own = self._accepted.key(self._source.path) if self._accepted is not None else ""
        return any(change.key[-1] == own for change in self._waiting_files)

    def _waiting_problems(self) -> list[Problem]:
        return waiting_problems(self.waiting)

    def _note_read(self, problems: Sequence[Problem], *, in_force: bool, masker: Masker | None = None) -> None:
        """Keep what the newest reading of the configuration shows, for operators."""
        written = partial(self._source.written, env=self._env)
        self._read = self._read.then(
            problems, in_force=in_force, masker=masker or self.services.masker, written=written
        )

    @property
    def configuration_state(self) -> ConfigurationState:
        """Return what operators see of the newest reading of the configuration, refused or not."""
        return self._read.state(self._source.name)

    def _inspect_source(
        self, source: ConfigurationSource, *, as_written: bool = False
    ) -> tuple[Configuration | None, list[Problem]]:
        """Return what a source says now, judged with the tools that are known."""
        return source.inspect(
            registered=registered_plugins(),
            packages=packages(),
            env=self._env,
            tools=known_tools(self.world.catalog),
            as_written=as_written,
        )

    def _add_toolkit(self, toolkit: Mapping[str, Any]) -> None:
        self._add(self._source.with_toolkit(toolkit))

    def _add_loadout(self, loadout: Loadout) -> None:
        self._add(self._source.with_loadout(loadout))

    def _add(self, source: ConfigurationSource) -> None:
        """Take over what code adds; where it cannot be used nothing changes (T1 to T3)."""
        from pegboard.config.inspection import refusal

        configuration, problems = self._inspect_source(source)
        if configuration is None:
            raise refusal("What code gives", problems)
        report(problem for problem in problems if problem not in self.configuration.problems)
        counting, self._accepted = from_accepted_files(self._grants.restrict_to_accepted(configuration), self._folder)
        self._source, self.configuration = source, runnable(counting)
        self._note_read(problems, in_force=True)
        self._apart.follow(self.configuration.specs.values())
        self._join(self.configuration.world(Catalog()), self.configuration.specs)

    @asynccontextmanager
    async def _run_with(
        self, configuration: Configuration, hooks: LazyHooks, counter: OfflineTokenCounter, *, watch: bool
    ) -> AsyncGenerator[None]:
        """Run with a configuration meanwhile, and stop at the end what was started."""
        try:
            await self._take_edit(configuration)
            async with self._watch_edits(watch):
                yield
        finally:
            await self.aclose()
            hooks.close()
            counter.rest()

    @asynccontextmanager
    async def _watch_edits(self, watch: bool) -> AsyncGenerator[None]:
        """Take up edits meanwhile, where that is wanted."""
        self._seen = self._file_stamps()
        watcher = asyncio.create_task(self._watch(), name="watch configuration") if watch else None
        try:
            yield
        finally:
            if watcher is not None:
                watcher.cancel()
                with suppress(asyncio.CancelledError):
                    await watcher

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await self.take_edits()

    async def take_edits(self) -> None:
        """Reload where a file or folder that the configuration was read from has changed since the last look.

        Where an edit is taken already, this returns once it counts.
        """
        async with self._reload_lock:
            now, accepted = self._file_stamps(), await self._accepted_elsewhere()
            if now != self._seen or accepted:
                self._seen = now
                try:
                    await self._reload()
                except ConfigError as error:
                    log.warning("the edited configuration is not valid: %s", error)

    def _file_stamps(self) -> tuple[tuple[str, int, int], ...]:
        watched = self._accepted.watched_files if self._accepted is not None else ()
        return _stamps_of((*self.configuration.files, *self.configuration.folders, *watched))

    async def _accepted_elsewhere(self) -> bool:
        """Return whether another process has accepted something of what waits."""
        if not self.waiting:
            return False
        before, self._looked_at = self._looked_at, await self._grants.stamp()
        return before != self._looked_at and await self._grants.accepted_elsewhere()

    def upstream_states(self) -> list[dict[str, Any]]:
        """Return what is known of each connection to a server, for operators."""
        return self._upstreams.states()


def _parts(
    store: Store,
    sources: tuple[Source, ...],
    counter: TokenCounter,
    own: Adapters,
    hooks: LazyHooks | None = None,
    meaning: Embedding | None = None,
) -> BoardAdapters:
    return BoardAdapters(
        store=store,
        sources=sources,
        ranker=own.ranker or ToolRanker(meaning or Embedding()),
        counter=own.counter or counter,
        validator=own.validator or SchemaValidator(),
        dialects=Dialects(),
        focus=own.focus or (_FocusRules(hooks) if hooks is not None else None),
        hooks=own.hooks or hooks,
    )


def trial(sources: Sequence[Source], masker: Masker) -> Board:
    """Return a board over these sources alone that stores everything in memory and writes nothing."""
    from pegboard.stores.sql import MemoryStore

    return Board(
        _parts(MemoryStore(), tuple(sources), OfflineTokenCounter(), Adapters()), masker=masker, env=os.environ
    )


class _FocusRules:
    """The focus rules of a configuration: its patterns and hooks (F3)."""

    def __init__(self, hooks: LazyHooks) -> None:
        self._hooks = hooks

    def matches(self, pattern: str, message: str) -> bool:
        """Return whether the pattern is found in the message."""
        from pegboard.config.schema.expressions import pattern_matches

        return pattern_matches(pattern, message)

    async def ask(self, hook: str, message: str, tools: Sequence[str]) -> object:
        """Return what the hook answers."""
        async with asyncio.timeout(HOOK_SECONDS):
            return await self._hooks.ask(hook, message, list(tools))


def _stamps_of(paths: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    found: list[tuple[str, int, int]] = []
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((str(path), stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def _store(configuration: Configuration, *, quickstart: bool) -> Store:
    kind, path = _store_place(configuration, quickstart=quickstart)
    if kind == "postgresql":
        from pegboard.stores.grace import with_grace
        from pegboard.stores.sql import PostgresStore

        return with_grace(PostgresStore(configuration.store), configuration.store_grace)
    from pegboard.stores.sql import MemoryStore, SqliteStore

    return MemoryStore() if path is None else SqliteStore(path)


def _keep_refusals(source: ConfigurationSource, *sources: McpSource | PluginProcessSource) -> None:
    """Keep what is refused beside the store of a configuration that is a file, for other processes (A7)."""
    for one in sources if source.value is None else ():
        one.keep_refusals(folder_of(source.path) / "refused")


class ReadConfiguration(NamedTuple):
    """A configuration that no board has open, how messages name it, and whether it is the packaged quickstart."""

    configuration: Configuration
    name: str
    quickstart: bool


def read_configuration(config: str | Path | None, env: Mapping[str, str] | None = None) -> ReadConfiguration:
    """Return a configuration without opening it: nothing is started or stored.

    Raises ``ConfigError`` where it cannot be used.
    """
    source, quickstart = source_of(config, (), ())
    return ReadConfiguration(load_source(source, os.environ if env is None else env), source.name, quickstart)


def store_copies(read: ReadConfiguration) -> StoreCopies:
    """Return what copies and checks the store of a configuration.

    Raises ``StoreError`` with the code ``store_in_memory`` where that ends with the process.
    """
    kind, path = _store_place(read.configuration, quickstart=read.quickstart)
    if kind == "postgresql":
        from pegboard.stores.sql.postgres_copies import PostgresCopies

        return PostgresCopies(read.configuration.store)
    if path is None:
        raise StoreError(
            "The store of this configuration is in memory and is lost when the process ends.",
            hint="It cannot be copied or checked; `store: sqlite:///pegboard.db` keeps one in a file.",
            code="store_in_memory",
        )
    from pegboard.stores.sql.sqlite_copies import SqliteCopies

    return SqliteCopies(path)


def is_store_in_memory(configuration: Configuration) -> bool:
    """Return whether the store of a configuration ends with the process."""
    return _store_place(configuration)[0] == "memory"


def keeps_something(configuration: Configuration) -> bool:
    """Return whether the store of a configuration is there already: a database of a server, or a file that exists."""
    kind, path = _store_place(configuration)
    return kind == "postgresql" or (path is not None and path.is_file())


def _file_of(configuration: Configuration, *, quickstart: bool = False) -> Path | None:
    """Return the file of the store; None where it is none."""
    return _store_place(configuration, quickstart=quickstart)[1]


def _store_file_for(configuration: Configuration, file: Path | None) -> Path | None:
    """Return the file of a store that is there already, where it may have come with a configuration that was found."""
    return file if file is not None and file != store_of(configuration.path) and file.exists() else None


def _store_place(configuration: Configuration, *, quickstart: bool = False) -> StorePlace:
    from pegboard.stores.urls import parse_store_url

    if quickstart:
        return "sqlite", quickstart_store()
    return parse_store_url(configuration.store, configuration.path.absolute().parent)


def quickstart_store() -> Path:
    """Return where the quickstart keeps the state of this folder: in the user's state folder."""
    return store_of(Path("pegboard.yaml"))  # which a person may create: what is stored by then stays


def plugin_processes(
    masker: Masker,
    *,
    env: Mapping[str, str],
    fast_path: bool = True,
    idle: float | None = None,
    store: Store | None = None,
) -> PluginProcessSource:
    """Return the source of the plugins that are confined: each process is started and pooled as that of a server.

    ``env`` are the variables that the configuration may name.
    """
    from pegboard.sources.mcp import McpSource
    from pegboard.sources.plugin_process.source import PluginProcessSource

    processes = McpSource(mask=masker.text, fast_path=fast_path, idle_after=None, asks=False)
    return PluginProcessSource(processes, env=env, store=store, idle=idle)


def processes_of(configuration: Configuration, masker: Masker, env: Mapping[str, str]) -> PluginProcessSource:
    """Return the source of the plugins that are confined for a configuration that no board has open."""
    from pegboard.config.own_files import ConfiguredFiles

    source, store = plugin_processes(masker, env=env), _file_of(configuration)
    stores = (store,) if store is not None else ()
    source.keep_from(lambda: ConfiguredFiles(configuration=configuration, env=env, stores=stores).kept_from_confined)
    source.follow(configuration.specs.values())
    return source


def _local_sources(beside: Path | None, *, store: Store, idle: float | None) -> tuple[Source, ...]:
    """Return the sources of plugins of this process; toolkits that need a database have it beside the store."""
    return local_sources(beside and beside.with_name(f"{beside.stem}-agno.db"), store=store, idle=idle)
