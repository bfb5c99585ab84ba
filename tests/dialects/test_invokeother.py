"""The dialect of seed 002: its worked examples under their own names, and every message."""

import json
from dataclasses import replace
from typing import Any

import pytest
from driving import Conversation, access_of, plugin, toolkit

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Budget
from pegboard.core.model.leases import TURN, LeaseTerm
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.toolkits import META_TOOLS
from pegboard.core.model.tools import Plugin, Tool
from pegboard.core.state.active_tools import active_tools
from pegboard.core.state.commands import CommandContext, EndTurn, Use
from pegboard.core.surface.hints import hints
from pegboard.core.surface.policy import apply_with_policy
from pegboard.dialects.discovery import DiscoveryDialect
from pegboard.dialects.invokeother import NAME, InvokeOtherDialect
from pegboard.dialects.names import MetaToolAnswer
from pegboard.dialects.pegboard import PegboardDialect
from pegboard.dialects.toolkits import ToolkitsDialect

DIALECT = InvokeOtherDialect()
ESSENTIAL = ("webaccess_tool", "reminder_tool")
DYNAMIC = (
    *("weather_tool", "calendar_tool", "email_tool", "travel_tool", "maps_tool", "notes_tool"),
    *("contacts_tool", "finance_tool", "music_tool", "news_tool"),
)
TERMS = CommandContext(until=DIALECT.lease)


def talk(*more: Plugin, terms: CommandContext = TERMS, **changes: Any) -> Conversation:
    """Return a conversation of seed 002's assistant: two essential tools, ten that come on demand."""
    names = [name for name in (*ESSENTIAL, *DYNAMIC) if name not in {held.name for held in more}]
    plugins = [plugin(name.removesuffix("_tool"), name) for name in names]
    profile: dict[str, Any] = {
        "essential": (),
        "static": ESSENTIAL,
        "discoverable": ("*",),
        "dialect": "invokeother",
        **changes,
    }
    permissions = access_of(*plugins, *more, **profile)
    return Conversation(DIALECT, permissions, terms)


def invoke(conversation: Conversation, mode: str, query: str | None = None) -> dict[str, Any]:
    payload = asked(conversation, mode, query)
    document = json.loads(payload.text())
    assert payload.is_error is not document["success"]
    return document


def asked(conversation: Conversation, mode: str, query: str | None = None) -> MetaToolAnswer:
    arguments = {"mode": mode} if query is None else {"mode": mode, "query": query}
    return conversation.call(NAME, **arguments)


def out(conversation: Conversation) -> list[str]:
    return [held.tool.wire for held in active_tools(conversation.permissions, conversation.state).values()]


def end_turns(conversation: Conversation, count: int = 1) -> list[str]:
    """End so many turns; return the messages of what went."""
    said: list[str] = []
    for _ in range(count):
        conversation.state, outcome = apply_with_policy(
            conversation.permissions, conversation.state, EndTurn(), conversation.terms
        )
        said += [item.name for item in outcome.items]
    return said


# -- the worked examples of the seed ---------------------------------------------------------------


def test_one_tool_is_loaded() -> None:
    """S5, S7: weather_tool, as in seed 002."""
    conversation = talk()
    payload = asked(conversation, "load", "weather_tool")
    assert json.loads(payload.text()) == {
        "success": True,
        "loaded": ["weather_tool"],
        "message": "Successfully loaded: weather_tool",
    }
    assert [tool.wire for tool in payload.schemas] == ["weather_tool"]
    assert out(conversation) == [*ESSENTIAL, "weather_tool"]


def test_several_tools_are_loaded_by_one_call() -> None:
    """MI5, S10: calendar_tool,email_tool; spaces and empty parts mean nothing."""
    assert invoke(talk(), "load", "calendar_tool,email_tool") == {
        "success": True,
        "loaded": ["calendar_tool", "email_tool"],
        "message": "Successfully loaded: calendar_tool, email_tool",
    }
    assert invoke(talk(), "load", " calendar_tool , ,email_tool,")["loaded"] == ["calendar_tool", "email_tool"]


def test_fallback_takes_out_all_twelve_for_this_turn_only() -> None:
    """S8, MI9: those that were out keep their lease."""
    conversation = talk()
    invoke(conversation, "load", "weather_tool")
    payload = asked(conversation, "fallback")
    document = json.loads(payload.text())
    assert document == {
        "success": True,
        "loaded": [name for name in DYNAMIC if name != "weather_tool"],
        "total_active": 12,
        "message": "Fallback mode: All 12 tools loaded for this turn only",
    }
    assert [tool.wire for tool in payload.schemas] == document["loaded"]
    assert len(out(conversation)) == 12
    end_turns(conversation)
    assert out(conversation) == [*ESSENTIAL, "weather_tool"]


# -- every message ---------------------------------------------------------------------------------


def test_what_is_not_there_is_said_item_by_item() -> None:
    """MI5: partial success, and none."""
    conversation = talk()
    assert invoke(conversation, "load", "weather_tool,nonsense,calendar_tool,gibberish") == {
        "success": True,
        "loaded": ["weather_tool", "calendar_tool"],
        "errors": ["nonsense not found", "gibberish not found"],
        "message": "Loaded 2 tools with 2 errors",
    }
    assert invoke(conversation, "load", "nonsense") == {
        "success": False,
        "loaded": [],
        "errors": ["nonsense not found"],
        "message": "Failed to load any tools",
    }


@pytest.mark.parametrize("mode", ["load", "unload"])
@pytest.mark.parametrize("query", [None, "", " , "])
def test_no_names_are_an_error(mode: str, query: str | None) -> None:
    """S10: an empty query changes nothing."""
    conversation = talk()
    document = invoke(conversation, mode, query)
    assert document["message"] == f"No tools specified to {mode}. Give their names, separated by commas."
    assert not document["success"]
    assert not conversation.state.leases


def test_loading_again_counts_as_loaded() -> None:
    """S5: what is loaded already is no error."""
    conversation = talk()
    invoke(conversation, "load", "weather_tool")
    again = invoke(conversation, "load", "weather_tool,webaccess_tool")
    assert again["message"] == "Successfully loaded: weather_tool, webaccess_tool"


def test_tools_are_hung_back() -> None:
    """S10: one that is not loaded fails nothing; unknown ones are errors."""
    conversation = talk()
    invoke(conversation, "load", "weather_tool,email_tool")
    assert invoke(conversation, "unload", "weather_tool") == {
        "success": True,
        "unloaded": ["weather_tool"],
        "message": "Successfully unloaded: weather_tool",
    }
    assert out(conversation) == [*ESSENTIAL, "email_tool"]
    assert invoke(conversation, "unload", "weather_tool") == {
        "success": True,
        "unloaded": [],
        "message": "Not loaded: weather_tool",
    }
    assert invoke(conversation, "unload", "email_tool,nonsense") == {
        "success": True,
        "unloaded": ["email_tool"],
        "errors": ["nonsense not found"],
        "message": "Unloaded 1 tools with 1 errors",
    }
    assert invoke(conversation, "unload", "nonsense")["message"] == "Failed to unload any tools"


def test_an_essential_tool_cannot_be_unloaded() -> None:
    """MI6, S10: it stays out."""
    conversation = talk()
    assert invoke(conversation, "unload", "webaccess_tool") == {
        "success": False,
        "unloaded": [],
        "errors": ["webaccess_tool is essential and cannot be unloaded"],
        "message": "Failed to unload any tools",
    }
    assert "webaccess_tool" in out(conversation)


OFF: dict[str, dict[str, Any]] = {
    "by a switch": {"switches": {"email_tool": False}},
    "by a switch of its plugin": {"switches": {"email": False}},
    "by the loadout": {"loadout": "quiet"},
}


@pytest.mark.parametrize("how", OFF)
def test_what_is_disabled_in_the_configuration_is_never_hinted_or_loaded(how: str) -> None:
    """MI10: fallback included; it says so only where the agent is granted it."""
    conversation = talk(**OFF[how])
    if how == "by the loadout":
        world = conversation.permissions.world
        quiet = Loadout(name="quiet", discoverable=("*",), disabled=("email",))
        quieter = CompiledPermissions(replace(world, loadouts={"quiet": quiet}), conversation.permissions.agent)
        conversation = replace(conversation, permissions=quieter)
    said = invoke(conversation, "load", "email_tool")
    assert said["errors"] == ["email_tool is disabled in config (enabled=false)"]
    assert not any(
        line.startswith("email_tool") for line in hints(conversation.permissions, len, budget=5000, form="tools").lines
    )
    assert invoke(conversation, "fallback")["message"] == "Fallback mode: All 11 tools loaded for this turn only"
    assert "email_tool" not in out(conversation)


def test_what_is_not_granted_is_not_found_whether_it_is_off_or_not() -> None:
    """P9: no word about the configuration."""
    conversation = talk(discoverable=("weather",), switches={"email_tool": False})
    said = invoke(conversation, "load", "email_tool,calendar_tool")
    assert said["errors"] == ["email_tool not found", "calendar_tool not found"]


def test_a_toolkit_is_loaded_by_its_name_too() -> None:
    """P9: one that is switched off says so where it is allowed."""
    kits = [toolkit("office", "calendar", "email"), toolkit("media", "music"), toolkit("other", "news")]
    profile: dict[str, Any] = {
        "toolkits": kits,
        "allowed_toolkits": ("office", "media"),
        "discoverable": (),
        "switches": {"media": False, "other": False},
    }
    conversation = talk(**profile)
    payload = asked(conversation, "load", "office,media,other")
    assert json.loads(payload.text()) == {
        "success": True,
        "loaded": ["office"],
        "errors": ["media is disabled in config (enabled=false)", "other not found"],
        "message": "Loaded 1 tools with 2 errors",
    }
    assert [tool.wire for tool in payload.schemas] == ["calendar_tool", "email_tool"]


def test_a_refusal_says_why() -> None:
    """S9, P6: over the budget, unavailable."""
    tight = talk(budget=Budget(tools=3))
    assert invoke(tight, "load", "weather_tool")["success"]
    (error,) = invoke(tight, "load", "email_tool")["errors"]
    assert error.startswith("email_tool: Tool 'email_tool' does not fit the budget: it would take 4 tools of 3.")
    down = talk(plugin("email", "email_tool").with_fault("", "Start the mail server."))
    (error,) = invoke(down, "load", "email_tool")["errors"]
    assert error == "email_tool: Tool 'email_tool' is not available now: email: Start the mail server."


def test_a_fallback_within_the_budget_says_how_many_and_what_it_left_out() -> None:
    """S8, MI9: N of M."""
    conversation = talk(budget=Budget(tools=5))
    document = invoke(conversation, "fallback")
    assert document["message"] == "Fallback mode: 5 of 12 tools loaded for this turn only"
    assert (len(document["loaded"]), document["total_active"], len(document["left_out"])) == (3, 5, 7)


def test_without_a_session_id_nothing_is_loaded() -> None:
    """S4: the missing session is said."""
    paused = talk(terms=replace(TERMS, stable=False))
    (error,) = invoke(paused, "load", "weather_tool")["errors"]
    assert error == "weather_tool: Dynamic toolkit changes require a stable session_id."
    assert invoke(paused, "fallback")["message"] == "Dynamic toolkit changes require a stable session_id."


# -- leases ----------------------------------------------------------------------------------------


def test_five_idle_turns_stay_and_six_go() -> None:
    """MI7, MI8, S7: use refreshes; what goes is hinted as before, and another one does not stop it."""
    conversation = talk()
    before = hints(conversation.permissions, len, budget=5000)
    invoke(conversation, "load", "weather_tool,email_tool")
    assert [(lease.until, lease.subject.name) for lease in conversation.state.leases] == [
        (LeaseTerm("idle", 5), "weather/weather_tool"),
        (LeaseTerm("idle", 5), "email/email_tool"),
    ]
    end_turns(conversation, 3)
    conversation.state, _ = apply_with_policy(
        conversation.permissions, conversation.state, Use(tool="email/email_tool"), TERMS
    )
    assert end_turns(conversation, 3) == []
    assert end_turns(conversation) == ["weather_tool"]
    assert out(conversation) == [*ESSENTIAL, "email_tool"]
    assert end_turns(conversation, 2) == []
    assert end_turns(conversation) == ["email_tool"]
    assert hints(conversation.permissions, len, budget=5000) == before


def test_what_a_tool_requires_comes_and_goes_with_it() -> None:
    """MI11, T8: with the last that needs it."""
    conversation = talk(
        plugin("auth", "auth_tool"),
        plugin("mail", "mail_tool", requires="auth/auth_tool"),
        plugin("drive", "drive_tool", requires="auth/auth_tool"),
    )
    invoke(conversation, "load", "mail_tool")
    invoke(conversation, "load", "drive_tool")
    invoke(conversation, "unload", "mail_tool")
    assert "auth_tool" in out(conversation)
    invoke(conversation, "unload", "drive_tool")
    assert "auth_tool" not in out(conversation)


def test_a_lease_may_be_for_the_turn_or_until_unload() -> None:
    """MI14, S5: an agent's own lease overrides the dialect's."""
    ephemeral = talk(terms=CommandContext(until=TURN))
    invoke(ephemeral, "load", "weather_tool")
    assert end_turns(ephemeral) == ["weather_tool"]
    pinned = talk(terms=CommandContext(until=LeaseTerm("unload")))
    invoke(pinned, "load", "weather_tool")
    assert end_turns(pinned, 20) == []


def test_hints_give_the_full_description_of_every_tool_that_is_not_out_from_the_start() -> None:
    """MI4, F2: one line each; they stay as they are when something is loaded."""
    conversation = talk()
    said = hints(conversation.permissions, len, budget=5000, form="tools").lines
    assert list(said) == [f"{name}: Does {name}. At once." for name in DYNAMIC]
    invoke(conversation, "load", "weather_tool")
    assert hints(conversation.permissions, len, budget=5000, form="tools").lines == said


def test_the_definition_is_one_tool_with_three_modes() -> None:
    """F2: hints stand in it where the host says them there."""
    conversation = talk()
    (definition,) = DIALECT.tools(conversation.view())
    schema: dict[str, Any] = dict(definition.input_schema)
    assert definition.wire == "invokeother_tool"
    assert schema["properties"]["mode"]["enum"] == ["load", "unload", "fallback"]
    assert schema["required"] == ["mode"]
    hinted: Tool = DIALECT.tools(replace(conversation.view(), hints=("weather_tool: Forecasts.",)))[0]
    assert hinted.description.endswith("Not loaded:\nweather_tool: Forecasts.")


@pytest.mark.parametrize(
    ("more", "changes", "text"),
    [
        ((Plugin(name="stocks_tool"),), {"switches": {"stocks_tool": False}}, "is disabled in config (enabled=false)"),
        (
            (Plugin(name="stocks_tool"),),
            {"discoverable": ("weather",), "switches": {"stocks_tool": False}},
            "not found",
        ),
        ((Plugin(name="stocks_tool"),), {"discoverable": ("weather",)}, "not found"),
        (
            (plugin("stocks_tool", "stocks_tool"),),
            {"switches": {"stocks_tool": False}},
            "is disabled in config (enabled=false)",
        ),
        ((Plugin(name="stocks_tool", default_on=False),), {}, "is disabled in config (enabled=false)"),
    ],
    ids=["a plugin that nobody asked", "not granted and off", "not granted", "a plugin of one tool", "off by default"],
)  # fmt: skip
def test_a_plugin_of_one_tool_that_is_off_says_so_where_it_is_granted(
    more: tuple[Plugin, ...], changes: dict[str, Any], text: str
) -> None:
    """MI10, P9: also where its tools are not known, since nothing asks what is off."""
    said = invoke(talk(*more, **changes), "load", "stocks_tool")
    assert said["errors"] == [f"stocks_tool {text}"]


def test_a_tool_that_another_needs_is_not_called_essential() -> None:
    """T8, S10: it names what needs it."""
    conversation = talk(plugin("auth", "auth_tool"), plugin("mail", "mail_tool", requires="auth/auth_tool"))
    invoke(conversation, "load", "mail_tool")
    said = invoke(conversation, "unload", "auth_tool")
    assert said["errors"] == ["auth_tool is needed by mail_tool and cannot be unloaded"]
    assert "auth_tool" in out(conversation)


def test_the_meta_tool_itself_is_an_essential_one() -> None:
    """MI7, T4: it is there, and stays."""
    conversation = talk()
    assert invoke(conversation, "unload", NAME)["errors"] == [f"{NAME} is essential and cannot be unloaded"]
    assert invoke(conversation, "load", NAME)["message"] == f"Successfully loaded: {NAME}"
    assert conversation.state.leases == ()


@pytest.mark.parametrize("dialect", [DIALECT, ToolkitsDialect(), DiscoveryDialect(), PegboardDialect()])
def test_every_meta_tool_has_a_name_that_may_be_listed_among_the_own_tools(dialect: Any) -> None:
    """T4: one list of names in the core stands for all dialects."""
    view = replace(talk().view(), cut=True)
    assert {tool.name for tool in dialect.tools(view)} <= META_TOOLS


@pytest.mark.parametrize("mode", ["load", "unload"])
def test_a_name_of_any_length_is_repeated_in_a_few_words(mode: str) -> None:
    """P9: in every dialect that loads by name; what a model wrote is no reason for an answer of its length."""
    name, dialects = "x" * 20_000, (DIALECT, PegboardDialect(), ToolkitsDialect(), DiscoveryDialect())
    permissions = access_of(plugin("weather", "weather_tool"), discoverable=("*",))
    calls = ((NAME, {"mode": mode, "query": name}), (f"{mode}_tools", {"names": [name]}),
             (f"{mode}_tools", {"toolkit": name}), ("activate_tool", {"plugin": name}))  # fmt: skip
    for dialect, (tool, arguments) in zip(dialects, calls, strict=True):
        answer = Conversation(dialect, permissions, TERMS).call(tool, **arguments).text()
        assert len(answer) < 1_000, dialect.name
