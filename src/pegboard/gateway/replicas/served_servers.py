"""Servers that this replica runs, for the others that ask them (G9, G14)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, cast

from pegboard.board.catalog.loader import PluginRequest
from pegboard.board.services import Services
from pegboard.core.access.listed_items import ListKind
from pegboard.core.model.manifest_json import manifest_to_json
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.core.model.tools import CHANGED, EMPTY, CallResult, JsonObject, Tool
from pegboard.errors import PegboardError, ToolUnavailableError
from pegboard.gateway.replicas.server_leases import ServerLeases
from pegboard.gateway.replicas.server_messages import (
    ServerQuestion,
    context_from_json,
    error_to_json,
    refusal_from_json,
    result_to_json,
    tool_from_json,
)
from pegboard.ports import LOG_LEVELS, AskRefusedError, CallContext, Listener, OtherDefinitionError, Restartable
from pegboard.ports.resources import HasResources

HERE: Final[ContextVar[bool]] = ContextVar("pegboard_serves_another", default=False)
"""Whether a request of another replica is served: it is never sent on."""


class ServedServers:
    """What other replicas ask of the servers of this one."""

    def __init__(self, services: Services, leases: ServerLeases) -> None:
        self._services = services
        self._leases = leases
        self._asking: dict[str, AskingClient] = {}

    def spec_if_running(self, question: ServerQuestion) -> PluginSpec | None:
        """Return the server that a question is about, where this replica runs it."""
        spec = self._services.loader.specs.get(question.server.name)
        if not isinstance(spec, ServerSpec) or not self._leases.may_run(question.server):
            return None
        same = self._services.loader.source_of(spec).fingerprint(spec) == question.server.fingerprint
        return spec if same else None

    def answer(self, given: JsonObject) -> None:
        """Take what the client of a call has answered at another replica."""
        client = self._asking.get(given.get("call", ""))
        if client is not None:
            client.take(given)

    async def lines(self, spec: PluginSpec, question: ServerQuestion) -> AsyncGenerator[JsonObject]:
        """Yield what a question comes to: what is passed on meanwhile, and at the end its result or error."""
        queue: asyncio.Queue[JsonObject | None] = asyncio.Queue()
        client = AskingClient(question.context, queue.put_nowait)
        self._asking[client.id] = client
        work = asyncio.create_task(self._work_on(spec, question, client, queue))
        try:
            while (line := await queue.get()) is not None:
                yield line
            yield await work
        finally:
            del self._asking[client.id]
            if not work.done():
                work.cancel()
                await asyncio.wait([work])

    async def _work_on(
        self, spec: PluginSpec, question: ServerQuestion, client: AskingClient, queue: asyncio.Queue[JsonObject | None]
    ) -> JsonObject:
        HERE.set(True)
        try:
            return {"result": await self._result(spec, question, client)}
        except PegboardError as error:
            return {"error": error_to_json(error)}
        finally:
            queue.put_nowait(None)

    async def _result(self, spec: PluginSpec, question: ServerQuestion, client: AskingClient) -> Any:
        source, given, scope = self._services.loader.source_of(spec), question.given, question.server.scope
        context = context_from_json(question.context, scope, client.progress, client)
        match question.what:
            case "describe":
                return manifest_to_json(await source.describe(spec, EMPTY))
            case "call":
                asked = tool_from_json(spec.name, given["tool"])
                return result_to_json(await self._call_tool(spec, asked, given["arguments"], context))
            case "offers" if isinstance(source, HasResources):
                return list(await source.offering.offers(spec, scope, cast("ListKind", given["kind"])))
            case "ask" if isinstance(source, HasResources):
                return await source.offering.ask(spec, given["method"], given["params"], context)
            case "restart" if isinstance(source, Restartable):
                return await source.restart(spec)
            case _:
                raise PegboardError(f"Another version of Pegboard asks for '{question.what[:40]}'.")

    async def _call_tool(
        self, spec: PluginSpec, asked: Tool, arguments: JsonObject, context: CallContext
    ) -> CallResult:
        """Run a tool with the definition that counts here; once more where the server turns out to list another."""
        loader = self._services.loader
        for _ in range(2):
            if loader.catalog.by_id(asked.id) is None:
                await loader.ready([PluginRequest(plugin=spec.name)])
            tool = loader.catalog.by_id(asked.id) or asked
            if tool.unavailable == CHANGED:
                raise ToolUnavailableError(CHANGED)
            with suppress(OtherDefinitionError):
                return await loader.source_of(spec).call(spec, EMPTY, tool, arguments, context)
        raise ToolUnavailableError(f"'{asked.name}' was not called: its server does not list it any more.")


class AskingClient:
    """The client of a call that was made at another replica: what it is told and asked goes there as lines."""

    def __init__(self, context: JsonObject, send: Callable[[JsonObject], None]) -> None:
        self.id = secrets.token_hex(16)
        client = context.get("client") or EMPTY
        self._level: str | None = client.get("level")
        self.declares: JsonObject = client.get("declares") or EMPTY
        self.wanted_task: JsonObject | None = client.get("task")
        self._send = send
        self._open: dict[int, asyncio.Future[JsonObject]] = {}
        self._count = 0

    @property
    def level(self) -> str | None:
        """Return the lowest level of the log messages that it wants."""
        return self._level if self._level in LOG_LEVELS else None

    @property
    def listener(self) -> Listener | None:
        """Return None: what a server says outside of calls is heard where it runs."""
        return None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Pass on how far the call is."""
        self._send({"progress": [progress, total, message]})

    async def tell(self, method: str, params: JsonObject) -> None:
        """Pass a notification on."""
        self._send({"tell": [method, params]})

    async def ask(self, method: str, params: JsonObject, *, about: str = "") -> JsonObject:
        """Return what the client answers at the other replica; raises ``AskRefusedError``."""
        self._count += 1
        number, future = self._count, asyncio.get_running_loop().create_future()
        self._open[number] = future
        self._send({"ask": [self.id, number, method, params, about]})
        try:
            return await future
        finally:
            del self._open[number]

    def take(self, given: JsonObject) -> None:
        """Take an answer, or that there is none."""
        future = self._open.get(given.get("number", 0))
        if future is None or future.done():
            return
        if "answer" in given:
            future.set_result(given["answer"])
            return
        refused = AskRefusedError("The client did not answer.")
        with suppress(LookupError, TypeError):
            refused = refusal_from_json(given["refused"])
        future.set_exception(refused)
