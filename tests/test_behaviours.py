"""Hold tests/behaviours.md to the tests and rules that it names, both ways."""

import pytest

import behaviours
import rules

Tests = dict[str, tuple[str, ...]]
ROWS = behaviours.read(behaviours.TABLE.read_text("utf-8"))


@pytest.fixture(scope="module")
def tests() -> Tests:
    """Return what each test cites."""
    return behaviours.every_test()


def test_every_behaviour_has_exactly_one_row() -> None:
    assert [row.id for row in ROWS] == list(behaviours.BEHAVIOURS)


def test_every_behaviour_has_a_sentence_and_one_verdict() -> None:
    assert [row.id for row in ROWS if not row.kind or not row.says.endswith(".")] == []


def test_every_test_that_is_named_exists(tests: Tests) -> None:
    assert [(row.id, name) for row in ROWS for name in row.tests if name not in tests] == []


def test_every_behaviour_that_a_test_cites_is_in_the_list(tests: Tests) -> None:
    known = set(behaviours.BEHAVIOURS)
    assert [(name, found) for name, cited in tests.items() for found in cited if found not in known] == []


def test_every_test_that_cites_a_behaviour_is_named_in_its_row(tests: Tests) -> None:
    cited = behaviours.by_behaviour(tests)
    lost = {row.id: missing for row in ROWS if (missing := set(cited.get(row.id, ())).difference(row.tests))}
    assert lost == {}, "run `make rules`; what a test holds is not `out`"


def test_a_verdict_of_tests_names_one_and_what_is_out_names_none() -> None:
    assert [row.id for row in ROWS if (row.kind == "test" and not row.tests) or (row.kind == "out" and row.tests)] == []


def test_every_rule_that_stands_in_place_of_a_behaviour_is_in_the_table_of_rules() -> None:
    known = {row.rule for row in rules.read(rules.TABLE.read_text("utf-8"))}
    assert [(row.id, rule) for row in ROWS for rule in row.superseded_by if rule not in known] == []
    assert [row.id for row in ROWS if row.kind == "rule" and not row.superseded_by] == []


def test_filling_in_changes_nothing_that_is_filled_in(tests: Tests) -> None:
    text = behaviours.TABLE.read_text("utf-8")
    assert behaviours.filled(text, tests) == text, "run `make rules`"
