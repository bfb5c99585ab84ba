"""Run few cells of a matrix of parameters: those that together have each value, or each pair of values.

A test of three ways, two kinds of call and five frameworks has 30 cells; what fails depends on one of them or on two.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

import pytest


def covering(cells: Sequence[Mapping[str, object]], together: int) -> list[int]:
    """Return the numbers of cells in which every `together` parameters have each of their values that there are.

    Of cells that cover as much, the one is taken whose values were seldom taken before.
    """
    covers = [frozenset(combinations(sorted(cell.items()), min(together, len(cell)))) for cell in cells]
    missing = set().union(*covers)
    taken: list[int] = []
    used: Counter[tuple[str, object]] = Counter()
    while missing:
        best = max(
            range(len(cells)), key=lambda n: (len(covers[n] & missing), -sum(used[one] for one in cells[n].items()))
        )
        missing -= covers[best]
        used.update(cells[best].items())
        taken.append(best)
    return sorted(taken)


def axes(item: pytest.Item) -> dict[str, object]:
    """Return the value of each parameter of a test; those that are given together, in rows, are one."""
    values = {name: id(value) for name, value in item.callspec.params.items()}  # type: ignore[attr-defined]
    rows = [mark.args[0] for mark in item.iter_markers("parametrize")]
    together = [[one.strip() for one in row.split(",")] if isinstance(row, str) else list(row) for row in rows]
    found: dict[str, object] = {",".join(names): tuple(values.pop(name) for name in names) for names in together}
    return found | values


def covering_items(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests without the cells that need not run: every pair of values is in one that does.

    A test marked `cover(1)` has each value in one, where an axis is only a carrier for the other.
    """
    matrices: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec"):
            matrices[item.nodeid.partition("[")[0]].append(item)
    left_out: set[pytest.Item] = set()
    for matrix in matrices.values():
        mark = matrix[0].get_closest_marker("cover")
        cells = [axes(item) for item in matrix]
        if len(cells[0]) > 1:
            left_out |= set(matrix) - {matrix[n] for n in covering(cells, mark.args[0] if mark else 2)}
    return [item for item in items if item not in left_out]
