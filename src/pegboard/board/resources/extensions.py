"""Requests of extensions: each goes to the server that declared its extension, with names as that one knows them (G7).

Which one that is say the ids of tasks, addresses and names of tools in it; a list is that of all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from pegboard.board.calls.pipeline import failure_of
from pegboard.board.catalog.loader import SERVER_WAIT
from pegboard.board.resources import reads
from pegboard.board.resources.lists import ResourceLists
from pegboard.board.resources.reach import ReachedServer, reached_servers
from pegboard.board.services import Services
from pegboard.board.snapshot import Snapshot
from pegboard.core.access.extensions import changes_nothing, has_method, with_addresses
from pegboard.core.access.listed_items import alias, unalias
from pegboard.core.access.names import find_called
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY, JsonObject, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.errors import PegboardError, UpstreamError, UsageError
from pegboard.ports import CallContext

log = logging.getLogger("pegboard")

_PAGES: Final = 1000
_HINTS: Final = frozenset({"ttlMs", "cacheScope"})
_KEPT: Final = {"skills/list": "skills"}
"""The lists that are kept for the next start as those of resources are, and under which name their items stand."""

Ask = Callable[[ReachedServer, JsonObject], Any]
Servers = Mapping[str, ReachedServer]


async def ask(
    services: Services, lists: ResourceLists, snapshot: Snapshot, method: str, params: JsonObject, context: CallContext
) -> JsonObject | None:
    """Return the result of a request; None is that no server has what it names (P9).

    Raises ``LookupError`` where no server of the agent has the method, ``UsageError`` where nothing says which of
    several is meant, ``NeedsLoginError``, ``ToolUnavailableError``, ``UpstreamError``.
    """
    started = time.perf_counter()
    reached = reached_servers(services, snapshot)
    servers = {name: server for name, server in reached.items() if has_method(server.plugin.declares, method)}
    if not servers:
        raise LookupError(method)
    named = params.get("uri") or params.get("taskId") or params.get("name")
    subject = f"{method} {named}" if isinstance(named, str) else method
    if own := await reads.why_own_file(services, servers.values(), params):
        await reads.note_own_file(services, snapshot, "read", subject, own)
        return None

    async def ask_server(server: ReachedServer, given: JsonObject) -> JsonObject:
        return await server.ask(snapshot.info.key, method, given, context)

    try:
        async with reads.saying_where(services, servers):
            result = await _answer_request(lists, snapshot, servers, method, params, ask_server)
    except PegboardError as error:
        reads.note(services, snapshot, "read", subject, failure_of(error), started)
        raise
    if result is None:
        target = unalias(named) if isinstance(named, str) else None
        await reads.note_refusal(services, snapshot, "read", subject, target[0] if target else None)
    else:
        reads.note(services, snapshot, "read", subject, "ok", started)
    return result


async def _answer_request(
    lists: ResourceLists, snapshot: Snapshot, servers: Servers, method: str, params: JsonObject, asked: Ask
) -> JsonObject | None:
    match params:
        case {"taskId": str(number)}:
            target = unalias(number)
            if target is None or target[0] not in servers:
                return None
            return await asked(servers[target[0]], {**params, "taskId": target[1]})
        case {"uri": str(uri)}:
            return await _answer_for_address(lists, snapshot, servers, method, params, uri, asked)
        case {"name": str(name)} if (tool := _find_tool(snapshot, name)) is not None:
            server = servers.get(tool.plugin)
            return None if server is None else await asked(server, {**params, "name": tool.name})
        case _ if method.endswith("/list"):
            return await _merged_lists(lists, snapshot, servers, method, params, asked)
        case _:
            return await asked(_only_server(servers, method), params)


async def _answer_for_address(
    lists: ResourceLists,
    snapshot: Snapshot,
    servers: Servers,
    method: str,
    params: JsonObject,
    uri: str,
    asked: Ask,
) -> JsonObject | None:
    """Return what the server of an address answers: the one that it names, or lists it, or the first that has it."""
    aliased = unalias(uri)
    if aliased is not None and aliased[0] in servers:
        result = await asked(servers[aliased[0]], {**params, "uri": aliased[1]})
        return with_addresses(result, partial(alias, aliased[0]))
    if aliased is not None and aliased[0] in snapshot.permissions.world.catalog.plugins:
        return None
    listed = (await lists.merged(snapshot, "resources")).offers.get(uri)
    if listed is not None:
        return await asked(servers[listed.plugin], params) if listed.plugin in servers else None
    if not changes_nothing(method):
        return await asked(_only_server(servers, method), params)
    return await _first_answer(servers.values(), params, asked)


async def _first_answer(servers: Iterable[ReachedServer], params: JsonObject, asked: Ask) -> JsonObject | None:
    """Return what the first server in order answers; raises what the only one says, or one that does not run."""
    tasks = [asyncio.ensure_future(asked(server, params)) for server in servers]
    try:
        await asyncio.wait(tasks, timeout=SERVER_WAIT if len(tasks) > 1 else None)
        for task in tasks:
            if task.done() and task.exception() is None:
                return task.result()
        failed = [error for task in tasks if task.done() and (error := task.exception()) is not None]
    finally:
        for task in tasks:
            task.cancel()
    refused = [error for error in failed if isinstance(error, UpstreamError) and error.answer is not None]
    if failed and (len(tasks) == 1 or len(refused) < len(failed)):
        raise next((error for error in failed if error not in refused), failed[0])
    return None


async def _merged_lists(
    lists: ResourceLists, snapshot: Snapshot, servers: Servers, method: str, params: JsonObject, asked: Ask
) -> JsonObject:
    """Return the lists of all servers as one; a server that does not answer is excluded, and reported.

    An address that an earlier server has, or lists among its resources, is another one here.
    """
    listed = partial(_list_of, lists, method=method, params=params, asked=asked)
    tasks = {name: asyncio.ensure_future(listed(server)) for name, server in servers.items()}
    try:
        await asyncio.wait(tasks.values(), timeout=SERVER_WAIT)
        failed = {name: task.exception() for name, task in tasks.items() if task.done()}
    finally:
        for task in tasks.values():
            task.cancel()
    answers = {name: tasks[name].result() for name, error in failed.items() if error is None}
    for name in servers.keys() - answers.keys():
        why = failed.get(name) or "it does not answer"
        log.warning(
            "the items that server %r has of an extension are not listed: %s", name, one_line(str(why), limit=300)
        )
    if not answers:
        raise next((e for e in failed.values() if e is not None), UpstreamError("No server answered in time."))
    taken = {uri: item.plugin for uri, item in (await lists.merged(snapshot, "resources")).offers.items()}
    merged: dict[str, Any] = {}
    for name, (result, key, items) in answers.items():
        merged = _with_hints(merged, result)
        merged.setdefault(key, []).extend(_item_for_clients(item, name, taken) for item in items)
    return merged


async def _list_of(
    lists: ResourceLists, server: ReachedServer, *, method: str, params: JsonObject, asked: Ask
) -> tuple[JsonObject, str, Sequence[Any]]:
    """Return the list of one server: as it is kept, where it does not run, else as it gives it (G8)."""
    key = _KEPT.get(method) if params.keys() <= {"cursor"} else None
    if key is not None and not server.is_up and (kept := await lists.kept(server, method)) is not None:
        return EMPTY, key, kept
    found = await _pages(server, params, asked)
    if found[1] == key:
        await lists.keep_for_next_start(server, method, found[2])
    return found


async def _pages(server: ReachedServer, params: JsonObject, asked: Ask) -> tuple[JsonObject, str, Sequence[Any]]:
    """Return the last page of a list, under which name its items stand, and those of every page."""
    found: list[Any] = []
    given, key = params, ""
    result: JsonObject = EMPTY
    for _ in range(_PAGES):
        result = await asked(server, given)
        key = next((name for name, value in result.items() if isinstance(value, list | tuple)), "")
        if not key:
            raise UpstreamError(f"Server {server.plugin.name} failed: its answer has no list.")
        found += cast("Sequence[Any]", result[key])
        following = result.get("nextCursor")
        if not isinstance(following, str) or not following or following == given.get("cursor"):
            break
        given = {**params, "cursor": following}
    return {name: value for name, value in result.items() if name not in (key, "nextCursor")}, key, found


def _with_hints(merged: dict[str, Any], result: JsonObject) -> dict[str, Any]:
    """Return what stands around a list of several servers: as fresh, and as public, as the least of them."""
    found = {**result, **merged}
    if merged and merged.keys() & _HINTS != result.keys() & _HINTS:
        found |= {"ttlMs": 0, "cacheScope": "private"}
    elif merged and "ttlMs" in merged:
        found["ttlMs"] = min(merged["ttlMs"], result["ttlMs"])
        found["cacheScope"] = "private" if "private" in (merged["cacheScope"], result["cacheScope"]) else "public"
    return found


def _item_for_clients(item: Any, plugin: str, taken: dict[str, str]) -> Any:
    """Return an item of a list as clients know it; each address is the first's that has it."""
    uri: object = cast("JsonObject", item).get("uri") if isinstance(item, Mapping) else None
    if not isinstance(uri, str) or taken.setdefault(uri, plugin) == plugin:
        return item
    return with_addresses(item, partial(alias, plugin))


def _find_tool(snapshot: Snapshot, name: str) -> Tool | None:
    """Return the permitted tool that is called so."""
    return find_called(snapshot.permissions, name, active_tools(snapshot.permissions, snapshot.state))


def _only_server(servers: Servers, method: str) -> ReachedServer:
    """Return the only server that has a method; raises ``UsageError``."""
    if len(servers) > 1:
        names = ", ".join(servers)
        raise UsageError(
            f"{method} is one of several servers here: {names}.",
            hint=f"Give an address as `{alias('SERVER', 'URI')}`, or the name of a tool.",
        )
    return next(iter(servers.values()))
