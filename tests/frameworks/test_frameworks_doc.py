"""Compare docs/frameworks.md with what it promises: each framework begins with a few lines, which run as they stand."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "frameworks.md").read_text("utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]}
BEGINNINGS = {"pydantic-ai": 1, "Agno": 1, "LangChain and LangGraph": 1, "OpenAI Agents": 1, "Plain loops": 3}
"""The frameworks, and how many snippets each begins with: one for each form of a loop."""


@pytest.mark.parametrize("framework", BEGINNINGS)
def test_a_framework_begins_with_at_most_ten_lines(framework: str) -> None:
    """They are run with the document, where nothing is passed over."""
    snippets = re.findall(r"^```python\n(.*?)^```", SECTIONS[framework], re.MULTILINE | re.DOTALL)[
        : BEGINNINGS[framework]
    ]
    lines = [[line for line in snippet.splitlines() if line.strip()] for snippet in snippets]

    assert len(lines) == BEGINNINGS[framework]
    assert all(0 < len(each) <= 10 for each in lines)
    assert all("board.session(" in snippet for snippet in snippets)
    assert not re.search(r"<!--.*\bskip\b", TEXT)
