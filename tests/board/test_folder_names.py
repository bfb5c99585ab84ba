"""The entries of a folder as the guard on named paths sees them (P10)."""

import os
import time
from pathlib import Path

import pytest

from pegboard.board.catalog.own_files import FolderNames

LONG_AGO = 10**9 * 1_000_000_000 + 1


def quiet(folder: Path) -> None:
    """Let a folder look as if nothing had come or gone there for long."""
    os.utime(folder, ns=(LONG_AGO, LONG_AGO))


def test_the_entries_of_a_folder_are_known_once_nothing_came_lately(tmp_path: Path) -> None:
    (tmp_path / "Notes.txt").write_text("")
    (tmp_path / "to_nothing").symlink_to("nowhere")
    names = FolderNames()
    assert names.entries_of(str(tmp_path)) is None, "what changed just now may change again and look the same"
    quiet(tmp_path)
    for _ in range(2):  # read, then as it is kept
        assert names.entries_of(str(tmp_path)) == {"notes.txt", "to_nothing"}, (
            "no file system tells more spellings apart"
        )


def test_what_comes_after_the_folder_was_read_is_seen(tmp_path: Path) -> None:
    """P10: a link that was made meanwhile leads to Pegboard's own file as one of before does."""
    names = FolderNames()
    for number in range(200):
        quiet(tmp_path)
        known = names.entries_of(str(tmp_path))
        (tmp_path / f"link{number}").symlink_to("pegboard.yaml")
        assert known is not None
        assert f"link{number}" not in known
        assert names.entries_of(str(tmp_path)) is None


@pytest.mark.parametrize("changed", [0, 1], ids=["whole seconds", "finer"])
def test_a_change_at_the_same_time_as_the_one_before_is_not_missed(tmp_path: Path, changed: int) -> None:
    """P10: a clock may give two changes one time; what changed so lately is not kept."""
    names = FolderNames()
    now = (time.time_ns() // 1_000_000_000) * 1_000_000_000 + changed * 999_999_999
    os.utime(tmp_path, ns=(now, now))
    assert names.entries_of(str(tmp_path)) is None


def test_a_folder_with_very_many_entries_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.board.catalog.own_files._MOST_ENTRIES", 2)
    for number in range(4):
        (tmp_path / str(number)).write_text("")
    quiet(tmp_path)
    assert FolderNames().entries_of(str(tmp_path)) is None


def test_of_a_folder_that_is_gone_nothing_is_known(tmp_path: Path) -> None:
    assert FolderNames().entries_of(str(tmp_path / "gone")) is None
