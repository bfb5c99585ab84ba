"""The sentences of a message that may each need something."""

import pytest

from pegboard.core.anticipation.by_message import sentences


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("How warm is it outside?", ()),
        ("How warm is it outside? Tell Michael about it.", ("How warm is it outside?", "Tell Michael about it.")),
        ("Thanks! How warm is it outside? Tell Michael.", ("How warm is it outside?", "Tell Michael.")),
        ("Thanks! How warm is it outside?", ()),
        ("- open the report\n- post what it says", ("- open the report", "- post what it says")),
        ("Version 1.5.2 of example.com is broken", ()),
        (
            "現在の外気温を教えてください。それからマイケルに知らせてください。",
            ("現在の外気温を教えてください。", "それからマイケルに知らせてください。"),
        ),
        ("1. 2. 3. 4.", ()),
        ("", ()),
    ],
)
def test_a_message_has_the_sentences_that_say_something(message: str, found: tuple[str, ...]) -> None:
    assert sentences(message) == found


def test_of_a_long_message_those_at_both_ends_count() -> None:
    """However long a message is, it takes no longer to look at."""
    told = [f"This is what happened on day {number}." for number in range(100_000)]
    found = sentences(" ".join(["Post what follows to the wall.", *told, "Then mail it to Michael."]))
    assert len(found) == 8
    assert (found[0], found[-1]) == ("Post what follows to the wall.", "Then mail it to Michael.")
