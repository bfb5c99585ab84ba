"""What servers offer besides tools: lists kept per connection, reads passed on unchanged (G7, G9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

from pegboard.core.access.extensions import changes_nothing, with_task_ids
from pegboard.core.access.instances import LoginOwner, without_passing_parts
from pegboard.core.access.listed_items import CAPABILITY, KEYS, METHODS, PAGE_KEYS, ListKind, alias
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.core.model.tools import Frozen, JsonObject
from pegboard.errors import PegboardError, UpstreamError
from pegboard.ports import CallContext
from pegboard.ports.owned_servers import ServerElsewhere
from pegboard.ports.resources import NOBODY
from pegboard.sources.mcp import requests, wire
from pegboard.sources.mcp.connection.connection import Connection
from pegboard.sources.mcp.resources.subscriptions import Subscriptions
from pegboard.sources.mcp.wire.convert import meta_for_upstream
from pegboard.sources.mcp.wire.upstream_call import Call

if TYPE_CHECKING:
    from pegboard.sources.mcp.wire.open_connection import OpenConnection

log = logging.getLogger("pegboard.sources.mcp")

_PARTS: Final = {"resources/read": "contents", "prompts/get": "messages", "completion/complete": "completion"}
_WAITS: Final = "tasks/result"
_WAITED: Final = 7 * 86_400.0
"""How long a client may wait for what a task comes to, in seconds."""
_FRESH: Final = 2.0
"""For how long a list counts whose changes its server does not announce, in seconds."""
_SUBSCRIBED_WITHIN: Final = 1.0
_PAGES: Final = 1000

T = TypeVar("T")
ListRequest = Callable[..., Awaitable[Any]]
Mask = Callable[[str], str]


class Connections(Protocol):
    """The connections of a source: which of them a request takes (G9, G11)."""

    async def use(
        self, spec: PluginSpec, scope: str, owner: LoginOwner, work: Callable[[Connection], Awaitable[T]]
    ) -> T:
        """Return what comes of work over the connection of a scope, and of an owner where the server wants a login."""
        ...

    def in_use(self, spec: PluginSpec, scope: str, owner: LoginOwner) -> Connection | None:
        """Return the connection that :meth:`use` would take, if it is there."""
        ...

    async def where_it_runs(
        self,
        spec: PluginSpec,
        scope: str,
        here: Callable[[], Awaitable[T]],
        elsewhere: Callable[[ServerElsewhere], Awaitable[T]],
    ) -> T:
        """Return what a request comes to: here, or where another replica runs a server of which there is one."""
        ...

    def by_login(self, spec: PluginSpec) -> bool:
        """Return whether what a server gives may depend on whose login it is shown."""
        ...

    async def login_id(self, spec: PluginSpec, owner: LoginOwner) -> str | None:
        """Return which login a server is shown, empty where it wants none of a person; None where one is missing."""
        ...


class _ListRead(NamedTuple):
    """A list, when it was read, and the login that was shown for it: it may not be that of another."""

    items: Sequence[JsonObject]
    since: float
    shown: str | None


@dataclass(slots=True)
class _KeptLists:
    """The lists of one connection; ``age`` counts the changes, so that no list of before is kept."""

    lists: dict[ListKind, _ListRead] = field(default_factory=dict["ListKind", _ListRead], repr=False)
    age: int = 0

    def unchanged_list(self, live: OpenConnection, kind: ListKind, shown: str | None) -> Sequence[JsonObject] | None:
        """Return a list that was read with the login that is shown, and cannot have changed since, or None."""
        kept = self.lists.get(kind)
        if kept is None:
            return None
        if live.login is not None and live.login.owner is not None and (shown is None or shown != kept.shown):
            return None
        if _declared_capability(live, kind) is None or _is_announced(live, kind):
            return kept.items
        return kept.items if asyncio.get_running_loop().time() - kept.since < _FRESH else None


class ServerLists:
    """The lists of servers besides that of tools, read over the connections of a source."""

    def __init__(self, connections: Connections, run: ListRequest, *, mask: Mask, check_every: float) -> None:
        self._mask = mask
        self._check_every = check_every
        self._connections = connections
        self._run = run
        self._callbacks: list[Callable[[str, ListKind], None]] = []
        self._up_callbacks: list[Callable[[PluginSpec, str, LoginOwner], None]] = []
        self._kept: WeakKeyDictionary[OpenConnection, _KeptLists] = WeakKeyDictionary()
        self._updates: WeakKeyDictionary[Connection, Subscriptions] = WeakKeyDictionary()

    def on_changed(self, callback: Callable[[str, ListKind], None]) -> None:
        """Call back with the name of a server, and which of its lists has changed."""
        self._callbacks.append(callback)

    def on_up(self, callback: Callable[[PluginSpec, str, LoginOwner], None]) -> None:
        """Call back with a server, a scope and an owner whenever their connection has been opened."""
        self._up_callbacks.append(callback)

    def note_up(self, spec: PluginSpec, scope: str, owner: LoginOwner) -> None:
        """Note that the connection of a scope and an owner has been opened."""
        for callback in self._up_callbacks:
            callback(spec, scope, owner)

    async def kept_as(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> str | None:
        """Return under which name the lists of a connection are kept, or None where they are not.

        What another replica runs is asked there. A login that is missing shows nothing, and one of another account
        nothing of before (G9).
        """
        if spec.instance == "store":
            return None
        login_id = await self._connections.login_id(spec, owner)
        if login_id is None:
            return None
        return f"{owner.scope} {login_id}" if login_id else without_passing_parts(scope)

    def may_keep(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:
        """Return whether what a connection lists now is what one of the same name will list when it begins.

        That of a session or a client is another one by then, unless no call has run yet.
        """
        connection = self._connections.in_use(spec, scope, owner)
        live = connection.live if connection is not None else None
        return without_passing_parts(scope) == scope or (live is not None and not live.called)

    def by_login(self, spec: PluginSpec) -> bool:
        """Return whether what a server gives may depend on whose login it is shown."""
        return self._connections.by_login(spec)

    def is_up(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:
        """Return whether the connection of a scope stands."""
        connection = self._connections.in_use(spec, scope, owner)
        return connection is not None and connection.live is not None

    def matches(self, template: str, uri: str) -> bool:
        """Return whether a template gives a URI; one that cannot be read gives none."""
        parsed = _template(template)
        return parsed is not None and parsed.match(uri) is not None

    # -- lists -------------------------------------------------------------------------------------

    def cached(
        self, spec: PluginSpec, scope: str, kind: ListKind, owner: LoginOwner = NOBODY
    ) -> Sequence[JsonObject] | None:
        """Return a list that was read already and cannot have changed since, or None."""
        connection = self._connections.in_use(spec, scope, owner)
        live = connection.live if connection is not None else None
        kept = self._kept.get(live) if live is not None else None
        if live is None or kept is None:
            return None
        return kept.unchanged_list(live, kind, live.login.header_if_at_hand() if live.login is not None else None)

    async def offers(
        self, spec: PluginSpec, scope: str, kind: ListKind, owner: LoginOwner = NOBODY
    ) -> Sequence[JsonObject]:
        """Return a list as it stands on the wire; items that are not valid are excluded and reported."""

        async def read_list(connection: Connection) -> Sequence[JsonObject]:
            self._listen_to(spec, connection)
            try:
                return await self._run(connection, spec, METHODS[kind], partial(self._list, kind), repeatable=True)
            except UpstreamError as error:
                if connection.live is not None:
                    connection.live.exclude(METHODS[kind], str(error))
                raise

        use = partial(self._connections.use, spec, scope, owner, read_list)
        return await self._connections.where_it_runs(spec, scope, use, lambda other: other.offers(kind))

    async def _list(self, kind: ListKind, live: OpenConnection) -> Sequence[JsonObject]:
        kept = self._kept.setdefault(live, _KeptLists())
        items: Sequence[JsonObject] = ()
        shown = await _shown_login(live)
        if (
            unchanged := kept.unchanged_list(live, kind, shown)
        ) is not None:  # what is at hand of a login is soon too old
            return unchanged
        age = kept.age
        if _declared_capability(live, kind) is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SUBSCRIBED_WITHIN):
                    await live.subscribed.wait()
            age = kept.age
            items = await _pages(live, kind, self._mask)
        if kept.age == age:
            kept.lists[kind] = _ListRead(items, asyncio.get_running_loop().time(), shown)
        return items

    # -- reads -------------------------------------------------------------------------------------

    async def ask(self, spec: PluginSpec, method: str, params: JsonObject, context: CallContext) -> JsonObject:
        """Return the result of a read, a prompt or a completion as the server gave it.

        A server that completes nothing has no values for anything. Raises ``UpstreamTimeoutError``
        after ``spec.timeout`` seconds; asking twice changes nothing, so a restart is survived.
        """
        if method not in _PARTS:
            return await self._ask_extension(spec, method, params, context)

        async def work(live: OpenConnection) -> JsonObject:
            capabilities = live.client.server_capabilities
            if method == "completion/complete" and capabilities.completions is None:
                return {"completion": {"values": []}}
            asked = _request(method, params, context)
            raw = await requests.send.request_result(live, asked, context.progress, context.client)
            if raw.get("resultType") == "input_required":
                raise wire.request_outcomes.InvalidAnswerError("it asks for input that cannot be passed on")
            part = raw.get(_PARTS[method])
            if not isinstance(part, dict if method == "completion/complete" else list):
                raise wire.request_outcomes.InvalidAnswerError(f"its result has no {_PARTS[method]}")
            return raw

        async def send_request(connection: Connection) -> JsonObject:
            self._listen_to(spec, connection)
            return await self._run(connection, spec, method, work, repeatable=True)

        use = partial(self._connections.use, spec, context.scope, context.owner, send_request)
        ask = self._connections.where_it_runs
        return await ask(spec, context.scope, use, lambda other: other.ask(method, params, context))

    async def _ask_extension(
        self, spec: PluginSpec, method: str, params: JsonObject, context: CallContext
    ) -> JsonObject:
        """Return the result of a request of an extension, with the ids of tasks as others than its server know them.

        What a task comes to is waited for as long as it takes.
        """
        if method == _WAITS and isinstance(spec, ServerSpec):
            spec = replace(spec, timeout=_WAITED)

        async def work(live: OpenConnection) -> JsonObject:
            call = Call(method, params, None, context.progress, context.client)
            raw = await requests.send.ask_client_back(live, _extension_request(method, params, context), call)
            return Frozen(with_task_ids(raw, partial(alias, spec.name)))

        async def send_extension_request(connection: Connection) -> JsonObject:
            self._listen_to(spec, connection)
            return await self._run(connection, spec, method, work, repeatable=changes_nothing(method))

        use = partial(self._connections.use, spec, context.scope, context.owner, send_extension_request)
        ask = self._connections.where_it_runs
        return await ask(spec, context.scope, use, lambda other: other.ask(method, params, context))

    async def subscribe(
        self, spec: PluginSpec, uri: str, scope: str, updated: Callable[[str], None], owner: LoginOwner = NOBODY
    ) -> Callable[[], None] | None:
        """Call back when a resource is updated; returns what ends that, or None where the server cannot say.

        One that another replica runs says it there.
        """

        async def add(connection: Connection) -> Callable[[], None] | None:
            self._listen_to(spec, connection)
            updates = self._updates.get(connection)
            if updates is None:
                run = partial(self._run, connection, spec, "resources/subscribe", repeatable=True)
                updates = self._updates[connection] = Subscriptions(connection, run, check_every=self._check_every)
            return await updates.add(uri, updated)

        use = partial(self._connections.use, spec, scope, owner, add)
        return await self._connections.where_it_runs(spec, scope, use, _ignore_elsewhere)

    # -- changes -----------------------------------------------------------------------------------

    def _listen_to(self, spec: PluginSpec, connection: Connection) -> None:
        """Take the notifications of a connection from now on."""
        if connection.notified is None:
            connection.notified = partial(self._take_notification, spec.name, connection)

    def _take_notification(self, name: str, connection: Connection, live: OpenConnection, message: Any) -> None:
        """Take a notification of a server; None is that some may have been missed."""
        match getattr(message, "method", None):
            case "notifications/resources/list_changed":
                self._forget_lists(name, live, "resources", "templates")
            case "notifications/prompts/list_changed":
                self._forget_lists(name, live, "prompts")
            case "notifications/resources/updated":
                if (updates := self._updates.get(connection)) is not None:
                    updates.pass_on_update(message.params.uri)
            case None:
                self._forget_lists(name, live, "resources", "templates", "prompts")
            case _:
                pass

    def _forget_lists(self, name: str, live: OpenConnection, *kinds: ListKind) -> None:
        kept = self._kept.get(live)
        if kept is not None:
            kept.age += 1
            for kind in kinds:
                kept.lists.pop(kind, None)
        for callback in self._callbacks:
            for kind in kinds:
                callback(name, kind)


async def _ignore_elsewhere(_: ServerElsewhere) -> None:
    """Return nothing."""


async def _shown_login(live: OpenConnection) -> str | None:
    """Return the login that the next request shows, or None where it has none that counts for now."""
    with suppress(PegboardError):  # the request itself says so
        return None if live.login is None else await live.login.header()
    return None


def _declared_capability(live: OpenConnection, kind: ListKind) -> Any:
    """Return the capability in which a server declares such a list, or None."""
    return getattr(live.client.server_capabilities, CAPABILITY[kind])


def _is_announced(live: OpenConnection, kind: ListKind) -> bool:
    """Return whether the server surely announces the changes of a list."""
    if live.modern:
        return CAPABILITY[kind] in live.announced
    return _declared_capability(live, kind).list_changed is True


def declared_by(capabilities: Any) -> frozenset[str]:
    """Return what a server has besides tools, as a manifest keeps it."""
    names = ("resources", "prompts", "completions")
    return frozenset(name for name in names if getattr(capabilities, name) is not None)


@lru_cache(maxsize=1024)
def _template(text: str) -> Any:
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        return UriTemplate.parse(text)
    except InvalidUriTemplate:
        return None


def _request(method: str, params: JsonObject, context: CallContext) -> Any:
    import mcp_types as types

    models: dict[str, Any] = {
        "resources/read": types.ReadResourceRequest,
        "prompts/get": types.GetPromptRequest,
        "completion/complete": types.CompleteRequest,
    }
    meta = meta_for_upstream(context.meta)
    sent = {**params, "_meta": meta} if meta else dict(params)
    return models[method].model_validate({"method": method, "params": sent}, by_name=False)


def _extension_request(method: str, params: JsonObject, context: CallContext) -> Any:
    import mcp_types as types

    class ExtensionRequest(types.Request[dict[str, Any], str]):
        name_param = "taskId" if isinstance(params.get("taskId"), str) else None

    meta = meta_for_upstream(context.meta)
    return ExtensionRequest(method=method, params={**params, "_meta": meta} if meta else dict(params))


async def _pages(live: OpenConnection, kind: ListKind, mask: Mask) -> Sequence[JsonObject]:
    """Return every item that a server lists, page by page."""
    import mcp_types as types
    from mcp import MCPError

    models: dict[ListKind, Any] = {
        "resources": types.ListResourcesRequest,
        "templates": types.ListResourceTemplatesRequest,
        "prompts": types.ListPromptsRequest,
    }
    found: list[JsonObject] = []
    cursor: str | None = None
    excluded = live.excluded
    for what in [what for what in excluded if what.startswith(METHODS[kind])]:
        del excluded[what]
    for _ in range(_PAGES):
        request = models[kind](params=types.PaginatedRequestParams(cursor=cursor))
        try:
            raw = await requests.send.request_result(live, request)
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                return ()
            raise
        found += _valid(live, kind, raw, mask)
        following: object = raw.get("nextCursor")
        if not isinstance(following, str) or not following or following == cursor:
            break
        cursor = following
    return tuple(found)


def _valid(live: OpenConnection, kind: ListKind, raw: dict[str, Any], mask: Mask) -> list[JsonObject]:
    """Return the items of a page that clients take, so that one bad item never costs the list (G8)."""
    items: object = raw.get(PAGE_KEYS[kind])
    if not isinstance(items, list):
        raise wire.request_outcomes.InvalidAnswerError(f"its answer has no {PAGE_KEYS[kind]}")
    items = cast("list[Any]", items)
    if _fault(live, kind, items) is None:
        return [Frozen(item) for item in items]
    kept: list[JsonObject] = []
    for number, item in enumerate(items):
        fault = _fault(live, kind, [item])
        if fault is None:
            kept.append(Frozen(item))
            continue
        name: object = cast("dict[str, Any]", item).get(KEYS[kind]) if isinstance(item, dict) else None
        named = name if isinstance(name, str) and name else f"#{number + 1}"
        live.exclude(mask(f"{METHODS[kind]}: {named}"), fault)
    return kept


def _fault(live: OpenConnection, kind: ListKind, items: list[Any]) -> str | None:
    """Return what is wrong with the first item that clients would refuse."""
    from mcp_types.methods import MONOLITH_RESULTS, validate_server_result
    from pydantic import ValidationError

    page = {PAGE_KEYS[kind]: items, "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
    if any(isinstance(item, dict) and cast("dict[str, Any]", item).get(KEYS[kind]) == "" for item in items):
        return f"its {KEYS[kind]} is empty"
    try:
        validate_server_result(METHODS[kind], live.version, page)
        cast("Any", MONOLITH_RESULTS[METHODS[kind]]).model_validate(page, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"][2:])
        return one_line(f"{where}: {first['msg']}" if where else first["msg"], limit=300)
    return None
