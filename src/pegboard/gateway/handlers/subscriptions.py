"""Subscriptions to resources of the servers behind the gateway, and the streams of the 2026 era (G4, G7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError

from pegboard.board.catalog.loader import SERVER_WAIT
from pegboard.errors import NeedsLoginError, PegboardError, UpstreamError
from pegboard.gateway.clients.handshake import connection_of
from pegboard.gateway.handlers.answers import failed_upstream, unknown_resource
from pegboard.gateway.handlers.turns import begin_request
from pegboard.gateway.notifications.tool_list import PATIENCE
from pegboard.gateway.protocol.board_port import CALLER, Caller

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from pegboard.board import Session
    from pegboard.board.resources.reads import Subscription
    from pegboard.gateway.handlers.session_pool import SessionPool
    from pegboard.gateway.handlers.turns import SessionTurns
    from pegboard.gateway.notifications.resource_lists import ResourceListNotifier
    from pegboard.gateway.notifications.tool_list import ToolListNotifier
    from pegboard.gateway.protocol.board_port import BoardPort

log = logging.getLogger("pegboard")


@dataclass(slots=True, kw_only=True)
class _ClientSubscription:
    """A subscription of one connection of the handshake era, or of all streams of one viewer."""

    session: Session
    uri: str
    updated: Callable[[str], None]
    subscription: Subscription
    streams: int = 1
    over: bool = False

    def release(self) -> None:
        """End it."""
        self.over = True
        _end_subscription(self.subscription)

    def replace(self, found: Subscription) -> None:
        """Go on with another subscription, unless it was ended meanwhile."""
        before, self.subscription = self.subscription, found
        _end_subscription(found if self.over else before)


def _end_subscription(subscription: Subscription) -> None:
    if subscription.release is not None:
        subscription.release()


class SubscriptionHandlers:
    """The handlers of ``resources/subscribe``, ``resources/unsubscribe`` and ``subscriptions/listen``."""

    def __init__(
        self,
        board: BoardPort,
        sessions: SessionPool,
        turns: SessionTurns,
        tool_list: ToolListNotifier,
        notifier: ResourceListNotifier,
    ) -> None:
        self._board = board
        self._sessions = sessions
        self._turns = turns
        self._tool_list = tool_list
        self._notifier = notifier
        self._subscribed: dict[int, dict[str, _ClientSubscription]] = {}
        self._listened: dict[tuple[Caller, str], _ClientSubscription] = {}

    def start(self) -> list[Callable[[], None]]:
        """Listen to the board; returns what ends that. Call it on the loop that serves."""
        return [self._board.on("configuration_changed", lambda _: self._notifier.spawn(self._renew()))]

    async def subscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/subscribe`` of the handshake era."""
        _, session = await begin_request(ctx, self._sessions, self._turns)
        connection = connection_of(ctx.session)
        subscriptions = self._subscribed.get(id(connection))
        if subscriptions is None:
            subscriptions = self._subscribed[id(connection)] = {}
            connection.exit_stack.callback(self._forget, id(connection))
        if params.uri in subscriptions:
            return types.EmptyResult()

        def notify_update(uri: str) -> None:
            self._notifier.spawn(self._notify(connection, params.uri, uri))

        try:
            found = await self._board.resources.subscribe(session.info, params.uri, notify_update)
        except UpstreamError as error:
            raise failed_upstream(error) from None
        if found is None:
            raise unknown_resource(params.uri, self._board.services.masker, modern=False)
        if found.release is None:
            raise MCPError(types.METHOD_NOT_FOUND, "The server of this resource takes no subscriptions.")
        started = _ClientSubscription(session=session, uri=params.uri, updated=notify_update, subscription=found)
        if self._subscribed.get(id(connection)) is not subscriptions or params.uri in subscriptions:
            started.release()  # it closed meanwhile, or asked twice
        else:
            subscriptions[params.uri] = started
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/unsubscribe`` of the handshake era; what was not subscribed to is no error."""
        subscriptions = self._subscribed.get(id(connection_of(ctx.session)), {})
        subscription = subscriptions.pop(params.uri, None)
        if subscription is not None:
            subscription.release()
        return types.EmptyResult()

    def _forget(self, number: int) -> None:
        for found in self._subscribed.pop(number, {}).values():
            found.release()

    async def _renew(self) -> None:
        """Subscribe again: a server that was edited has another connection."""
        for renewed in [*self._listened.values(), *(s for own in self._subscribed.values() for s in own.values())]:
            try:
                found = await self._board.resources.subscribe(renewed.session.info, renewed.uri, renewed.updated)
            except NeedsLoginError as error:
                log.warning("a subscription was not renewed: server %r requires a login", error.plugin)
                continue
            except PegboardError as error:
                log.warning("a subscription was not renewed: %s", self._board.services.masker.text(str(error)))
                continue
            if found is not None:
                renewed.replace(found)

    async def _notify(self, connection: Connection, subscribed: str, uri: str) -> None:
        found = self._subscribed.get(id(connection), {}).get(subscribed)
        if found is None or not await self._sees_server(found):
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await connection.send_resource_updated(uri)
        except TimeoutError:
            log.debug("a client does not read its notifications")

    async def _sees_server(self, subscription: _ClientSubscription) -> bool:
        try:
            return await self._board.resources.sees(subscription.session.info, subscription.subscription.plugin)
        except PegboardError:
            return False

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer ``subscriptions/listen`` of the 2026 era; what cannot be subscribed to is not acknowledged."""
        caller = CALLER.get()
        viewer = Caller(agent=caller.agent, principal=caller.principal, sub_app=caller.sub_app)
        requested = list(dict.fromkeys(params.notifications.resource_subscriptions or ()))
        started = await asyncio.gather(*(self._listen_to(viewer, uri) for uri in requested))
        accepted = [uri for uri, ok in zip(requested, started, strict=True) if ok]
        filtered = params.notifications.model_copy(update={"resource_subscriptions": accepted or None})
        try:
            return await self._tool_list.listen(ctx, params.model_copy(update={"notifications": filtered}))
        finally:
            for uri in accepted:
                self._unlisten(viewer, uri)

    async def _listen_to(self, viewer: Caller, uri: str) -> bool:
        known = self._listened.get((viewer, uri))
        if known is not None:
            known.streams += 1
            return True
        session = await self._sessions.get(viewer, viewer.usual_session, modern=True)

        def publish_update(_: str) -> None:
            self._notifier.spawn(self._publish(viewer, uri))

        try:
            async with asyncio.timeout(SERVER_WAIT):
                found = await self._board.resources.subscribe(session.info, uri, publish_update)
        except NeedsLoginError as error:  # its address is for the user, and is in no log
            log.warning("updates of a resource cannot be passed on: server %r requires a login", error.plugin)
            return False
        except (PegboardError, TimeoutError) as error:
            log.warning("updates of a resource cannot be passed on: %s", self._board.services.masker.text(str(error)))
            return False
        if found is None or found.release is None:
            return False
        own = _ClientSubscription(session=session, uri=uri, updated=publish_update, subscription=found)
        known = self._listened.setdefault((viewer, uri), own)
        if known is not own:  # another stream was faster
            own.release()
            known.streams += 1
        return True

    def _unlisten(self, viewer: Caller, uri: str) -> None:
        known = self._listened[viewer, uri]
        known.streams -= 1
        if not known.streams:
            del self._listened[viewer, uri]
            known.release()

    async def _publish(self, viewer: Caller, uri: str) -> None:
        known = self._listened.get((viewer, uri))
        if known is not None and await self._sees_server(known):
            await self._tool_list.publish(viewer, ResourceUpdated(uri=uri))
