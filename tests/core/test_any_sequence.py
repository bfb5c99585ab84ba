"""What no sequence of commands can break."""

from hypothesis import example, given
from hypothesis import strategies as st
from states import Desk, access_of, plugin, tool, toolkit

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Budget
from pegboard.core.model.leases import ALWAYS, TURN, UNLOAD, LeaseTerm
from pegboard.core.state.commands import SUCCEEDED, Command, CommandContext, EndTurn, Fallback, Load, Unload, Use
from pegboard.core.state.sessions import DEFAULT, from_text, to_text
from pegboard.core.surface.policy import apply_with_policy

PLUGINS = {"file": ("read",), "git": ("log", "diff"), "docker": ("ps", "run"), "arxiv": ("find",), "off": ("never",)}
KITS = {"devops": ("docker", "git"), "research": ("arxiv",), "mixed": ("log", "docker")}
ACCESS = access_of(
    *(plugin(name, *tools) for name, tools in PLUGINS.items()),
    toolkits=[toolkit(name, *held) for name, held in KITS.items()],
    static=["file"],
    allowed_toolkits=tuple(KITS),
    initial_toolkits=("research",),
    discoverable=("*",),
    switches={"off": False},
)
BASE = {"file/read", "arxiv/find"}
OWNERS = {name: owner for owner, tools in PLUGINS.items() for name in tools}


def ids_of(name: str) -> list[str]:
    """Return what a name stands for, by the tables above alone."""
    if name in KITS:
        return [tool_id for part in KITS[name] for tool_id in ids_of(part)]
    if name in PLUGINS:
        return [f"{name}/{own}" for own in PLUGINS[name] if name != "off"]
    return [f"{OWNERS[name]}/{name}"] if OWNERS.get(name, "off") != "off" else []


class Naive:
    """Keep the promises of S5 and S7 in the plainest way: for each subject, each tool's own until and last use."""

    def __init__(self) -> None:
        self.turn = 1
        self.held: dict[str, dict[str, tuple[LeaseTerm, int]]] = {}

    @property
    def out(self) -> dict[str, LeaseTerm]:
        found = dict.fromkeys(BASE, ALWAYS)
        for tools in self.held.values():
            for tool_id, (until, _) in tools.items():
                found[tool_id] = max(until, found.get(tool_id, until))
        return found

    def load(self, name: str, until: LeaseTerm) -> None:
        ids = ids_of(name)
        if not ids or name in ("research", "arxiv", "find", "file", "read"):
            return
        out, own = self.out, self.held.get(name, {})
        if not (set(ids) <= set(own) if name in KITS else set(ids) <= set(out)):
            strongest = max((u for u, _ in own.values()), default=until)
            self.held[name] = dict.fromkeys(ids, (max(until, strongest), self.turn))
            return
        self.touch(ids)
        if any(out[tool_id] < until for tool_id in ids):
            strongest = max((u for u, _ in own.values()), default=until)
            self.held[name] = dict.fromkeys(ids, (max(until, strongest), self.turn))

    def unload(self, name: str) -> None:
        ids = set(ids_of(name))
        if name in KITS:
            if name in self.held:
                del self.held[name]
            else:
                self.held = {n: t for n, t in self.held.items() if n in KITS or not set(t) <= ids}
            return
        if ids & BASE:
            return
        for held, tools in list(self.held.items()):
            self.held[held] = {i: value for i, value in tools.items() if i not in ids}
        self.held = {n: tools for n, tools in self.held.items() if tools}

    def touch(self, ids: list[str]) -> None:
        """Refresh every subject that holds one of these; its tools are used together."""
        for name, tools in self.held.items():
            if set(ids) & set(tools):
                self.held[name] = {i: (until, self.turn) for i, (until, _) in tools.items()}

    def fallback(self) -> None:
        for name in OWNERS:
            for tool_id in ids_of(name):
                if tool_id not in self.out:
                    self.held[name] = {tool_id: (TURN, self.turn)}

    def end_turn(self) -> None:
        def stays(until: LeaseTerm, used: int) -> bool:
            idle = until.kind == "idle" and self.turn - used <= until.turns
            return idle or until == UNLOAD

        kept = {n: {i: v for i, v in tools.items() if stays(*v)} for n, tools in self.held.items()}
        self.held = {name: tools for name, tools in kept.items() if tools}
        self.turn += 1


NAMES = st.sampled_from([*KITS, *PLUGINS, *OWNERS, "nowhere"])
UNTILS = st.sampled_from([TURN, LeaseTerm("idle", 1), LeaseTerm("idle", 2), UNLOAD])
COMMANDS = st.one_of(
    st.builds(Load, names=st.tuples(NAMES), until=UNTILS),
    st.builds(Unload, names=st.tuples(NAMES)),
    st.just(Fallback()),
    st.just(EndTurn()),
    st.builds(Use, tool=st.sampled_from([i for name in OWNERS for i in ids_of(name)])),
)


def follow(model: Naive, command: Command) -> None:
    match command:
        case Load(names=(name,), until=LeaseTerm() as until):
            model.load(name, until)
        case Unload(names=(name,)):
            model.unload(name)
        case Fallback():
            model.fallback()
        case EndTurn():
            model.end_turn()
        case Use(tool=tool_id):
            model.touch([tool_id])
        case _:
            raise AssertionError(command)


@example(
    [Load(names=("devops",), until=LeaseTerm("idle", 1)), Unload(names=("git",)), Load(names=("devops",), until=TURN)]
)
@given(commands=st.lists(COMMANDS, max_size=25))
def test_no_sequence_of_commands_breaks_the_leases(commands: list[Command]) -> None:
    """S5, S7, S8, S10: a naive model and the real transitions agree after every command."""
    desk, model = Desk(ACCESS), Naive()
    for command in commands:
        outcome = desk.do(command)
        follow(model, command)
        assert {out.tool.id: out.until for out in desk.surface.tools} == model.out
        assert (desk.state.turn, outcome.turn) == (model.turn, model.turn)


@given(commands=st.lists(COMMANDS, max_size=20))
def test_loading_appends_and_nothing_before_an_addition_moves(commands: list[Command]) -> None:
    """F1: after a load or fallback the old list is a prefix of the new one; an unload only removes."""
    desk = Desk(ACCESS)
    for command in commands:
        before = desk.out
        desk.do(command)
        if isinstance(command, Load | Fallback):
            assert desk.out[: len(before)] == before
        if isinstance(command, Unload | EndTurn):
            assert set(desk.out) <= set(before)
        if isinstance(command, Use):
            assert desk.out == before


@given(commands=st.lists(COMMANDS, max_size=20))
def test_equal_states_and_commands_give_equal_answers(commands: list[Command]) -> None:
    """S2: transitions are deterministic, and a state that was stored in between goes on just the same."""
    first, second = Desk(ACCESS), Desk(ACCESS)
    for command in commands:
        said = first.do(command)
        text = to_text(second.state)
        second.state = from_text(text) if text is not None else DEFAULT
        assert second.do(command) == said
        assert second.state == first.state
        assert second.surface == first.surface


@given(commands=st.lists(COMMANDS, max_size=20))
def test_what_is_refused_leaves_the_state_untouched(commands: list[Command]) -> None:
    """T5, S10: a refusal changes nothing, whatever came before."""
    desk = Desk(ACCESS)
    for command in commands:
        before = desk.state
        outcome = desk.do(command)
        if outcome.items and not any(item.status in SUCCEEDED for item in outcome.items):
            assert desk.state == before


@given(
    commands=st.lists(COMMANDS, max_size=12),
    tools=st.integers(2, 6),
    meta=st.integers(0, 2),
)
def test_no_sequence_of_loads_goes_over_the_budget(commands: list[Command], tools: int, meta: int) -> None:
    """S9: what is loaded at the start may; nothing that is loaded does."""
    agent_access = budgeted(tools)
    desk = Desk(agent_access, terms=CommandContext(meta=tuple(tool("pegboard", f"m{n}") for n in range(meta))))
    start = len(desk.out) + meta
    for command in commands:
        desk.do(command)
        assert len(desk.out) + meta <= max(tools, start)


def budgeted(tools: int) -> CompiledPermissions:
    return access_of(
        *(plugin(name, *held, requires={"run": "docker/ps"}) for name, held in PLUGINS.items()),
        toolkits=[toolkit(name, *held) for name, held in KITS.items()],
        static=["file"], allowed_toolkits=tuple(KITS), initial_toolkits=("research",), discoverable=("*",),
        budget=Budget(tools=tools),
    )  # fmt: skip


@given(names=st.lists(st.text(max_size=20), max_size=4), tool_id=st.text(max_size=20))
def test_any_name_at_all_is_answered(names: list[str], tool_id: str) -> None:
    """S10, P9: what a model makes up is an item, never an exception."""
    for command in (Load(names=tuple(names)), Unload(names=tuple(names)), Use(tool=tool_id)):
        _, outcome = apply_with_policy(ACCESS, DEFAULT, command, CommandContext())
        assert len(outcome.items) == (0 if isinstance(command, Use) else len(set(names)))
