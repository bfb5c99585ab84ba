"""The services that the helpers of a board are handed, and the event loop that they work in."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pegboard.board.catalog.availability import Availability
from pegboard.board.catalog.loader import CatalogLoader
from pegboard.board.catalog.own_files import OwnFilesGuard
from pegboard.board.catalog.permission_compiler import PermissionCompiler
from pegboard.board.catalog.pins import DefinitionPins
from pegboard.board.catalog.prices import ToolPrices
from pegboard.board.login_addresses import LoginAddresses
from pegboard.board.observability.audit import Events, Recorder
from pegboard.board.observability.awaiting_login import CallsAwaitingLogin
from pegboard.board.observability.bill import Billing
from pegboard.board.observability.conversations import Conversations
from pegboard.board.observability.metrics import SessionMetrics
from pegboard.board.observability.remembered_use import RememberedUse
from pegboard.board.observability.unkept_arguments import UnkeptArguments
from pegboard.board.session_info import Delegation, LiveSessions
from pegboard.board.unstored_uses import UnstoredUses
from pegboard.core.model.agents import World
from pegboard.core.model.masking import Masker
from pegboard.core.principals.bearer_tokens import Token
from pegboard.dialects.names import Dialect
from pegboard.errors import UsageError
from pegboard.ports import ArgumentValidator, FocusRules, HookRunner, Ranker, Store, TokenCounter
from pegboard.ports.store_health import REACHABLE, CanBeLost, StoreHealth


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
                "The board works in an event loop that runs in another thread.",
                hint="Open a board in each loop, with the same store, or one for all with `Pegboard.open_sync`.",
            )
        self.current = here


@dataclass(slots=True)
class KnownTokens:
    """The tokens of the configuration in force, whose rights say who may grant more than the file does (A5)."""

    in_force: Sequence[Token] = ()


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
    events: Events
    recorder: Recorder
    metrics: SessionMetrics
    billing: Billing
    conversations: Conversations
    uses: RememberedUse
    prices: ToolPrices
    unkept: UnkeptArguments
    own_files: OwnFilesGuard
    delegation: Delegation
    live: LiveSessions
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
        return self.store.health if isinstance(self.store, CanBeLost) else REACHABLE

    @property
    def world(self) -> World:
        """Return everything configured and known now; replaced whole, never edited."""
        return self.compiler.world
