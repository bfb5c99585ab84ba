"""Changes of a server's lists, as it announces them. Imports the SDK: import late."""

from __future__ import annotations

from collections.abc import Callable

from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, ToolsListChanged

from pegboard.sources.mcp.wire.record import ConnectionRecord
from pegboard.support.backoff import Backoff

_KINDS = ("tools", "prompts", "resources")


async def listen(client: Client, record: ConnectionRecord, changed: Callable[[], None]) -> None:
    """Call ``changed`` whenever the list of tools may have changed; in the handshake era that comes by itself."""
    try:
        declared = ((kind, getattr(client.server_capabilities, kind)) for kind in _KINDS)
        changing = frozenset(kind for kind, has in declared if has is not None and has.list_changed)
        if changing:
            await _subscribe(client, record, changing, changed)
    finally:
        record.subscribed.set()


async def _subscribe(
    client: Client, record: ConnectionRecord, changing: frozenset[str], changed: Callable[[], None]
) -> None:
    backoff, lost = Backoff(first=1.0, longest=30.0), False
    while not record.closed.is_set():
        try:
            async with client.listen(
                tools_list_changed="tools" in changing,
                prompts_list_changed="prompts" in changing,
                resources_list_changed="resources" in changing,
            ) as changes:
                honored = changes.honored.model_dump()
                record.announced = frozenset(kind for kind in changing if honored[f"{kind}_list_changed"])
                record.subscribed.set()
                if lost:  # changes may have been missed
                    changed()
                    record.notify(None)
                lost = False
                backoff.reset()
                async for change in changes:
                    if isinstance(change, ToolsListChanged):
                        changed()
            return
        except ListenNotSupportedError:
            return
        except SubscriptionLost:
            pass
        except MCPError as error:
            if not lost and not error.data:  # the server does not have it
                return
        finally:
            record.announced = frozenset()
        record.subscribed.set()
        lost = True
        await backoff.wait()
