"""Test that the faces show what docs/library.md names and nothing else."""

import re
from pathlib import Path

import public_names
import pytest

import pegboard
from pegboard import Pegboard, Permissions, Session, SyncPegboard, SyncSession
from pegboard.board.calls.approvals import Approvals
from pegboard.board.pins import Pins


@pytest.mark.parametrize("face", [Session, Pegboard, Permissions, Approvals, Pins])
def test_a_face_shows_exactly_what_the_page_of_the_library_names(face: type) -> None:
    assert public_names.of(face) == public_names.documented(face)


def test_every_public_name_stands_on_the_page_of_the_library() -> None:
    page = public_names.LIBRARY.read_text("utf-8")
    assert [name for name in pegboard.__all__ if f"`{name}" not in page and f"`pegboard.{name}`" not in page] == []


def test_the_types_of_every_public_name_are_checked() -> None:
    checked = (Path(__file__).parent / "types_of_the_library.py").read_text("utf-8")
    named = set(re.findall(r"\w+", checked))
    faces = (Session, Pegboard, Permissions, Approvals, Pins, SyncSession, SyncPegboard)
    assert {*pegboard.__all__, *(name for face in faces for name in public_names.of(face))} - named == set()
