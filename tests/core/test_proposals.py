"""What a trail speaks for: statics, initial toolkits and new toolkits, and what they would have saved."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from builders import permissions_of, plugin, toolkit, world

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.delivery import Cache
from pegboard.core.model.tools import Plugin, Tool, Variant
from pegboard.core.proposals import trail as trails
from pegboard.core.proposals.choices import choose
from pegboard.core.proposals.proposal import Findings, Proposal
from pegboard.core.proposals.replay import Replay
from pegboard.core.proposals.trail import Trail
from pegboard.core.surface.cache_cost import USAGE, load_cost, standing_cost

CACHE = Cache(tokens=10_000)
EACH = 100
WORLD = world(
    plugin("git", "log", "status"),
    plugin("calc", "add"),
    plugin("data", "rows", "columns"),
    replace(plugin("tuned", "run"), variants={key: Variant(tools=("run",)) for key in ("", '{"level": 5}')}),
    toolkits=[
        toolkit("code", "git"),
        toolkit("tuned_kit", ("tuned", {"level": 5})),
    ],
)
Step = str
"""``+toolkit:code`` is a load, ``log`` a call, ``/`` the end of a turn; ``+a+b`` are loads of one model call."""


def everything(**profile: Any) -> CompiledPermissions:
    return permissions_of(WORLD, discoverable=["*"], allowed=["code", "tuned_kit"], **profile)


def recorded(sessions: Iterable[Sequence[Step]], *, unasked: bool = False) -> Trail:
    """Return the trail of these sessions, in each of which a second passes before each step."""
    trail = Trail(unasked=unasked)
    for number, steps in enumerate(sessions):
        turn, at = 1, 0.0
        for step in steps:
            at += 1
            if step == "/":
                turn += 1
            elif step.startswith("+"):
                for subject in step[1:].split("+"):
                    trail.load(number, turn, subject, at)
            else:
                trail.call(number, turn, f"git/{step}", at)
    return trail


def found(
    sessions: Iterable[Sequence[Step]],
    *,
    least: int = 3,
    held: CompiledPermissions | None = None,
    price: int = EACH,
    refused: str = "",
    cache: Cache = CACHE,
) -> Findings:
    def refuse(proposal: Proposal) -> str:
        return "It is refused." if refused in proposal.names else ""

    allowed = held or everything()
    replay = Replay(allowed, recorded(sessions).patterns(), lambda _: price, cache=cache)
    return choose(allowed, replay, least=least, refuse=refuse if refused else lambda _: "")


def names(findings: Findings) -> list[tuple[str, ...]]:
    return [one.proposal.names for one in findings.accepted]


USES_CODE = ["+toolkit:code", "/", "log", "/", "status", "/"]


def test_a_toolkit_that_most_sessions_load_becomes_initial() -> None:
    """T2: initial toolkits are allowed ones."""
    both = ["+toolkit:code", "/", "log", "status"]
    findings = found([both] * 4 + [["rows"]])
    (one,) = findings.accepted
    assert (one.proposal.static, one.proposal.initial, one.proposal.sessions, one.proposal.of) == ((), ("code",), 4, 5)
    assert one.proposal.schema == 2 * EACH
    assert (one.saved.loads, one.saved.model_calls) == (4, 4)


def test_what_most_sessions_call_of_it_is_taken_where_that_is_cheaper_than_the_whole() -> None:
    findings = found([["+plugin:git", "/", "log"]] * 5)
    assert names(findings) == [("git/log",)]
    assert findings.accepted[0].proposal.schema == EACH
    assert findings.after.loads == 0


def test_the_saving_is_that_of_the_cost_model() -> None:
    """F4: before, each session pays a load; after, the schema is in each request."""
    sessions = 5
    findings = found([["+plugin:calc", "/", "add"]] * sessions)
    load = load_cost(EACH, behind=CACHE.tokens + USAGE.message, requests_left=3, cache=CACHE, usage=USAGE)
    assert findings.before.tokens == pytest.approx(sessions * load)
    assert findings.after.tokens == pytest.approx(sessions * standing_cost(EACH, 3, CACHE))
    assert findings.accepted[0].saved.tokens == pytest.approx(findings.before.tokens - findings.after.tokens)


def test_a_schema_that_costs_more_to_carry_than_to_load_stays_on_demand() -> None:
    used = ["+plugin:calc", "add"]
    findings = found([used] * 6 + [["log", "/"] * 30] * 5, price=2_000, cache=Cache(tokens=1_000))
    assert findings.accepted == ()
    (one,) = findings.declined
    assert (one.proposal.names, one.proposal.sessions, one.proposal.of) == (("calc",), 6, 11)
    assert "costs more" in one.reason
    assert findings.after == findings.before


def test_half_of_the_sessions_are_not_most_of_them() -> None:
    assert names(found([USES_CODE] * 3 + [["add"]] * 3)) == []


def test_too_few_sessions_speak_for_nothing() -> None:
    findings = found([USES_CODE] * 2, least=3)
    assert not findings.enough
    assert findings.accepted == ()
    assert findings.before.loads == 2


def test_what_one_model_call_loads_is_taken_together_since_neither_alone_saves_the_call() -> None:
    findings = found([["+plugin:calc+plugin:data", "/", "add", "rows", "columns"]] * 5)
    assert {name for one in names(findings) for name in one} == {"calc", "data"}
    assert (findings.before.loads, findings.before.model_calls) == (10, 5)
    assert (findings.after.loads, findings.after.model_calls) == (0, 0)


def test_what_is_loaded_apart_in_the_same_sessions_becomes_a_toolkit() -> None:
    """T1: one load in place of two, where too few sessions need them for the start."""
    both = ["+plugin:calc", "add", "+plugin:data", "rows"]
    findings = found([both] * 4 + [["log", "/"]] * 8)
    (one,) = findings.accepted
    kit = one.proposal.toolkit
    assert kit is not None
    assert (kit.name, kit.members) == ("calc-data", ("calc", "data"))
    assert kit.description == "Used together, of calc and data: add, rows, columns"
    assert (one.saved.loads, one.saved.model_calls) == (4, 4)
    assert one.proposal.sessions == 4


def test_tools_of_one_plugin_give_a_toolkit_its_name_and_a_taken_name_gets_a_number() -> None:
    held = world(
        plugin("shop", "order_list", "order_cancel", "stock", "pay", "ship", "pack"),
        toolkits=[toolkit("shop-order", "shop/stock")],
    )
    may = permissions_of(held, discoverable=["*"])
    both = ["+tool:shop/order_list", "shop__x", "+tool:shop/order_cancel", "shop__x"]
    findings = found([both] * 4 + [["stock"]] * 8, held=may)
    kit = findings.accepted[0].proposal.toolkit
    assert kit is not None
    assert (kit.name, kit.members) == ("shop-order-2", ("shop/order_cancel", "shop/order_list"))


def test_a_toolkit_that_is_there_is_not_proposed_again() -> None:
    held = world(plugin("calc", "add"), plugin("data", "rows"), toolkits=[toolkit("numbers", "calc", "data")])
    may = permissions_of(held, discoverable=["*"], allowed=["numbers"])
    assert names(found([["+plugin:calc", "add", "+plugin:data", "rows"]] * 4 + [["x"]] * 8, held=may)) == []


def test_what_is_loaded_from_the_start_already_is_not_proposed_again() -> None:
    held = everything(tools=["git"])
    findings = found([USES_CODE] * 6, held=held)
    assert (findings.before.loads, names(findings)) == (0, [])


def test_what_the_agent_may_not_use_is_not_proposed() -> None:
    """P1: a denial since then counts, and so does a grant that is gone."""
    denied = everything(switches={"code": False})
    findings = found([USES_CODE] * 6, held=denied)
    assert (names(findings), findings.gone) == ([], ("toolkit:code",))
    assert names(found([["+plugin:calc", "add"]] * 6, held=permissions_of(WORLD, allowed=["code"]))) == []


def test_what_only_a_switch_grants_is_not_proposed_as_initial() -> None:
    """T2: it would not be allowed."""
    held = permissions_of(WORLD, discoverable=["data"], switches={"code": True})
    assert [one for one in names(found([USES_CODE] * 6, held=held)) if one == ("code",)] == []


def test_a_plugin_with_settings_elsewhere_is_not_named_plainly() -> None:
    """T5: two settings of one plugin would conflict."""
    findings = found([["+tool:tuned/run", "run"]] * 6)
    assert findings.accepted == ()
    assert "settings" in findings.declined[0].reason


def test_a_proposal_that_is_refused_makes_room_for_the_next_best() -> None:
    findings = found([["+plugin:git", "/", "log"]] * 5, refused="git/log")
    assert [one.proposal.names for one in findings.declined] == [("git/log",)]
    assert names(findings) == [("git",)]


def test_a_plugin_whose_tools_are_not_known_is_reported_and_not_counted_as_nothing() -> None:
    """F4: unknown is never 0."""
    held = world(Plugin(name="late"), plugin("calc", "add"))
    findings = found([["+plugin:late", "x"]] * 6, held=permissions_of(held, discoverable=["*"]))
    assert (findings.unknown, findings.accepted) == (("late",), ())


def test_a_fallback_and_names_that_are_gone_are_left_where_they_are() -> None:
    findings = found([["+fallback", "add"], ["+plugin:old", "add"]] * 3)
    assert (findings.before.loads, findings.after.loads, findings.gone) == (6, 6, ("plugin:old",))


def test_loads_of_one_moment_are_one_model_call_and_a_second_later_another() -> None:
    (pattern,) = recorded([["+plugin:calc+plugin:data", "+plugin:git", "add"]]).patterns()
    assert {tuple(sorted(batch)): loads.calls for batch, loads in pattern.loads.items()} == {
        ("plugin:calc", "plugin:data"): 1,
        ("plugin:git",): 1,
    }
    assert (pattern.turns, pattern.calls, pattern.requests) == (1, 1, 4)


@pytest.mark.parametrize(("unasked", "loads"), [(True, 0), (False, 1)])
def test_a_call_that_loads_and_runs_at_once_takes_no_model_call_more(*, unasked: bool, loads: int) -> None:
    """X1: with `run` the load is part of the call; with `schema` the model has to call again."""
    trail = Trail(unasked=unasked)
    trail.load("s", 1, "tool:calc/add", 1.0)
    trail.call("s", 1, "add", 1.001)
    (pattern,) = trail.patterns()
    assert sum(one.calls for one in pattern.loads.values()) == loads


def test_interleaved_sessions_are_kept_apart_and_alike_ones_are_one_pattern() -> None:
    trail = Trail()
    for turn, subject in ((1, "plugin:calc"), (2, "plugin:data")):
        for session in range(50):
            trail.load(session, turn, subject, turn * 100.0 + session)
    (pattern,) = trail.patterns()
    assert (pattern.sessions, pattern.turns) == (50, 100)


def test_the_number_of_sessions_and_patterns_in_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trails, "MOST_OPEN", 10)
    monkeypatch.setattr(trails, "MOST_PATTERNS", 5)
    trail = Trail()
    for session in range(100):
        trail.call(session, 1, f"tool{session % 20}", float(session))
    patterns = trail.patterns()
    assert (len(patterns), sum(one.sessions for one in patterns), trail.ignored) == (5, 25, 75)


def test_the_same_trail_gives_the_same_answer_in_whatever_order_its_sessions_began() -> None:
    sessions = [USES_CODE] * 4 + [["+plugin:calc", "add", "+plugin:data", "rows"]] * 3 + [["log"]]
    assert names(found(sessions)) == names(found(sessions[::-1])) != []


def test_tools_are_priced_without_those_of_the_start() -> None:
    replay = Replay(everything(tools=["calc"]), (), lambda _: EACH, cache=CACHE)
    held: Sequence[Tool] = tuple(WORLD.catalog)
    assert replay.tokens(held) == EACH * (len(held) - 1)
