"""The style sheet keeps to its own tokens: three sizes of text, one scale of spaces, colours in one place."""

import re

import pytest

from pegboard.console.templating import FOLDER

CSS = (FOLDER / "static" / "console.css").read_text()
RULES = re.sub(r"/\*.*?\*/|^:root \{.*?^\}", "", CSS, flags=re.DOTALL | re.MULTILINE)
SIZES = {"var(--small)", "var(--text)", "var(--large)", "1em"}
SMALL = r"-?(0|[1-3]px|auto|1px)"


def values(*names: str) -> list[str]:
    """Return what the rules give to some properties."""
    return re.findall(rf"(?<![\w-])(?:{'|'.join(names)}):\s*([^;}}]+)", RULES)


def test_text_has_one_of_three_sizes() -> None:
    assert {one.strip() for one in values("font-size")} <= SIZES


def test_spaces_are_on_one_scale() -> None:
    """Beside lines of some pixels and half an inset there are no other lengths."""
    words = {
        word
        for value in values("margin", "padding", "gap", "margin-[a-z-]+", "padding-[a-z-]+")
        for word in value.split()
    }
    others = {word for word in words if not re.fullmatch(rf"{SMALL}|var\(--s[12346]\)|!important", word)}
    assert others <= {"12vh", "10vh", "3rem"}


@pytest.mark.parametrize("pattern", [r"#[0-9a-fA-F]{3,8}\b", r"light-dark\("])
def test_colours_stand_in_the_tokens_alone(pattern: str) -> None:
    assert re.findall(pattern, re.sub(r"#[a-z][\w-]*", "", RULES)) == []
