"""Compare the tables of docs/glossary.md: what is compared is defined, and no cell is empty."""

import re
from pathlib import Path

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "glossary.md").read_text("utf-8")
DEFINED = set(re.findall(r"\*\*([\w -]+)\*\*(?=[^|\n]*\|)", TEXT))
COMPARED = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.partition("## In the protocol")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| ours")
]
VERBS = {"load": "loaded", "unload": "unloaded"}


def test_every_word_that_is_compared_is_defined() -> None:
    words = [row[0].partition(":")[0] for row in COMPARED]
    assert len(words) > 40
    assert [word for word in words if VERBS.get(word, word) not in DEFINED] == []


def test_every_comparison_names_a_counterpart_and_leaves_no_cell_empty() -> None:
    assert [row for row in COMPARED if len(row) != 5 or "" in row] == []
    assert [row for row in COMPARED if all(cell.startswith("-") for cell in row[1:])] == []


def test_a_word_is_defined_once() -> None:
    words = re.findall(r"^\| \*\*([\w -]+)\*\* \|", TEXT, re.MULTILINE)
    assert sorted(words) == sorted(set(words))
