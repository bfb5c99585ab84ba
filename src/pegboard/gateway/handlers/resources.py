"""Resources, prompts and completions of the servers behind the gateway, for both protocol eras (G7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError

from pegboard.board.catalog.loader import SERVER_WAIT
from pegboard.errors import PegboardError, UpstreamError
from pegboard.gateway.clients.connections import connection_of
from pegboard.gateway.notifications.resource_lists import ResourceListNotifier, digest_of
from pegboard.gateway.notifications.tool_list import PATIENCE
from pegboard.gateway.protocol.board_port import CALLER, Caller
from pegboard.gateway.protocol.request_identity import DEFAULT_SESSION, RequestIdentity, request_of
from pegboard.ports import CallContext

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from mcp.server.context import ServerRequestContext

    from pegboard.board import Session
    from pegboard.board.resources.reads import Subscription
    from pegboard.core.access.listed_items import ListKind
    from pegboard.gateway.handlers.server import Gateway

Answer = Callable[[Mapping[str, Any]], None]
"""Put something into the answer of the request that is being served, past the models of the SDK."""

NOT_FOUND_BEFORE: Final = -32002
"""The code for an unknown resource in the handshake era."""
_LATER: Final = frozenset({"resultType", "ttlMs", "cacheScope"})
"""What the 2026 era has in results."""

log = logging.getLogger("pegboard")


@dataclass(slots=True, kw_only=True)
class _Subscription:
    """Hold a subscription: of one connection of the handshake era, or of all streams of one viewer."""

    session: Session
    uri: str
    updated: Callable[[str], None]
    subscription: Subscription
    streams: int = 1
    over: bool = False

    def release(self) -> None:
        """End it."""
        self.over = True
        _end(self.subscription)

    def replace(self, found: Subscription) -> None:
        """Go on with another subscription, unless it was ended meanwhile."""
        before, self.subscription = self.subscription, found
        _end(found if self.over else before)


def _end(subscription: Subscription) -> None:
    if subscription.release is not None:
        subscription.release()


class ResourceHandlers:
    """Answer what is asked for besides tools."""

    def __init__(self, gateway: Gateway, answer: Answer) -> None:
        self._gateway = gateway
        self._answer = answer
        self.changes = ResourceListNotifier(
            gateway.board, gateway.changes, lambda caller, name, modern: gateway.session(caller, name, modern=modern)
        )
        self._subscribed: dict[int, dict[str, _Subscription]] = {}
        self._listened: dict[tuple[Caller, str], _Subscription] = {}

    def start(self) -> list[Callable[[], None]]:
        """Listen to the board; returns what ends that. Call it on the loop that serves."""
        self.changes.start()
        edited = self._gateway.board.on("configuration_changed", lambda _: self.changes.spawn(self._renew()))
        return [edited, self.changes.close]

    async def _begun(self, ctx: ServerRequestContext[Any, Any]) -> tuple[RequestIdentity, Session]:
        request = request_of(CALLER.get(), ctx.protocol_version, ctx.params)
        session = await self._gateway.session(request.caller, request.session, modern=request.modern)
        await self._gateway.turns.begin(session, request.turn)
        return request, session

    # -- lists -------------------------------------------------------------------------------------

    async def list_resources(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Answer ``resources/list``."""
        self._answer({"resources": await self._list(ctx, params, "resources")})
        return types.ListResourcesResult(resources=[])

    async def list_templates(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """Answer ``resources/templates/list``."""
        self._answer({"resourceTemplates": await self._list(ctx, params, "templates")})
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def list_prompts(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Answer ``prompts/list``."""
        self._answer({"prompts": await self._list(ctx, params, "prompts")})
        return types.ListPromptsResult(prompts=[])

    async def _list(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None, kind: ListKind
    ) -> list[Mapping[str, Any]]:
        if params is not None and params.cursor is not None:
            raise MCPError(types.INVALID_PARAMS, "There is no such cursor: the list has one page.")
        request, session = await self._begun(ctx)
        offers = await self._gateway.board.resources.listed(session.info, kind)
        connection = None if request.modern else connection_of(ctx.session)
        self.changes.listed(request.caller, request.session, connection, kind, digest_of(offers))
        return [offer.wire for offer in offers.values()]

    # -- reads -------------------------------------------------------------------------------------

    async def read(
        self, ctx: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Answer ``resources/read``."""
        request, session = await self._begun(ctx)
        self._gateway.metrics.asked("read")
        with self._gateway.turns.activity(session):
            try:
                result = await self._gateway.board.resources.read(session.info, params.uri, _context(ctx, request))
            except UpstreamError as error:
                raise self._error(error) from None
        if result is None:
            raise self._unknown(params.uri, modern=request.modern)
        self._pass_on(result, modern=request.modern)
        return types.ReadResourceResult(contents=[])

    async def get_prompt(
        self, ctx: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Answer ``prompts/get``."""
        request, session = await self._begun(ctx)
        self._gateway.metrics.asked("prompt")
        with self._gateway.turns.activity(session):
            try:
                result = await self._gateway.board.resources.prompt(
                    session.info, params.name, params.arguments, _context(ctx, request)
                )
            except UpstreamError as error:
                raise self._error(error) from None
        if result is None:
            raise MCPError(
                types.INVALID_PARAMS, self._gateway.board.services.masker.text(f"Unknown prompt: {params.name}")
            )
        self._pass_on(result, modern=request.modern)
        return types.GetPromptResult(messages=[])

    async def complete(
        self, ctx: ServerRequestContext[Any, Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Answer ``completion/complete``."""
        request = request_of(CALLER.get(), ctx.protocol_version, ctx.params)
        session = await self._gateway.session(request.caller, request.session, modern=request.modern)
        try:
            result = await self._gateway.board.resources.complete(
                session.info, ctx.params or {}, _context(ctx, request)
            )
        except UpstreamError as error:
            raise self._error(error) from None
        if result is None and isinstance(params.ref, types.PromptReference):
            raise MCPError(
                types.INVALID_PARAMS, self._gateway.board.services.masker.text(f"Unknown prompt: {params.ref.name}")
            )
        if result is None:
            raise self._unknown(str(getattr(params.ref, "uri", "")), modern=request.modern)
        self._pass_on(result, modern=request.modern)
        return types.CompleteResult(completion=types.Completion(values=[]))

    def _pass_on(self, result: Mapping[str, Any], *, modern: bool) -> None:
        """Answer as the server did, in the era of the client."""
        passed = dict(result) if modern else {key: value for key, value in result.items() if key not in _LATER}
        if "cacheScope" in passed and self._gateway.board.configuration.tokens:
            passed["cacheScope"] = "private"
        self._answer(passed)

    def _error(self, error: UpstreamError) -> Exception:
        """Return the error of a server as it gave it, without secrets."""
        if error.answer is None:
            return error
        said = self._gateway.board.services.masker.known(dict(error.answer))
        return MCPError(said["code"], said["message"], said["data"])

    def _unknown(self, uri: str, *, modern: bool) -> MCPError:
        """Return the error for a resource that there is not, or not for this agent (P9)."""
        shown = self._gateway.board.services.masker.text(uri)
        code = types.INVALID_PARAMS if modern else NOT_FOUND_BEFORE
        return MCPError(code, f"Unknown resource: {shown}", {"uri": shown})

    # -- subscriptions -----------------------------------------------------------------------------

    async def subscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/subscribe`` of the handshake era."""
        _, session = await self._begun(ctx)
        connection = connection_of(ctx.session)
        held = self._subscribed.get(id(connection))
        if held is None:
            held = self._subscribed[id(connection)] = {}
            connection.exit_stack.callback(self._forget, id(connection))
        if params.uri in held:
            return types.EmptyResult()

        def updated(uri: str) -> None:
            self.changes.spawn(self._notify(connection, params.uri, uri))

        try:
            found = await self._gateway.board.resources.subscribe(session.info, params.uri, updated)
        except UpstreamError as error:
            raise self._error(error) from None
        if found is None:
            raise self._unknown(params.uri, modern=False)
        if found.release is None:
            raise MCPError(types.METHOD_NOT_FOUND, "The server of this resource takes no subscriptions.")
        kept = _Subscription(session=session, uri=params.uri, updated=updated, subscription=found)
        if self._subscribed.get(id(connection)) is not held or params.uri in held:
            kept.release()  # it closed meanwhile, or asked twice
        else:
            held[params.uri] = kept
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer ``resources/unsubscribe`` of the handshake era; what was not subscribed to is no error."""
        held = self._subscribed.get(id(connection_of(ctx.session)), {})
        found = held.pop(params.uri, None)
        if found is not None:
            found.release()
        return types.EmptyResult()

    def _forget(self, number: int) -> None:
        for found in self._subscribed.pop(number, {}).values():
            found.release()

    async def _renew(self) -> None:
        """Subscribe once more: a server that was edited has another connection."""
        for held in [*self._listened.values(), *(kept for one in self._subscribed.values() for kept in one.values())]:
            try:
                found = await self._gateway.board.resources.subscribe(held.session.info, held.uri, held.updated)
            except PegboardError as error:
                log.warning("a subscription was not renewed: %s", self._gateway.board.services.masker.text(str(error)))
                continue
            if found is not None:
                held.replace(found)

    async def _notify(self, connection: Connection, subscribed: str, uri: str) -> None:
        found = self._subscribed.get(id(connection), {}).get(subscribed)
        if found is None or not await self._sees(found):
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await connection.send_resource_updated(uri)
        except TimeoutError:
            log.debug("a client does not read what it is notified of")

    async def _sees(self, held: _Subscription) -> bool:
        try:
            return await self._gateway.board.resources.sees(held.session.info, held.subscription.plugin)
        except PegboardError:
            return False

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer ``subscriptions/listen`` of the 2026 era; what cannot be subscribed to is not acknowledged."""
        caller = CALLER.get()
        viewer = Caller(agent=caller.agent, principal=caller.principal)
        wanted = list(dict.fromkeys(params.notifications.resource_subscriptions or ()))
        taken = await asyncio.gather(*(self._listen_to(viewer, uri) for uri in wanted))
        held = [uri for uri, ok in zip(wanted, taken, strict=True) if ok]
        asked = params.notifications.model_copy(update={"resource_subscriptions": held or None})
        try:
            return await self._gateway.changes.listen(ctx, params.model_copy(update={"notifications": asked}))
        finally:
            for uri in held:
                self._unlisten(viewer, uri)

    async def _listen_to(self, viewer: Caller, uri: str) -> bool:
        known = self._listened.get((viewer, uri))
        if known is not None:
            known.streams += 1
            return True
        session = await self._gateway.session(viewer, DEFAULT_SESSION, modern=True)

        def updated(_: str) -> None:
            self.changes.spawn(self._publish(viewer, uri))

        try:
            async with asyncio.timeout(SERVER_WAIT):
                found = await self._gateway.board.resources.subscribe(session.info, uri, updated)
        except (PegboardError, TimeoutError) as error:
            log.warning(
                "nobody can be told of updates of a resource: %s", self._gateway.board.services.masker.text(str(error))
            )
            return False
        if found is None or found.release is None:
            return False
        kept = _Subscription(session=session, uri=uri, updated=updated, subscription=found)
        known = self._listened.setdefault((viewer, uri), kept)
        if known is not kept:  # another stream was faster
            kept.release()
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
        if known is not None and await self._sees(known):
            await self._gateway.changes.publish(viewer, ResourceUpdated(uri=uri))


def _context(ctx: ServerRequestContext[Any, Any], request: RequestIdentity) -> CallContext:
    wanted = "progress_token" in (ctx.meta or {})
    return CallContext(progress=ctx.session.report_progress if wanted else None, meta=request.meta)
