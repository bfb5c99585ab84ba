"""Every character that hides is shown where people decide."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.support.visible_text import is_hidden, visible


@pytest.mark.parametrize("character", "\u200b\u202e\u2066\x1b\u00ad\ufeff\U000e0041\ufe01\U000e0100\u3164\u2800\u034f")
def test_what_nobody_sees_is_shown(character: str) -> None:
    """A4: zero width, direction, tags, variation selectors, fillers and blanks that count as printable."""
    assert visible(f"a{character}b") == f"a<U+{ord(character):04X}>b"


def test_a_sign_keeps_the_one_selector_that_says_how_it_is_drawn() -> None:
    """A4: emoji stay readable, and what follows the first selector is shown."""
    assert visible("\u26a0\ufe0f careful") == "\u26a0\ufe0f careful"
    assert visible("\u26a0\ufe0f\ufe01") == "\u26a0\ufe0f<U+FE01>"


@given(st.text())
def test_what_is_shown_hides_nothing(text: str) -> None:
    """A4: whatever the text, each of its characters can be seen."""
    shown = visible(text)
    assert not any(is_hidden(character, before) for character, before in zip(shown, " " + shown, strict=False))
