"""One word, one meaning: the words that the glossary replaced are gone."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pegboard"
MODULES = sorted(SOURCE.rglob("*.py"))
CHECKED = sorted(
    path
    for folder in ("tests", "benchmarks", "tools", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if "fixtures" not in path.parts and path != Path(__file__)
)
"""What else is read; what an earlier version printed and stored is kept as it was."""
DOCUMENTS = sorted(
    path
    for folder, pattern in ((ROOT, "*.md"), (ROOT / "docs", "**/*.md"), (ROOT / "examples", "**/[!.]*.*"))
    for path in folder.glob(pattern)
    if path.suffix in {".json", ".md", ".py", ".yaml"}
)

# What is loaded was "out", what was unloaded "hung back", what is excluded "left out".
OLD_WORDS = {
    "unloaded": re.compile(r"\b(hang|hangs|hung|hanging)\s+(it\s+|them\s+)?back\b", re.IGNORECASE),
    "loaded": re.compile(r"\b(is|are|be|already|tools|take|takes|taken|taking)\s+out\b(?!\s+of\b)", re.IGNORECASE),
    "loaded from the start": re.compile(r"\bout\s+from\s+the\s+start\b", re.IGNORECASE),
    "excluded": re.compile(r"\b(leave|leaves|left|leaving)\s+(\w+\s+){0,2}out\b", re.IGNORECASE),
}


@pytest.fixture(scope="module")
def texts() -> list[tuple[Path, int, str]]:
    """Return every string of every module with its line, and every document."""
    return [(path, line, text) for path in (*MODULES, *CHECKED, *DOCUMENTS) for line, text in texts_of(path)]


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every string of a module with its line; the words of a document with theirs."""
    if path.suffix != ".py":
        yield 1, path.read_text("utf-8")
        return
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.parametrize("word", OLD_WORDS)
def test_old_words_are_gone_from_strings_docstrings_and_documents(
    texts: list[tuple[Path, int, str]], word: str
) -> None:
    pattern = OLD_WORDS[word]
    found = [
        f"{path.relative_to(ROOT)}:{line + text.count(chr(10), 0, match.start())}: {match[0]!r}: write {word!r}"
        for path, line, text in texts
        for match in pattern.finditer(text)
    ]
    assert found == []


def test_the_docstring_of_a_class_says_what_it_is() -> None:
    opening = re.compile(r"(Hold|Say|Be|Name|Keep|Tell|Know) ")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef) and opening.match(ast.get_docstring(node) or "")
    ]
    assert found == []
