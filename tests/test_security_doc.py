"""Compare SECURITY.md with the tests and rules that it names."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
WALLS = re.findall(r"^\| (.+) \| ([A-Z]\d+(?:, [A-Z]\d+)*) \| `(.+)::(.+)` \|$", TEXT, re.MULTILINE)


def test_every_wall_has_a_rule_and_a_test() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| what")]
    assert len(rows) == len(WALLS) > 20


@pytest.mark.parametrize(("rules", "file", "name"), [wall[1:] for wall in WALLS])
def test_the_test_of_a_wall_is_there_and_cites_its_rule(rules: str, file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    found = [node for node in tree.body if getattr(node, "name", None) == name]
    assert len(found) == 1
    cited = f"{ast.get_docstring(tree)} {ast.get_docstring(found[0])}"  # type: ignore[arg-type]
    assert any(rule in cited for rule in rules.split(", ")), f"its docstring cites none of {rules}"
