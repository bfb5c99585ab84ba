"""MCP servers as plugins: connections pooled by server and scope, answers passed on unchanged (G7-G9)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import cached_property, partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pegboard import ports
from pegboard.core.access.conversational import keeps_conversation
from pegboard.core.access.extensions import declared_extensions
from pegboard.core.access.instances import LoginOwner
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, Manifest, Tool
from pegboard.errors import NeedsLoginError, ToolUnavailableError, UsageError
from pegboard.ports import CallContext, Client
from pegboard.ports.owned_servers import OwnedServer, ServerElsewhere, ServerOwners
from pegboard.sources.confinement import KeptRefusals
from pegboard.sources.mcp import login, requests
from pegboard.sources.mcp.connection.connection import Connection
from pegboard.sources.mcp.connection.history import Fault
from pegboard.sources.mcp.connection.source_settings import SourceSettings
from pegboard.sources.mcp.connection.ways import ConnectionWay
from pegboard.sources.mcp.login.challenge import login_hint, logs_in_for_gateway, may_log_in
from pegboard.sources.mcp.one_owner import ServerOwnership
from pegboard.sources.mcp.resources.lists import ServerLists, declared_by
from pegboard.sources.mcp.transports.launch import Launches
from pegboard.sources.mcp.wire.convert import manifest_of
from pegboard.sources.mcp.wire.only_client import ClientsOfUser, ProcessClient

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.core.access.named_paths import OwnPaths
    from pegboard.ports import ConnectionState, PrintedLine, RefusedAccess, SealedStore, ServerActivity, TakeList
    from pegboard.sources.mcp.login.logins import McpLogins
    from pegboard.sources.mcp.transports.shared_processes import SharedProcesses
    from pegboard.sources.mcp.wire.open_connection import OpenConnection, Work

_UNASSIGNED = ""  # the scope of a connection that has only been asked for its tools
_SHARED = "shared"

log = logging.getLogger("pegboard.sources.mcp")

T = TypeVar("T")
PoolKey = tuple[str, str, str]
RunTool = Callable[[Tool, JsonObject, CallContext], Coroutine[Any, Any, CallResult]]


class McpSource:
    """MCP servers over stdio and HTTP, in either era of the protocol.

    ``mask`` takes secrets out of what is reported of a server, ``learn`` is handed each value that is read for one,
    and each secret of a login, behind what it was read from. At most ``spawns`` servers begin to start at once,
    each within its own limit, or within ``start_timeout`` seconds where that is given. A request waits for a start
    ``patience`` seconds, or to its end where ``start_timeout`` is given; the start goes on.
    A connection that only one principal or agent uses is stopped
    after ``idle_after`` seconds without a request, unless its server has an ``idle`` of its own; a shared
    one stays. Without ``asks`` servers are told that they can ask nothing, as by a client that has no
    answers. Without ``fast_path`` every call goes by the SDK. Sessions over HTTP on which updates are
    awaited are checked every ``check_every`` seconds. ``store`` keeps the logins to servers over HTTP (G11); without
    one no one can log in. ``resolves``: the packages of confined servers are looked for in their newest version.
    ``folder`` is where servers without a ``cwd`` start; None is the current one. ``shared`` has the processes that
    boards share (G12); without it each board starts its own.
    """

    def __init__(
        self,
        *,
        mask: Callable[[str], str] | None = None,
        learn: Callable[[str, str], None] | None = None,
        spawns: int = 4,
        start_timeout: float | None = None,
        patience: float = 45.0,
        idle_after: float | None = 600.0,
        asks: bool = True,
        fast_path: bool = True,
        check_every: float = 15.0,
        monotonic: Callable[[], float] = time.monotonic,
        store: SealedStore | None = None,
        resolves: bool = False,
        folder: Path | None = None,
        shared: SharedProcesses | None = None,
    ) -> None:
        masker = Masker()
        self._settings = SourceSettings(
            mask=mask or masker.text,
            learn=learn or masker.learn,
            start_timeout=start_timeout,
            patience=patience if start_timeout is None else inf,
            spawns=spawns,
            monotonic=monotonic,
            asks=asks,
            fast_path=fast_path,
            launches=Launches(resolves=resolves, folder=None if folder is None else str(folder)),
            store=store,
            shared=shared,
        )
        self._idle_after = idle_after
        self._pool: dict[PoolKey, Connection] = {}
        self._called: dict[tuple[str, str], tuple[ServerSpec, RunTool]] = {}  # by name and scope
        self._callbacks: list[Callable[[str], None]] = []
        self._tools: dict[tuple[str, str], int] = {}
        self._prints: dict[str, tuple[ServerSpec, str]] = {}
        self._stopped: dict[tuple[str, str], Connection] = {}  # the last of no scope, for what it said
        self._closed = False
        self._store = store
        self._take_list: TakeList | None = None
        self._one_owner = ServerOwnership()
        self.offering = ServerLists(self, self._run_with_retry, mask=self._settings.mask, check_every=check_every)

    def need(self, plugin: str) -> None:
        """Let a server begin to start before those that no request waits for."""
        self._settings.needed.add(plugin)

    def keep_from(self, own_paths: Callable[[], OwnPaths]) -> None:
        """Keep the files that this returns from every server that is confined and started from now on (P10)."""
        self._settings.launches.own_paths = own_paths

    def on_started(self, callback: Callable[[int], None]) -> None:
        """Call this with the number of each process that is started from now on."""
        self._settings.launches.started = callback

    def expect_client(self) -> None:
        """Let what servers ask outside of calls wait for the only client of this process (G9)."""
        self._settings.only_client = ProcessClient()

    def expect_clients_of_user(self) -> None:
        """Let servers mean all clients together, which are one user's, where nothing says which of them (G12)."""
        self._settings.all_clients = ClientsOfUser(self._settings.clients)

    def introduce_client(self, name: str, capabilities: Mapping[str, Any], *, modern: bool) -> None:
        """Note what a client can do: servers are told that have it for their only client."""
        self._settings.client_called(name).introduce(capabilities, modern=modern)

    def meet_client(self, name: str, client: Client | None) -> None:
        """Let that client answer outside of calls; None where it can be asked during calls alone."""
        self._settings.client_called(name).meet(client)
        if self._settings.all_clients is not None:
            self._settings.all_clients.changed()

    def forget_client(self, name: str) -> None:
        """Note that the connection of a client has ended."""
        gone = self._settings.clients.pop(name, None)
        if gone is not None:
            gone.become(None)
            if self._settings.all_clients is not None:
                self._settings.all_clients.changed()

    def tell_servers(self, name: str, method: str, params: JsonObject) -> None:
        """Pass a notification of that client on to those of its servers that run."""
        self._settings.client_called(name).tell_servers(method, params)
        everyone = self._settings.all_clients
        if everyone is not None and everyone.means(method):
            everyone.tell_servers(method, params)

    def handles(self, spec: PluginSpec) -> bool:
        """Return whether the specification is that of a server."""
        return isinstance(spec, ServerSpec)

    def fingerprint(self, spec: PluginSpec) -> str:
        """Return a digest of all that decides which server answers; secrets do not show in it."""
        server = _server(spec)
        known = self._prints.get(server.name)
        if known is None or known[0] is not server:
            parts = (
                server.command, server.args, sorted(server.env.items()), server.cwd,
                server.url, sorted(server.headers.items()), server.transport,
                *(() if server.confine is None else (repr(server.confine),)),
                *sorted(repr((one.part, one.key, one.pieces)) for one in server.references),
            )  # fmt: skip
            known = self._prints[server.name] = (server, hashlib.sha256(json.dumps(parts).encode()).hexdigest())
        return known[1]

    def on_changed(self, callback: Callable[[str], None]) -> None:
        """Call back with the name of a server whose tools have changed by themselves."""
        self._callbacks.append(callback)

    async def describe(self, spec: PluginSpec, overrides: JsonObject) -> Manifest:
        """Return what the server offers; tools that are not valid are excluded, and reported."""
        server = _server(spec)
        self._check(server, overrides)
        listing, logins = self._list_tools_work(server), self.logins_of(server)
        if logins is None:

            async def list_here() -> Manifest:
                return await self._run_with_retry(
                    self._any_connection(server), server, "tools/list", listing, repeatable=True
                )

            return await self.where_it_runs(server, _SHARED, list_here, lambda other: other.describe())
        if not await logins.wants_login(server):
            try:
                return await self._run_with_retry(
                    self._any_connection(server), server, "tools/list", listing, repeatable=True
                )
            except NeedsLoginError:
                pass  # now it is known that it wants one
        owner = await logins.any_owner(server)
        if owner is None:
            raise _needs_login(server, logins.scopes_wanted(server, LoginOwner()))
        connection = self._claim(server, owner.scope if owner.principal else _SHARED, owner)
        return await self._run_with_retry(connection, server, "tools/list", listing, repeatable=True)

    def _list_tools_work(self, spec: ServerSpec) -> Work:
        async def work(live: OpenConnection) -> Manifest:
            from mcp import MCPError
            from mcp_types import METHOD_NOT_FOUND

            try:
                tools = await requests.send.list_tools(live)
            except MCPError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                tools = []  # a server of prompts or resources only
            from pegboard.sources.mcp.transports.server_process import described_package

            self._tools[spec.name, self.fingerprint(spec)] = len(tools)
            about = live.client.server_info
            live.newest = manifest_of(
                spec.name,
                tools,
                description=about.description or about.title if about is not None else None,
                instructions=live.client.instructions,
                offers=declared_by(live.client.server_capabilities),
                declares=declared_extensions(live.capabilities),
                package=await asyncio.to_thread(described_package, spec),
                reached_by=live.reached_by,
                excluded=live.dropped,
                cut=live.cut,
            )
            return live.newest

        return work

    def on_read(self, take: TakeList) -> None:
        """Hand over each list that is read because a connection is new: no call runs there before (A4)."""
        self._take_list = take

    def note_compared(self, spec: PluginSpec, manifest: Manifest) -> None:
        """Let calls run on the connection on which ``describe`` has read this list."""
        for _, connection in self._connections_of(_server(spec)):
            if connection.live is not None:
                connection.live.note_compared(manifest)

    def note_stored(self, spec: PluginSpec, manifest: Manifest) -> None:
        """Begin the first start of a server in this process as it was reached by an earlier one (G8)."""
        self._settings.ways.setdefault(self.fingerprint(spec), ConnectionWay.from_manifest(manifest.reached_by))

    async def _read_list(self, connection: Connection, spec: ServerSpec) -> None:
        """Read what a server lists on a connection, have it compared with the pins, and let calls run there."""
        assert self._take_list is not None
        manifest = await self._run_with_retry(
            connection, spec, "tools/list", self._list_tools_work(spec), repeatable=True
        )
        await self._take_list(spec.name, manifest, not self.by_login(spec))
        if connection.live is not None:
            connection.live.note_compared(manifest)

    def call(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> Coroutine[Any, Any, CallResult]:
        """Run one tool; what it returns passes through unchanged (G7).

        A call that a dead server never read is made again. One that may have run is made again only where
        the tool is read-only or idempotent; the error says which it was. Raises ``UpstreamTimeoutError`` after
        ``spec.timeout`` seconds; the server is notified that no one waits any longer.
        """
        known = self._called.get((spec.name, context.scope))
        if known is not None and known[0] is spec and not overrides:
            return known[1](tool, arguments, context)
        return self._call_first(spec, overrides, tool, arguments, context)

    async def _call_first(
        self, spec: PluginSpec, overrides: JsonObject, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run one tool of a server that was not called so far, may want a login, or may run at another replica."""
        server = _server(spec)
        self._check(server, overrides)
        if self.logins_of(server) is not None:

            async def run_tool(connection: Connection) -> CallResult:
                return await requests.retry.call(connection, server, tool, arguments, context)

            return await self.use(server, context.scope, context.owner, run_tool)
        if self._one_owner.is_run_by_another(server):
            return await self.where_it_runs(
                server,
                context.scope,
                lambda: requests.retry.call(self._claim(server, context.scope), server, tool, arguments, context),
                lambda other: other.call(tool, arguments, context),
            )
        run = partial(requests.retry.call, self._claim(server, context.scope), server)
        self._called[server.name, context.scope] = server, run
        return await run(tool, arguments, context)

    async def where_it_runs(
        self,
        spec: PluginSpec,
        scope: str,
        here: Callable[[], Awaitable[T]],
        elsewhere: Callable[[ServerElsewhere], Awaitable[T]],
    ) -> T:
        """Return what a request comes to: here, or where another replica runs a server of which there is one."""
        server = _server(spec)
        if not self._one_owner.is_run_by_another(server):
            return await here()
        return await self._one_owner.ask(self._owned_server(server, scope), here, elsewhere)

    def _owned_server(self, spec: ServerSpec, scope: str) -> OwnedServer:
        return OwnedServer(spec.name, self.fingerprint(spec), scope)

    def own_by(self, owners: ServerOwners | None) -> None:
        """Ask from now on who runs a server with ``instance: store``; None is this process, for itself."""
        self._one_owner.owners = owners
        self._called.clear()

    async def stop_owned(self, server: OwnedServer) -> None:
        """Stop a server that is another replica's from now on."""
        scopes = (server.scope, _UNASSIGNED) if server.scope == _SHARED else (server.scope,)
        found = (self._pool.pop((server.name, server.fingerprint, scope), None) for scope in scopes)
        await self._close([connection for connection in found if connection is not None])

    def runs(self, server: OwnedServer) -> bool:
        """Return whether a server is up, or is starting."""
        scopes = (server.scope, _UNASSIGNED) if server.scope == _SHARED else (server.scope,)
        found = (self._pool.get((server.name, server.fingerprint, scope)) for scope in scopes)
        return any(one is not None and (one.live is not None or one.starting) for one in found)

    def tools_changed(self, name: str) -> None:
        """Note that the tools of a server have changed that another replica runs."""
        self._announce(name)

    async def use(
        self, spec: PluginSpec, scope: str, owner: LoginOwner, work: Callable[[Connection], Awaitable[T]]
    ) -> T:
        """Return what comes of work over the connection of a scope, and of an owner where the server wants a login.

        Raises ``NeedsLoginError`` where the owner has none, or not one that is enough; nothing has run then.
        """
        server = _server(spec)
        self._check(server, EMPTY)
        logins = self.logins_of(server)
        if logins is None:
            return await work(self._claim(server, scope))
        if not await logins.wants_login(server):
            try:
                return await work(self._claim(server, scope))
            except NeedsLoginError:
                pass  # now it is known that it wants one
        scope, owner = _owner_of_connection(server, scope, owner)
        if not await logins.has_login(server, owner):
            raise _needs_login(server, logins.scopes_wanted(server, owner))
        return await work(self._claim(server, scope, owner))

    def in_use(self, spec: PluginSpec, scope: str, owner: LoginOwner) -> Connection | None:
        """Return the connection that :meth:`use` would take, if it is there."""
        server = _server(spec)
        logins = self.logins_of(server)
        if logins is None or not logins.known_to_want(server):
            return self._find_connection(server, scope)
        scope, owner = _owner_of_connection(server, scope, owner)
        found = self._pool.get((server.name, self.fingerprint(server), scope))
        return found if found is not None and found.login is not None and found.login.owner == owner else None

    def by_login(self, spec: PluginSpec) -> bool:
        """Return whether what a server gives may depend on whose login it is shown."""
        server = _server(spec)
        return self.logins_of(server) is not None and not logs_in_for_gateway(server)

    async def login_id(self, spec: PluginSpec, owner: LoginOwner) -> str | None:
        """Return which login a server is shown, empty where it wants none of a person; None where one is missing."""
        server = _server(spec)
        logins = self.logins_of(server)
        if logins is None or logs_in_for_gateway(server) or not await logins.wants_login(server):
            return ""
        return await logins.login_id(server, owner)

    def logins_of(self, spec: ServerSpec) -> McpLogins | None:
        """Return the logins to servers, None where this one cannot want any."""
        if self._store is None or not spec.url or not may_log_in(spec):
            return None
        return self.logins

    @cached_property
    def logins(self) -> McpLogins:
        """Return the logins to servers; raises ``AttributeError`` without a store to keep them in."""
        if self._store is None:
            raise AttributeError("logins")
        return login.logins.McpLogins(self._store, self._settings.learn)

    async def call_in_own_or_unassigned_process(
        self, spec: PluginSpec, tool: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run one tool for a scope without a connection of its own: on the one that it has, else on one of no one's.

        Without a scope any connection does. Raises as :meth:`call` does.
        """
        server = _server(spec)
        self._check(server, EMPTY)
        scope = context.scope
        found = (
            self._pool.get((server.name, self.fingerprint(server), scope)) if scope else self._any_connection(server)
        )
        connection = found or self._unassigned_connection(server)
        return await requests.retry.call(connection, server, tool, arguments, context)

    def starts(self, spec: PluginSpec, scope: str) -> tuple[int, int]:
        """Return how often the connection of a scope came up, and how often it failed or ended by itself."""
        found = self._pool.get((spec.name, self.fingerprint(spec), scope))
        return (0, 0) if found is None else (found.history.starts, found.history.failures)

    async def stop_unassigned_process(self, spec: PluginSpec) -> None:
        """Stop the connection of a server that no scope has yet."""
        unassigned = self._pool.pop((spec.name, self.fingerprint(spec), _UNASSIGNED), None)
        if unassigned is not None:
            self._stopped[spec.name, unassigned.fingerprint] = unassigned
            await self._close([unassigned])

    def read_refusals(self, spec: PluginSpec, scope: str, text: str) -> tuple[RefusedAccess, ...]:
        """Note and return what the text of an error says was refused to the process of a scope, or of none yet."""
        found = self._find_connection(spec, scope)
        return found.read_refusals(text) if found is not None else ()

    def keep_refusals(self, folder: Path) -> None:
        """Keep in a folder what confined processes are refused from now on, for other processes of Pegboard."""
        self._settings.launches.refusals = KeptRefusals(folder)

    def refused(self, spec: PluginSpec) -> tuple[RefusedAccess, ...]:
        """Return what the processes of a confined server were refused, those of other processes of Pegboard too."""
        found = (
            one
            for _, connection in self._connections_to_show(_server(spec))
            for one in connection.history.refused.values()
        )
        return tuple(dict.fromkeys((*found, *self._settings.launches.refusals.refusals_of(spec.name, spec.confine))))

    async def _run_with_retry(
        self, connection: Connection, spec: ServerSpec, what: str, work: Work, *, repeatable: bool
    ) -> Any:
        """Do what asks a server; once more on a new connection where the first try cannot have done anything."""
        return await requests.retry.run_with_retry(connection, spec, what, work, repeatable=repeatable)

    def _check(self, spec: ServerSpec, overrides: JsonObject) -> None:
        if overrides:
            names = ", ".join(sorted(overrides))
            raise ToolUnavailableError(
                f"{spec.label} takes no inline overrides ({names}).",
                hint=f"Set `args`, `env` or `headers` in `{spec.section}`.",
                location=spec.place,
            )
        if spec.unavailable:
            raise ToolUnavailableError(
                self._settings.mask(f"{spec.label} is not available: {spec.unavailable}"), location=spec.place
            )
        if not spec.command and not spec.url:
            raise ToolUnavailableError(
                f"{spec.label} has neither a command nor a url.", hint="Give one.", location=spec.place
            )

    def _claim(self, spec: ServerSpec, scope: str, owner: LoginOwner | None = None) -> Connection:
        """Return the connection of a scope; one that has only been listed so far becomes that one.

        With an owner it shows the login of theirs, and no one's connection becomes it.
        """
        fingerprint = self.fingerprint(spec)
        key = (spec.name, fingerprint, scope)
        found = self._pool.get(key)
        if found is None or (owner is not None and (found.login is None or found.login.owner != owner)):
            found = self._connection_for_scope(spec, fingerprint, scope, owner)
            self._pool[key] = found
            found.take_client(self._settings.client_of(scope))
            idle = None if scope == _SHARED else self._idle_after
            found.usage.stop_after(idle if spec.idle is None else spec.idle)
            if found.live is not None:
                self._note_up(found)
        return found

    def _connection_for_scope(
        self, spec: ServerSpec, fingerprint: str, scope: str, owner: LoginOwner | None
    ) -> Connection:
        """Return a connection for a scope: that of no scope, where it may become it, else a new one."""
        key = (spec.name, fingerprint, _UNASSIGNED)
        found = None if owner is not None else self._pool.get(key)
        if found is not None and (scope == _SHARED or not found.shares_process):
            return self._pool.pop(key)
        made = self._connection(spec, fingerprint, owner)
        made.shares_process = scope == _SHARED and self._may_share(spec)
        return made

    def _may_share(self, spec: ServerSpec) -> bool:
        """Return whether boards may share the process of a server: one that is all clients', and not confined."""
        alike = spec.instance in (None, "all", "principal") and not keeps_conversation(spec)
        return self._settings.shared is not None and alike and spec.confine is None and spec.command is not None

    def _find_connection(self, spec: PluginSpec, scope: str) -> Connection | None:
        """Return the connection that a scope has, or would take over."""
        server = _server(spec)
        fingerprint = self.fingerprint(server)
        own = self._pool.get((server.name, fingerprint, scope))
        return own or self._pool.get((server.name, fingerprint, _UNASSIGNED))

    def _any_connection(self, spec: ServerSpec) -> Connection:
        """Return a connection that may be asked for its tools: any that is there, else the unassigned one."""
        same = [connection for _, connection in self._connections_of(spec)] or [self._unassigned_connection(spec)]
        return next((c for c in same if c.live is not None), same[0])

    def _unassigned_connection(self, spec: ServerSpec) -> Connection:
        """Return the connection that no scope has yet."""
        fingerprint = self.fingerprint(spec)
        key = (spec.name, fingerprint, _UNASSIGNED)
        found = self._pool.get(key)
        if found is None:
            found = self._pool[key] = self._connection(spec, fingerprint)
            found.shares_process = self._may_share(spec)
            if spec.instance == "client":  # whose it will be shows by its first call: what it asks waits
                found.only_client = self._settings.only_client or ProcessClient()
        return found

    def _connection(self, spec: ServerSpec, fingerprint: str, owner: LoginOwner | None = None) -> Connection:
        if self._closed:
            raise UsageError("The source of MCP servers is closed.")
        connection = Connection(spec, fingerprint, self._settings, lambda: self._announce(spec.name))
        connection.reads = self._read_list if self._take_list is not None else None
        connection.came_up = partial(self._note_up, connection)
        if (logins := self.logins_of(spec)) is not None:
            connection.login = logins.login_of_connection(spec, owner)
        return connection

    def _note_up(self, connection: Connection) -> None:
        """Note that a connection is up, once it is that of a scope."""
        for scope, found in self._connections_of(connection.spec):
            if found is connection and scope != _UNASSIGNED:
                owner = connection.login.owner if connection.login is not None else None
                self.offering.note_up(connection.spec, scope, owner or LoginOwner())

    def _announce(self, name: str) -> None:
        for callback in self._callbacks:
            try:
                callback(name)
            except Exception:
                log.exception("a callback for changed tools of %r failed", name)

    async def retain(self, specs: Iterable[ServerSpec]) -> None:
        """Stop every server that is no longer among these."""
        kept = {(spec.name, self.fingerprint(spec)) for spec in specs}
        gone = [key for key in self._pool if key[:2] not in kept]
        self._called.clear()
        self._stopped = {key: one for key, one in self._stopped.items() if key in kept}
        await self._close([self._pool.pop(key) for key in gone])

    async def end_scope(self, scope: str) -> None:
        """Stop the connections of a scope."""
        self._called = {key: known for key, known in self._called.items() if key[1] != scope}
        await self._close([self._pool.pop(key) for key in list(self._pool) if key[2] == scope != _SHARED])

    def states(self) -> list[dict[str, Any]]:
        """Return one record per connection.

        ``name, scope, state, era, pid, in_flight, one_at_a_time, tools, dropped, last_error, failure, started_at``:
        ``state`` is idle, starting, up, down or backing_off; ``tools`` is how many were listed last,
        ``dropped`` which were excluded and why; ``started_at`` is in seconds since the epoch.
        """
        return [
            _as_record(connection, scope, tools=self._tools.get((name, fingerprint)))
            for (name, fingerprint, scope), connection in self._pool.items()
        ]

    def connections(self, spec: PluginSpec) -> tuple[ConnectionState, ...]:
        """Return the connections of a server, for operators."""
        return tuple(connection.state(scope) for scope, connection in self._connections_to_show(_server(spec)))

    def printed(self, spec: PluginSpec) -> tuple[PrintedLine, ...]:
        """Return the newest lines of every connection of a server, also of processes that have ended."""
        lines = (
            line for scope, c in self._connections_to_show(_server(spec)) for line in c.history.printed.of_scope(scope)
        )
        return tuple(sorted(lines, key=lambda line: line.at))

    def activity(self) -> ServerActivity:
        """Return counts that change with the state of a connection, and with each line that a server prints."""
        histories = [connection.history for connection in self._pool.values()]
        return ports.ServerActivity(
            states=sum(history.changes for history in histories) + len(histories),
            lines=sum(history.printed.count for history in histories),
        )

    async def restart(self, spec: PluginSpec) -> None:
        """Stop the connections of a server, and start those again that were in use, as after a crash (G8)."""
        server = _server(spec)
        self._check(server, EMPTY)

        async def restart_here() -> None:
            for _, connection in self._connections_of(server):
                connection.restart()

        await self.where_it_runs(server, _SHARED, restart_here, lambda other: other.restart())

    def _connections_of(self, spec: ServerSpec) -> list[tuple[str, Connection]]:
        """Return the connections of a server as it is configured now, each with its scope."""
        same = spec.name, self.fingerprint(spec)
        return [(scope, found) for (name, print_, scope), found in self._pool.items() if (name, print_) == same]

    def _connections_to_show(self, spec: ServerSpec) -> list[tuple[str, Connection]]:
        """Return the connections of a server, with the one that was stopped, where there is none since."""
        found = self._connections_of(spec)
        stopped = self._stopped.get((spec.name, self.fingerprint(spec)))
        return found if stopped is None or found else [(_UNASSIGNED, stopped)]

    async def aclose(self) -> None:
        """Stop every server that was started."""
        self._closed = True
        if "logins" in self.__dict__:
            await self.logins.aclose()
        connections = list(self._pool.values())
        self._pool.clear()
        self._called.clear()
        await self._close(connections)

    @staticmethod
    async def _close(connections: Iterable[Connection]) -> None:
        if tasks := [asyncio.ensure_future(connection.close()) for connection in connections]:
            await asyncio.wait(tasks)


def _server(spec: PluginSpec) -> ServerSpec:
    if not isinstance(spec, ServerSpec):
        raise UsageError(f"{spec.name!r} is not a server.")
    return spec


def _owner_of_connection(spec: ServerSpec, scope: str, owner: LoginOwner) -> tuple[str, LoginOwner]:
    """Return who shares the connection on which an owner's login is shown, and whose that is."""
    if logs_in_for_gateway(spec):
        return scope, LoginOwner()
    return owner.scope if scope == _SHARED and owner.principal else scope, owner


def _as_record(connection: Connection, scope: str, *, tools: int | None) -> dict[str, Any]:
    """Return the state of a connection as health reports it: one that is up is not down for a request that failed."""
    state, fault = connection.state(scope), connection.history.fault
    return {
        "name": connection.spec.name,
        "scope": scope,
        "state": "up" if connection.live is not None else state.state,
        "era": state.era,
        "pid": state.pid,
        "in_flight": state.in_flight,
        "one_at_a_time": state.one_at_a_time,
        "last_error": fault.text if fault else "",
        "failure": fault.error(connection.spec).message if fault and connection.history.failing else "",
        "started_at": state.started_at,
        "dropped": {item.name: item.reason for item in (*state.dropped, *state.excluded)},
        "tools": tools,
    }


def _needs_login(spec: ServerSpec, scopes: tuple[str, ...]) -> ToolUnavailableError:
    """Return the error for anyone who has no login to a server that wants one."""
    return Fault(reason="it requires a login", hint=login_hint(spec), scopes=scopes).error(spec)
