"""Compare docs/frameworks/ with what it promises: each framework begins with a few lines, which run as they are."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = DOCS / "frameworks"
BEGINNINGS = {"pydantic-ai": 1, "agno": 1, "langchain": 1, "openai-agents": 1, "plain-loops": 3}
"""The pages, and how many snippets each begins with: one for each form of a loop."""
PARTS = ["What you get", "Approvals", "Many users", "Streams", "Limits"]


@pytest.mark.parametrize("framework", BEGINNINGS)
def test_a_framework_begins_with_at_most_ten_lines(framework: str) -> None:
    """They are run with the document, where nothing is passed over."""
    text = (PAGES / f"{framework}.md").read_text("utf-8")
    snippets = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[: BEGINNINGS[framework]]
    lines = [[line for line in snippet.splitlines() if line.strip()] for snippet in snippets]

    assert len(lines) == BEGINNINGS[framework]
    assert all(0 < len(each) <= 10 for each in lines)
    assert all("board.session(" in snippet for snippet in snippets)
    assert not re.search(r"<!--.*\bskip\b", text)


def test_all_pages_have_the_same_parts_and_are_linked() -> None:
    overview = (DOCS / "frameworks.md").read_text("utf-8")
    assert {page.stem for page in PAGES.iterdir()} == set(BEGINNINGS)
    for name in BEGINNINGS:
        assert f"](frameworks/{name}.md)" in overview
        text = (PAGES / f"{name}.md").read_text("utf-8")
        assert re.findall(r"^## (.*)", text, re.MULTILINE) == PARTS
