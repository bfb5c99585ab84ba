"""The services that the helpers of a board are handed, what they keep in memory, and the event loop of the board."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pegboard.board.catalog.availability import Availability
from pegboard.board.catalog.loader import CatalogLoader
from pegboard.board.catalog.own_files import OwnFilesGuard
from pegboard.board.catalog.permission_compiler import PermissionCompiler
from pegboard.board.catalog.pins import DefinitionPins
from pegboard.board.catalog.prices import ToolPrices
from pegboard.board.login_addresses import LoginAddresses
from pegboard.board.observability.audit import EventSubscribers, Recorder
from pegboard.board.observability.bill import Billing
from pegboard.board.observability.conversations import Conversations, RememberedUse
from pegboard.board.observability.metrics import SessionMetrics
from pegboard.board.session_info import Delegation, LiveSessions, SessionInfo
from pegboard.core.model.agents import World
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import JsonObject
from pegboard.core.principals.bearer_tokens import Token
from pegboard.dialects.names import Dialect
from pegboard.errors import UsageError
from pegboard.ports import ArgumentValidator, FocusRules, HookRunner, Ranker, SessionKey, Store, TokenCounter
from pegboard.ports.store_health import REACHABLE, LosableStore, StoreHealth

_MOST_SESSIONS: Final = 128
_MOST_OF_SESSION: Final = 32


class AwaitingCall(NamedTuple):
    """A waiting call: its id, of which tool, with which arguments, which way it came, and whether it has been resumed.

    The id is its own, not that of the pending login: any number of calls wait for one login.
    """

    id: str
    name: str
    arguments: JsonObject
    passed_on: bool = False
    read_only: bool = False
    resumed: bool = False


class CallsAwaitingLogin:
    """The waiting calls of this process: the newest of each session, of the sessions that waited last.

    Where there are too many sessions, one of the principal gives way who has the most.

    Those that were resumed are known still, without their arguments. ``by_command`` is set where this process ends
    with its call: no login is begun in it, one is made by a command.
    """

    def __init__(self) -> None:
        self.by_command = False
        self._of_session: OrderedDict[SessionKey, OrderedDict[str, AwaitingCall]] = OrderedDict()

    def put(self, key: SessionKey, call: AwaitingCall) -> None:
        """Keep a call of a session, in place of what is known under its id."""
        calls = self._of_session.setdefault(key, OrderedDict())
        calls[call.id] = call
        calls.move_to_end(call.id)
        self._of_session.move_to_end(key)
        if len(calls) > _MOST_OF_SESSION:
            calls.popitem(last=False)
        if len(self._of_session) > _MOST_SESSIONS:
            counts = Counter(one.principal for one in self._of_session)
            most = max(counts, key=counts.__getitem__)
            del self._of_session[next(one for one in self._of_session if one.principal == most)]

    def waiting_call(self, key: SessionKey, call_id: str) -> AwaitingCall | None:
        """Return a call of this session that waits, or has been resumed."""
        calls = self._of_session.get(key)
        return None if calls is None else calls.get(call_id)


class LoopGuard:
    """Keeps the event loops of other threads away from the sessions and approvals of a board.

    They share the store's connection, whose transactions two loops would break. A loop that does not run at the moment
    gives way to the one that does.
    """

    def __init__(self) -> None:
        self.current: asyncio.AbstractEventLoop | None = None

    def check(self) -> None:
        """Take the running event loop for the board's; raises ``UsageError`` where that runs in another thread."""
        here, current = asyncio.get_running_loop(), self.current
        if current is not None and current is not here and current.is_running():
            raise UsageError(
                "The board runs in the event loop of another thread.",
                hint="Open a board in each loop, with the same store, or one for all with `Pegboard.open_sync`.",
            )
        self.current = here


@dataclass(slots=True)
class KnownTokens:
    """The tokens of the configuration in force, whose rights say who may grant more than the file does (A5)."""

    in_force: Sequence[Token] = ()


MOST_UNSTORED: Final = 10_000
"""How many uses wait at most; the oldest give way."""


class UnstoredUses:
    """The tools that were used, by session; one that is used again waits once."""

    def __init__(self, most: int = MOST_UNSTORED) -> None:
        self._most = most
        self._waiting: OrderedDict[tuple[SessionKey, str], SessionInfo] = OrderedDict()

    def __bool__(self) -> bool:
        """Return whether uses wait."""
        return bool(self._waiting)

    def add(self, info: SessionInfo, tool: str) -> None:
        """Note that a session has used a tool."""
        self._waiting[info.key, tool] = info
        if len(self._waiting) > self._most:
            self._waiting.popitem(last=False)

    def take(self) -> tuple[SessionInfo, str]:
        """Return the oldest use, which waits no more."""
        (_, tool), info = self._waiting.popitem(last=False)
        return info, tool


@dataclass(slots=True)
class ConnectedClient:
    """A client that was heard of: whose it is, with which agent, what it calls itself, and its newest session."""

    principal: str
    agent: str
    name: str
    version: str
    session: str
    first_at: float
    last_at: float
    requests: int


MOST_CLIENTS: Final = 1_000
"""How many clients are known; the one not heard of for longest gives way."""


class ConnectedClients:
    """The clients that reached this process, by principal, agent, name and version."""

    def __init__(self, most: int = MOST_CLIENTS) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, str, str, str], ConnectedClient] = OrderedDict()

    def __iter__(self) -> Iterator[ConnectedClient]:
        """Iterate over them, the one heard of last first."""
        return reversed(tuple(self._known.values()))

    def note(self, key: SessionKey, name: str, version: str, at: float) -> None:
        """Note a request of a client in a session, in seconds since the epoch."""
        identity = key.principal, key.agent, name, version
        known = self._known.get(identity)
        if known is not None:
            known.session, known.last_at = key.session, at
            known.requests += 1
            self._known.move_to_end(identity)
            return
        self._known[identity] = ConnectedClient(*identity, key.session, at, at, 1)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


_MOST_UNKEPT: Final = 256


class PendingSecretArguments:
    """Arguments that hold a secret, which no store is to have, by the approval that they wait for (X5).

    The newest ``_MOST_UNKEPT`` of them are kept.
    """

    def __init__(self) -> None:
        self._by_approval: OrderedDict[str, JsonObject] = OrderedDict()

    def put(self, approval_id: str, arguments: JsonObject) -> None:
        """Keep the arguments that an approval is for."""
        self._by_approval[approval_id] = arguments
        while len(self._by_approval) > _MOST_UNKEPT:
            self._by_approval.popitem(last=False)

    def get(self, approval_id: str) -> JsonObject | None:
        """Return the arguments that an approval is for, where they are kept here."""
        return self._by_approval.get(approval_id)

    def drop(self, approval_id: str) -> None:
        """Forget the arguments of an approval that is used or refused."""
        self._by_approval.pop(approval_id, None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class Services:
    """What helpers need of a board; one value for its whole life."""

    store: Store
    ranker: Ranker
    counter: TokenCounter
    validator: ArgumentValidator
    dialects: Mapping[str, Dialect]
    focus: FocusRules | None
    hooks: HookRunner | None
    compiler: PermissionCompiler
    availability: Availability
    loader: CatalogLoader
    pins: DefinitionPins
    events: EventSubscribers
    recorder: Recorder
    metrics: SessionMetrics
    billing: Billing
    conversations: Conversations
    uses: RememberedUse
    prices: ToolPrices
    unkept: PendingSecretArguments
    own_files: OwnFilesGuard
    delegation: Delegation
    live: LiveSessions
    clients: ConnectedClients = field(default_factory=ConnectedClients)
    awaiting_login: CallsAwaitingLogin = field(default_factory=CallsAwaitingLogin)
    login_addresses: LoginAddresses = field(default_factory=LoginAddresses)
    unstored_uses: UnstoredUses = field(default_factory=UnstoredUses)
    loop: LoopGuard = field(default_factory=LoopGuard)
    tokens: KnownTokens = field(default_factory=KnownTokens)
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What is held while a person is asked about one more call."""

    @property
    def masker(self) -> Masker:
        """Return what hides secrets under the configuration in force."""
        return self.recorder.masker

    @property
    def store_health(self) -> StoreHealth:
        """Return whether the store can be reached now; nothing is waited for."""
        return self.store.health if isinstance(self.store, LosableStore) else REACHABLE

    @property
    def world(self) -> World:
        """Return everything configured and known now; replaced whole, never edited."""
        return self.compiler.world
