"""The lines that tell a model of tools it does not have yet."""

from hypothesis import given
from hypothesis import strategies as st
from states import Desk, access_of, plugin, tool, words

from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.model.naming import first_sentence
from pegboard.core.model.tools import Plugin
from pegboard.core.surface.hints import Count
from pegboard.core.surface.hints import hints as rendered


def hints(access: CompiledPermissions, count: Count, *, budget: int) -> tuple[str, ...]:
    return rendered(access, count, budget=budget).lines


def plugin_lines(access: CompiledPermissions, count: Count, *, budget: int) -> tuple[str, ...]:
    return rendered(access, count, budget=budget, form="plugins").lines


LONG = "Show the log. It takes a branch and a number of commits, newest first."


def access() -> CompiledPermissions:
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
    assert hints(access(), words, budget=spent(FULL)) == FULL
    assert hints(access(), words, budget=spent(FULL) - 1) == BRIEF
    assert hints(access(), words, budget=spent(BRIEF)) == BRIEF
    assert hints(access(), words, budget=spent(BRIEF) - 1) == NAMES
    assert hints(access(), words, budget=spent(NAMES)) == NAMES
    assert hints(access(), words, budget=spent(NAMES) - 1) == ("git", "docker")
    assert hints(access(), words, budget=4) == ("git", "docker")


def test_as_many_plugin_names_as_fit_are_said_with_how_many_more_there_are() -> None:
    """F2: "and N more: search"; N is exact."""
    many = access_of(*(plugin(f"p{n}", f"t{n}") for n in range(30)), discoverable=("*",))
    assert hints(many, words, budget=9) == ("p0", "p1", "and 28 more: search")
    assert hints(many, words, budget=10) == ("p0", "p1", "and 28 more: search")
    assert hints(many, words, budget=60) == tuple(f"p{n}" for n in range(30))
    assert plugin_lines(many, words, budget=90) == tuple(f"p{n}: t{n}" for n in range(30))
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
    desk = Desk(access())
    before = hints(desk.access, words, budget=1000)
    desk.load("git")
    assert desk.out == ["read", "log", "diff"]
    assert hints(desk.access, words, budget=1000) == before


def test_nothing_is_hinted_that_is_out_denied_or_cannot_run() -> None:
    """F2, P9, MI10, MR64: neither in hints nor among the plugins."""
    hidden = access_of(
        plugin("file", "read"), plugin("off", "never"), plugin("git", tool("git", "log", unavailable="no key")),
        static=["file"], discoverable=("*",), switches={"off": False},
    )  # fmt: skip
    assert hints(hidden, words, budget=1000) == ()
    assert hints(access_of(plugin("git", "log")), words, budget=1000) == ()
    assert plugin_lines(hidden, words, budget=1000) == ("git: log",)


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
