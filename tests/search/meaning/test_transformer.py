"""The transformer beside the table (P3): the real model, real files."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pegboard.core.surface.searchable import Searchable
from pegboard.ports import RankContext
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.meaning.kept_vectors import FILE, KeptVectors
from pegboard.search.ranker import ToolRanker
from search.making import among, name, names, office, ranked, tool

HOME = among(
    tool("kitchen", "bake_bread", "Make a loaf in the oven."),
    tool("garden", "water_plants", "Give the flowers something to drink."),
    tool("diary", "put_appointment", "Enter an appointment into the diary."),
)
OFFICE = office(1)


class Searching:
    """A ranker with the transformer, and what it goes by."""

    def __init__(self, folder: Path | None = None, *, on: bool = True) -> None:
        self.meaning = Embedding(vectors=folder)
        self.meaning.use_transformer(on)
        self.ranker = ToolRanker(self.meaning)

    def answers(self, within: Searchable, *needs: str) -> list[object]:
        ranking = ranked(needs or ("remove the picture", "costs"), within, ranker=self.ranker)
        return [ranking.needs, [(name(hit), hit.score.hex()) for hit in ranking.hits]]

    def read(self, within: Searchable) -> "Searching":
        self.ranker.index(within)
        self.meaning.wait()
        return self


def kept(folder: Path) -> int:
    with sqlite3.connect(folder / FILE) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return file.execute("SELECT count(*) FROM vectors").fetchone()[0]


def test_the_table_alone_ranks_until_every_tool_is_read() -> None:
    "A search never waits; then the order may be another, and another need finds what the table does not."
    table = Searching(on=False).answers(HOME, "plan a meeting")
    searching = Searching()
    assert searching.answers(HOME, "plan a meeting") == table
    assert searching.read(HOME).answers(HOME, "plan a meeting") != table
    assert names(ranked("plan a meeting", HOME, ranker=searching.ranker))[0] == "diary/put_appointment"


def test_scores_are_the_same_as_if_denied_tools_did_not_exist() -> None:
    "P3: to the last bit, beside an index over everything and without one, whatever was read before."
    permitted = among(*OFFICE[5:60:3])
    beside = Searching().read(among(*OFFICE)).read(permitted)
    assert beside.answers(permitted) == Searching().read(permitted).answers(permitted)


def test_it_follows_a_changed_catalog() -> None:
    changed = among(*OFFICE[:20], *HOME.tools)
    following = Searching().read(among(*OFFICE[:25])).read(changed)
    assert following.answers(changed) == Searching().read(changed).answers(changed)


def test_switched_off_it_counts_no_more() -> None:
    searching = Searching().read(HOME)
    searching.meaning.use_transformer(False)
    assert searching.meaning.reading is None
    assert searching.answers(HOME, "plan a meeting") == Searching(on=False).answers(HOME, "plan a meeting")


def test_what_was_said_before_counts_too() -> None:
    searching = Searching().read(HOME)
    context = RankContext(messages=("My bouquets are dry and look thirsty.",))
    hits = searching.ranker.rank(["do something about it"], HOME, context, limit=1).hits
    assert [name(hit) for hit in hits] == ["garden/water_plants"]


def test_vectors_are_kept_for_the_next_start(tmp_path: Path) -> None:
    first = Searching(tmp_path).read(HOME)
    with sqlite3.connect(tmp_path / FILE) as file:  # a vector that only the file can have
        vector, checksum = file.execute("SELECT vector, checksum FROM vectors LIMIT 1").fetchone()
        file.execute("UPDATE vectors SET vector = ?, checksum = ?", (vector, checksum))
    second = Searching(tmp_path).read(HOME)
    assert kept(tmp_path) == 3
    assert second.answers(HOME, "plan a meeting") != first.answers(HOME, "plan a meeting")


def test_vectors_of_another_model_are_not_used(tmp_path: Path) -> None:
    keys, vector = [b"a", b"b"], np.ones(4, np.int16)
    KeptVectors(tmp_path, "one").add(dict.fromkeys(keys, vector))
    assert KeptVectors(tmp_path, "other").of(keys, 4) == {}
    assert list(KeptVectors(tmp_path, "one").of(keys, 4)) == keys


def test_a_file_that_is_none_is_begun_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"torn" * 5_000)
    searching = Searching(tmp_path).read(HOME)
    assert kept(tmp_path) == 3
    assert searching.answers(HOME) == Searching().read(HOME).answers(HOME)


def test_a_damaged_file_changes_no_answer(tmp_path: Path) -> None:
    within = among(*OFFICE[:12])
    answers = Searching(tmp_path).read(within).answers(within)
    whole = (tmp_path / FILE).read_bytes()
    for at in (0.1, 0.5, 0.9):
        content = bytearray(whole)
        start = int(len(content) * at)
        content[start : start + 600] = os.urandom(600)
        (tmp_path / FILE).write_bytes(content)
        assert Searching(tmp_path).read(within).answers(within) == answers, at
    assert Searching(tmp_path).read(within).answers(within) == answers


def test_where_nothing_can_be_written_vectors_are_kept_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    searching = Searching(tmp_path / "file").read(HOME)
    assert searching.answers(HOME) == Searching().read(HOME).answers(HOME)
    assert ["cannot keep the vectors of tools" in message for message in caplog.messages] == [True]


FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from pegboard.search.meaning.kept_vectors import KeptVectors
kept = KeptVectors(Path(sys.argv[1]), "one")
kept.add({b"first": np.ones(384, np.int16)})
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
more = {bytes([n]): np.ones(384, np.int16) for n in range(200)}
kept.add(more)
print(len(kept.of(list(more), 384)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_full_disk_loses_nothing_that_was_kept_before(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout == "200\n"
    assert ran.stderr.count("cannot keep the vectors of tools") == 1
    assert kept(tmp_path) == 1


def test_the_vectors_that_were_used_last_are_kept(tmp_path: Path) -> None:
    few = KeptVectors(tmp_path, "one", most=3)
    for n in range(5):
        few.add({bytes([n]): np.ones(4, np.int16)})
    few.close()
    assert kept(tmp_path) == 3


KILLED = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.search.making import among, office
from pegboard.search.meaning.embedding import Embedding
from pegboard.search.ranker import ToolRanker
meaning = Embedding(vectors=Path(sys.argv[1]))
meaning.use_transformer(True)
index = ToolRanker(meaning).index(among(*office(1)))
while (read := meaning.reading) and read[0] < 60:
    time.sleep(0.001)  # the reader has the processor meanwhile
print("reads", flush=True)
sys.stdin.read()
"""


def test_what_an_interrupted_start_has_read_is_not_read_again(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"reads\n"
        child.kill()
    assert 50 <= kept(tmp_path) < 80
    within = among(*OFFICE)
    assert Searching(tmp_path).read(within).answers(within) == Searching().read(within).answers(within)


def test_it_ends_after_the_tool_that_it_reads(tmp_path: Path) -> None:
    searching = Searching(tmp_path)
    searching.ranker.index(among(*OFFICE))
    searching.meaning.use_transformer(False)
    assert searching.meaning.reading is None
    assert not (tmp_path / FILE).exists() or kept(tmp_path) < 80
