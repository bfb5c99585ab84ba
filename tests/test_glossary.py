"""Compare the tables of docs/glossary.md: what is compared is defined, and no cell is empty."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pegboard"
TEXT = (ROOT / "docs" / "glossary.md").read_text("utf-8")
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


def test_every_noun_of_the_code_stands_in_the_source() -> None:
    section = TEXT.partition("## In the code")[2].partition("\n## ")[0]
    nouns = re.findall(r"^\| \*\*([\w -]+)\*\* \|", section, re.MULTILINE)
    assert len(nouns) > 15
    source = " ".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py")).lower()
    assert [noun for noun in nouns if not re.search(rf"{noun.replace(' ', '[ _-]?')}", source)] == []
