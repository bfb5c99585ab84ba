"""What the engine needs from the outside, as Protocols by subject; adapters implement them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pegboard.ports.adapters import Adapters, ConditionalSource, FocusRules, HookRunner, TokenCounter
from pegboard.ports.approvals import APPROVALS_KEPT, ApprovalStore, HasHooks, HookAnswer
from pegboard.ports.calls import LOG_LEVELS, ArgumentValidator, AskRefusedError, CallContext, Client, Listener, Progress
from pegboard.ports.counts import CountFilter, CountName, CountRecord, Counts, CountSums, CountUnit, UsageOutcome
from pegboard.ports.own_files import OwnFiles
from pegboard.ports.ranking import (
    UNLIKELY,
    USE_LIFETIME,
    USES_KEPT,
    Evidence,
    PastUse,
    RankContext,
    Ranked,
    Ranker,
    Ranking,
    UseRecord,
    UseStore,
)
from pegboard.ports.requests import (
    MOST_DETAILS,
    MOST_UNWRITTEN,
    PART,
    AuditFilter,
    AuditKind,
    AuditPart,
    AuditRecord,
    CallDetails,
    CallNumbers,
    NumberedRecord,
    RequestStore,
    SessionKey,
    TrailPage,
    mentions,
)
from pegboard.ports.resources import HasResources, ResourceSource
from pegboard.ports.sources import (
    AskingSource,
    CodeSource,
    Fingerprint,
    ListReader,
    OtherDefinitionError,
    ScopedSource,
    Source,
    SourceWithTurns,
    TakeList,
)
from pegboard.ports.stores import (
    ACTIONS_KEPT,
    UNCHECKED,
    UNREAD,
    ChangeToken,
    ConfigurationText,
    ConfigurationTextStore,
    GrantStore,
    ManifestStore,
    PermissionStore,
    PinChange,
    PinStore,
    SessionDataStore,
    SessionStore,
    StateChange,
    Store,
    StoredPermissions,
    StoredState,
    SwitchAction,
    SwitchChange,
    SwitchKind,
    Unchecked,
    Unread,
)

if TYPE_CHECKING:
    from pegboard.ports.logins import HasLogins, ServerLogins
    from pegboard.ports.replicas import Replica, ReplicaStore
    from pegboard.ports.schedules import DueSchedule, ScheduleSource
    from pegboard.ports.score_parts import FieldShare, MatchedWord, PartKind, ScorePart, TextField
    from pegboard.ports.sealed import SealedKind, SealedStore, SealedText
    from pegboard.ports.server_states import (
        ConnectionPhase,
        ConnectionState,
        Excluded,
        PrintedLine,
        RefusedAccess,
        RefusedKind,
        Restartable,
        ServerActivity,
    )

__all__ = [
    "ACTIONS_KEPT",
    "APPROVALS_KEPT",
    "LOG_LEVELS",
    "MOST_DETAILS",
    "MOST_UNWRITTEN",
    "PART",
    "UNCHECKED",
    "UNLIKELY",
    "UNREAD",
    "USES_KEPT",
    "USE_LIFETIME",
    "Adapters",
    "ApprovalStore",
    "ArgumentValidator",
    "AskRefusedError",
    "AskingSource",
    "AuditFilter",
    "AuditKind",
    "AuditPart",
    "AuditRecord",
    "CallContext",
    "CallDetails",
    "CallNumbers",
    "ChangeToken",
    "Client",
    "CodeSource",
    "ConditionalSource",
    "ConfigurationText",
    "ConfigurationTextStore",
    "ConnectionPhase",
    "ConnectionState",
    "CountFilter",
    "CountName",
    "CountRecord",
    "CountSums",
    "CountUnit",
    "Counts",
    "DueSchedule",
    "Evidence",
    "Excluded",
    "FieldShare",
    "Fingerprint",
    "FocusRules",
    "GrantStore",
    "HasHooks",
    "HasLogins",
    "HasResources",
    "HookAnswer",
    "HookRunner",
    "ListReader",
    "Listener",
    "ManifestStore",
    "MatchedWord",
    "NumberedRecord",
    "OtherDefinitionError",
    "OwnFiles",
    "PartKind",
    "PastUse",
    "PermissionStore",
    "PinChange",
    "PinStore",
    "PrintedLine",
    "Progress",
    "RankContext",
    "Ranked",
    "Ranker",
    "Ranking",
    "RefusedAccess",
    "RefusedKind",
    "Replica",
    "ReplicaStore",
    "RequestStore",
    "ResourceSource",
    "Restartable",
    "ScheduleSource",
    "ScopedSource",
    "ScorePart",
    "SealedKind",
    "SealedStore",
    "SealedText",
    "ServerActivity",
    "ServerLogins",
    "SessionDataStore",
    "SessionKey",
    "SessionStore",
    "Source",
    "SourceWithTurns",
    "StateChange",
    "Store",
    "StoredPermissions",
    "StoredState",
    "SwitchAction",
    "SwitchChange",
    "SwitchKind",
    "TakeList",
    "TextField",
    "TokenCounter",
    "TrailPage",
    "Unchecked",
    "Unread",
    "UsageOutcome",
    "UseRecord",
    "UseStore",
    "mentions",
]

if not TYPE_CHECKING:
    _LATE = {
        "ServerActivity": "server_states",
        "ConnectionPhase": "server_states",
        "ConnectionState": "server_states",
        "DueSchedule": "schedules",
        "Excluded": "server_states",
        "HasLogins": "logins",
        "SealedKind": "sealed",
        "SealedStore": "sealed",
        "SealedText": "sealed",
        "ServerLogins": "logins",
        "Replica": "replicas",
        "ReplicaStore": "replicas",
        "FieldShare": "score_parts",
        "MatchedWord": "score_parts",
        "PartKind": "score_parts",
        "PrintedLine": "server_states",
        "RefusedAccess": "server_states",
        "RefusedKind": "server_states",
        "Restartable": "server_states",
        "ScheduleSource": "schedules",
        "ScorePart": "score_parts",
        "TextField": "score_parts",
    }

    def __getattr__(name: str) -> object:
        if name not in _LATE:
            raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
        value = getattr(import_module(f"pegboard.ports.{_LATE[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATE})
