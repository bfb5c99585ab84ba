"""The dialect of seed 003: plugins are discovered and activated, in text."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.loadouts import BUILT_IN, Loadout
from pegboard.core.model.selectors import member
from pegboard.core.model.tools import Manifest, Plugin, Tool
from pegboard.core.state.commands import CommandContext, Load
from pegboard.core.state.sessions import State
from pegboard.core.surface.policy import apply_with_policy
from pegboard.dialects.discovery import DiscoveryDialect
from pegboard.dialects.names import DialectStep, MetaToolAnswer, StepAnswer, View

DIALECT = DiscoveryDialect()


def plugin(name: str, *tools: str, category: str | None = None, description: str = "") -> Plugin:
    held = tuple(Tool(plugin=name, name=own, description=f"Does {own}. At once.") for own in tools)
    return Plugin(name=name, category=category, description=description).with_manifest("", Manifest(tools=held))


SOME = (
    plugin("git", "log", "diff", category="Git", description="History of files"),
    plugin("shell", "run", category="Shell"),
    plugin("web", "fetch", category="Web", description="Read pages"),
    plugin("Docker", "ps", "images", "pull", "push", "stop", "prune", category=None, description="Containers"),
    plugin("billing", "invoice", category="Money"),
)


class Desk:
    """Let a model call the meta-tools of one session, over pure transitions."""

    def __init__(self, *plugins: Plugin, loadouts: Iterable[Loadout] = (), **profile: Any) -> None:
        static = tuple(member(name) for name in profile.pop("static", ()))
        self.agent = Agent(name="a", static=static, **profile)
        known = {**BUILT_IN, **{held.name.casefold(): held for held in loadouts}}
        self.permissions = CompiledPermissions(World(catalog=Catalog(plugins), loadouts=known), self.agent)
        self.state = State()

    def view(self) -> View:
        return View(permissions=self.permissions, state=self.state)

    def ask(self, name: str, **arguments: Any) -> MetaToolAnswer:
        conversation = DIALECT.run(self.view(), name, arguments)
        try:
            step: DialectStep = next(conversation)
            assert isinstance(step, Load), "everything is done through loads"
            self.state, outcome = apply_with_policy(self.permissions, self.state, step, CommandContext())
            conversation.send(StepAnswer(view=self.view(), outcome=outcome))
        except StopIteration as stop:
            payload: MetaToolAnswer = stop.value
            return payload
        raise AssertionError("one step is enough")

    def text(self, name: str, **arguments: Any) -> str:
        return self.ask(name, **arguments).text()

    def listed(self, **arguments: Any) -> list[str]:
        """Return the plugins of a page, in order."""
        lines = self.text("discover_tools", **arguments).splitlines()
        return [line[4:].partition("**")[0] for line in lines if line.startswith("- **")]


def desk(**changes: Any) -> Desk:
    profile: dict[str, Any] = {"static": ("git",), "discoverable": ("*",), **changes}
    return Desk(*SOME, **profile)


def test_there_are_five_meta_tools_and_only_one_changes_anything() -> None:
    """T4, G6: the lists are read-only, and so a client can approve them once."""
    tools = DIALECT.tools(desk().view())
    assert [tool.name for tool in tools] == [
        "capability_list", "discover_tools", "activate_tool", "list_tool_categories", "list_toolbelts",
    ]  # fmt: skip
    assert [tool.name for tool in tools if not tool.read_only] == ["activate_tool"]


def test_hints_stand_in_the_loading_meta_tool() -> None:
    """F2: as in every dialect, one line each."""
    view = View(permissions=desk().permissions, state=State(), hints=("web: Read pages",))
    described = {tool.name: tool.description for tool in DIALECT.tools(view)}
    assert described["activate_tool"] == "Activate one toolkit or plugin by its name. Available:\nweb: Read pages"


def test_what_is_active_is_listed_and_how_much_more_there_is() -> None:
    """JD69: `do I have git tools?` has an answer."""
    at = desk()
    assert at.text("capability_list") == (
        "## Active plugins\n- **git** (Git, 2 tools): History of files\n\n"
        "4 plugins more can be activated: see discover_tools."
    )
    nothing = Desk(*SOME, discoverable=("git",))
    assert nothing.text("capability_list").splitlines()[0] == "No plugin is active."


def test_only_what_is_not_active_is_discovered_in_order_of_names() -> None:
    """JD69: the case of a name does not count for its place."""
    at = desk()
    assert at.listed() == ["billing", "Docker", "shell", "web"]
    at.ask("activate_tool", plugin="shell")
    assert at.listed() == ["billing", "Docker", "web"]


def test_a_plugin_shows_its_first_five_tools() -> None:
    """JD69: each with its name on the wire and one sentence; how many more there are."""
    lines = desk().text("discover_tools", keyword="containers").splitlines()
    assert lines[1:3] == ["- **Docker** (Other, 6 tools): Containers", "  - `ps`: Does ps."]
    assert lines[6:] == ["  - `stop`: Does stop.", "  - and 1 more", "",
                         "Page 1/1, 1 plugin. Activate one with activate_tool."]  # fmt: skip


def test_a_plugin_that_is_out_in_part_says_how_much() -> None:
    """JD69: the rest of it can be activated."""
    at = desk(static=("git/log",))
    assert "- **git** (Git, 1 of 2 tools active): History of files" in at.text("discover_tools")
    at.ask("activate_tool", plugin="git")
    assert "git" not in at.listed()


def test_a_category_and_a_keyword_filter() -> None:
    """JD70, JD71: whatever their case; a keyword is looked for in names and descriptions, of tools too."""
    at = desk()
    assert at.listed(category="WEB") == ["web"]
    assert at.listed(category="Other") == ["Docker"]
    assert at.listed(category="money") == ["billing"]
    assert at.listed(keyword="Pages read") == ["web"]
    assert at.listed(keyword="PRUNE") == ["Docker"]
    assert at.listed(category="Shell", keyword="run") == ["shell"]
    assert at.text("discover_tools", category="Shell", keyword="fly") == (
        "No plugin that is not active fits category 'Shell' keyword 'fly'. Try other words."
    )


def test_an_unknown_category_is_said_with_those_there_are() -> None:
    """JD70: known fault elsewhere: it was ignored in silence."""
    answer = desk().ask("discover_tools", category="Sheel")
    assert answer.is_error
    assert answer.text().startswith("There is no category 'Sheel'. Did you mean 'Shell'? Categories: Filesystem, ")
    assert answer.text().endswith(", Money, Other.")
    unlike = desk().ask("discover_tools", category="zzzzzzzz")
    assert unlike.text().startswith("There is no category 'zzzzzzzz'. Categories: Filesystem, ")


def test_there_are_ten_plugins_on_a_page() -> None:
    """JD72: 25 plugins are three pages; the next one is named, one behind the last refused."""
    many = [plugin(f"p{n:02}", "go") for n in range(25)]
    at = Desk(*many, discoverable=("*",))
    pages = [at.listed(page=page) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [10, 10, 5]
    assert [name for page in pages for name in page] == [f"p{n:02}" for n in range(25)]
    feet = [at.text("discover_tools", page=page).splitlines()[-1] for page in (1, 2, 3)]
    assert feet == [
        "Page 1/3, 25 plugins. Go on with page 2. Activate one with activate_tool.",
        "Page 2/3, 25 plugins. Go on with page 3. Activate one with activate_tool.",
        "Page 3/3, 25 plugins. Activate one with activate_tool.",
    ]
    beyond = at.ask("discover_tools", page=4)
    assert (beyond.is_error, beyond.text()) == (True, "There is no page 4: there are 3 pages.")


def test_where_everything_is_active_it_says_so() -> None:
    """JD73: also with a filter."""
    at = desk(static=[held.name for held in SOME])
    for filters in ({}, {"category": "Web"}, {"keyword": "x"}):
        assert at.text("discover_tools", **filters) == "Every plugin that is available is active already."


def test_activating_takes_the_plugin_out_and_names_its_tools() -> None:
    """JD74, JD77: whatever the case of its name; the schemas go along."""
    at = desk()
    answer = at.ask("activate_tool", plugin="WEB")
    assert answer.text() == "Activated plugin 'web' with 1 tool:\n  - `fetch`: Does fetch."
    assert [tool.wire for tool in answer.schemas] == ["fetch"]
    assert [str(lease.subject) for lease in at.state.leases] == ["plugin:web"]
    assert "**web**" in at.text("capability_list")


def test_what_is_active_cannot_be_activated_again() -> None:
    """JD75: it says so, and is no failure."""
    at = desk()
    first = at.ask("activate_tool", plugin="git")
    assert (first.is_error, first.text()) == (False, "Plugin 'git' is already loaded and available.")
    assert at.state.leases == ()


DENYING = Loadout(name="denying", categories=("Git",), discoverable=("w*",), disabled=("web",))


@pytest.mark.parametrize(
    ("profile", "asked"),
    [
        ({}, "dockr"),
        ({"discoverable": ("sh*",)}, "web"),
        ({"discoverable": (), "loadout": "denying", "loadouts": [DENYING]}, "shell"),
        ({"discoverable": ("*",), "loadout": "denying", "loadouts": [DENYING]}, "web"),
        ({"switches": {"web": False}}, "web"),
        ({}, "fetch"),
    ],
    ids=["unknown", "no pattern", "no pattern of the loadout", "disabled", "switched off", "a tool"],
)
def test_what_cannot_be_activated_looks_as_if_it_did_not_exist(profile: dict[str, Any], asked: str) -> None:
    """P9, L2, JD76, JD88, JD90: unknown, disabled, and what no pattern matches."""
    at = desk(**profile)
    answer = at.ask("activate_tool", plugin=asked)
    assert (answer.is_error, answer.text()) == (
        True,
        f"Plugin '{asked}' was not found. See discover_tools for what there is.",
    )
    assert at.state.leases == ()
    assert asked not in at.listed()


def test_what_is_denied_appears_in_no_list() -> None:
    """P9: not its name, not its category, not in the counts of loadouts."""
    at = desk(switches={"billing": False})
    said = "".join(at.text(name) for name in ("capability_list", "discover_tools", "list_tool_categories"))
    assert "billing" not in said
    assert "Money" not in said
    assert "- **full**: 4 active; 0 discoverable;" in at.text("list_toolbelts")
    assert "- **denying**: 1 active; 0 discoverable; categories: Git; disabled: web" in desk(
        loadouts=[Loadout(name="denying", categories=("Git",), disabled=("web", "gone"))]
    ).text("list_toolbelts")


def test_what_an_active_loadout_excludes_is_in_no_list_and_not_found() -> None:
    """L7, JD88, P9: what it makes active is active, what it makes discoverable can be activated."""
    shells = Loadout(name="shells", categories=("Shell",), discoverable=("doc*",))
    at = desk(loadouts=[shells])
    at.state = State(loadout="shells")
    assert at.listed() == ["Docker"]
    answer = at.ask("activate_tool", plugin="web")
    assert (answer.is_error, answer.text().partition(".")[0]) == (True, "Plugin 'web' was not found")
    assert "- **shells**, active now: 1 active;" in at.text("list_toolbelts")


def test_categories_are_listed_with_their_plugins() -> None:
    """JD78: the 13, those of authors, and what has none."""
    lines = desk().text("list_tool_categories").splitlines()
    assert lines[0] == "## Categories"
    assert len(lines) == 1 + 13 + 2
    assert lines[2] == "- **Git** (1 plugin, 1 active): git"
    assert lines[3] == "- **GitHub** (0 plugins, 0 active)"
    assert lines[-2:] == ["- **Money** (1 plugin, 0 active): billing", "- **Other** (1 plugin, 0 active): Docker"]


def test_loadouts_are_listed_with_parents_and_counts() -> None:
    """JD79: active and discoverable over what the agent may have, categories, disabled."""
    lines = desk().text("list_toolbelts").splitlines()
    assert lines[1] == "- **minimal**: 1 active; 4 discoverable; categories: Filesystem, Shell"
    assert lines[2] == (
        "- **developer**, extends minimal: 2 active; 3 discoverable; categories: Git, GitHub, Search, Analysis, Memory"
    )
    assert lines[5].startswith("- **full**: 5 active; 0 discoverable; categories: Filesystem, Git,")


def test_what_a_plugin_says_of_itself_stays_on_its_line() -> None:
    """F2: control characters are stripped, long texts cut."""
    odd = plugin("odd", "go", description="One\nTwo\x1b[2J " + "x" * 200)
    line = Desk(odd, discoverable=("*",)).text("discover_tools").splitlines()[1]
    assert line.startswith("- **odd** (Other, 1 tool): One Two [2J xxx")
    assert line.endswith("…")
    assert len(line) < 120


# -- in a real session -----------------------------------------------------------------------------


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    (tmp_path / "web_tools.py").write_text('def fetch(url: str) -> str:\n    """Read a page."""\n    return url\n')
    path = tmp_path / "pegboard.yaml"
    path.write_text(
        'store: "memory:"\nplugins: {web: {python: web_tools, category: Web}}\n'
        "agents: {default: {dialect: discovery, discoverable: [web]}}\n"
    )
    async with Pegboard.open(path, env={"HOME": str(tmp_path)}) as board:
        yield await board.session(session_id="s")


async def test_a_model_discovers_activates_and_calls(session: Session) -> None:
    """L2, X1, JD74: in one session, over the engine; a failure that repeats is stopped."""
    assert len((await session.surface()).tools) == 5
    found = await session.call("discover_tools", {"keyword": "page"})
    assert "- **web** (Web, 1 tool)" in found.message
    assert (await session.call("activate_tool", {"plugin": "web"})).status == "ok"
    assert (await session.call("fetch", {"url": "u"})).result.content[0]["text"] == "u"
    refused = [await session.call("activate_tool", {"plugin": "gone"}) for _ in range(3)]
    assert [answer.status for answer in refused] == ["refused", "refused", "stopped"]
    wrong = await session.call("discover_tools", {"page": 0})
    assert wrong.status == "invalid_arguments"


async def test_activating_in_a_child_does_not_change_the_parent(session: Session) -> None:
    """P8: known fault elsewhere: the parent's kernel was bound to the discovery tools."""
    child = await session.child("task")
    assert "fetch" not in (await child.surface()).names
    assert (await child.call("activate_tool", {"plugin": "web"})).status == "ok"
    assert "fetch" in (await child.surface()).names
    assert "fetch" not in (await session.surface()).names
