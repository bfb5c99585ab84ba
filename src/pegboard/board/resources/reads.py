"""Read a resource, get a prompt, complete a reference, subscribe: of whichever server has it (G7, P9)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pegboard.board.calls.login_gate import NotLoggedIn
from pegboard.board.calls.pipeline import failure_of
from pegboard.board.catalog.loader import SERVER_WAIT
from pegboard.board.resources.lists import ResourceLists
from pegboard.board.resources.reach import ReachedServer, reached_servers
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.listed_items import Target, owners, server_for_completion, unalias, why_not
from pegboard.core.access.logins import LoginNeed, login_command
from pegboard.core.model.naming import may_be_of
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.errors import NeedsLoginError, PegboardError
from pegboard.ports import AuditKind, CallContext, CallDetails, SessionKey
from pegboard.ports.logins import HasLogins

Servers = Mapping[str, ReachedServer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Who has a resource to which someone subscribed; ``release`` is None where it reports no updates."""

    plugin: str
    release: Callable[[], None] | None


async def read_resource(
    services: Services, lists: ResourceLists, snapshot: Snapshot, uri: str, context: CallContext
) -> JsonObject | None:
    """Return the result of a read as the server gave it; None is that there is no such resource (P9).

    A store, a key and an env file of Pegboard's own are none either (P10). A listed URI goes to its owner, else to the
    owner of a template that gives it, else to whichever server that runs has it.

    Raises ``NeedsLoginError``, ``ToolUnavailableError``, ``UpstreamError``.
    """
    started = time.perf_counter()
    servers = reached_servers(services, snapshot)
    aliased = unalias(uri)
    if own := await why_own_file(services, servers.values(), {"uri": [uri, aliased[1]] if aliased else uri}):
        await note_own_file(services, snapshot, "read", uri, own)
        return None
    targets = await _targets(lists, snapshot, servers, uri)
    try:
        async with saying_where(services, servers):
            result = await _read_resource(snapshot.info.key, servers, uri, targets, context)
            if result is None:
                await require_logins(services, with_resource(uri, servers))
    except PegboardError as error:
        note(services, snapshot, "read", uri, failure_of(error), started)
        raise
    if result is None:
        await note_refusal(services, snapshot, "read", uri, aliased[0] if aliased else None)
    else:
        note(services, snapshot, "read", uri, "ok", started)
    return result


async def _targets(lists: ResourceLists, snapshot: Snapshot, servers: Servers, uri: str) -> list[Target]:
    resources, templates = await asyncio.gather(
        lists.merged(snapshot, "resources"), lists.merged(snapshot, "templates")
    )
    matches = next((server.source.matches for server in servers.values()), _matches_no_template)
    return [target for target in owners(uri, servers, resources, templates, matches) if target[0] in servers]


async def _read_resource(
    key: SessionKey, servers: Servers, uri: str, targets: list[Target], context: CallContext
) -> JsonObject | None:
    first: PegboardError | None = None
    for plugin, own in targets:
        try:
            return await servers[plugin].ask(key, "resources/read", {"uri": own}, context)
        except PegboardError as error:
            first = first or error
    if first is not None:
        raise first
    running = [server for server in servers.values() if server.may_have("resources") and server.is_up]
    return await _read_anywhere(key, running, uri, context)


async def _read_anywhere(
    key: SessionKey, servers: Sequence[ReachedServer], uri: str, context: CallContext
) -> JsonObject | None:
    """Return what the first server in order has, of those that answer in time."""
    silent = context._replace(progress=None)
    tasks = [asyncio.create_task(server.ask(key, "resources/read", {"uri": uri}, silent)) for server in servers]
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=SERVER_WAIT)
        found = [task.result() for task in tasks if task.done() and task.exception() is None]
    finally:
        for task in tasks:
            task.cancel()
    return found[0] if found else None


async def get_prompt(
    services: Services,
    lists: ResourceLists,
    snapshot: Snapshot,
    name: str,
    arguments: JsonObject | None,
    context: CallContext,
) -> JsonObject | None:
    """Return the result of a prompt as the server gave it; None is that there is no such prompt (P9).

    It is none either where an argument names a store, a key or an env file of Pegboard's own (P10).
    """
    started = time.perf_counter()
    item = (await lists.merged(snapshot, "prompts")).offers.get(name)
    servers = reached_servers(services, snapshot)
    server = servers.get(item.plugin) if item is not None else None
    if item is None or server is None:
        try:
            async with saying_where(services, servers):
                await require_logins(services, with_prompt(name, servers))
        except PegboardError as error:
            note(services, snapshot, "prompt", name, failure_of(error), started)
            raise
        await note_refusal(services, snapshot, "prompt", name, name.partition("__")[0])
        return None
    if own := await why_own_file(services, [server], arguments or EMPTY):
        await note_own_file(services, snapshot, "prompt", name, own)
        return None
    params = {"name": item.name} if arguments is None else {"name": item.name, "arguments": arguments}
    digest = await services.recorder.digest(arguments or EMPTY)
    try:
        async with saying_where(services, servers):
            result = await server.ask(snapshot.info.key, "prompts/get", params, context)
    except PegboardError as error:
        note(services, snapshot, "prompt", name, failure_of(error), started, digest)
        raise
    note(services, snapshot, "prompt", name, "ok", started, digest)
    return result


async def complete(
    services: Services, lists: ResourceLists, snapshot: Snapshot, params: JsonObject, context: CallContext
) -> JsonObject | None:
    """Return the completion as the server gave it; None is that there is no such prompt or resource."""
    servers = reached_servers(services, snapshot)
    prompts, resources, templates = await asyncio.gather(
        lists.merged(snapshot, "prompts"), lists.merged(snapshot, "resources"), lists.merged(snapshot, "templates")
    )
    found = server_for_completion(params.get("ref", EMPTY), servers, prompts, resources, templates)
    async with saying_where(services, servers):
        if found is None or found[0] not in servers:
            await require_logins(services, with_reference(params.get("ref", EMPTY), servers))
            return None
        asked = {key: value for key, value in params.items() if key in ("argument", "context")}
        own = {"ref": found[1], **asked}
        return await servers[found[0]].ask(snapshot.info.key, "completion/complete", own, context)


async def subscribe(
    services: Services, lists: ResourceLists, snapshot: Snapshot, uri: str, updated: Callable[[str], None]
) -> Subscription | None:
    """Call back when a resource is updated, with its URI as the client knows it.

    None is that there is no such resource (P9).
    """
    servers = reached_servers(services, snapshot)
    targets = await _targets(lists, snapshot, servers, uri)
    async with saying_where(services, servers):
        if not targets:
            await require_logins(services, with_resource(uri, servers))
            return None
        plugin, own = targets[0]
        server, known_as = servers[plugin], _alias_of(uri, own)
        release = await server.subscribe(own, lambda changed: updated(known_as(changed)))
    return Subscription(plugin=plugin, release=release)


def note(
    services: Services,
    snapshot: Snapshot,
    kind: AuditKind,
    subject: str,
    outcome: str,
    started: float,
    digest: str = "",
) -> None:
    """Keep in the audit trail what a request came to; ``digest`` is that of its arguments."""
    duration = round((time.perf_counter() - started) * 1000, 3)
    recorder, key, turn = services.recorder, snapshot.info.key, snapshot.stored.turn
    entry = recorder.entry(key, turn, kind, subject, "allowed", duration=duration, outcome=outcome, arguments=digest)
    recorder.note_later(entry, details=CallDetails(days=snapshot.permissions.agent.record.days))


async def why_own_file(services: Services, servers: Iterable[ReachedServer], asked: JsonObject) -> str:
    """Return why none of the servers is asked: what names it is a file of Pegboard's own that no one reads (P10)."""
    for server in servers:
        if own := await services.own_files.unreadable(server.spec, asked):
            return own
    return ""


async def note_own_file(services: Services, snapshot: Snapshot, kind: AuditKind, subject: str, reason: str) -> None:
    """Audit a request that names a file of Pegboard's own (P10)."""
    recorder, info, turn = services.recorder, snapshot.info, snapshot.stored.turn
    await recorder.note(recorder.entry(info.key, turn, kind, subject, "refused", reason=reason, outcome="own_file"))


async def note_refusal(
    services: Services, snapshot: Snapshot, kind: AuditKind, subject: str, owner: str | None
) -> None:
    """Audit a request for what there is not for this agent, with the true reason where it is known (P9)."""
    permissions = snapshot.permissions
    plugin = permissions.world.catalog.plugins.get(owner or "")
    denied = plugin is not None and plugin.kind == "server" and not permissions.may_have_tools_of(plugin)
    reason = why_not(permissions, plugin) if plugin is not None and denied else None
    text, code = (
        (reason.text, reason.code) if reason is not None else ("There is no such resource or prompt.", "not_found")
    )
    recorder = services.recorder
    entry = recorder.entry(snapshot.info.key, snapshot.stored.turn, kind, subject, "refused", reason=text, outcome=code)
    await recorder.note(entry)


def _alias_of(uri: str, own: str) -> Callable[[str], str]:
    """Return what makes of a URI of the server the one for a client that knows ``own`` as ``uri``."""
    if not uri.endswith(own):
        return lambda _: uri
    head = uri.removesuffix(own)
    return lambda changed: head + changed


def _matches_no_template(template: str, uri: str) -> bool:  # noqa: ARG001 - there is no server whose template it could be
    return False


@asynccontextmanager
async def saying_where(services: Services, servers: Mapping[str, ReachedServer]) -> AsyncGenerator[None]:
    """Raise a ``NeedsLoginError`` of these servers as one that says where their user logs in.

    Raises ``ToolUnavailableError`` where no login can be begun.
    """
    try:
        yield
    except NeedsLoginError as error:
        server = servers[error.plugin]
        source = services.loader.source_of(server.spec)
        if not isinstance(source, HasLogins):
            raise
        need = LoginNeed(plugin=error.plugin, owner=server.owner, scopes=error.scopes)
        pending = None
        if not services.awaiting_login.by_command:
            addresses = services.login_addresses
            begun = await source.logins.begin(server.spec, need, redirect=addresses.redirect(need.owner.principal))
            pending = addresses.shown(begun)
        raise NeedsLoginError(NotLoggedIn(need, pending).text, plugin=error.plugin, scopes=error.scopes) from None


async def require_logins(services: Services, servers: Iterable[ReachedServer]) -> None:
    """Raise ``NeedsLoginError`` for the first of these servers to which a login is missing: what it has is unknown."""
    for server in servers:
        source = services.loader.source_of(server.spec)
        if not server.source.by_login(server.spec) or not isinstance(source, HasLogins):
            continue
        need = await source.logins.needed(server.spec, server.owner)
        if need is not None:
            command = login_command(need.plugin, need.owner)
            raise NeedsLoginError(
                f"'{need.plugin}' requires a login.",
                plugin=need.plugin,
                scopes=need.scopes,
                hint=f"Log in: `{command}`.",
            )


def with_resource(uri: str, servers: Mapping[str, ReachedServer]) -> Iterable[ReachedServer]:
    """Return which of these servers may have a resource that none is known to have."""
    aliased = unalias(uri)
    if aliased is not None:
        return (servers[name] for name in (aliased[0],) if name in servers)
    return (server for server in servers.values() if server.may_have("resources"))


def with_prompt(name: str, servers: Mapping[str, ReachedServer]) -> Iterable[ReachedServer]:
    """Return which of these servers may have a prompt that none is known to have."""
    known = (server for server in servers.values() if server.may_have("prompts"))
    return (server for server in known if may_be_of(name, server.plugin.name, prefix=server.plugin.prefix))


def with_reference(reference: JsonObject, servers: Mapping[str, ReachedServer]) -> Iterable[ReachedServer]:
    """Return which of these servers may have what a completion is for, where none is known to have it."""
    match reference:
        case {"type": "ref/prompt", "name": str(name)}:
            return with_prompt(name, servers)
        case {"type": "ref/resource", "uri": str(uri)}:
            return with_resource(uri, servers)
        case _:
            return ()
