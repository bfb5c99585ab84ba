"""What is behind the messages of a history that keeps only what people and models wrote (D4)."""

from dataclasses import replace

import pytest

from pegboard.core.model.tools import Tool
from pegboard.core.surface.surfaces import Surface
from pegboard.wire import kept_notes
from pegboard.wire.kept_notes import ENDED, HistoryMessage, HistoryReader, KeptNotes, ReadHistory

QUIET = Surface(agent="writer", session="s", turn=1, tools=())
LOADED = replace(QUIET, suffix="Loaded now: notes.")
NOTE = Tool(plugin="notes", name="list", wire="note_list", description="List notes.")
AHEAD = replace(QUIET, anticipated=(NOTE,), ahead="as it is")
ASKED, MORE = HistoryMessage(text="What is noted?"), HistoryMessage(text="Milk.")


def test_what_was_said_stays_at_its_place_and_news_join_behind_the_newest_message() -> None:
    """D4: the beginning of a request is that of the one before."""
    kept = KeptNotes()
    first = kept.behind("s", ReadHistory([ASKED]), LOADED, "")
    assert first == ["Loaded now: notes."]
    assert kept.behind("s", ReadHistory([ASKED, MORE]), LOADED, "Answer now.") == [*first, "Answer now."]


def test_a_request_that_is_made_again_says_what_holds_now() -> None:
    """P4, P9: nothing is said of a tool that is gone meanwhile, whether the first request failed or was another run."""
    kept = KeptNotes()
    (before,) = kept.behind("s", ReadHistory([ASKED]), AHEAD, "")
    assert "note_list" in before
    assert kept.behind("s", ReadHistory([ASKED]), QUIET, "") == [""]
    assert kept.behind("s", ReadHistory([ASKED, MORE]), QUIET, "") == ["", ""]


def test_what_does_not_hold_any_more_is_taken_back_once() -> None:
    kept, history = KeptNotes(), [ASKED, MORE, HistoryMessage(text="Bye.")]
    assert kept.behind("s", ReadHistory(history[:1]), LOADED, "") == [LOADED.suffix]
    assert kept.behind("s", ReadHistory(history[:2]), QUIET, "") == [LOADED.suffix, ENDED]
    assert kept.behind("s", ReadHistory(history), LOADED, "") == [LOADED.suffix, ENDED, LOADED.suffix]


def test_conversations_have_nothing_of_each_other_and_push_out_nothing_of_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that asked last stay; of one with too much the oldest goes."""
    monkeypatch.setattr(kept_notes, "_MOST_CONVERSATIONS", 2)
    monkeypatch.setattr(kept_notes, "_MOST_CHARACTERS", 40)
    kept = KeptNotes()
    kept.behind("ann", ReadHistory([ASKED]), LOADED, "")
    assert kept.behind("bob", ReadHistory([ASKED, MORE]), QUIET, "") == ["", ""]
    for number in range(20):
        kept.behind(
            "bob", ReadHistory([HistoryMessage(text=str(number))]), replace(QUIET, suffix=f"Loaded now: {number}."), ""
        )
    assert kept.behind("ann", ReadHistory([ASKED, MORE]), LOADED, "") == [LOADED.suffix, ""]
    assert kept.behind("bob", ReadHistory([HistoryMessage(text="0"), MORE]), QUIET, "") == ["", ""]
    assert kept.behind("bob", ReadHistory([HistoryMessage(text="19")]), LOADED, "") == [LOADED.suffix]
    kept.behind("carl", ReadHistory([ASKED]), LOADED, "")
    assert kept.behind("bob", ReadHistory([HistoryMessage(text="19"), MORE]), LOADED, "") == [LOADED.suffix, ""]
    assert kept.behind("ann", ReadHistory([ASKED, MORE]), LOADED, "") == ["", LOADED.suffix]


def test_what_was_read_of_a_history_is_read_once_and_anew_where_the_history_begins_differently() -> None:
    """A request of a long conversation takes no longer than one of a short one."""
    read: list[str] = []

    def said(message: str) -> HistoryMessage:
        read.append(message)
        return HistoryMessage(text=message)

    def whole(*messages: str) -> list[bytes]:
        return ReadHistory(HistoryMessage(text=message) for message in messages).places

    reader = HistoryReader(said)
    assert reader.read(["a", "b"]).places == whole("a", "b")
    assert reader.read(["a", "b", "c"]).places == whole("a", "b", "c")
    assert read == ["a", "b", "c"]
    assert reader.read(["a", "d", "c"]).places == whole("a", "d", "c")
    assert reader.read(["a"]).places == whole("a")
    assert read[3:] == ["a", "d", "c", "a"]
