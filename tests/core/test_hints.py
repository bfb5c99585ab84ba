"""The lines that tell a model of tools it does not have yet."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from states import Desk, access_of, plugin, tool, toolkit, words

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.naming import first_sentence
from pegboard.core.model.tools import Frozen, Plugin, Variant
from pegboard.core.state.sessions import DEFAULT, ShownHints
from pegboard.core.surface.hinted import still_stands
from pegboard.core.surface.hints import Count, hints_since
from pegboard.core.surface.hints import hints as rendered
from pegboard.core.surface.searchable import searchable


def hints(permissions: CompiledPermissions, count: Count, *, budget: int) -> tuple[str, ...]:
    return rendered(permissions, count, budget=budget).lines


def plugin_lines(permissions: CompiledPermissions, count: Count, *, budget: int) -> tuple[str, ...]:
    return rendered(permissions, count, budget=budget, form="plugins").lines


LONG = "Show the log. It takes a branch and a number of commits, newest first."


def permissions_of() -> CompiledPermissions:
    return access_of(
        plugin("file", "read"),
        plugin("git", tool("git", "log", description=LONG), tool("git", "diff", description="Show changes. All.")),
        plugin("docker", tool("docker", "ps", description="List containers.\n\tRunning \x1b[31mones\x00."),
               description="Containers. Local ones."),
        static=["file"], discoverable=("*",),
    )  # fmt: skip


FULL = (
    "log: Show the log. It takes a branch and a number of commits, newest first.",
    "diff: Show changes. All.",
    "ps: List containers. Running [31mones .",
)
BRIEF = ("log: Show the log.", "diff: Show changes.", "ps: List containers.")
NAMES = ("git: log, diff", "docker: ps")


def spent(lines: tuple[str, ...]) -> int:
    return sum(words(line) + 1 for line in lines)


def test_each_tier_is_said_while_it_fits_and_the_next_where_it_does_not() -> None:
    """F2, MI4: full descriptions, first sentences, names, plugin names, and how many more there are."""
    assert hints(permissions_of(), words, budget=spent(FULL)) == FULL
    assert hints(permissions_of(), words, budget=spent(FULL) - 1) == BRIEF
    assert hints(permissions_of(), words, budget=spent(BRIEF)) == BRIEF
    assert hints(permissions_of(), words, budget=spent(BRIEF) - 1) == NAMES
    assert hints(permissions_of(), words, budget=spent(NAMES)) == NAMES
    assert hints(permissions_of(), words, budget=spent(NAMES) - 1) == ("git", "docker")
    assert hints(permissions_of(), words, budget=4) == ("git", "docker")


def test_as_many_plugin_names_as_fit_are_said_with_how_many_more_there_are() -> None:
    """F2: "and N more: search"; N is exact."""
    many = access_of(*(plugin(f"p{n}", f"t{n}") for n in range(30)), discoverable=("*",))
    assert hints(many, words, budget=9) == ("p0", "p1", "and 28 more: search")
    assert hints(many, words, budget=10) == ("p0", "p1", "and 28 more: search")
    assert hints(many, words, budget=60) == tuple(f"p{n}" for n in range(30))
    assert plugin_lines(many, words, budget=120) == tuple(f"p{n}: Does t{n}." for n in range(30))
    assert hints(many, words, budget=5) == ("and 30 more: search",)
    assert hints(many, words, budget=4) == ()


@given(budget=st.integers(-1, 60), texts=st.lists(st.text(max_size=30), max_size=8))
def test_hints_never_cost_more_than_their_budget_and_are_one_line_each(budget: int, texts: list[str]) -> None:
    """F2: whatever descriptions say."""
    tools = [tool("p", f"t{n}", description=text) for n, text in enumerate(texts)]
    told = access_of(plugin("p", *tools, description="".join(texts)), plugin("q", "x"), discoverable=("*",))
    for lines in (hints(told, words, budget=budget), plugin_lines(told, words, budget=budget)):
        assert spent(lines) <= max(budget, 0)
        assert all(line.isprintable() and line == line.strip() for line in lines)


def test_hints_do_not_change_while_a_session_loads() -> None:
    """F2, MR62: frozen, so that a load breaks no cached prefix."""
    desk = Desk(permissions_of())
    before = hints(desk.permissions, words, budget=1000)
    desk.load("git")
    assert desk.out == ["read", "log", "diff"]
    assert hints(desk.permissions, words, budget=1000) == before


def test_nothing_is_hinted_that_is_out_denied_or_cannot_run() -> None:
    """F2, P9, MI10, MR64: neither in hints nor among the plugins."""
    hidden = access_of(
        plugin("file", "read"), plugin("off", "never"), plugin("git", tool("git", "log", unavailable="no key")),
        static=["file"], discoverable=("*",), switches={"off": False},
    )  # fmt: skip
    assert hints(hidden, words, budget=1000) == ()
    assert hints(access_of(plugin("git", "log")), words, budget=1000) == ()
    assert plugin_lines(hidden, words, budget=1000) == ("git: Does log.",)


def test_a_plugin_that_has_not_been_asked_yet_is_hinted_by_its_name() -> None:
    """F2, T3: in every tier, behind the tools that are known."""
    unseen = Plugin(name="jira", kind="server", description="Issues. Of all projects.")
    told = access_of(plugin("git", tool("git", "log", description=LONG)), unseen, discoverable=("*",))
    assert hints(told, words, budget=100) == (FULL[0], "jira: Issues. Of all projects.")
    assert hints(told, words, budget=spent(FULL[:1])) == (BRIEF[0], "jira: Issues.")


def test_the_first_sentence_ends_at_its_mark_and_a_number_does_not_end_it() -> None:
    """F2: on one line."""
    assert first_sentence("Read version 3.11 now!\nThen more.") == "Read version 3.11 now!"
    assert first_sentence("no mark\nat all") == "no mark at all"
    assert first_sentence("") == ""


def test_lines_of_plugins_say_less_where_they_are_many() -> None:
    """F2: each says what its plugin is for, in as many words as fit for all, before any is only a name."""
    text = "Read and write the issues of every project that the user may see, with comments, labels and milestones"
    told = access_of(*(plugin(f"p{n}", "t", description=text) for n in range(10)), discoverable=("*",))
    long, short = (plugin_lines(told, words, budget=budget) for budget in (200, 80))
    assert long[0] == f"p0: {text}"
    assert short[0] == "p0: Read and write the issues of…"
    assert len(short) == len(long) == 10


# -- toolkits --------------------------------------------------------------------------------------

WORK = toolkit("work", "git", "jira", description="Look after changes. And after issues.")
BOXES = toolkit("boxes", "docker")


def kits(*others: Plugin, **profile: Any) -> CompiledPermissions:
    """Return an agent with two toolkits, one of which has a plugin that was not asked yet, and the rest by name."""
    jira = Plugin(name="jira", kind="server", description="Issues. Of all projects.")
    git = plugin("git", tool("git", "log", description=LONG), tool("git", "diff", description="Show changes. All."))
    return access_of(
        *(plugin("file", "read"), git, jira, plugin("docker", "ps"), *others),
        toolkits=[WORK, BOXES], allowed_toolkits=("work", "boxes"), discoverable=("*",), **profile,
    )  # fmt: skip


def test_toolkits_come_first_and_then_what_none_of_them_holds() -> None:
    """F2: each with its description, else its members, and with how many tools it has once that is known."""
    assert hints(kits(), words, budget=1000) == (
        "work: Look after changes. And after issues.",
        "boxes: docker (1 tool)",
        "read: Does read. At once.",
    )
    assert hints(kits(), words, budget=18) == (
        "work: Look after changes.",
        "boxes: docker (1 tool)",
        "read: Does read.",
    )
    assert plugin_lines(kits(), words, budget=100) == (
        "work: Look after changes. And after issues.",
        "boxes: docker (1 tool)",
        "file: Does read.",
    )


def test_every_tool_is_hinted_one_by_one_where_the_dialect_says_so() -> None:
    """F2, MI4: whole, without a budget, behind the toolkits; a plugin that was not asked yet under its own name."""
    shown = rendered(kits(), words, budget=None, form="tools")
    assert shown.lines == (
        "work: Look after changes. And after issues.",
        "boxes: docker (1 tool)",
        "read: Does read. At once.",
        FULL[0],
        FULL[1],
        "ps: Does ps. At once.",
        "jira: Issues. Of all projects.",
    )
    assert shown.whole
    assert not rendered(kits(), words, budget=20, form="tools").whole


def test_where_only_toolkits_can_be_loaded_only_toolkits_are_hinted() -> None:
    """F2, T4: a plugin that is granted by its name alone would be refused there."""
    shown = rendered(kits(), words, budget=100, form="toolkits")
    assert (shown.lines, shown.whole) == (
        ("work: Look after changes. And after issues.", "boxes: docker (1 tool)"),
        True,
    )
    assert rendered(kits(), words, budget=9, form="toolkits").lines == ("work: Look after…", "boxes: docker (1 tool)")
    few = rendered(kits(), words, budget=6, form="toolkits", finds="search")
    assert (few.lines, few.whole) == (("work", "boxes"), False)


def test_a_toolkit_of_which_nothing_is_left_to_load_is_not_hinted() -> None:
    """F2, T4: what is loaded from the start, and what an active loadout excludes."""
    assert hints(kits(initial_toolkits=("work",)), words, budget=100)[0] == "boxes: docker (1 tool)"
    everything = kits(initial_toolkits=("work", "boxes"), static=["file"])
    assert hints(everything, words, budget=100) == ()
    only = Loadout(name="only", discoverable=("docker",))
    narrowed = rendered(kits(loadouts=[only]), words, budget=100, loadout="only")
    assert narrowed.lines == ("boxes: docker (1 tool)",)


def test_a_toolkit_that_is_one_plugin_under_its_own_name_is_hinted_as_that_plugin() -> None:
    """F2: so it is with every server of a client's file, of which each is a toolkit of its own."""
    own = access_of(
        plugin("git", tool("git", "log", description=LONG), description="Git."),
        toolkits=[toolkit("git", "git", description="Git.")], allowed_toolkits=("git",),
    )  # fmt: skip
    assert hints(own, words, budget=100) == (FULL[0],)
    assert plugin_lines(own, words, budget=100) == ("git: Show the log.",)
    assert rendered(own, words, budget=100, form="toolkits").lines == ("git: Git. (1 tool)",)


# -- what was shown before -------------------------------------------------------------------------


def test_shown_hints_stand_until_something_of_them_is_out_of_reach() -> None:
    """F2, P4: what is loaded, or was seen since, changes nothing; what is denied rewrites them."""
    shown = rendered(kits(), words, budget=None)
    seen = plugin("jira", "create", description="Issues. Of all projects.")
    assert still_stands(kits(), shown, None, "rest")
    assert still_stands(kits(plugin("new", "x"), seen), shown, None, "rest")
    assert not still_stands(kits(switches={"file": False}), shown, None, "rest")
    assert not still_stands(kits(switches={"work": False}), shown, None, "rest")
    assert not still_stands(kits(), shown, "minimal", "rest")
    assert not still_stands(kits(), shown, None, "tools")


def test_a_tool_whose_plugin_was_not_asked_in_this_process_still_stands() -> None:
    """F2: after a restart nothing is known of an Agno toolkit before it is loaded."""
    shown = rendered(access_of(plugin("git", "log", "diff"), discoverable=("git",)), words, budget=None)
    unseen = Plugin(name="git", kind="agno")
    assert still_stands(access_of(unseen, discoverable=("git",)), shown, None, "rest")
    assert not still_stands(access_of(unseen), shown, None, "rest")
    assert not still_stands(access_of(plugin("git", "diff"), discoverable=("git",)), shown, None, "rest")


def test_what_has_become_known_since_follows_the_history_in_a_few_words() -> None:
    """F2: new toolkits and plugins, and the tools of those that had not been asked; never what is loaded now."""
    unseen = Plugin(name="jira", kind="server", description="Issues.")
    shown = rendered(access_of(unseen, discoverable=("*",)), words, budget=None)
    later = access_of(
        *(plugin("jira", "create", "close"), plugin("git", "log"), Plugin(name="wiki", description="Pages. All.")),
        toolkits=[toolkit("review", "git", description="Review. Well.")],
        allowed_toolkits=("review",), discoverable=("*",),
    )  # fmt: skip
    lines = ("review: Review. (1 tool)", "wiki: Pages.", "jira: create, close")
    assert hints_since(later, shown, words, state=DEFAULT, form="rest") == lines
    desk = Desk(later)
    desk.load("jira")
    assert hints_since(later, shown, words, state=desk.state, form="rest") == lines[:2]
    assert hints_since(later, rendered(later, words, budget=None), words, state=DEFAULT, form="rest") == ()
    assert hints_since(later, rendered(later, words, budget=1), words, state=DEFAULT, form="rest") == ()


def test_what_has_become_known_since_has_room_of_its_own() -> None:
    """F2: names instead of more, where it is a lot; it is paid at every step."""
    many = access_of(*(plugin(f"p{n}", *(f"tool_{n}_{m}" for m in range(9))) for n in range(90)), discoverable=("*",))
    lines = hints_since(many, ShownHints(), words, state=DEFAULT, form="rest")
    assert (lines[0], lines[-1][:4], spent(lines) <= 200) == ("p0", "p89", True)


def test_what_is_known_to_be_unavailable_is_not_hinted_as_something_to_load() -> None:
    """F2, P6: neither a plugin that cannot run nor its tools; it is hinted once it can."""
    down = Variant(unavailable="It is not installed.")
    broken = Plugin(name="broken", variants=Frozen({"": down}))
    listed = replace(plugin("listed", "read"), variants=Frozen({"": replace(down, tools=("read",))}))
    fine = plugin("fine", tool("fine", "write"))
    write = hints(access_of(fine, discoverable=("*",)), words, budget=1000)
    assert hints(access_of(broken, listed, fine, discoverable=("*",)), words, budget=1000) == write
    assert len(plugin_lines(access_of(broken, listed, fine, discoverable=("*",)), words, budget=1000)) == 1
    mended = access_of(Plugin(name="broken"), fine, discoverable=("*",))
    assert hints(mended, words, budget=1000) == (*write, "broken")


def test_what_has_the_name_of_a_tool_that_is_loaded_from_the_start_is_not_hinted() -> None:
    """F2, G10: neither it nor a plugin that has nothing else, since no load can bring it; the rest of one is."""
    first, same = plugin("first", "read"), plugin("same", "read")
    more = plugin("more", tool("more", "read"), tool("more", "write", description="Writes."))
    access = access_of(first, same, more, static=["first"], discoverable=("*",))
    assert hints(access, words, budget=1000) == ("write: Writes.",)
    assert [line.partition(":")[0] for line in plugin_lines(access, words, budget=1000)] == ["more"]
    loadable = access_of(first, same, discoverable=("*",))
    assert len(plugin_lines(loadable, words, budget=1000)) == 2


def test_what_is_known_to_be_unavailable_is_searched_as_before() -> None:
    """P3, P6: it is found, and said to be unavailable; nothing else is ranked otherwise for it."""
    fine, ships = plugin("fine", tool("fine", "write")), Plugin(name="ships", kind="server", description="Harbours.")
    down = replace(ships, variants=Frozen({"": Variant(unavailable="There is no such command.")}))
    before, after = (searchable(access_of(one, fine, discoverable=("*",)), None) for one in (ships, down))
    assert [group.name for group in before.groups] == ["ships"]
    assert (after.groups, after.tools) == (before.groups, before.tools)


def test_a_plugin_of_one_tool_is_hinted_by_the_tool_with_as_many_words_as_there_is_room_for() -> None:
    """F2, MI4: its name is said once; where there is little room, the words go first."""
    text = "Looks after one matter of all that people ask for every day. More."
    names = [f"n{n}_tool" for n in range(40)]
    found = (plugin(name, tool(name, name, description=text)) for name in names)
    permissions = access_of(*found, discoverable=("*",))
    for room in (2500, 1900, 1300, 1100):
        lines = rendered(permissions, words, budget=None, characters=room, form="tools").lines
        assert sum(len(line) + 1 for line in lines) <= room
        assert [line.partition(":")[0] for line in lines] == names
        assert all(line.partition(": ")[2].startswith("Looks after") for line in lines)
    assert rendered(permissions, words, budget=None, characters=420, form="tools").lines == tuple(names)


def test_beside_plugins_of_several_tools_one_that_is_alone_has_words_of_its_own() -> None:
    """F2: the others are their names by plugin; so is one whose name does not say its plugin."""
    alone = plugin("mail", tool("mail", "send_mail", description="Send a letter. Slowly, as letters are."))
    several = plugin("git", *(tool("git", f"a_rather_long_name_{n}", description=LONG) for n in range(20)))
    permissions = access_of(
        alone, plugin("docker", tool("docker", "ps", description=LONG)), several, discoverable=("*",)
    )
    lines = rendered(permissions, words, budget=None, characters=560, form="tools").lines
    assert lines[:2] == ("send_mail: Send a letter.", "docker: ps")
    assert lines[2].startswith("git: a_rather_long_name_0, ")
