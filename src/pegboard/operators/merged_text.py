"""What two have made of one text, in one text."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

_Edit = tuple[int, int, tuple[str, ...]]


def merged_text(base: str, mine: str, theirs: str) -> str | None:
    r"""Return a text with what both have changed of another, line by line; None where they changed the same lines.

    Lines beside each other count as the same ones, unless both say the same of them.

    >>> merged_text("a\nb\nc\nd", "A\nb\nc\nd", "a\nb\nc\nD")
    'A\nb\nc\nD'
    >>> merged_text("a\nb", "A\nb", "a\nB") is None, merged_text("a\nb", "A\nb", "A\nb")
    (True, 'A\nb')
    """
    lines = base.split("\n")
    own, others = _edits(lines, mine.split("\n")), _edits(lines, theirs.split("\n"))
    edits = sorted({*own, *others})
    if any(after[0] <= before[1] for before, after in pairwise(edits)):
        return None
    for first, end, new in reversed(edits):
        lines[first:end] = new
    return "\n".join(lines)


def _edits(before: Sequence[str], after: Sequence[str]) -> list[_Edit]:
    """Return what is put in the place of which lines; between two of them lines stay.

    What is alike at both ends is set aside first: matching takes long where lines repeat.
    """
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    tail = next((at for at in range(most - head) if before[-1 - at] != after[-1 - at]), most - head)
    inner, own = before[head : len(before) - tail], after[head : len(after) - tail]
    steps = SequenceMatcher(None, inner, own, autojunk=False).get_opcodes()
    return [
        (head + first, head + end, tuple(own[start:stop])) for kind, first, end, start, stop in steps if kind != "equal"
    ]
