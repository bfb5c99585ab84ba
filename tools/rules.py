"""Fill in the status and the tests of every rule of tests/rules.md from the tests that cite the rules.

A test cites a rule at the start of its docstring, before the first colon (`"S2, MR51: two loads both survive."`),
or at the start of its name (`test_s2_two_loads_both_survive`).
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "rules.md"
LAST = {"P": 11, "L": 9, "T": 13, "S": 10, "D": 4, "F": 5, "X": 5, "A": 7, "G": 17}
RULES = tuple(f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1))

CITED_IN_DOCSTRING = re.compile(r"((?:[A-Z]{1,2}\d+(?:, |,| and )?)+):")
CITED_IN_NAME = re.compile(r"test_((?:[pltsdfxag]\d+_)+)")
RULE = re.compile(r"[A-Z]{1,2}\d+")

ITEM = re.compile(
    r"^- \*\*(?P<rule>[A-Z]{1,2}\d+)\*\* (?P<says>.+?) \*(?P<status>built|next)(?:: (?P<missing>[^*]+))?\*$"
)
TESTS = "## Tests\n"
LISTED = re.compile(r"^(?:### (?P<rule>\w+)|- `(?P<file>[^`]+)`|  - `(?P<test>[^`]+)`)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A rule on the page: its sentence, its status, what of it is still to be built, and the tests that hold it."""

    rule: str
    says: str
    status: str
    missing: str = ""
    tests: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return its line in the list of rules."""
        status = f"{self.status}: {self.missing}" if self.missing else self.status
        return f"- **{self.rule}** {self.says} *{status}*"


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
    """Return the rules of the page in its order."""
    rules, _, listed = text.partition(TESTS)
    tests: defaultdict[str, list[str]] = defaultdict(list)
    rule = file = ""
    for match in LISTED.finditer(listed):
        rule, file = match["rule"] or rule, match["file"] or file
        if match["test"]:
            tests[rule].append(f"{file}::{match['test']}")
    return [replace(row, tests=tuple(tests[row.rule])) for line in rules.splitlines() if (row := _row(line))]


def filled(text: str, tests: Mapping[str, tuple[str, ...]]) -> str:
    """Return the page with the status of every rule, and the list of tests, as the tests have it."""
    rules = [_filled(line, tests) for line in text.partition(TESTS)[0].splitlines()]
    listed = [line for row in read("\n".join(rules)) for line in _listed(row.rule, tests.get(row.rule, ()))]
    return "\n".join([*rules, TESTS, *listed]).rstrip("\n") + "\n"


def _row(line: str) -> Row | None:
    match = ITEM.match(line)
    if match is None:
        return None
    return Row(rule=match["rule"], says=match["says"], status=match["status"], missing=match["missing"] or "")


def _filled(line: str, tests: Mapping[str, tuple[str, ...]]) -> str:
    row = _row(line)
    if row is None:
        return line
    return str(replace(row, status="built" if tests.get(row.rule) and not row.missing else "next"))


def _listed(rule: str, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines that list the tests of a rule, by file."""
    if not names:
        return
    files: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        file, _, test = name.partition("::")
        files[file].append(test)
    yield from (f"### {rule}", "")
    for file, tests in files.items():
        yield from (f"- `{file}`", *(f"  - `{test}`" for test in tests))
    yield ""


def main() -> int:
    """Rewrite the page and print what is still to come."""
    text = filled(TABLE.read_text("utf-8"), citations())
    TABLE.write_text(text, "utf-8")
    rows = read(text)
    coming = [row.rule for row in rows if row.status == "next"]
    print(f"{len(rows) - len(coming)} of {len(rows)} rules built" + (f"; next: {', '.join(coming)}" if coming else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
