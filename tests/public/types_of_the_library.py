"""The types that a program sees: `make types` checks each `assert_type`; nothing here runs.

A `type: ignore` that hides nothing is an error.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, assert_type

from pegboard import (
    Approval,
    Cache,
    CallAnswer,
    CallResult,
    ConfigError,
    Costs,
    Explanation,
    Found,
    Host,
    Item,
    Loadout,
    LoadoutBuilder,
    LoadoutRegistry,
    Outcome,
    Pegboard,
    PegboardError,
    Permissions,
    Plugin,
    Session,
    StoreError,
    Surface,
    SyncPegboard,
    SyncSession,
    Tool,
    ToolUnavailableError,
    UnknownAgentError,
    UpstreamError,
    UsageError,
    host_for,
    tool,
    turn_of_messages,
)
from pegboard.board.blocking import SyncApprovals
from pegboard.board.calls.approvals import Approvals
from pegboard.board.catalog.registries import Loadouts, Toolkits
from pegboard.board.pins import Pins
from pegboard.board.resources.aggregator import ResourceAggregator
from pegboard.board.services import Services
from pegboard.board.session_info import SessionInfo
from pegboard.board.snapshot import Snapshot
from pegboard.config.schema.configuration import Configuration
from pegboard.configuration_editing import EditableFile
from pegboard.core.access.decisions import Reason
from pegboard.core.access.grants import GrantChange
from pegboard.core.access.pins import PinnedTool
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Ref
from pegboard.core.model.leases import LeaseReason, LeaseTerm
from pegboard.core.model.masking import Masker
from pegboard.core.state.active_tools import LoadedTool
from pegboard.core.state.call_plans import CallDecision, CallStatus
from pegboard.core.state.sessions import State
from pegboard.core.surface.run_cost import RunCost
from pegboard.core.surface.surfaces import Focus, SurfaceChanges
from pegboard.dialects.names import FoundTool
from pegboard.operators.configuration import ConfigurationState
from pegboard.ports import Adapters, DueSchedule, SessionKey
from pegboard.problems import Place, Problem
from pegboard.server_trials import ServerFinderOfBoard

Record = Mapping[str, Any]


async def opening() -> None:
    async with Pegboard.open("pegboard.yaml", watch=True, env={"TOKEN": "x"}, adapters=Adapters()) as board:
        assert_type(board, Pegboard)
    with Pegboard.open_sync("pegboard.yaml", watch=True, env={"TOKEN": "x"}, adapters=Adapters()) as blocking_board:
        assert_type(blocking_board, SyncPegboard)
    Pegboard.open(3)  # type: ignore
    Pegboard.open_sync(wach=True)  # type: ignore


async def board_of_a_program(board: Pegboard) -> None:
    host = Host(delivery=("native", "array"), cache=Cache(tokens=30_000))
    assert_type(await board.session(agent="assistant", session_id="s", principal="ada", host=host), Session)
    assert_type(await board.session(sub_app=None, worker_scope="user"), Session)
    await board.session(worker_scope="everyone")  # type: ignore
    assert_type(board.agent("assistant"), Agent)
    assert_type(await board.ready("clock"), None)
    assert_type(await board.plugins(), tuple[Plugin, ...])
    assert_type(await board.tools("assistant", principal="ada"), tuple[Tool, ...])
    assert_type(await board.forget(principal="ada", agent="assistant"), int)
    assert_type(await board.reload(), list[Problem])
    assert_type(await board.accept(by="ada"), tuple[GrantChange, ...])
    assert_type(board.waiting, tuple[GrantChange, ...])
    assert_type(board.on("loaded", print), Callable[[], None])
    assert_type(board.metrics(), list[dict[str, Any]])
    assert_type(board.toolkits, Toolkits)
    assert_type(board.loadouts, Loadouts)
    assert_type(board.toolkits.register({"name": "sums"}), None)
    assert_type(board.loadouts.register(Loadout(name="auditor")), None)
    assert_type(board.on_delegate, Callable[[Session, str], Awaitable[str]] | None)
    assert_type(board.on_schedule, Callable[[Session, DueSchedule], Awaitable[object]] | None)
    assert_type(board.permissions, Permissions)
    assert_type(await board.permissions.set("assistant", "git", value=None), None)
    assert_type(await board.permissions.show(), dict[str, dict[str, bool]])
    assert_type(await board.permissions.panel("assistant"), tuple[Record, ...])
    assert_type(await board.permissions.accept_claims(), tuple[Tool, ...])
    assert_type(board.pins, Pins)
    assert_type(await board.pins.list("up", waiting=True), tuple[PinnedTool, ...])
    assert_type(await board.pins.accept(by="ada", shown=await board.pins.show()), tuple[PinnedTool, ...])
    assert_type(board.approvals, Approvals)
    assert_type(await board.approvals.list(agent="assistant", ended=True), tuple[Approval, ...])
    assert_type(await board.approvals.allow("3f", by="grace", lasts="session", fields={"code": "1"}), Approval)
    assert_type(await board.approvals.refuse("3f", by="grace", reason="No.", expected="waiting"), Approval)
    await board.approvals.allow("3f", by="grace", lasts="ever")  # type: ignore


async def board_of_an_adapter(board: Pegboard) -> None:
    assert_type(board.services, Services)
    assert_type(board.resources, ResourceAggregator)
    assert_type(board.world, World)
    assert_type(board.configuration, Configuration)
    assert_type(board.configuration_state, ConfigurationState)
    assert_type(board.editable, EditableFile)
    assert_type(board.servers_to_add, ServerFinderOfBoard)
    assert_type(await board.create_configuration(by="ada"), str)
    assert_type(board.env, Mapping[str, str])
    await board.take_edits()
    assert_type(board.quickstart, bool)
    assert_type(board.fast_path, bool)
    assert_type(board.from_cache, bool)
    assert_type(board.upstream_states(), list[dict[str, Any]])
    assert_type(await board.adopt(board.world, {}, masker=Masker()), None)
    assert_type(await board.aclose(), None)


async def session_of_a_program(session: Session) -> None:
    assert_type(session.key, SessionKey)
    assert_type(session.agent, Agent)
    assert_type(session.host, Host)
    session.host = Host()
    assert_type(session.adopt_host(host_for("claude-opus-5")), Host)
    assert_type(await session.fit_list(100), bool)
    assert_type(await session.surface(message="What?"), Surface)
    assert_type(await session.surface(loaded=False), Surface)
    assert_type(await session.wire(), tuple[Tool, ...])
    assert_type(await session.changes(), SurfaceChanges)
    assert_type(await session.run_cost(read=1, of=2), RunCost)
    assert_type(await session.decide("git_log", {"n": 3}, ask=True), CallDecision)
    assert_type(await session.runs_unasked("git_log"), bool)
    assert_type(await session.instructions(), str)
    assert_type(await session.load("git", "shell", keep="turn"), Outcome)
    assert_type(await session.unload("git"), Outcome)
    assert_type(await session.fallback(), Outcome)
    assert_type(await session.use_loadout(None), Outcome)
    assert_type(await session.child("explore", agent="scout"), Session)
    assert_type(await session.end_turn(), Outcome)
    assert_type(await session.end_turn(turn=turn_of_messages(5)), Outcome)
    assert_type(turn_of_messages(5), int)
    assert_type(await session.mark_turn("7"), Outcome)
    assert_type(await session.search("a mean", limit=3), Found)
    assert_type(await session.search("a mean", context=["Here are numbers."]), Found)
    assert_type(await session.explain("git"), Explanation)
    assert_type(await session.call("git_log", {"count": 3}), CallAnswer)
    assert_type(await session.resume("3f", result="done"), CallAnswer)
    session.stored  # noqa: B018  # type: ignore


async def session_of_an_adapter(session: Session) -> None:
    snapshot = await session.snapshot()
    assert_type(snapshot, Snapshot)
    assert_type(snapshot.state, State)
    assert_type(session.info, SessionInfo)
    assert_type(session.approvals, Approvals)
    assert_type(session.known_tool("git_log"), Tool | None)
    assert_type(session.report_rejected("tool:git_log", "no"), None)
    assert_type(session.report_adapted(Tool(plugin="git", name="log"), ["an array has 'items'"]), None)


def blocking(board: SyncPegboard, session: SyncSession) -> None:
    assert_type(board.session(agent="assistant", session_id="s"), SyncSession)
    assert_type(board.agent(None), Agent)
    assert_type(board.ready(), None)
    assert_type(board.plugins(), tuple[Plugin, ...])
    assert_type(board.tools(), tuple[Tool, ...])
    assert_type(board.forget(principal="ada"), int)
    assert_type(board.reload(), list[Problem])
    assert_type(board.accept(by="ada"), tuple[GrantChange, ...])
    assert_type(board.on("loaded", print), Callable[[], None])
    assert_type(board.metrics(), list[dict[str, Any]])
    assert_type(board.permissions.set("assistant", "git", value=True), None)
    assert_type(board.permissions.show(), dict[str, dict[str, bool]])
    assert_type(board.permissions.panel("assistant"), tuple[Record, ...])
    assert_type(board.permissions.accept_claims(), tuple[Tool, ...])
    assert_type(board.pins.accept("up/look", by="ada", shown=board.pins.list()), tuple[PinnedTool, ...])
    assert_type(board.approvals.list(), tuple[Approval, ...])
    assert_type(board.approvals.allow("3f", by="grace"), Approval)
    assert_type(board.approvals.refuse("3f", by="grace"), Approval)
    assert_type(session.key, SessionKey)
    assert_type(session.agent, Agent)
    assert_type(session.host, Host)
    assert_type(session.surface(message="What?"), Surface)
    assert_type(session.wire(), tuple[Tool, ...])
    assert_type(session.changes().joined, tuple[Tool, ...])
    assert_type(session.run_cost(), RunCost)
    assert_type(session.changes().left, tuple[str, ...])
    assert_type(session.decide("git_log").status, Literal["runs", "needs_approval", "refused"])
    assert_type(session.approvals, SyncApprovals)
    assert_type(session.instructions(), str)
    assert_type(session.load("git", keep="session"), Outcome)
    assert_type(session.unload("git"), Outcome)
    assert_type(session.fallback(), Outcome)
    assert_type(session.use_loadout("minimal"), Outcome)
    assert_type(session.child("explore"), SyncSession)
    assert_type(session.wait(lambda plain: plain.end_turn()), Outcome)
    assert_type(session.end_turn(), Outcome)
    assert_type(session.end_turn(turn=3), Outcome)
    assert_type(session.mark_turn("7"), Outcome)
    assert_type(session.search("a mean", context=()), Found)
    assert_type(session.explain("git"), Explanation)
    assert_type(session.call("git_log"), CallAnswer)
    assert_type(session.resume("3f"), CallAnswer)


def values(surface: Surface, outcome: Outcome, answer: CallAnswer, found: Found, explained: Explanation) -> None:
    assert_type(surface.tools, tuple[LoadedTool, ...])
    assert_type(surface.tools[0].tool, Tool)
    assert_type(surface.tools[0].until, LeaseTerm)
    assert_type(surface.tools[0].because, tuple[LeaseReason, ...])
    assert_type(surface.names, tuple[str, ...])
    assert_type(surface.find("git_log"), LoadedTool | None)
    assert_type(surface.hints, tuple[str, ...])
    assert_type((surface.suffix, surface.policy), tuple[str, str])
    assert_type(surface.focus, Focus | None)
    assert_type(surface.tokens, Costs)
    assert_type(surface.tokens.saved, int | None)
    assert_type(surface.tokens.unknown, tuple[str, ...])
    assert_type(outcome.status, Literal["ok", "partial", "refused"])
    assert_type(outcome.items, tuple[Item, ...])
    assert_type(outcome.items[0].subject, Ref | None)
    assert_type(outcome.takes_effect, Literal["next_step", "next_request", "native"] | None)
    assert_type(outcome.added, tuple[Tool, ...])
    assert_type((outcome.loaded, outcome.removed), tuple[tuple[str, ...], tuple[str, ...]])
    assert_type(answer.status, CallStatus)
    assert_type((answer.is_error, answer.tool), tuple[bool, Tool | None])
    assert_type(answer.server_error, Record | None)
    assert_type(answer.result, CallResult)
    assert_type(answer.approval, Approval | None)
    assert_type(answer.result.content, tuple[Record, ...])
    assert_type(found.results, tuple[FoundTool, ...])
    assert_type(found.results[0].score, float)
    assert_type(
        (explained.permitted, explained.loaded, explained.visible, explained.callable), tuple[bool, bool, bool, bool]
    )
    assert_type(explained.reasons, tuple[Reason, ...])


def errors(
    refused: ConfigError,
    others: StoreError | ToolUnavailableError | UnknownAgentError | UpstreamError | UsageError,
) -> None:
    assert_type(refused.problems, tuple[Problem, ...])
    assert_type((refused.code, refused.message, refused.hint), tuple[str, str, str])
    assert_type(refused.location, Place | None)
    assert_type(others.code, str)
    root: PegboardError = others
    assert_type(root.location, Place | None)


def loadouts(plugin: Plugin) -> None:
    builder = LoadoutBuilder.create("reviewer").extends("developer").include_category("Security")
    assert_type(builder, LoadoutBuilder)
    assert_type(builder.add_plugin("think").add_discoverable("docker*").disable("shell").build(), Loadout)
    registry = LoadoutRegistry([Loadout(name="reviewer", parent="minimal")])
    assert_type(registry.get("reviewer"), Loadout | None)
    assert_type(registry.all(), tuple[Loadout, ...])
    assert_type(registry.resolve_active("reviewer", ["git", plugin]), frozenset[str])


@tool
def plain(text: str) -> int:
    return len(text)


@tool(read_only=True, requires=["geo/locate"])
async def marked(city: str, *, days: int = 1) -> list[str]:
    return [city] * days


async def marks_keep_signatures() -> None:
    assert_type(plain("x"), int)
    assert_type(await marked("Rome", days=2), list[str])
    plain(3)  # type: ignore
    tool(read_onely=True)  # type: ignore
