"""What the engine needs from the outside, as Protocols by subject; adapters implement them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.ports.adapters import Adapters
from pegboard.ports.approvals import ApprovalStore, HasHooks, HookAnswer
from pegboard.ports.arguments import ArgumentValidator
from pegboard.ports.audit_trail import (
    PART,
    AuditFilter,
    AuditKind,
    AuditLog,
    AuditPart,
    AuditRecord,
    NumberedRecord,
    TrailPage,
    mentions,
)
from pegboard.ports.calls import CallContext, Progress
from pegboard.ports.clients import LOG_LEVELS, AskRefusedError, Client, Listener
from pegboard.ports.conditions import ConditionalSource, HookRunner
from pegboard.ports.focus import FocusRules
from pegboard.ports.past_uses import USE_LIFETIME, USES_KEPT, UseRecord, UseStore
from pegboard.ports.ranking import (
    UNLIKELY,
    Evidence,
    FieldShare,
    MatchedWord,
    PartKind,
    PastUse,
    RankContext,
    Ranked,
    Ranker,
    Ranking,
    ScorePart,
    TextField,
)
from pegboard.ports.resources import HasResources, ResourceSource
from pegboard.ports.sources import (
    Activity,
    ConnectionPhase,
    ConnectionState,
    Excluded,
    PrintedLine,
    Restartable,
    Source,
)
from pegboard.ports.stores import (
    UNCHECKED,
    ChangeToken,
    ManifestStore,
    PermissionStore,
    ReadOnlyTrustStore,
    SessionKey,
    SessionStore,
    StateChange,
    Store,
    StoredState,
    Unchecked,
)
from pegboard.ports.tokens import BILL_DAYS, BillCounts, BillPage, BillRecord, BillStore, TokenCounter
from pegboard.removed import missing

__all__ = [
    "BILL_DAYS",
    "LOG_LEVELS",
    "PART",
    "UNCHECKED",
    "UNLIKELY",
    "USES_KEPT",
    "USE_LIFETIME",
    "Activity",
    "Adapters",
    "ApprovalStore",
    "ArgumentValidator",
    "AskRefusedError",
    "AuditFilter",
    "AuditKind",
    "AuditLog",
    "AuditPart",
    "AuditRecord",
    "BillCounts",
    "BillPage",
    "BillRecord",
    "BillStore",
    "CallContext",
    "ChangeToken",
    "Client",
    "ConditionalSource",
    "ConnectionPhase",
    "ConnectionState",
    "Evidence",
    "Excluded",
    "FieldShare",
    "FocusRules",
    "HasHooks",
    "HasResources",
    "HookAnswer",
    "HookRunner",
    "Listener",
    "ManifestStore",
    "MatchedWord",
    "NumberedRecord",
    "PartKind",
    "PastUse",
    "PermissionStore",
    "PrintedLine",
    "Progress",
    "RankContext",
    "Ranked",
    "Ranker",
    "Ranking",
    "ReadOnlyTrustStore",
    "ResourceSource",
    "Restartable",
    "ScorePart",
    "SessionKey",
    "SessionStore",
    "Source",
    "StateChange",
    "Store",
    "StoredState",
    "TextField",
    "TokenCounter",
    "TrailPage",
    "Unchecked",
    "UseRecord",
    "UseStore",
    "mentions",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise AttributeError(missing(__name__, name))
