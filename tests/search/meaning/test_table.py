"""The table of word pieces: how texts are cut, and files that are no table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pegboard.search.meaning.word_vectors import (
    SHIPPED,
    WordPieces,
    WrongTableError,
    read_vectors,
    shipped_vectors,
    write_vectors,
)

WORDS = ["[UNK]", "read", "##er", "file", "##s", "un", "##read", "cafe", "!", "_", "天"]


def cut(text: str) -> list[str]:
    return [WORDS[number] for number in WordPieces(WORDS).ids(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Reader reads FILES", ["read", "##er", "read", "##s", "file", "##s"]),
        ("unread", ["un", "##read"]),
        ("read_file!", ["read", "_", "file", "!"]),
        ("café", ["cafe"]),
        ("天天", ["天", "天"]),
        ("xyz reading", ["[UNK]", "[UNK]"]),
        ("r" * 200, ["[UNK]"]),
        ("", []),
    ],
)
def test_words_are_cut_into_the_longest_known_pieces(text: str, pieces: list[str]) -> None:
    assert cut(text) == pieces


def test_known_sentences_are_cut_as_the_teacher_cuts_them() -> None:
    ids = shipped_vectors().pieces.ids("Tokenizers split embeddings, don't they?")
    assert ids == [19204, 17629, 2015, 3975, 7861, 8270, 4667, 2015, 1010, 2123, 1005, 1056, 2027, 1029]


def test_the_table_with_its_vocabulary_has_at_most_eight_mebibytes() -> None:
    assert SHIPPED.stat().st_size <= 8 * 2**20


def test_a_written_table_is_read_as_it_was(tmp_path: Path) -> None:
    rows = np.arange(33, dtype=np.float32).reshape(11, 3)
    write_vectors(tmp_path / "table.npz", name="mine", vocabulary=WORDS, rows=rows)
    table = read_vectors(tmp_path / "table.npz")
    assert (table.name, table.columns) == ("mine", 3)
    assert np.allclose(table.sum("unread"), rows[5] + rows[6], atol=0.3)


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 torn"])
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "table.npz"
    path.write_bytes(content)
    with pytest.raises(WrongTableError, match="is no table of word pieces"):
        read_vectors(path)


def test_a_table_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    write_vectors(path, name="old", vocabulary=WORDS, rows=np.ones((11, 3), np.float32))
    with np.load(path) as file:
        parts: dict[str, Any] = {**file, "form": 99}
    np.savez(path.with_name("other.npz"), **parts)
    with pytest.raises(WrongTableError, match="has form 99; this version reads form 1"):
        read_vectors(path.with_name("other.npz"))


def test_a_torn_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    path.write_bytes(SHIPPED.read_bytes()[:1_000_000])
    with pytest.raises(WrongTableError):
        read_vectors(path)


def test_a_table_with_too_few_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.npz"
    write_vectors(path, name="short", vocabulary=WORDS, rows=np.ones((9, 3), np.float32))
    with pytest.raises(WrongTableError, match="is damaged: 11 pieces, 9 rows"):
        read_vectors(path)
