"""What two have made of one text, in one text."""

from hypothesis import given
from hypothesis import strategies as st

from pegboard.operators.merged_text import merged_text

texts = st.lists(st.sampled_from(("a", "b", "c", "")), max_size=8).map("\n".join)


@given(base=texts, mine=texts)
def test_what_one_alone_has_changed_is_the_text(base: str, mine: str) -> None:
    assert merged_text(base, mine, base) == mine
    assert merged_text(base, base, mine) == mine
    assert merged_text(base, mine, mine) == mine


@given(base=texts, head=texts, tail=texts)
def test_changes_of_different_places_are_both_in_it(base: str, head: str, tail: str) -> None:
    """Repeated lines do not move them: what stays between them tells them apart."""
    middle = "x\ny\nz"
    found = merged_text(f"{base}\n{middle}\n{base}", f"{head}\n{middle}\n{base}", f"{base}\n{middle}\n{tail}")
    assert found == f"{head}\n{middle}\n{tail}"
