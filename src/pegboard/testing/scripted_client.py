"""An MCP client that goes through a list of steps, on the client of the official SDK."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never

from pegboard.core.model.tools import JsonObject
from pegboard.mcp_extra import require
from pegboard.testing.script_steps import (
    CallTool,
    GetPrompt,
    Initialize,
    ListPrompts,
    ListResources,
    ListTools,
    ReadResource,
    Received,
    ScriptStep,
    Subscribe,
)

if TYPE_CHECKING:
    from mcp import Client

    from pegboard.assembly import Pegboard

MODERN: Final = "2026-07-28"
"""The era in which every request stands alone."""
HANDSHAKE: Final = "legacy"
"""The era that begins with ``initialize``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a client answers when it is asked: None is that it has no such capability.

    ``elicitation`` is the content of an accepted form, ``sampling`` the text of a message, ``roots``
    are URIs.
    """

    elicitation: JsonObject | None = None
    sampling: str | None = None
    roots: Sequence[str] | None = None


class ScriptedClient:
    """A connected client: each step is answered with JSON as it stands on the wire.

    A refused request is answered with ``{"error": {"code": …, "message": …}}``. ``received`` is the
    log of notifications, ``asked`` that of what the client was asked, both as they stood on the wire.
    """

    def __init__(self, client: Client, received: list[JsonObject], asked: list[JsonObject]) -> None:
        """Take a connected client over; tests connect with one of the three ways below.

        Args:
            client: The SDK's client, entered.
            received: To which its notifications are appended.
            asked: To which the requests to it are appended.
        """
        self.received = received
        self.asked = asked
        self._client = client
        self._waited: dict[str, int] = {}
        self._stack = AsyncExitStack()
        self._subscriptions: list[asyncio.Task[None]] = []

    @classmethod
    @asynccontextmanager
    async def over_stdio(
        cls, config: str | Path, *options: str, era: str = MODERN, answers: Answers | None = None
    ) -> AsyncGenerator[ScriptedClient]:
        """Start ``pegboard serve --stdio`` as a client does, and connect to it.

        Args:
            config: The configuration.
            options: More of the command line, as ``--agent NAME``.
            era: :data:`MODERN` or :data:`HANDSHAKE`.
            answers: What the client answers when it is asked.

        Yields:
            The client; the process ends with the context.
        """
        require("A scripted client")
        from mcp.client.stdio import StdioServerParameters

        arguments = ["-m", "pegboard", "serve", "--stdio", "--config", str(config), *options]
        target = StdioServerParameters(command=sys.executable, args=arguments)
        async with cls._connect(target, era, answers) as client:
            yield client

    @classmethod
    @asynccontextmanager
    async def in_process(
        cls,
        board: Pegboard,
        *,
        agent: str | None = None,
        session: str | None = None,
        era: str = MODERN,
        answers: Answers | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> AsyncGenerator[ScriptedClient]:
        """Serve an open board in this process, on a free port of the loopback, and connect to it.

        Args:
            board: From ``Pegboard.open``.
            agent: Whose tools are served; None is the default agent.
            session: The session of a client that names none.
            era: :data:`MODERN` or :data:`HANDSHAKE`.
            answers: What the client answers when it is asked.
            clock: By which turns end after ``turn_gap``; a ``ManualClock`` in a test.

        Yields:
            The client; the gateway stops with the context.

        Raises:
            UnknownAgentError: There is no such agent.
        """
        require("A scripted client")
        from pegboard.gateway import serving

        async with (
            serving(board, port=0, agent=agent, session=session, clock=clock) as url,
            cls._connect(url, era, answers) as client,
        ):
            yield client

    @classmethod
    @asynccontextmanager
    async def over_http(
        cls, url: str, *, token: str | None = None, era: str = MODERN, answers: Answers | None = None
    ) -> AsyncGenerator[ScriptedClient]:
        """Connect to a gateway that is running.

        Args:
            url: Of its endpoint, as ``http://127.0.0.1:8321/mcp``.
            token: The bearer token.
            era: :data:`MODERN` or :data:`HANDSHAKE`.
            answers: What the client answers when it is asked.

        Yields:
            The client.
        """
        require("A scripted client")
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {"Authorization": f"Bearer {token}"} if token else None
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            cls._connect(streamable_http_client(url, http_client=http), era, answers) as client,
        ):
            yield client

    @classmethod
    @asynccontextmanager
    async def _connect(cls, target: Any, era: str, answers: Answers | None) -> AsyncGenerator[ScriptedClient]:
        from mcp import Client

        received: list[JsonObject] = []
        asked: list[JsonObject] = []

        async def note(message: Any) -> None:
            if hasattr(message, "method"):
                received.append(_wire(message))

        callbacks = _callbacks(answers or Answers(), asked)
        async with Client(target, mode=era, message_handler=note, **callbacks) as connected:
            client = cls(connected, received, asked)
            try:
                yield client
            finally:
                await client._unsubscribe()

    async def run(self, *steps: ScriptStep) -> list[JsonObject]:
        """Go through steps, one after the other.

        Args:
            steps: What to do.

        Returns:
            The answer to each.

        Raises:
            TimeoutError: A notification was waited for and did not come.
        """
        return [await self.step(step) for step in steps]

    async def step(self, step: ScriptStep) -> JsonObject:
        """Go through one step.

        Args:
            step: What to do.

        Returns:
            Its answer; that of :class:`Received` is the notification, that of :class:`Subscribe` empty.

        Raises:
            TimeoutError: A notification was waited for and did not come.
        """
        from mcp import MCPError

        try:
            return await self._answer_step(step)
        except MCPError as error:
            return {"error": _wire(error.error)}

    async def _answer_step(self, step: ScriptStep) -> JsonObject:
        client = self._client
        match step:
            case Initialize():
                return await self._opening_answer()
            case ListTools():
                return _wire(await client.list_tools(cache_mode="refresh"))
            case CallTool():
                meta: Any = dict(step.meta) or None
                return _wire(await client.call_tool(step.name, dict(step.arguments), meta=meta))
            case ListResources():
                return _wire(await client.list_resources(cache_mode="refresh"))
            case ReadResource():
                return _wire(await client.read_resource(step.uri, cache_mode="refresh"))
            case ListPrompts():
                return _wire(await client.list_prompts(cache_mode="refresh"))
            case GetPrompt():
                return _wire(await client.get_prompt(step.name, dict(step.arguments)))
            case Subscribe():
                return await self._subscribe(step)
            case Received():
                return await self._wait_for_notification(step)
            case _:
                assert_never(step)

    async def _opening_answer(self) -> JsonObject:
        client = self._client
        if client.protocol_version == MODERN:
            import mcp_types as types

            # As any other request: the client's own way of asking this gives up on a cold start after ten seconds.
            found = await client.session.send_request(types.DiscoverRequest(), types.DiscoverResult)
            capabilities, instructions = _wire(found.capabilities), found.instructions
        else:
            capabilities, instructions = _wire(client.server_capabilities), client.instructions
        return {
            "protocolVersion": client.protocol_version,
            "capabilities": capabilities,
            "instructions": instructions or "",
        }

    async def _subscribe(self, step: Subscribe) -> JsonObject:
        from mcp.shared.subscriptions import event_to_notification

        events = await self._stack.enter_async_context(
            self._client.listen(
                tools_list_changed=step.tools,
                resources_list_changed=step.resources,
                prompts_list_changed=step.prompts,
                resource_subscriptions=step.uris,
            )
        )

        async def note() -> None:
            async for event in events:
                self.received.append(_wire(event_to_notification(event, {})))

        self._subscriptions.append(asyncio.create_task(note()))
        return {}

    async def _unsubscribe(self) -> None:
        for task in self._subscriptions:
            task.cancel()
        await asyncio.gather(*self._subscriptions, return_exceptions=True)
        await self._stack.aclose()

    async def _wait_for_notification(self, step: Received) -> JsonObject:
        waited = self._waited.get(step.method, 0)
        deadline = time.monotonic() + step.within
        while True:
            found = [message for message in self.received if message["method"] == step.method]
            if len(found) > waited:
                self._waited[step.method] = waited + 1
                return found[waited]
            if time.monotonic() > deadline:
                others = ", ".join(message["method"] for message in self.received) or "nothing"
                raise TimeoutError(f"no '{step.method}' came within {step.within:g} seconds; received: {others}.")
            await asyncio.sleep(0.005)


def _wire(model: Any) -> JsonObject:
    """Return a model of the SDK as it stands on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _callbacks(answers: Answers, asked: list[JsonObject]) -> dict[str, Any]:
    """Return the callbacks of the SDK's client for what it is able to answer."""
    import mcp_types as types

    async def elicit(_context: Any, params: Any) -> Any:
        asked.append({"method": "elicitation/create", "params": _wire(params)})
        return types.ElicitResult(action="accept", content=dict(answers.elicitation or {}))

    async def sample_message(_context: Any, params: Any) -> Any:
        asked.append({"method": "sampling/createMessage", "params": _wire(params)})
        text = types.TextContent(text=answers.sampling or "")
        return types.CreateMessageResult(role="assistant", content=text, model="scripted", stop_reason="endTurn")

    async def roots(_context: Any) -> Any:
        asked.append({"method": "roots/list", "params": {}})
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": uri}) for uri in answers.roots or ()])

    able = {
        "elicitation_callback": elicit if answers.elicitation is not None else None,
        "sampling_callback": sample_message if answers.sampling is not None else None,
        "list_roots_callback": roots if answers.roots is not None else None,
    }
    return {name: callback for name, callback in able.items() if callback is not None}
