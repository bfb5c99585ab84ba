"""A server that another replica runs, asked there (G9, G14)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

import httpx2

from pegboard.core.access.extensions import changes_nothing, is_extension
from pegboard.core.access.listed_items import ListKind
from pegboard.core.model.manifest_json import manifest_from_json
from pegboard.core.model.tools import EMPTY, CallResult, JsonObject, Manifest, Tool
from pegboard.errors import ToolUnavailableError, UpstreamError
from pegboard.gateway.replicas.forwarding import MISDIRECTED
from pegboard.gateway.replicas.server_leases import ServerLeases
from pegboard.gateway.replicas.server_messages import (
    ServerQuestion,
    context_to_json,
    error_from_json,
    refusal_to_json,
    result_from_json,
    tool_to_json,
)
from pegboard.ports import AskRefusedError, CallContext, Replica
from pegboard.ports.owned_servers import OtherOwnerError, OwnedServer
from pegboard.support.tasks import BackgroundTasks

if TYPE_CHECKING:
    from httpx2 import Response

_NOBODY: Final = CallContext()
AskReplica = Callable[[Replica, ServerQuestion], Awaitable["Response"]]
"""Returns the response of a replica to a question; raises ``httpx2.TransportError``."""
_OTHERS: Final = frozenset({MISDIRECTED, 409, 503})
"""The statuses of a replica that does not run the server: it has ended, another does, or it is stopping."""


class ServerAtItsOwner:
    """A server at the replica that runs it."""

    def __init__(self, server: OwnedServer, replica: Replica, ask: AskReplica, leases: ServerLeases) -> None:
        self._server = server
        self._replica = replica
        self._ask = ask
        self._leases = leases

    async def describe(self) -> Manifest:
        """Return what the server offers."""
        manifest = manifest_from_json(await self._ask_owner("describe", repeatable=True))
        if manifest is None:
            raise UpstreamError(
                f"Server {self._server.name} runs in another version of Pegboard: it is not understood."
            )
        return manifest

    async def call(self, tool: Tool, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run one tool."""
        given = {"tool": tool_to_json(tool), "arguments": arguments}
        repeatable = tool.read_only or tool.annotations.get("idempotentHint") is True
        return result_from_json(await self._ask_owner("call", given, context, repeatable=repeatable))

    async def offers(self, kind: ListKind) -> Sequence[JsonObject]:
        """Return a list as it stands on the wire."""
        return await self._ask_owner("offers", {"kind": kind}, repeatable=True)

    async def ask(self, method: str, params: JsonObject, context: CallContext) -> JsonObject:
        """Return the result of a request, unchanged."""
        return await self._ask_owner(
            "ask", {"method": method, "params": params}, context, repeatable=_is_repeatable(method)
        )

    async def restart(self) -> None:
        """Stop the server, and start it again if it was in use."""
        await self._ask_owner("restart", repeatable=True)

    async def _ask_owner(
        self, what: str, given: JsonObject = EMPTY, context: CallContext = _NOBODY, *, repeatable: bool
    ) -> Any:
        """Return what a question comes to; what may have run and is not ``repeatable`` is not asked again."""
        question = ServerQuestion(self._server, what, given, context_to_json(context))
        response = await self._send_question(question, repeatable=repeatable)
        try:
            if response.status_code in _OTHERS:
                await self._note_moved(response)
            if response.status_code != 200:
                raise self._unreachable_error(f"it answers with the status {response.status_code}")
            return await _come_to(self._lines(response), context, self._send_answer)
        except (httpx2.TransportError, EOFError):
            raise self._broken_off(repeatable=repeatable) from None
        finally:
            await response.aclose()

    async def _send_question(self, question: ServerQuestion, *, repeatable: bool) -> Response:
        try:
            response = await self._ask(self._replica, question)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if await self._leases.is_unreachable(self._server, self._replica.id, refused=_is_refused(error)):
                raise self._unreachable_error("it runs, but cannot be reached there") from None
            raise OtherOwnerError from None
        except httpx2.TransportError:
            raise self._broken_off(repeatable=repeatable) from None
        self._leases.note_answer_of(self._replica.id)
        return response

    async def _note_moved(self, response: Response) -> None:
        """Note that the replica does not run the server; raises ``OtherOwnerError``."""
        if response.status_code == MISDIRECTED:
            self._leases.forget_replica(self._replica.id)
        self._leases.note_moved(self._server, self._replica.id)
        if response.status_code == 503:
            await asyncio.sleep(0.1)  # it lets go of its servers
        raise OtherOwnerError

    async def _lines(self, response: Response) -> AsyncIterator[Any]:
        async for line in response.aiter_lines():
            if line:
                yield json.loads(line)

    async def _send_answer(self, answer: JsonObject) -> None:
        """Send what a client has answered; where no one takes it any longer, the call is over."""
        with suppress(httpx2.TransportError):
            await (await self._ask(self._replica, ServerQuestion(self._server, "answer", answer))).aclose()

    def _unreachable_error(self, why: str) -> ToolUnavailableError:
        return ToolUnavailableError(
            f"Server {self._server.name} runs in replica {self._replica.id} at {self._replica.address}: {why}.",
            hint="Call it again; if it stays so, check the --address of that replica.",
        )

    def _broken_off(self, *, repeatable: bool) -> Exception:
        if repeatable:
            return OtherOwnerError()
        return UpstreamError(
            f"Server {self._server.name} went away with the replica that ran it.",
            hint="The call may have run, so it was not repeated. The next call starts the server again.",
        )


def _is_repeatable(method: str) -> bool:
    return not is_extension(method) or changes_nothing(method)


async def _come_to(lines: AsyncIterator[Any], context: CallContext, answer: Any) -> Any:
    """Return the result among the lines of a response, and pass on what comes before; raises what it says."""
    asking = BackgroundTasks()
    try:
        async for line in lines:
            match line:
                case {"result": result}:
                    return result
                case {"error": error}:
                    raise error_from_json(error)
                case {"progress": [progress, total, message]} if context.progress is not None:
                    await context.progress(progress, total, message)
                case {"tell": [method, params]} if context.client is not None:
                    await context.client.tell(method, params)
                case {"ask": [call, number, method, params, about]}:
                    asking.start(_ask_client(context, call, number, (method, params, about), answer))
                case _:
                    pass  # what a newer version says besides
    finally:
        await asking.aclose()
    raise EOFError


async def _ask_client(
    context: CallContext, call: str, number: int, asked: tuple[str, JsonObject, str], answer: Any
) -> None:
    method, params, about = asked
    said: JsonObject
    try:
        if context.client is None:
            raise AskRefusedError("There is no one to ask here.")
        said = {"answer": await context.client.ask(method, params, about=about)}
    except AskRefusedError as refused:
        said = {"refused": refusal_to_json(refused)}
    await answer({"call": call, "number": number, **said})


def _is_refused(error: BaseException | None) -> bool:
    """Return whether a machine says that no one listens at an address."""
    while error is not None:
        if isinstance(error, ConnectionRefusedError):
            return True
        if isinstance(error, BaseExceptionGroup):
            return all(map(_is_refused, cast("tuple[BaseException, ...]", error.exceptions)))
        error = error.__cause__ or error.__context__
    return False
