"""Hold tests/behaviours.md to the tests and rules that it names, both ways."""

import ast

import pytest

import behaviours
import rules

ROWS = behaviours.read(behaviours.TABLE.read_text("utf-8"))
TESTS = behaviours.every_test()
SOURCE = '''
def test_a(): "S2, MR51: two loads survive, as JD1 says."
def test_b(): """S1, MR44,
    SJ18: over two lines."""
def test_c(): "§5, MI1: a section of the design before it."
def test_d(): "L2, JD28."
def test_e(): "Nothing is cited here: MR1."
def test_f(): pass
'''


def test_every_behaviour_has_exactly_one_row() -> None:
    assert [row.id for row in ROWS] == list(behaviours.BEHAVIOURS)


def test_every_behaviour_has_a_sentence_and_one_verdict() -> None:
    assert [row.id for row in ROWS if not row.kind or not row.says.endswith(".")] == []


def test_no_two_behaviours_are_told_in_the_same_words() -> None:
    assert len({row.says for row in ROWS}) == len(ROWS)


def test_every_test_that_is_named_exists() -> None:
    assert [(row.id, name) for row in ROWS for name in row.tests if name not in TESTS] == []


def test_every_behaviour_that_a_test_cites_is_in_the_list() -> None:
    known = set(behaviours.BEHAVIOURS)
    assert [(name, found) for name, cited in TESTS.items() for found in cited if found not in known] == []


def test_every_test_that_cites_a_behaviour_is_named_in_its_row() -> None:
    cited = behaviours.by_behaviour(TESTS)
    lost = {row.id: missing for row in ROWS if (missing := set(cited.get(row.id, ())).difference(row.tests))}
    assert lost == {}, "run `make rules`; what a test holds is not `out`"


def test_a_verdict_of_tests_names_one_and_what_is_out_names_none() -> None:
    assert [row.id for row in ROWS if (row.kind == "test" and not row.tests) or (row.kind == "out" and row.tests)] == []


def test_every_rule_that_stands_in_place_of_a_behaviour_is_in_the_table_of_rules() -> None:
    known = {row.rule for row in rules.read(rules.TABLE.read_text("utf-8"))}
    assert [(row.id, rule) for row in ROWS for rule in row.superseded_by if rule not in known] == []
    assert [row.id for row in ROWS if row.kind == "rule" and not row.superseded_by] == []


def test_filling_in_changes_nothing_that_is_filled_in() -> None:
    text = behaviours.TABLE.read_text("utf-8")
    assert behaviours.filled(text, TESTS) == text, "run `make rules`"


@pytest.mark.parametrize(
    ("test", "cited"),
    [("a", ("MR51",)), ("b", ("MR44", "SJ18")), ("c", ("MI1",)), ("d", ("JD28",)), ("e", ()), ("f", ())],
)
def test_a_test_cites_its_behaviours_at_the_start_of_its_docstring(test: str, cited: tuple[str, ...]) -> None:
    functions = {node.name: node for node in ast.parse(SOURCE).body if isinstance(node, ast.FunctionDef)}
    assert behaviours.cited(functions[f"test_{test}"]) == cited


def test_filling_in_keeps_what_is_written_by_hand() -> None:
    text = (
        "| MR1 | A. | test: `tests/a.py::test_x` |\n"
        "| MR2 | B. | rule: S9, T4 (counted; not guessed): `tests/a.py::test_x` |\n"
        "| MR3 | C. | rule: S5 (stronger) |\n"
        "| MR4 | D. | out: a host's loop |\n"
    )
    tests = {"tests/a.py::test_w": ("MR1", "MR2", "MR4"), "tests/a.py::test_x": ()}
    assert behaviours.filled(text, tests) == (
        "| MR1 | A. | test: `tests/a.py::test_w`, `tests/a.py::test_x` |\n"
        "| MR2 | B. | rule: S9, T4 (counted; not guessed): `tests/a.py::test_w`, `tests/a.py::test_x` |\n"
        "| MR3 | C. | rule: S5 (stronger) |\n"
        "| MR4 | D. | out: a host's loop |\n"
    )
