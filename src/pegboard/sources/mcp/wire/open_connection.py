"""One connection to a server from its start to its end. Imports the SDK: import late."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.core.access.pins import definition_text
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY, Manifest, Tool, excluded_text
from pegboard.sources.mcp.wire.request_outcomes import InFlight, too_large_clause
from pegboard.sources.mcp.wire.server_requests import ServerRequests
from pegboard.sources.mcp.wire.timeouts import TimeLimits
from pegboard.sources.mcp.wire.upstream_call import Call
from pegboard.support.mcp_constants import CAPABILITIES_KEY

if TYPE_CHECKING:
    from mcp import Client

    from pegboard.core.access.instances import LoginOwner
    from pegboard.core.model.tools import JsonObject
    from pegboard.ports import Client as CallClient
    from pegboard.ports import RefusedAccess
    from pegboard.sources.confinement import RefusalReader

log = logging.getLogger("pegboard.sources.mcp")

_STDERR_LINE = 500
_STDERR_LINES = 40
_REFUSED = 20
_INVALID_LINE = 200
_INVALID_LINES = 3
_NAME, _REASON = 200, 300
"""Characters that are kept of what is excluded, and of the reason."""

LONGEST_LINE = 8192
"""How much of a line for people is read, in bytes: far more than is kept, so that no cut leaves half a secret."""

Printed = Literal["stderr", "invalid"]
KeepLine = Callable[[Printed, str, int | None], str]
"""What keeps a line of a process for operators, and returns it whole but without secrets."""


class LoginChallenge(Protocol):
    """What a server said when it refused a request for want of a login; ``scopes`` is what that has to allow."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return what it has to allow, where the server said so."""
        ...


class ShownLogin(Protocol):
    """What the requests over one connection show of a login, as ``login.connection_login`` has it (G11)."""

    owner: LoginOwner | None

    def header_if_at_hand(self) -> str | None:
        """Return the value of the header, if nothing has to be awaited for it."""
        ...

    async def header(self) -> str | None:
        """Return the value of the header, renewed where it has ended; None without a login that counts.

        Raises ``PegboardError`` where it cannot be renewed for now.
        """
        ...

    async def header_after_refusal(self, shown: str) -> str | None:
        """Return another value than the one that the server refused, or None where a login is needed.

        Raises ``PegboardError`` where it cannot be renewed for now.
        """
        ...

    def reject_login(self, shown: str) -> None:
        """Take the login for one that does not count: its server refuses it though it was renewed for it."""
        ...

    async def refused(self, status: int, headers: Mapping[str, str]) -> LoginChallenge | None:
        """Return what an answer says that refuses a request for want of a login; None for any other answer."""
        ...


class OpenConnection:
    """One connection to a server, from its start to its end: its client, its session, what its process printed.

    - ``client`` is there once the connection is ``up``, and ``version`` is known. ``envelope`` is what the SDK sends
      of this client with every request of the 2026 era, ``http_session`` the session of the handshake era over HTTP;
      ``http_initialized``: the server knows that it has begun; ``http_closes``: it has no sessions,
      and closes each connection after an answer.
      ``watch_server`` sees to it that the end of a server over HTTP without sessions is noticed.
      ``capabilities`` are those of the server, as they stood on the wire.
    - ``fast_call`` makes a call around the SDK, and raises ``UseSdkError`` where it has to go by the SDK, as that of
      one of the ``header_tools``: arguments of theirs belong in headers.
    - ``notify`` takes the notifications about lists other than that of tools, ``on_progress`` the progress of calls
      that are not the SDK's. ``announced`` are the lists of which a stream reports changes; ``subscribed`` is set
      once no change can be missed.
    - ``is_open`` until no request can be answered any longer; then ``closed`` is set, and ``ended`` when all that
      belonged to it has been stopped. ``reason`` says why, ``exit`` how its process ended; ``oversized``: it was a
      message over the limit.
    - ``shares_process``: boards may share its process; ``ends_process``: that ends with this connection, for all.
    - ``any_message``: something valid came. ``dropped`` has the tools that are not listed, ``cut`` what is left out of
      those that are, ``excluded`` other lists and items, each with the reason. ``report_invalid`` is called with the
      first line on standard output that is no message.
    - ``newest`` is what was read last of its tools. ``listed`` are those tools once they were compared with the pins;
      None as long as no call may run (A4); ``forgotten`` is how often they had to be read again.
    - ``called``: a call has run on it, so that what it lists may be that caller's.
    - ``era_question`` is the number of the request that asks a server for its era, until that is answered;
      ``reached_by`` is what was learnt of how it is reached.
    - ``set_aside`` are results that the SDK's reader would refuse, by the ids of their requests.
    - ``login`` is what its requests over HTTP show, where the server may want a login.
    - ``refusals`` reads what the process says it was refused, where it is confined; ``note_refused`` takes that, and
      ``refused`` has the first of it.
    """

    client: Client

    def __init__(self, spec: ServerSpec, keep: KeepLine, report_invalid: Callable[[str], None] | None = None) -> None:
        self.name = spec.name
        self.message_limit = spec.message_limit
        self.server_requests = ServerRequests(spec.name)
        self.limits = TimeLimits()
        self.in_flight: dict[int | str, InFlight] = {}
        self.fast_call: Callable[[Call], Awaitable[dict[str, Any]]] | None = None
        self.header_tools: set[str] = set()
        self.version = ""
        self.envelope: dict[str, Any] = {}
        self.capabilities: Mapping[str, Any] = EMPTY
        self.era_question: int | str | None = None
        self.reached_by: Mapping[str, str] = {}
        self.set_aside: dict[Any, dict[str, Any]] = {}
        self.http_session = ""
        self.http_initialized = False
        self.announced: frozenset[str] = frozenset()
        self.notify: Callable[[Any], None] = _ignore_value
        self.on_progress: Callable[[object], object] = _ignore_value
        self.subscribed = asyncio.Event()
        self.up = False
        self.is_open = True
        self.closed = asyncio.Event()
        self.ended = asyncio.Event()
        self.stopped = False
        self.shares_process = False
        self.ends_process = False
        self.reason = ""
        self.oversized = False
        self.alive_check: Callable[[], bool] | None = None
        self.pid: int | None = None
        self.exit = ""
        self.any_message = False
        self.called = False
        self.stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self.invalid_lines: deque[str] = deque(maxlen=_INVALID_LINES)
        self.invalid_count = 0
        self.dropped: dict[str, str] = {}
        self.cut: dict[str, str] = {}
        self.excluded: dict[str, str] = {}
        self._logged: dict[str, str] = {}
        self.http_closes = False
        self.watch_server: Callable[[], object] = _do_nothing
        self.newest: Manifest | None = None
        self.listed: Mapping[str, Tool] | None = None
        self.forgotten = 0
        self._alike: dict[str, Tool] = {}  # tools of calls that were found to be as listed, by their names
        self.login: ShownLogin | None = None
        self.refusals: RefusalReader | None = None
        self.note_refused: Callable[[Iterable[RefusedAccess]], object] = _ignore_value
        self.refused: dict[RefusedAccess, None] = {}
        self._keep = keep
        self._report_invalid = report_invalid

    @property
    def modern(self) -> bool:
        """Return whether the connection is of the 2026 era."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def take_client(self, client: Client) -> None:
        """Note that the server answers, through this client."""
        self.client, self.version, self.up = client, client.protocol_version, True

    def note_compared(self, manifest: Manifest) -> None:
        """Let calls run: what was read last of its tools, if it is this, was compared with the pins."""
        if manifest is self.newest:
            self.listed = {tool.name: tool for tool in manifest.tools}
            self._alike.clear()
            self.watch_server()

    def forget_list(self) -> None:
        """Let no call run before the list has been read once more: another process may answer by now."""
        self.listed = None
        self.forgotten += 1

    def lists(self, tool: Tool) -> bool:
        """Return whether a call of a tool may run here: the list was compared, and has just this definition of it."""
        if self.listed is None:
            return False
        if self._alike.get(tool.name) is tool:
            return True
        own = self.listed.get(tool.name)
        if own is None or definition_text(own) != definition_text(tool):
            return False
        self._alike[tool.name] = tool
        return True

    def introduce_client(self, method: str, params: dict[str, Any] | None, client: CallClient | None) -> None:
        """Write into a request what its client can do besides what Pegboard can do for it (G7, G9).

        The connection begins with what is known of its only client; in the 2026 era each request has that of its own.
        """
        only = self.server_requests.only_client
        match params:
            case {"capabilities": {**capabilities}} if method == "initialize":
                params["capabilities"] = introduced_capabilities(
                    capabilities, only.declares if only is not None else EMPTY
                )
                if only is None and "roots" in capabilities:  # no one says when they change
                    params["capabilities"]["roots"] = {}
            case {"_meta": {**meta}} if CAPABILITIES_KEY in meta:
                declares = client.declares if client is not None else only.declares if only is not None else EMPTY
                if declares:
                    own = introduced_capabilities(meta[CAPABILITIES_KEY], declares, modern=True)
                    params["_meta"] = {**meta, CAPABILITIES_KEY: own}
            case _:
                pass

    def note_pid(self, number: int) -> None:
        """Note the number of its process."""
        self.pid = number

    def note_exit(self, how: str) -> None:
        """Note how its process ended."""
        self.exit = how

    # -- its end -----------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """End the connection; the first reason stands."""
        if self.is_open:
            self.reason = self.reason or reason
            self.is_open = False
            self.closed.set()

    def close_oversized(self) -> None:
        """End the connection because of a message over the limit that no request can be blamed for."""
        self.oversized = True
        self.close(too_large_clause(self.message_limit))

    def stop(self, reason: str) -> None:
        """End the connection because no one needs it any longer."""
        self.stopped = True
        self.close(reason)

    def alive(self) -> bool:
        """Return whether a request that is sent now can be answered."""
        return self.is_open and (self.alive_check is None or self.alive_check())

    # -- its troubles ------------------------------------------------------------------------------

    def add_stderr(self, text: str) -> None:
        """Keep a line that the server wrote to its standard error."""
        kept = self._keep_text("stderr", text)
        if line := one_line(kept, limit=_STDERR_LINE):
            self.stderr.append(line)
            self.read_refusals(kept, printed=True)

    def read_refusals(self, text: str, *, printed: bool = False) -> tuple[RefusedAccess, ...]:
        """Note and return what a text without secrets says was refused to the process, where that is confined."""
        return () if self.refusals is None else self._noted(self.refusals.read(text, printed=printed))

    def unread_arguments(self, arguments: JsonObject, mask: Callable[[str], str]) -> tuple[RefusedAccess, ...]:
        """Return what the arguments of a failed call name and a confined process cannot read.

        A model chose them, so operators are not shown them as something to grant.
        """
        found = () if self.refusals is None else self.refusals.of_arguments(arguments)
        return tuple(one for one in found if mask(one.text) == one.text)

    def _noted(self, refused: Iterable[RefusedAccess]) -> tuple[RefusedAccess, ...]:
        found = tuple(refused)
        if len(self.refused) < _REFUSED:
            self.refused |= dict.fromkeys(found)
        self.note_refused(found)
        return found

    def add_invalid_line(self, text: str) -> None:
        """Keep a line on standard output that is no message of the protocol, and report the first."""
        self.invalid_count += 1
        line = one_line(self._keep_text("invalid", text), limit=_INVALID_LINE)
        if not line:
            return
        self.invalid_lines.append(line)
        if self._report_invalid is not None:
            self._report_invalid(line)
            self._report_invalid = None

    def _keep_text(self, kind: Printed, text: str) -> str:
        return self._keep(kind, text, self.pid) if text.strip() else ""

    def drop(self, tool: str, reason: str) -> None:
        """Report a tool that is not listed."""
        self.dropped.setdefault(one_line(tool, limit=_NAME), one_line(reason, limit=_REASON))

    def report_left_out(self, what: str, reason: str) -> None:
        """Report what is left out of a tool that is listed: it cannot be used."""
        self.cut.setdefault(one_line(what, limit=_NAME), one_line(reason, limit=_REASON))

    def begin_list(self) -> None:
        """Begin to read the list of the tools."""
        self.dropped, self.cut = {}, {}

    def end_list(self) -> None:
        """Log in one line which tools are not listed, where it is another list than the one before."""
        if self.dropped and self.dropped != self._logged:
            log.warning("server %r: %s", self.name, excluded_text(self.dropped))
        self._logged = self.dropped

    def exclude(self, what: str, reason: str) -> None:
        """Report a list, or an item of it, besides tools that is not listed."""
        log.warning("server %r: %s is excluded: %s", self.name, one_line(what, limit=200), reason)
        self.excluded[what] = reason


def introduced_capabilities(
    capabilities: Mapping[str, Any], declares: JsonObject, *, modern: bool = False
) -> dict[str, Any]:
    """Return the capabilities of a client as a server is told them, with what its client declares."""
    more = {name: value for name, value in declares.items() if name == "extensions" or not modern}
    return {**capabilities, **more}


Work = Callable[[OpenConnection], Awaitable[Any]]
"""What is done over a connection that is up."""


def _do_nothing() -> None:
    """Do nothing."""


def _ignore_value(_: object) -> None:
    """Do nothing."""
