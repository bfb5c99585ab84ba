"""`pegboard suggest`: what the audit trail speaks for, as a change of the configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.board.meta_tools import command_context
from pegboard.cli.common import Options, discover, require_agent, run
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.config.proposed import configuration_of
from pegboard.config.schema.values import Seconds
from pegboard.configuration_source import registered_plugins
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.delivery import Cache
from pegboard.core.proposals.choices import choose
from pegboard.core.proposals.replay import Replay
from pegboard.core.proposals.trail import Trail
from pegboard.core.state.active_tools import starting_tools
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.state.shrinking import excess
from pegboard.errors import UsageError
from pegboard.ports import AuditFilter

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.config.proposed import Judge, ProposedConfiguration
    from pegboard.config.schema.configuration import Configuration
    from pegboard.core.proposals.proposal import Accepted, Findings, Proposal
    from pegboard.core.proposals.replay import Totals
    from pegboard.ports import AuditRecord

EXAMPLE = "pegboard suggest --since 30d | patch -p0"
LEAST: Final = 5
CONTEXT: Final = 10_000
MOST_GONE: Final = 8
AT_ONCE: Final = 5_000
PROGRESS: Final = 200_000
"""After how many records of a trail its progress is reported."""
COLUMNS = (
    TableColumn("proposal"),
    TableColumn("because"),
    *(TableColumn(name, "right") for name in ("schema", "loads", "model calls", "tokens")),
)


@dataclass(slots=True, kw_only=True)
class ReadTrail:
    """What was read of an audit trail, by agent."""

    trails: Mapping[str, Trail]
    records: int = 0
    damaged: int = 0
    first: datetime | None = None
    last: datetime | None = None
    own: bool = False
    """Whether every server is a toolkit of its own, as in a client's file: it counts as the plugin then."""

    def take(self, entry: AuditRecord) -> None:
        """Count a record; loads that a model asked for and got, and calls that ran, are followed."""
        self.records += 1
        self.first, self.last = self.first or entry.at, entry.at
        trail = self.trails.get(entry.agent)
        if trail is None or entry.decision != "allowed":
            return
        session, at = (entry.principal, entry.session), entry.at.timestamp()
        if entry.kind == "load" and entry.outcome != "anticipated":
            subject = entry.subject.replace("toolkit:", "plugin:", 1) if self.own else entry.subject
            trail.load(session, entry.turn, subject, at)
        elif entry.kind == "call":
            trail.call(session, entry.turn, entry.subject, at - (entry.duration or 0.0) / 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestReport:
    """What is shown: the trail, what it says of each agent, and the changed configuration."""

    record: ReadTrail
    found: Sequence[Findings]
    proposed: ProposedConfiguration
    least: int
    context: int


def suggest(
    since: Annotated[
        str | None, typer.Option("--since", metavar="DURATION", help="Only records of the last 12h, 30d and so on.")
    ] = None,
    least: Annotated[
        int,
        typer.Option(
            "--min-sessions", metavar="N", min=1, help="In how many sessions something has to happen to count."
        ),
    ] = LEAST,
    context: Annotated[
        int, typer.Option("--context", metavar="TOKENS", min=0, help="Tokens in front of each conversation.")
    ] = CONTEXT,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    as_json: JsonOption = False,
) -> int:
    """Propose what should be loaded from the start, and toolkits."""

    async def print_suggestions(board: Pegboard, printer: Printer) -> int:
        require_agent(board, agent)
        answer = await _suggest_for(board, printer, agent, _parse_since(since), least, context)
        if printer.as_json:
            printer.document(_json(answer, printer))
        else:
            _print_report(answer, printer)
        return DONE

    return run(Options(config=config, agent=agent, as_json=as_json), print_suggestions)


def _parse_since(since: str | None) -> datetime | None:
    """Return since when records count."""
    if since is None:
        return None
    from pydantic import TypeAdapter, ValidationError

    try:
        return datetime.now(UTC) - timedelta(seconds=TypeAdapter(Seconds).validate_python(since))
    except ValidationError:
        hint = "Write it as 90m, 12h or 30d; at most a year."
        raise UsageError(f"--since: '{since[:40]}' is not a duration.", hint=hint) from None


# -- finding ---------------------------------------------------------------------------------------


async def _suggest_for(
    board: Pegboard, printer: Printer, agent: str | None, begin: datetime | None, least: int, context: int
) -> SuggestReport:
    services = board.services
    await discover(board, printer, start=False)
    await services.compiler.refresh()
    known = {one.name: [tool.name for tool in one.tools] for one in board.world.catalog.plugins.values() if one.tools}
    path = board.configuration.path
    proposed = configuration_of(path, registered=registered_plugins(), tools=known, packaged=board.quickstart)
    names = [agent] if agent is not None else list(board.world.agents)
    trails = {name: Trail(unasked=board.world.agents[name].unloaded_call in ("run", "safe")) for name in names}
    record = ReadTrail(trails=trails, own=not proposed.there and not board.quickstart)
    await _read_trail(board, printer, record, agent, begin)
    found: list[Findings] = []
    for name in names:
        permissions = services.compiler.permissions_of_agent(name)
        judge = await _make_judge(board, permissions)

        def refuse(proposal: Proposal, permissions: CompiledPermissions = permissions, judge: Judge = judge) -> str:
            nonlocal proposed
            changed = proposed.with_proposal(proposal, permissions.agent, judge)
            if isinstance(changed, str):
                return changed
            proposed = changed
            return ""

        replay = Replay(
            permissions, trails[name].patterns(), lambda tool: services.prices([tool]), cache=Cache(tokens=context)
        )
        found.append(choose(permissions, replay, least=least, refuse=refuse))
    return SuggestReport(record=record, found=found, proposed=proposed, least=least, context=context)


async def _read_trail(
    board: Pegboard, printer: Printer, record: ReadTrail, agent: str | None, begin: datetime | None
) -> None:
    """Read the trail from its beginning, in parts; what cannot be read is counted."""
    after: int | None = 0
    with printer.working("Reading the audit trail"):
        while after is not None:
            before = record.records
            part = await board.services.store.part(AuditFilter(agent=agent), after=after, limit=AT_ONCE)
            record.damaged += part.damaged
            for _, entry in part.records:
                if begin is None or entry.at.timestamp() >= begin.timestamp():
                    record.take(entry)
            if record.records // PROGRESS > before // PROGRESS:
                printer.note(f"pegboard: {record.records:,} records read")
            after = part.next


async def _make_judge(board: Pegboard, permissions: CompiledPermissions) -> Judge:
    """Return what looks at a changed configuration: the agent may use what it may now, and keeps its budget (S9)."""
    name = permissions.agent.name
    info = (await board.session(agent=name, session_id="suggest")).info
    permitted = {tool.id for tool in permissions.permitted}
    start = starting_tools(permissions)
    before = {*start.head, *start.tail}

    def judge_change(changed: Configuration) -> str:
        world = changed.world(board.world.catalog)
        new = CompiledPermissions(world, world.agents[name], permissions.constraints)
        if {tool.id for tool in new.permitted} != permitted:
            return f"Agent '{name}' would get other permissions than it has."
        if any(tool not in starting_tools(new) for tool in before):
            return "Something would no longer be loaded from the start."
        if new.agent.dialect != permissions.agent.dialect:
            return "The agent would have another dialect."
        over = excess(new, DEFAULT, command_context(board.services, info, new))
        return f"What is loaded from the start would exceed the budget: {over}." if over else ""

    return judge_change


# -- showing ---------------------------------------------------------------------------------------


def _json(answer: SuggestReport, printer: Printer) -> dict[str, Any]:
    record, proposed = answer.record, answer.proposed
    return {
        "file": proposed.file if proposed.there else None,
        "trail": {
            "records": record.records,
            "damaged": record.damaged,
            "from": record.first.isoformat() if record.first else None,
            "to": record.last.isoformat() if record.last else None,
        },
        "min_sessions": answer.least,
        "context": answer.context,
        "agents": [_findings_json(found, record.trails[found.agent].ignored) for found in answer.found],
        "diff": proposed.diff(printer.masker),
        "yaml": None if proposed.there or not _has_accepted(answer) else proposed.to_write(),
    }


def _findings_json(found: Findings, ignored: int) -> dict[str, Any]:
    return {
        "agent": found.agent,
        "enough": found.enough,
        "sessions": found.sessions,
        "turns": found.turns,
        "calls": found.calls,
        "before": _totals_json(found.before),
        "after": _totals_json(found.after),
        "saved": _totals_json(found.before - found.after),
        "proposals": [_accepted_json(one) for one in found.accepted],
        "declined": [{**_proposal_json(one.proposal), "reason": one.reason} for one in found.declined],
        "unknown": list(found.unknown),
        "gone": list(found.gone),
        "ignored": ignored,
    }


def _totals_json(totals: Totals) -> dict[str, int]:
    return {"loads": totals.loads, "model_calls": totals.model_calls, "tokens": round(totals.tokens)}


def _proposal_json(one: Proposal) -> dict[str, Any]:
    kit = one.toolkit
    shown = None if kit is None else {"name": kit.name, "description": kit.description, "tools": list(kit.members)}
    return {
        "tools": list(one.static),
        "initial_toolkits": list(one.initial),
        "toolkit": shown,
        "sessions": one.sessions,
        "of": one.of,
        "schema_tokens": one.schema,
    }


def _accepted_json(one: Accepted) -> dict[str, Any]:
    return {**_proposal_json(one.proposal), "saved": _totals_json(one.saved)}


def _has_accepted(answer: SuggestReport) -> bool:
    return any(found.accepted for found in answer.found)


def _print_report(answer: SuggestReport, printer: Printer) -> None:
    record, proposed = answer.record, answer.proposed
    damaged = f"; {plural(record.damaged, 'record')} could not be read" if record.damaged else ""
    printer.say(f"{plural(record.records, 'record')} on the audit trail{damaged}.")
    for found in answer.found:
        printer.say()
        _show_agent(found, answer, printer)
    if not _has_accepted(answer):
        return
    printer.say()
    if proposed.there:
        diff = proposed.diff(printer.masker)
        if printer.masker.text(diff) != diff:
            printer.note("pegboard: a changed line has a secret, which is not shown: make this change by hand.")
        printer.patch(diff)
        return
    how = "Write this one:" if proposed.packaged else "`pegboard init` writes one; in it write these sections:"
    printer.say(f"There is no pegboard.yaml to change. {how}\n\n{proposed.to_write().rstrip()}")


def _show_agent(found: Findings, answer: SuggestReport, printer: Printer) -> None:
    if not found.enough:
        needed = f"{plural(answer.least, 'session')} {'is' if answer.least == 1 else 'are'} needed (--min-sessions)"
        on_record = plural(found.sessions, "session")
        printer.say(f"Agent '{found.agent}': too little is on record: {on_record} with loads or calls, and {needed}.")
        return
    counts = (
        plural(found.sessions, "session"), plural(found.turns, "turn"), plural(found.calls, "call"),
        plural(found.before.loads, "load"), plural(found.before.model_calls, "model call"),
    )  # fmt: skip
    printer.heading(f"Agent '{found.agent}': {', '.join(counts[:-1])} by {counts[-1]}")
    if found.accepted:
        printer.table(COLUMNS, [_row(one) for one in found.accepted])
        printer.say(_savings_verdict(found, answer.context))
    else:
        printer.say("No other change would have been cheaper.")
    for one in found.declined:
        names = ", ".join(one.proposal.names)
        printer.say(f"Not proposed: {names}, {_reason_of_proposal(one.proposal)}. {one.reason}")
    if found.unknown:
        printer.say(f"Not counted, since their tools are not known: {', '.join(found.unknown)}.")
    if ignored := answer.record.trails[found.agent].ignored:
        printer.say(
            f"Not counted, because the audit trail has too many kinds of sessions: {plural(ignored, 'session')}."
        )
    if found.gone:
        more = f" and {len(found.gone) - MOST_GONE} more" if len(found.gone) > MOST_GONE else ""
        printer.say(
            f"On the audit trail, but missing or not permitted today: {', '.join(found.gone[:MOST_GONE])}{more}."
        )


def _row(one: Accepted) -> tuple[str, ...]:
    saved = one.saved
    return (
        _describe_proposal(one.proposal),
        _reason_of_proposal(one.proposal),
        f"{one.proposal.schema:,}",
        f"-{saved.loads}",
        f"-{saved.model_calls}",
        f"-{round(saved.tokens):,}",
    )


def _describe_proposal(one: Proposal) -> str:
    parts = [f"tools: {', '.join(one.static)}"] if one.static else []
    parts += [f"initial_toolkits: {', '.join(one.initial)}"] if one.initial else []
    if one.toolkit is not None:
        parts.append(f"toolkit {one.toolkit.name}: {', '.join(one.toolkit.members)}")
    return "; ".join(parts)


def _reason_of_proposal(one: Proposal) -> str:
    used = "loaded together" if one.toolkit is not None else "used" if _names_single_tools(one) else "loaded"
    return f"{used} in {one.sessions} of {one.of} sessions"


def _names_single_tools(one: Proposal) -> bool:
    return bool(one.static) and all("/" in name for name in one.static)


def _savings_verdict(found: Findings, context: int) -> str:
    saved, before = found.before - found.after, found.before
    share = f" ({saved.tokens / before.tokens:.0%})" if before.tokens else ""
    return (
        f"On this trail that would have saved {saved.loads} of {before.loads} loads, "
        f"{saved.model_calls} of {before.model_calls} model calls and {round(saved.tokens):,} of "
        f"{round(before.tokens):,} input tokens{share}. "
        f"A cached token counts a tenth, the context is taken as {context:,} tokens; searches are not on the trail."
    )
