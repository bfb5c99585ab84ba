"""Doubles for tests of agents: twins of every port, a scripted MCP client, a strict provider of models, a clock.

Whoever tests an agent opens its own configuration with these in place of servers and services:
nothing is started, nothing is sent, and what was called is on record. See ``docs/testing.md``.
No test framework is imported.
"""

from pegboard.ports import Adapters
from pegboard.stores.sql import MemoryStore
from pegboard.testing.fake_client import FakeClient, FakeListener, Notification
from pegboard.testing.fake_logins import FakeLogins
from pegboard.testing.fake_resources import FakeResources
from pegboard.testing.fake_services import (
    FakeFocusRules,
    FakeHooks,
    FakeOwnFiles,
    FakeRanker,
    FakeValidator,
    WordCounter,
)
from pegboard.testing.fake_source import Canned, FakeSource, ToolCall
from pegboard.testing.manual_clock import ManualClock
from pegboard.testing.providers.replies import CutReply, ModelAnswer, ProviderRefusal, RawReply
from pegboard.testing.providers.server import ScriptedModel, StrictProvider, scripted_model
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
from pegboard.testing.scripted_client import HANDSHAKE, MODERN, Answers, ScriptedClient

__all__ = [
    "HANDSHAKE",
    "MODERN",
    "Adapters",
    "Answers",
    "CallTool",
    "Canned",
    "CutReply",
    "FakeClient",
    "FakeFocusRules",
    "FakeHooks",
    "FakeListener",
    "FakeLogins",
    "FakeOwnFiles",
    "FakeRanker",
    "FakeResources",
    "FakeSource",
    "FakeValidator",
    "GetPrompt",
    "Initialize",
    "ListPrompts",
    "ListResources",
    "ListTools",
    "ManualClock",
    "MemoryStore",
    "ModelAnswer",
    "Notification",
    "ProviderRefusal",
    "RawReply",
    "ReadResource",
    "Received",
    "ScriptStep",
    "ScriptedClient",
    "ScriptedModel",
    "StrictProvider",
    "Subscribe",
    "ToolCall",
    "WordCounter",
    "scripted_model",
]
