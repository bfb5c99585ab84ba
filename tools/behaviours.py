"""Fill in the tests of tests/behaviours.md from the tests that cite the behaviours.

A test cites a behaviour as it cites a rule: at the start of its docstring, before the first colon (`"S2, MR51: …"`).
Sentences and the verdicts `rule:` and `out:` stay as they are written, and so do tests that are named by hand, while
they exist.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import rules

TABLE = rules.ROOT / "tests" / "behaviours.md"
LAST = {"MR": 104, "JD": 90, "MI": 16, "SJ": 18}
BEHAVIOURS = tuple(f"{series}{number}" for series, last in LAST.items() for number in range(1, last + 1))

CITED = re.compile(r"(?:§?[A-Z]{0,2}\d+(?:[,.\s]| and )*)+")
BEHAVIOUR = re.compile(r"(?:MR|JD|MI|SJ)\d+")
VERDICT = re.compile(r"(?:test: `|rule: [A-Z]\d+(?:, [A-Z]\d+)* \(|out: \w)")
TEST = re.compile(r"`(tests/[^`]+::[^`]+)`")
RULE = re.compile(r"[A-Z]\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Hold one line of the tables."""

    id: str
    says: str
    verdict: str

    def __str__(self) -> str:
        """Return the line as Markdown."""
        return f"| {self.id} | {self.says} | {self.verdict} |"

    @property
    def kind(self) -> str:
        """Return `test`, `rule` or `out`; nothing where the verdict is not written as one of them."""
        return self.verdict.partition(":")[0] if VERDICT.match(self.verdict) else ""

    @property
    def tests(self) -> tuple[str, ...]:
        """Return the node ids of the tests that are named."""
        return tuple(TEST.findall(self.verdict))

    @property
    def superseded_by(self) -> tuple[str, ...]:
        """Return the rules of the design that stand in place of the behaviour."""
        return tuple(RULE.findall(self.verdict.partition(" (")[0])) if self.kind == "rule" else ()


def cited(test: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    """Return the behaviours that the docstring of a test begins with; rules between them are passed over."""
    match = CITED.match(ast.get_docstring(test) or "")
    return tuple(BEHAVIOUR.findall(match[0])) if match else ()


def every_test() -> dict[str, tuple[str, ...]]:
    """Return the node id of each test, in order of file and place, with the behaviours that it cites."""
    paths = sorted((rules.ROOT / "tests").rglob("test_*.py"))
    return {name: cited(test) for path in paths for name, test in rules.tests_in(path, rules.ROOT)}


def by_behaviour(tests: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return for each cited behaviour the node ids of its tests."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, behaviours in tests.items():
        for behaviour in behaviours:
            found[behaviour].append(name)
    return {behaviour: tuple(names) for behaviour, names in found.items()}


def read(text: str) -> list[Row]:
    """Return the rows of all tables in the order of the document."""
    cells = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines())
    return [Row(id=row[0], says=row[1], verdict=row[2]) for row in cells if BEHAVIOUR.fullmatch(row[0])]


def filled(text: str, tests: Mapping[str, tuple[str, ...]]) -> str:
    """Return the document with every test that cites a behaviour named in its row; `out:` names none."""
    places = {name: place for place, name in enumerate(tests)}
    citations = by_behaviour(tests)
    lines = text.splitlines()
    for number, line in enumerate(lines):
        for row in read(line):
            named = {name for name in row.tests if name in tests} | {*citations.get(row.id, ())}
            if named and row.kind in ("test", "rule"):
                lines[number] = str(_naming(row, sorted(named, key=lambda name: (places.get(name, len(places)), name))))
    return "\n".join(lines) + "\n"


def _naming(row: Row, names: list[str]) -> Row:
    listed = ", ".join(f"`{name}`" for name in names)
    said = TEST.split(row.verdict)[0].rstrip(" `:") if row.kind == "rule" else "test"
    return replace(row, verdict=f"{said}: {listed}")


def main() -> int:
    """Rewrite the tables and say how many there are of each verdict."""
    text = filled(TABLE.read_text("utf-8"), every_test())
    TABLE.write_text(text, "utf-8")
    kinds = [row.kind for row in read(text)]
    print(f"{len(kinds)} behaviours: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("test", "rule", "out")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
