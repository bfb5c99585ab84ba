"""One request to a server: its time limit, its second try, its failure in words. Imports the SDK: import late."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from mcp import MCPError
from pydantic_core import PydanticSerializationError

from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import CallResult, JsonObject, Tool
from pegboard.errors import NeedsLoginError, ToolUnavailableError, UpstreamError, UpstreamTimeoutError, UsageError
from pegboard.ports import CallContext, OtherDefinitionError
from pegboard.sources.confinement import refusal_lines, with_refusals
from pegboard.sources.mcp.connection.connection import Connection
from pegboard.sources.mcp.connection.failure_reasons import http_failure, reason_of, wanted_scopes, was_not_sent
from pegboard.sources.mcp.connection.history import Fault
from pegboard.sources.mcp.requests.send import call_tool
from pegboard.sources.mcp.wire.convert import meta_for_upstream
from pegboard.sources.mcp.wire.http_client import ends_session
from pegboard.sources.mcp.wire.open_connection import OpenConnection, Work
from pegboard.sources.mcp.wire.request_outcomes import (
    ConnectionEndedError,
    InFlight,
    InvalidAnswerError,
    ListUnreadError,
    TooLargeError,
    too_large_clause,
)
from pegboard.sources.mcp.wire.timeouts import TimeLimit
from pegboard.sources.mcp.wire.upstream_call import Call

_MOST_BLOCKS: Final = 10
"""Of the content of an error that are read for what was refused."""
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_MOST_READS: Final = 3
"""How often the list of a server is read for one call, where its connection ends meanwhile."""


def call(
    connection: Connection, spec: ServerSpec, tool: Tool, arguments: JsonObject, context: CallContext
) -> Coroutine[Any, Any, CallResult]:
    """Run one tool of the server; see :meth:`pegboard.sources.mcp.source.McpSource.call`."""
    meta = meta_for_upstream(context.meta) if context.meta else None
    made = Call(tool.name, arguments, meta, context.progress, context.client)
    repeatable = tool.read_only or tool.annotations.get("idempotentHint") is True
    return run_with_retry(
        connection, spec, tool.name, partial(call_tool, made), repeatable=repeatable, made=made, tool=tool
    )


async def run_with_retry(
    connection: Connection,
    spec: ServerSpec,
    what: str,
    work: Work,
    *,
    repeatable: bool,
    made: Call | None = None,
    tool: Tool | None = None,
) -> Any:
    """Do the work; once more on a new connection where the first try cannot have done anything.

    Work that a dead server never read is done again, whatever it is. Work that may have run is done again
    only where it is ``repeatable``: read-only or idempotent. What a server refused with 401 is done again where its
    credentials are read again and differ (G13).

    ``spec`` is as it is configured now, ``what`` names the work in errors, ``made`` is the call that it is, and
    ``tool`` what it calls: it runs only on a connection whose list has just this definition (A4).
    Raises ``UpstreamTimeoutError`` after ``spec.timeout`` seconds, ``UpstreamError``, ``ToolUnavailableError``,
    ``OtherDefinitionError``.
    """
    tries = 0
    while True:
        tries += 1
        live = connection.live or await connection.ensure_up(made)
        if tool is not None and connection.reads is not None and not live.lists(tool):
            live = await _connection_with_list(connection, spec, tool)
        if made is not None:
            made.forgotten = live.forgotten
        try:
            if made is not None and connection.one_at_a_time:
                async with live.server_requests.wait_until_alone():
                    return await _run_once(connection, live, spec, what, work, made)
            return await _run_once(connection, live, spec, what, work, made)
        except ListUnreadError:
            tries -= 1
        except ConnectionEndedError as gone:
            live.forget_list()
            how = await connection.note_lost(live, gone.reason, dead=gone.dead)
            if live.oversized:
                raise _too_large_error(spec, what) from None
            if tries > 1 or (gone.sent and not repeatable):
                raise _went_away_error(spec, what, how, sent=gone.sent, tries=tries) from None
        except ToolUnavailableError as refused:  # nothing ran: with other credentials it may
            if tries > 1 or not _is_unauthorized(refused) or not await connection.renew(live):
                raise


async def _connection_with_list(connection: Connection, spec: ServerSpec, tool: Tool) -> OpenConnection:
    """Return the connection once its list was read, if that has just this definition of a tool (A4).

    A list that was being read already may be older than the definition, and is read once more.
    """
    for _ in range(_MOST_READS):
        joined = connection.reading is not None
        await connection.read_list(spec)
        live = connection.live
        if live is None or live.listed is None:  # it has ended meanwhile
            continue
        if live.lists(tool):
            return live
        if not joined:
            raise OtherDefinitionError
    raise ToolUnavailableError(f"{spec.label} ended each time after its tools were read.", hint="Look at its output.")


async def _run_once(
    connection: Connection, live: OpenConnection, spec: ServerSpec, what: str, work: Work, made: Call | None
) -> Any:
    limit = TimeLimit(live.limits, spec.timeout)
    if made is not None:
        made.limit = limit
        live.called = True
    connection.usage.begin()
    try:
        with limit:
            answer = await work(live)
    except TimeoutError:
        if not limit.ran_out:
            raise
        raise _too_slow_error(spec, what) from None
    except InvalidAnswerError as error:
        raise UpstreamError(connection.mask(f"{spec.label} failed at {what!r}: {error}.")) from None
    except TooLargeError:
        raise _too_large_error(spec, what) from None
    except (UnicodeEncodeError, PydanticSerializationError) as error:
        raise UsageError(f"What was given to {what!r} cannot be written as JSON: {one_line(str(error))}.") from None
    except MCPError as error:
        raise _failure(connection, live, spec, what, error, is_call=made is not None) from error
    finally:
        connection.usage.end()
    connection.history.note_answered()
    if made is not None and answer.is_error:
        return _with_refusals(connection, live, answer, made)
    return answer


def _failure(
    connection: Connection, live: OpenConnection, spec: ServerSpec, what: str, error: MCPError, *, is_call: bool
) -> Exception:
    """Return what to raise for an answer that is an error, and note what it says of the connection."""
    if not http_failure(error):
        connection.history.forget_failures()
        if live.http_session and ends_session(error.message):
            return ConnectionEndedError(f"it answered: {one_line(error.message)}", _answered_in_flight(), dead=True)
    found = connection.read_refusals(error.message)
    refused = _error_of_refusal(spec, connection.mask, what, error, is_call=is_call)
    refused.hint = refused.hint or " ".join(refusal_lines(spec.label, found))
    if (scopes := wanted_scopes(error)) is not None:
        return NeedsLoginError(refused.message, plugin=spec.name, scopes=scopes, hint=refused.hint)
    if isinstance(refused, ToolUnavailableError):
        connection.history.note_unreached(refused.message)
        live.forget_list()
    return refused


def _answered_in_flight() -> InFlight:
    """Return what is known of a request that was answered."""
    in_flight = InFlight()
    in_flight.sent = True
    return in_flight


def _with_refusals(connection: Connection, live: OpenConnection, result: CallResult, made: Call) -> CallResult:
    """Return the result of a tool that failed with what was refused to its server, and what would allow it."""
    texts = (str(block.get("text", "")) for block in result.content[:_MOST_BLOCKS])
    refused = [one for text in texts for one in connection.read_refusals(text)]
    if connection.spec.noun != "server":
        return result  # the plugin's own source says so
    refused = refused or live.unread_arguments(made.arguments, connection.mask)
    return with_refusals(result, connection.spec.label, refused)


def _is_unauthorized(refused: ToolUnavailableError) -> bool:
    cause = refused.__cause__
    marked = http_failure(cause) if isinstance(cause, MCPError) else None
    return marked is not None and marked[1] == _UNAUTHORIZED


def _error_of_refusal(
    spec: ServerSpec, mask: Callable[[str], str], what: str, error: MCPError, *, is_call: bool
) -> ToolUnavailableError | UpstreamError:
    """Return the error for an answer that is one, or for a server that could not be asked."""
    marked = http_failure(error)
    if is_call and marked is not None and marked[1] == _FORBIDDEN:  # by what is behind one tool, perhaps
        reason = f"{spec.label} refused {what!r} with HTTP 403: {one_line(error.message, limit=300)}."
        return UpstreamError(mask(reason), hint=f"The credentials in `{spec.section}` may not have enough rights.")
    if was_not_sent(error) or (marked is not None and marked[1] in {401, 403}):
        reason, hint = reason_of(error, spec)
        return Fault(reason=mask(reason), hint=hint).error(spec)
    if marked is not None:
        reason, hint = reason_of(error, spec)
        return UpstreamError(mask(f"{spec.label} failed at {what!r}: {reason}."), hint=hint)
    text = one_line(error.message, limit=1000)
    refused = UpstreamError(mask(f"{spec.label} refused {what!r}: {text} ({error.code})."))
    refused.answer = {"code": error.code, "message": error.message, "data": error.data}
    return refused


def _went_away_error(spec: ServerSpec, what: str, how: str, *, sent: bool, tries: int) -> UpstreamError:
    """Return the error for a call whose server ended; its hint says whether the call may have run."""
    match sent, tries:
        case True, 1:
            ran = "It may have run, so it was not repeated."
        case True, _:
            ran = "It was repeated once and may have run."
        case _:
            ran = f"It did not run: the {spec.noun} ended before it read it, twice."
    return UpstreamError(
        f"{spec.label} went away during the call of {what!r}: {how}.",
        hint=f"{ran} The next call starts the {spec.noun} again.",
    )


def _too_large_error(spec: ServerSpec, what: str) -> UpstreamError:
    reason = too_large_clause(spec.message_limit)
    return UpstreamError(f"{spec.label} failed at {what!r}: {reason}.", hint=spec.limit_hint)


def _too_slow_error(spec: ServerSpec, what: str) -> UpstreamTimeoutError:
    return UpstreamTimeoutError(
        f"{spec.label} did not answer {what!r} within {spec.timeout:g} s.",
        hint=f"Set a longer `timeout` in `{spec.section}` if the tool needs it.",
    )
