"""Three agents over ten plugins that share function names: each has its own names (G10, A4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from builders import agent, plugin, toolkit
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.leases import LEASED
from pegboard.core.model.loadouts import BUILT_IN
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import Plugin
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.commands import CommandContext, EndTurn, Load, Unload
from pegboard.core.state.sessions import State, from_text, to_text
from pegboard.core.state.transitions import transition

PLUGINS = [f"p{number}" for number in range(10)]
FUNCTIONS = ["read", "write", "list", "search"]
AGENTS = ["a", "b", "c"]
TERMS = CommandContext()


@dataclass
class Setting:
    """What a file says, and which tools each plugin turns out to have."""

    plugins: Mapping[str, Plugin]
    toolkits: Mapping[str, Toolkit]
    agents: Mapping[str, Agent]

    def named_by(self, name: str) -> frozenset[str]:
        """Return the plugins that an agent names."""
        own = self.agents[name]
        members = [*own.static, *(item for kit in own.allowed_toolkits for item in self.toolkits[kit].members)]
        return frozenset(item.name for item in members) | frozenset(own.discoverable)


@dataclass
class Running:
    """A world of some plugins, in which their tools become known one by one, with one session for each agent."""

    setting: Setting
    names: Sequence[str]
    catalog: Catalog = field(init=False)
    states: dict[str, State] = field(default_factory=lambda: dict.fromkeys(AGENTS, State()))

    def __post_init__(self) -> None:
        known = (self.setting.plugins[name] for name in PLUGINS if name in self.names)
        self.catalog = Catalog(replace(whole, tools=(), variants={}) for whole in known)

    def permissions(self, name: str) -> CompiledPermissions:
        here = {
            kit.name: kit
            for kit in self.setting.toolkits.values()
            if all(item.name in self.names for item in kit.members)
        }
        world = World(catalog=self.catalog, toolkits=here, loadouts=BUILT_IN, sub_apps={})
        return CompiledPermissions(world, self.setting.agents[name], SessionConstraints())

    def arrive(self, name: str, prefix: str | None = None) -> None:
        whole = self.setting.plugins[name]
        if prefix is not None:
            whole = replace(whole, prefix=prefix, tools=tuple(replace(tool, wire="") for tool in whole.tools))
        self.catalog = self.catalog.with_plugins([whole])

    def command(self, name: str, command: Load | Unload | EndTurn) -> None:
        after, _ = transition(self.permissions(name), self.states[name], command, TERMS)
        self.states[name] = from_text(to_text(after) or to_text(replace(after, turn=after.turn + 1)) or "")

    def seen(self, name: str) -> dict[str, str]:
        """Return the id of each tool that an agent has loaded, by its wire name, in order."""
        active = active_tools(self.permissions(name), self.states[name])
        found = {one.tool.wire: key for key, one in active.items()}
        assert len(found) == len(active), "two loaded tools have one name"
        return found

    def leased(self, name: str) -> dict[str, str]:
        """Return the wire name of each tool that is loaded because the session has loaded it, by id."""
        active = active_tools(self.permissions(name), self.states[name])
        return {key: one.tool.wire for key, one in active.items() if not LEASED.isdisjoint(one.because)}


some_plugins = st.lists(st.sampled_from(PLUGINS), max_size=3, unique=True)


@st.composite
def settings(draw: st.DrawFn) -> Setting:
    plugins = {
        name: plugin(
            name,
            *draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=3, unique=True)),
            kind=draw(st.sampled_from(["server", "python"])),
            prefix=draw(st.sampled_from([None, "", "x"])),
        )
        for name in PLUGINS
    }
    kits = {
        name: toolkit(name, *draw(st.lists(st.sampled_from(PLUGINS), min_size=1, max_size=3, unique=True)))
        for name in ("k0", "k1", "k2")
    }
    kits["k0"] = replace(kits["k0"], share_with=("a", "b"))
    some_kits = st.lists(st.sampled_from(list(kits)), max_size=2, unique=True)
    agents: dict[str, Any] = {}
    for name in AGENTS:
        allowed = draw(some_kits)
        initial = allowed[: draw(st.integers(0, len(allowed)))]
        own = agent(tools=draw(some_plugins), allowed=allowed, initial=initial, discoverable=draw(some_plugins))
        agents[name] = replace(own, name=name)
    return Setting(plugins, kits, agents)


def late_in_a_toolkit() -> Setting:
    """Return a setting in which the second plugin of a toolkit answers first, with a tool that the first has too."""
    plugins = {name: plugin(name, "read" if name in ("p0", "p1") else name, prefix="") for name in PLUGINS}
    kits = {name: toolkit(name, "p1", "p0") for name in ("k0", "k1", "k2")}
    agents = {name: replace(agent(allowed=["k0"] if name == "a" else []), name=name) for name in AGENTS}
    return Setting(plugins, kits, agents)


tool_ids = st.builds(lambda one, name: f"{one}/{name}", st.sampled_from(PLUGINS), st.sampled_from(FUNCTIONS))
to_load = st.one_of(st.sampled_from(PLUGINS), st.sampled_from(["k0", "k1", "k2"]), tool_ids)
commands = st.one_of(
    st.builds(lambda name: Load(names=(name,)), to_load),
    st.builds(lambda name: Unload(names=(name,)), to_load),
    st.just(EndTurn()),
)
steps = st.lists(st.tuples(st.sampled_from(AGENTS), commands), max_size=12)


@given(settings(), st.permutations(PLUGINS), steps)
def test_what_an_agent_sees_depends_on_no_other_agent(setting: Setting, order: list[str], given_: Any) -> None:
    """G10: with the plugins of all agents known, and with its own alone; with the loads of all, and with its own."""
    for name in AGENTS:
        own = setting.named_by(name)
        together, alone = Running(setting, PLUGINS), Running(setting, sorted(own))
        for step, (who, command) in enumerate([(name, EndTurn()), *given_]):
            for one in order[step :: len(given_) + 1]:
                together.arrive(one)
                if one in own:
                    alone.arrive(one)
            together.command(who, command)
            if who == name:
                alone.command(who, command)
            assert together.seen(name) == alone.seen(name)


@given(settings(), st.permutations(PLUGINS), st.permutations(PLUGINS), steps)
def test_the_order_in_which_plugins_answer_makes_no_difference(
    setting: Setting, order: list[str], other: list[str], given_: Any
) -> None:
    """G10, F1: once all have answered, what a session sees and what its loads come to is the same."""
    one, two = Running(setting, PLUGINS), Running(setting, PLUGINS)
    for running, arrivals in ((one, order), (two, other)):
        for name in arrivals:
            running.arrive(name)
    for who, command in given_:
        one.command(who, command)
        two.command(who, command)
    for name in AGENTS:
        assert list(one.seen(name).items()) == list(two.seen(name).items())


@example(setting=late_in_a_toolkit(), order=PLUGINS, given_=[("a", Load(names=("k0",)))], renamed=[])
@given(settings(), st.permutations(PLUGINS), steps, st.lists(st.sampled_from(PLUGINS), max_size=2))
def test_what_a_session_has_loaded_keeps_its_name(
    setting: Setting, order: list[str], given_: Any, renamed: list[str]
) -> None:
    """G10: whatever answers after the session's newest command; a new prefix renames its own plugin's tools alone."""
    running = Running(setting, PLUGINS)
    changes = [(name, None) for name in order] + [(name, "y") for name in renamed]
    kept: dict[str, dict[str, str]] = {who: {} for who in AGENTS}
    for step, (name, prefix) in enumerate(changes):
        running.arrive(name, prefix)
        for who in AGENTS:
            if prefix is not None:
                kept[who] = {key: wire for key, wire in kept[who].items() if not key.startswith(f"{name}/")}
            assert kept[who].items() <= running.leased(who).items()
        for who, command in given_[step :: len(changes)]:
            running.command(who, command)
            running.seen(who)
            kept[who] = running.leased(who)
