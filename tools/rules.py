"""Fill in the columns `status` and `tests` of docs/rules.md from the tests that cite the rules.

A test cites a rule at the start of its docstring, before the first colon (`"S2, MR51: two loads both survive."`),
or at the start of its name (`test_s2_two_loads_both_survive`).
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "rules.md"
LAST = {"P": 9, "L": 8, "T": 10, "S": 10, "D": 3, "F": 5, "X": 5, "G": 10}
RULES = tuple(f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1))
# Rules that have tests and yet are not built in full.
UNFINISHED: frozenset[str] = frozenset()

CITED_IN_DOCSTRING = re.compile(r"((?:[A-Z]{1,2}\d+(?:, |,| and )?)+):")
CITED_IN_NAME = re.compile(r"test_((?:[pltsdfxg]\d+_)+)")
RULE = re.compile(r"[A-Z]{1,2}\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Hold one line of the table."""

    rule: str
    says: str
    status: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        """Return the line as Markdown."""
        return f"| {self.rule} | {self.says} | {self.status} | {', '.join(f'`{test}`' for test in self.tests)} |"


def cited(test: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the rules of the design that a test cites; other numbers (MR51) are passed over."""
    found: set[str] = set()
    if match := CITED_IN_DOCSTRING.match(ast.get_docstring(test) or ""):
        found.update(RULE.findall(match[1]))
    if match := CITED_IN_NAME.match(test.name):
        found.update(RULE.findall(match[1].upper()))
    return found.intersection(RULES)


def tests_in(path: Path, root: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the node id (`tests/file.py::test`, `tests/file.py::Class::test`) and definition of each test."""
    pending: list[tuple[str, ast.AST]] = [(path.relative_to(root).as_posix(), ast.parse(path.read_text("utf-8")))]
    while pending:
        prefix, parent = pending.pop(0)
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef):
                pending.append((f"{prefix}::{node.name}", node))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                yield f"{prefix}::{node.name}", node


def citations(root: Path = ROOT) -> dict[str, tuple[str, ...]]:
    """Return for each cited rule the node ids of its tests, in order of file and place."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests").rglob("test_*.py")):
        for name, test in tests_in(path, root):
            for rule in cited(test):
                found[rule].append(name)
    return {rule: tuple(names) for rule, names in found.items()}


def read(text: str) -> list[Row]:
    """Return the rows of the table in the order of the document."""
    rows: list[Row] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and RULE.fullmatch(cells[0]):
            rule, says, status, tests = cells
            rows.append(Row(rule=rule, says=says, status=status, tests=tuple(re.findall(r"`([^`]+)`", tests))))
    return rows


def filled(text: str, tests: dict[str, tuple[str, ...]]) -> str:
    """Return the document with the status and tests of every row as the tests have it."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for row in read(line):
            names = tests.get(row.rule, ())
            status = "built" if names and row.rule not in UNFINISHED else "next"
            lines[number] = str(Row(rule=row.rule, says=row.says, status=status, tests=names))
    return "\n".join(lines) + "\n"


def main() -> int:
    """Rewrite the table and say what is still to come."""
    text = filled(TABLE.read_text("utf-8"), citations())
    TABLE.write_text(text, "utf-8")
    rows = read(text)
    coming = [row.rule for row in rows if row.status == "next"]
    print(f"{len(rows) - len(coming)} of {len(rows)} rules built" + (f"; next: {', '.join(coming)}" if coming else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
