"""Configurations of three servers, two toolkits and an agent, made up by hypothesis."""

from typing import Any

from hypothesis import strategies as st

from pegboard.testing import Canned, FakeSource

SERVERS = ("git", "shell", "web")
FUNCTIONS = ("read", "write", "kill")
TOOLS = tuple(f"{server}__{function}" for server in SERVERS for function in FUNCTIONS)
KITS = ("one", "two")
NAMES = (*SERVERS, *KITS, *TOOLS, "category:Git", "self_config")

members = st.lists(st.sampled_from((*SERVERS, *TOOLS)), max_size=3, unique=True)
switches = st.dictionaries(st.sampled_from(NAMES), st.booleans(), max_size=3)
values = st.sampled_from((True, False, None))


@st.composite
def servers(draw: st.DrawFn) -> dict[str, Any]:
    return {
        name: {
            "command": "none",
            "category": "Git" if name == "git" else draw(st.sampled_from(("Git", "Shell"))),
            "default_on": draw(st.booleans()),
            "requires": draw(st.sampled_from(({}, {"read": ["git__kill"]}, {"write": ["web/read"]}))),
        }
        for name in SERVERS
    }


@st.composite
def agents(draw: st.DrawFn) -> dict[str, Any]:
    allowed = draw(st.sampled_from(([], ["one"], ["two", "one"])))
    agent = {
        "dialect": draw(st.sampled_from(("pegboard", "toolkits", "invokeother"))),
        "tools": [*draw(members), "self_config"],
        "essential": draw(st.lists(st.sampled_from(TOOLS), max_size=1)),
        "allowed_toolkits": allowed,
        "initial_toolkits": allowed[: draw(st.integers(0, 1))],
        "discoverable": draw(st.sampled_from(([], ["*"], ["s*"]))),
        "permissions": draw(switches),
        "self_config": {"allow": ["switches"]},
    }
    loadout, budget = draw(st.sampled_from((None, "devops", "mine"))), draw(st.sampled_from((None, 4, 9)))
    return {
        **agent,
        **({"loadout": loadout} if loadout else {}),
        **({"budget": {"tools": budget, "shrink": True}} if budget else {}),
    }


def source() -> FakeSource:
    return FakeSource({name: {tool: Canned(results=[tool]) for tool in FUNCTIONS} for name in SERVERS})
