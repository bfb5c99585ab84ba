"""Compare SECURITY.md with the tests and rules that it names."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
WALLS = re.findall(r"^\| (.+) \| ([A-Z]\d+(?:, [A-Z]\d+)*) \| `(.+)::(.+)` \|$", TEXT, re.MULTILINE)


def test_every_wall_has_a_rule_and_a_test() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| what")]
    assert len(rows) == len(WALLS) > 20


def test_the_test_of_each_wall_is_there_and_cites_its_rule() -> None:
    for _, rules, file, name in WALLS:
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        found = [node for node in tree.body if getattr(node, "name", None) == name]
        assert len(found) == 1, (file, name)
        cited = f"{ast.get_docstring(tree)} {ast.get_docstring(found[0])}"  # type: ignore[arg-type]
        assert any(rule in cited for rule in rules.split(", ")), f"the docstring of {name} cites none of {rules}"
