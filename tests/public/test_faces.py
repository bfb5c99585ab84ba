"""Test that the faces show what docs/library.md names and nothing else."""

import public_names
import pytest

import pegboard
from pegboard import Pegboard, Permissions, Session


@pytest.mark.parametrize("face", [Session, Pegboard, Permissions])
def test_a_face_shows_exactly_what_the_page_of_the_library_names(face: type) -> None:
    assert public_names.of(face) == public_names.documented(face)


def test_every_public_name_stands_on_the_page_of_the_library() -> None:
    page = public_names.LIBRARY.read_text("utf-8")
    assert [name for name in pegboard.__all__ if f"`{name}" not in page and f"`pegboard.{name}`" not in page] == []
