"""Requests as people type them: what their words stand for, and whether they want to read or to write (D1, S5)."""

import pytest
from benchmarks.everyday.program import opened

from pegboard.core.model.delivery import GATEWAY
from pegboard.core.model.leases import LeaseReason
from pegboard.search.analysis.everyday import intent_of, meant_words, with_kinds


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("which files are modified", {"git", "status", "diff"}),
        ("tell everybody in #ops that it works", {"slack", "channel", "post", "message"}),
        ("what is PAY-311 about", {"jira", "issue"}),
        ("what sheets are in budget.xlsx", {"excel", "workbook", "describe"}),
        ("how long did PAY-280 sit in review", {"dates"}),
        ("was steht auf https://example.org/hours", {"fetch", "url"}),
        ("给我找几个视频", {"video", "search"}),
    ],
)
def test_everyday_words_and_values_stand_for_words_of_tools(text: str, words: set[str]) -> None:
    assert words <= meant_words(text).keys()


@pytest.mark.parametrize("text", ["", "?", "…", "x", "a" * 20_000, "\ud800", "{}[]();" * 500, "привет", "عربي"])
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    """Bad input: of one letter, of 20,000, of other scripts, with code in it."""
    assert isinstance(dict(meant_words(text)), dict)
    assert intent_of(text) in ("read", "write", "")


def test_each_value_stands_as_its_kind() -> None:
    text = "mail ada@b.org that https://x.org/a, ~/a.txt, acme/shop and 4f2a91c are in #ops by 10:30"
    assert [one for one in with_kinds(text) if one.startswith("<")] == [
        "<email>", "<url>", "<path>", "<repo>", "<sha>", "<channel>", "<time>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("show the commits of last week", "read"),
        ("why did the container stop?", "read"),
        ("can you please rename it", "write"),
        ("verschieb die Rechnungen", "write"),
        ("the roof", ""),
    ],
)
def test_a_request_says_whether_it_is_to_read_or_to_write(text: str, intent: str) -> None:
    assert intent_of(text) == intent


async def test_a_search_finds_and_loads_what_a_person_means_over_twenty_servers() -> None:
    """D1: the surprises that newcomers met; no tool that writes is loaded for a request to read."""
    async with opened() as board:
        for text, wanted in (
            ("show the commits of the repository", {"git/git_log", "github/list_commits"}),
            ("which files are modified", {"git/git_status", "git/git_diff_unstaged", "git/git_diff"}),
            ("read a webpage", {"fetch/fetch", "browser/browser_navigate"}),
            ("restart the pod", {"kubernetes/kubectl_rollout", "kubernetes/kubectl_delete"}),
        ):
            session = await board.session(session_id=text, host=GATEWAY)
            found = [f"{one.plugin}/{one.name.rpartition('__')[2]}" for one in (await session.search(text)).results]
            assert wanted & set(found[:5]), (text, found)
            await session.call("search_tools", {"queries": [text]})
            state = (await session.snapshot()).state
            loaded = {lease.subject.name for lease in state.leases if lease.because is LeaseReason.LOADED}
            assert not loaded & {"git/git_commit", "git/git_add", "files/edit_file", "kubernetes/exec_in_pod"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("when i scroll down in adressen.xlsx the first line should stay where it is", "excel/set_sheet_layout"),
        ("how did budget.py look at v1.2?", "git/git_show"),
        ("is the washing machine E18 fault something serious", "search/brave_web_search"),
    ],
)
async def test_a_request_is_found_by_what_people_ask_of_tools_of_that_name(text: str, wanted: str) -> None:
    """P3: what is to be done is told, not named."""
    async with opened() as board:
        session = await board.session(session_id="examples", host=GATEWAY)
        found = [f"{one.plugin}/{one.name.rpartition('__')[2]}" for one in (await session.search(text)).results]
    assert wanted in found[:5]


async def test_thanks_and_apologies_load_nothing_ahead() -> None:
    """F6: small talk that shares a word with a tool."""
    async with opened() as board:
        for number, text in enumerate(("sorry that I answer so late", "thanks, great search", "wow nice page")):
            surface = await (await board.session(session_id=f"talk-{number}")).surface(message=text)
            assert not surface.anticipated, text
