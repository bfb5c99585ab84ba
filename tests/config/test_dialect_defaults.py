"""The dialect, the lease and the hints of an agent that states none of them."""

import pytest
from config_support import Writer

from pegboard.config.clients.generated import starter_text
from pegboard.core.model.agents import Agent
from pegboard.core.model.leases import TURN, LeaseTerm

WORLD = """
    plugins: {calc: {python: pegboard.quickstart.calc}}
    toolkits: {numbers: {tools: [calc]}}
    loadouts: {plain: {plugins: [calc]}}
    sub_apps: {billing: {tool_names: [calc]}}
"""


@pytest.fixture
def agent_of(writer: Writer):
    def agent(profile: str, defaults: str = "{}") -> Agent:
        agents = f"{WORLD}\n    defaults: {defaults}\n    agents: {{a: {profile}}}\n"
        return writer.loaded(agents).agents["a"]

    return agent


@pytest.mark.parametrize(
    ("profile", "dialect"),
    [
        ("{allowed_toolkits: [numbers]}", "toolkits"),
        ("{allowed_toolkits: [numbers], initial_toolkits: [numbers], tools: [calc]}", "toolkits"),
        ("{allowed_toolkits: [numbers], loadout: plain}", "pegboard"),
        ("{allowed_toolkits: [numbers], discoverable: ['*']}", "pegboard"),
        ("{allowed_toolkits: [numbers], sub_apps: [billing]}", "pegboard"),
        ("{allowed_toolkits: [numbers], dialect: discovery}", "discovery"),
        ("{allowed_toolkits: []}", "pegboard"),
        ("{discoverable: ['*']}", "pegboard"),
        ("{loadout: plain}", "pegboard"),
        ("{tools: [calc], permissions: {numbers: true}}", "pegboard"),
    ],
)
def test_an_agent_of_toolkits_alone_has_their_dialect(agent_of, profile: str, dialect: str) -> None:
    """T4, D2: as the YAML of seed 000 expects; it is judged from the file, so no switch changes it."""
    assert agent_of(profile).dialect == dialect


def test_defaults_state_dialect_and_lease_for_agents_that_do_not(agent_of) -> None:
    """T7, S5: an agent's own stand before them."""
    defaults = "{dialect: invokeother, lease: {kind: turn}}"
    chosen = agent_of("{allowed_toolkits: [numbers]}", defaults)
    assert (chosen.dialect, chosen.lease, chosen.anticipate) == ("invokeother", TURN, None)
    own = agent_of("{allowed_toolkits: [numbers], dialect: pegboard, lease: {kind: idle, turns: 2}}", defaults)
    assert (own.dialect, own.lease) == ("pegboard", LeaseTerm("idle", 2))
    assert own.anticipate is not None


def test_a_file_without_agents_has_the_dialect_pegboard_unless_defaults_state_one(writer: Writer) -> None:
    """T4: an agent that no one wrote, of ours and of a client's file."""
    assert writer.loaded(WORLD).agents["default"].dialect == "pegboard"
    client = writer.loaded('{"mcpServers": {"git": {"command": "git"}}}', ".mcp.json").agents["default"]
    assert (client.dialect, client.allowed_toolkits) == ("pegboard", ("git",))
    stated = writer.loaded(f"{WORLD}\n    defaults: {{dialect: discovery}}\n").agents["default"]
    assert stated.dialect == "discovery"


def test_what_init_writes_states_its_dialect(writer: Writer) -> None:
    """T4: someone who reads it finds how the model manages its tools."""
    assert "\n    dialect: pegboard " in starter_text()
    assert writer.loaded(starter_text()).agents["default"].dialect == "pegboard"


def test_only_the_dialect_of_seed_002_has_hints_without_a_budget(agent_of) -> None:
    """F2, MI4: unless the operator sets one."""
    assert agent_of("{discoverable: ['*'], dialect: invokeother}").hint_tokens is None
    assert agent_of("{discoverable: ['*'], dialect: invokeother, hints: {tokens: 300}}").hint_tokens == 300
    assert agent_of("{discoverable: ['*']}").hint_tokens == 1500


def test_a_dialect_that_there_is_not_is_one_error(writer: Writer) -> None:
    """T2: where, what, and what would be right; in `defaults` as at an agent."""
    (message,) = writer.messages("defaults: {dialect: toolkit}\n")
    assert message.startswith("pegboard.yaml:1:21: defaults.dialect: ")
    assert "'pegboard', 'toolkits', 'invokeother' or 'discovery'" in message
