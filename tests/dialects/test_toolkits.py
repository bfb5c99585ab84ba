"""The dialect of seed 000: every status, with exact keys, messages and the order of the checks."""

import json
from typing import Any

import pytest
from driving import Conversation, access_of, plugin, toolkit

from pegboard.core.access.permissions import SessionConstraints
from pegboard.core.model.agents import Budget
from pegboard.core.model.delivery import takes_effect
from pegboard.core.state.commands import CommandContext, Load
from pegboard.core.state.sessions import DEFAULT
from pegboard.core.surface.policy import apply_with_policy
from pegboard.dialects.names import MetaToolAnswer
from pegboard.dialects.toolkits import ToolkitsDialect

DIALECT = ToolkitsDialect()
PLUGINS = ("file", "shell", "docker", "aws_lambda", "github", "duckduckgo", "arxiv", "wikipedia")
DEVOPS, RESEARCH = ("docker", "aws_lambda", "github"), ("duckduckgo", "arxiv", "wikipedia")
APART = SessionConstraints(worker_scope="user")
PAUSED = CommandContext(until=DIALECT.lease, takes_effect="next_request", stable=False)


def talk(*more: Any, terms: CommandContext | None = None, toolkits: Any = (), **changes: Any) -> Conversation:
    """Return a conversation of seed 000's assistant."""
    kits = [
        toolkit("devops", *DEVOPS, description="Docker, AWS, and GitHub\ntools for infrastructure work"),
        toolkit("research", *RESEARCH, description="Web search and academic paper tools"),
        toolkit("data", "file"),
        *toolkits,
    ]
    profile: dict[str, Any] = {
        "static": ["file", "shell"], "allowed_toolkits": ("devops", "research"), "initial_toolkits": ("research",),
        "dialect": "toolkits", **changes,
    }  # fmt: skip
    named = {p.name for p in more}
    plugins = [plugin(name, f"{name}_run") for name in PLUGINS if name not in named]
    when = takes_effect("array", activation=changes.get("activation"), dialect=DIALECT.activation)
    told = terms or CommandContext(until=DIALECT.lease, takes_effect=when)
    return Conversation(DIALECT, access_of(*plugins, *more, toolkits=kits, **profile), told)


def said(payload: MetaToolAnswer) -> dict[str, Any]:
    """Return the payload as it goes over the wire, and hold that its keys are sorted."""
    document = json.loads(payload.text())
    assert payload.text() == json.dumps(document, ensure_ascii=False, sort_keys=True)
    return document


def test_a_toolkit_is_listed_with_its_tools_in_the_order_in_which_it_was_allowed() -> None:
    """MR42, MR27: name, description, tool_names, loaded, sticky."""
    conversation = talk(allowed_toolkits=("research", "devops"))
    listing = conversation.call("list_toolkits")
    assert said(listing) == {
        "status": "ok",
        "tool": "dynamic_tools",
        "loaded_toolkits": ["research"],
        "toolkits": [
            {
                "name": "research",
                "description": "Web search and academic paper tools",
                "tool_names": list(RESEARCH),
                "loaded": True,
                "sticky": True,
            },
            {
                "name": "devops",
                "description": "Docker, AWS, and GitHub tools for infrastructure work",
                "tool_names": list(DEVOPS),
                "loaded": False,
                "sticky": False,
            },
        ],
    }
    assert not listing.is_error
    conversation.call("load_tools", toolkit="devops")
    assert said(conversation.call("list_toolkits"))["loaded_toolkits"] == ["research", "devops"]


def test_a_loaded_toolkit_comes_with_the_next_request() -> None:
    """D2, MR44: the missing sentence of the seed."""
    conversation = talk()
    payload = conversation.call("load_tools", toolkit="devops")
    assert said(payload) == {
        "status": "loaded",
        "tool": "dynamic_tools",
        "toolkit": "devops",
        "loaded_toolkits": ["devops", "research"],
        "message": "Toolkit 'devops' will be available on the next request in this session.",
        "takes_effect": "next_request",
    }
    assert not payload.is_error
    assert [tool.wire for tool in payload.schemas] == ["docker_run", "aws_lambda_run", "github_run"]
    again = conversation.call("load_tools", toolkit="devops")
    assert said(again) == {
        "status": "already_loaded",
        "tool": "dynamic_tools",
        "toolkit": "devops",
        "loaded_toolkits": ["devops", "research"],
        "message": "Toolkit 'devops' is already loaded.",
        "takes_effect": "next_request",
    }
    assert not again.is_error


def test_an_agents_activation_overrides_that_of_the_dialect() -> None:
    """D2: payload and message say the same."""
    document = said(talk(activation="next_step").call("load_tools", toolkit="devops"))
    assert document["takes_effect"] == "next_step"
    assert document["message"] == "Toolkit 'devops' is loaded; call it from the next step on, not in the same batch."


@pytest.mark.parametrize("name", ["load_tools", "unload_tools"])
def test_an_unknown_toolkit_and_one_that_is_not_allowed(name: str) -> None:
    """MR47: both name the allowed ones; the state is not touched."""
    conversation = talk()
    unknown = conversation.call(name, toolkit="devop")
    assert said(unknown) == {
        "status": "unknown",
        "tool": "dynamic_tools",
        "toolkit": "devop",
        "loaded_toolkits": ["research"],
        "message": "Toolkit 'devop' does not exist. Allowed toolkits: devops, research.",
        "allowed_toolkits": ["devops", "research"],
    }
    forbidden = conversation.call(name, toolkit="data")
    assert said(forbidden) == {
        "status": "not_allowed",
        "tool": "dynamic_tools",
        "toolkit": "data",
        "loaded_toolkits": ["research"],
        "message": "Toolkit 'data' is not allowed for this agent. Allowed toolkits: devops, research.",
        "allowed_toolkits": ["devops", "research"],
    }
    assert (unknown.is_error, forbidden.is_error, conversation.state) == (True, True, DEFAULT)


@pytest.mark.parametrize("switches", [{"devops": False}, dict.fromkeys(DEVOPS, False)], ids=["toolkit", "members"])
def test_a_denied_toolkit_counts_as_not_allowed(switches: dict[str, bool]) -> None:
    """P9: whether it is switched off itself or everything in it."""
    document = said(talk(switches=switches).call("load_tools", toolkit="devops"))
    assert document["status"] == "not_allowed"
    assert document["message"].startswith("Toolkit 'devops' is not allowed for this agent.")


def test_the_name_of_a_toolkit_may_differ_in_case() -> None:
    """MR43: exact first, then the only one that fits."""
    document = said(talk().call("load_tools", toolkit="DevOps"))
    assert (document["status"], document["toolkit"]) == ("loaded", "devops")


MUSIC: dict[str, Any] = {
    "toolkits": [toolkit("music", "spotify", "homeassistant", "arxiv")],
    "allowed_toolkits": ("music",),
    "initial_toolkits": (),
}
SHARED = (plugin("spotify", "play", shared_only=True), plugin("homeassistant", "light", shared_only=True))


def test_a_shared_only_toolkit_is_refused_in_a_narrowed_scope() -> None:
    """P5, MR48: scope_label and unsupported_tools."""
    payload = talk(*SHARED, **MUSIC, circumstances=APART).call("load_tools", toolkit="music")
    assert said(payload) == {
        "status": "scope_incompatible",
        "tool": "dynamic_tools",
        "toolkit": "music",
        "loaded_toolkits": [],
        "message": ("spotify, homeassistant cannot be used with worker_scope=user: it works only where it is shared."),
        "scope_label": "worker_scope=user",
        "unsupported_tools": ["spotify", "homeassistant"],
    }
    assert payload.is_error


def test_a_session_without_an_id_cannot_change_anything() -> None:
    """S4, MR30: error, the same sentence as ever."""
    payload = talk(terms=PAUSED).call("load_tools", toolkit="devops")
    assert said(payload) == {
        "status": "error",
        "tool": "dynamic_tools",
        "toolkit": "devops",
        "loaded_toolkits": ["research"],
        "message": "Dynamic toolkit changes require a stable session_id.",
    }
    loaded = talk()
    loaded.call("load_tools", toolkit="devops")
    loaded.terms = PAUSED
    assert said(loaded.call("unload_tools", toolkit="devops"))["status"] == "error"
    assert payload.is_error


CONFLICT: dict[str, Any] = {
    "toolkits": [toolkit("other", ("shell", {"root": "b", "token": "hush"}))],
    "allowed_toolkits": ("other",),
}


def test_different_overrides_conflict_and_both_are_shown() -> None:
    """T5, MR34: masked; the state is not touched."""
    conversation = talk(**CONFLICT, static=[("shell", {"root": "a"})], initial_toolkits=())
    payload = conversation.call("load_tools", toolkit="other")
    assert said(payload) == {
        "status": "conflict",
        "tool": "dynamic_tools",
        "toolkit": "other",
        "loaded_toolkits": [],
        "message": (
            "Toolkit 'other' conflicts: 'shell' is loaded from the start with other settings, and cannot be unloaded. "
            "Write the same settings in both places."
        ),
        "conflicting_tool": "shell",
        "existing_overrides": {"root": "a"},
        "candidate_overrides": {"root": "b", "token": "***"},
    }
    assert (payload.is_error, conversation.state) == (True, DEFAULT)


def test_a_member_that_is_unavailable_refuses_the_toolkit() -> None:
    """P6, MR98: unavailable_messages say what to do."""
    down = plugin("github", "issues").with_fault("", "Set GITHUB_TOKEN.")
    payload = talk(down).call("load_tools", toolkit="devops")
    assert said(payload) == {
        "status": "tool_unavailable",
        "tool": "dynamic_tools",
        "toolkit": "devops",
        "loaded_toolkits": ["research"],
        "message": "Toolkit 'devops' is not available now: github: Set GITHUB_TOKEN. Nothing of it is loaded; the "
        "rest of it works and can be loaded by name: docker, aws_lambda.",
        "unavailable_messages": ["github: Set GITHUB_TOKEN."],
    }
    assert payload.is_error


def test_a_toolkit_over_the_budget_is_refused() -> None:
    """S9: the message says by how much."""
    payload = talk(budget=Budget(tools=7)).call("load_tools", toolkit="devops")
    document = said(payload)
    assert document["status"] == "over_budget"
    assert document["message"] == "Toolkit 'devops' does not fit the budget: it would take 8 tools of 7."
    assert set(document) == {"status", "tool", "toolkit", "loaded_toolkits", "message", "could_unload"}
    assert payload.is_error


def test_a_toolkit_is_unloaded_with_the_next_request() -> None:
    """D2, MR46: unloaded, then not_loaded; both say when."""
    conversation = talk()
    conversation.call("load_tools", toolkit="devops")
    first, second = (conversation.call("unload_tools", toolkit="devops") for _ in range(2))
    assert said(first) == {
        "status": "unloaded",
        "tool": "dynamic_tools",
        "toolkit": "devops",
        "loaded_toolkits": ["research"],
        "message": "Toolkit 'devops' will be removed on the next request in this session.",
        "takes_effect": "next_request",
    }
    assert said(second) == {
        "status": "not_loaded",
        "tool": "dynamic_tools",
        "toolkit": "devops",
        "loaded_toolkits": ["research"],
        "message": "Toolkit 'devops' is not loaded.",
        "takes_effect": "next_request",
    }
    assert (first.is_error, second.is_error) == (False, False)


def test_an_initial_toolkit_is_sticky() -> None:
    """S10, MR45: it cannot be unloaded."""
    payload = talk().call("unload_tools", toolkit="research")
    assert said(payload) == {
        "status": "sticky",
        "tool": "dynamic_tools",
        "toolkit": "research",
        "loaded_toolkits": ["research"],
        "message": "Toolkit 'research' cannot be unloaded: it is loaded from the start.",
    }
    assert payload.is_error


# -- the order of the checks: each case meets two of them, and the earlier one is said -----------------

BROKEN = plugin("shell", "run").with_fault("", "It is down.")
TIGHT = Budget(tools=1)
FORBIDDEN: dict[str, Any] = {**MUSIC, "allowed_toolkits": ()}
STARTING: dict[str, Any] = {**MUSIC, "initial_toolkits": ("music",)}


@pytest.mark.parametrize(
    ("conversation", "asked", "status"),
    [
        (talk(terms=PAUSED), "nowhere", "unknown"),
        (talk(*SHARED, **FORBIDDEN, circumstances=APART), "music", "not_allowed"),
        (talk(*SHARED, **STARTING, circumstances=APART), "music", "scope_incompatible"),
        (talk(*SHARED, **MUSIC, circumstances=APART, terms=PAUSED), "music", "scope_incompatible"),
        (talk(terms=PAUSED), "research", "already_loaded"),
        (talk(**CONFLICT, static=["shell"], initial_toolkits=(), terms=PAUSED), "other", "error"),
        (talk(BROKEN, **CONFLICT, static=["shell"], initial_toolkits=()), "other", "conflict"),
        (talk(**CONFLICT, static=["shell"], initial_toolkits=(), budget=TIGHT), "other", "conflict"),
        (talk(plugin("github", "x").with_fault("", "down"), budget=TIGHT), "devops", "tool_unavailable"),
    ],
    ids=[
        "unknown before error", "not_allowed before scope", "scope before already_loaded", "scope before error",
        "already_loaded before error", "error before conflict", "conflict before unavailable",
        "conflict before budget", "unavailable before budget",
    ],
)  # fmt: skip
def test_the_checks_of_a_load_come_in_the_order_of_the_seed(
    conversation: Conversation, asked: str, status: str
) -> None:
    """S10, MR44: unknown, not_allowed, scope, already_loaded, error, conflict, unavailable, budget."""
    assert said(conversation.call("load_tools", toolkit=asked))["status"] == status
    assert conversation.state == DEFAULT


@pytest.mark.parametrize(
    ("asked", "status"),
    [("nowhere", "unknown"), ("data", "not_allowed"), ("research", "sticky"), ("devops", "not_loaded")],
)
def test_the_checks_of_an_unload_come_in_the_order_of_the_seed(asked: str, status: str) -> None:
    """S10, MR46: each of them before error."""
    assert said(talk(terms=PAUSED).call("unload_tools", toolkit=asked))["status"] == status


def test_a_toolkit_that_only_a_switch_grants_is_listed_as_loaded_and_sticky() -> None:
    """P2: it is loaded from the start, as an initial one."""
    conversation = talk(switches={"data": True}, static=["shell"])
    listed = said(conversation.call("list_toolkits"))["toolkits"][-1]
    assert (listed["name"], listed["loaded"], listed["sticky"]) == ("data", True, True)
    assert said(conversation.call("load_tools", toolkit="data"))["status"] == "already_loaded"
    assert said(conversation.call("unload_tools", toolkit="data"))["status"] == "sticky"


def test_denied_members_are_not_listed() -> None:
    """P9, MR64: their names are not told."""
    listed = said(talk(switches={"docker": False}).call("list_toolkits"))["toolkits"][0]
    assert listed["tool_names"] == ["aws_lambda", "github"]


def test_a_call_of_one_tool_does_not_load_its_toolkit() -> None:
    """X1: the list says so."""
    conversation = talk()
    conversation.state, _ = apply_with_policy(
        conversation.permissions, conversation.state, Load(names=("tool:docker/docker_run",)), conversation.terms
    )
    assert said(conversation.call("list_toolkits"))["loaded_toolkits"] == ["research"]


def test_the_definitions_are_those_of_the_seed() -> None:
    """T4: three tools, one required argument."""
    tools = DIALECT.tools(talk().view())
    assert [tool.wire for tool in tools] == ["list_toolkits", "load_tools", "unload_tools"]
    assert [tool.input_schema.get("required", []) for tool in tools] == [[], ["toolkit"], ["toolkit"]]
    assert [tool.read_only for tool in tools] == [True, False, False]


def test_the_rest_of_a_toolkit_that_cannot_be_loaded_whole_is_loaded_by_name() -> None:
    """P6, S10: what the refusal names can be loaded and unloaded; nothing of another toolkit."""
    down = plugin("github", "issues").with_fault("", "Set GITHUB_TOKEN.")
    conversation = talk(down)
    refused = said(conversation.call("load_tools", toolkit="devops"))
    assert refused["message"].endswith("docker, aws_lambda.")
    loaded = conversation.call("load_tools", toolkit="aws_lambda")
    assert (said(loaded)["status"], said(loaded)["toolkit"]) == ("loaded", "aws_lambda")
    assert [tool.plugin for tool in loaded.schemas] == ["aws_lambda"] * len(loaded.schemas)
    assert said(conversation.call("load_tools", toolkit="aws_lambda"))["status"] == "already_loaded"
    assert said(conversation.call("load_tools", toolkit="github"))["status"] == "tool_unavailable"
    assert said(conversation.call("unload_tools", toolkit="aws_lambda"))["status"] == "unloaded"
    assert conversation.state.leases == ()
    for elsewhere in ("shell", "docker_compose"):
        assert said(conversation.call("load_tools", toolkit=elsewhere))["status"] == "unknown"


def test_a_denied_member_of_a_toolkit_is_not_loaded_by_name() -> None:
    """P9: it looks like what does not exist."""
    conversation = talk(switches={"aws_lambda": False})
    assert said(conversation.call("load_tools", toolkit="aws_lambda"))["status"] == "unknown"


def test_an_initial_toolkit_that_is_out_of_scope_is_not_reported_as_loaded() -> None:
    """P5: listing and loading agree."""
    conversation = talk(*SHARED, **STARTING, circumstances=APART)
    listed = said(conversation.call("list_toolkits"))
    music = next(one for one in listed["toolkits"] if one["name"] == "music")
    assert (music["loaded"], "music" in listed["loaded_toolkits"]) == (False, False)
    assert said(conversation.call("load_tools", toolkit="music"))["status"] == "scope_incompatible"
