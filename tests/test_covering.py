"""The cells of a matrix that are run have each value, or each pair of values, and are few."""

from itertools import combinations, product

import pytest

from covering import covering


@pytest.mark.parametrize(("together", "most"), [(1, 5), (2, 12), (3, 40)])
def test_the_cells_cover_what_is_to_be_covered_and_are_few(together: int, most: int) -> None:
    cells: list[dict[str, object]] = [
        dict(zip("abcd", values, strict=True)) for values in product(range(5), range(2), range(2), range(2))
    ]
    taken = [cells[n] for n in covering(cells, together)]
    assert len(taken) <= most
    for names in combinations("abcd", together):
        assert {tuple(map(one.get, names)) for one in taken} == {tuple(map(one.get, names)) for one in cells}


def test_each_value_is_taken_about_equally_often() -> None:
    cells = [{"a": a, "b": b} for a, b in product(range(6), range(2))]
    assert sorted(cells[n]["b"] for n in covering(cells, 1)) == [0, 0, 0, 1, 1, 1]
