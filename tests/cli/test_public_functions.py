"""What is public in a plugin and is no tool takes no other with it, and `check` reports it."""

import json
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.cli import main
from pegboard.core.model.manifest_json import manifest_from_json, manifest_to_json
from pegboard.core.model.tools import Manifest

MODULE = '''
from __future__ import annotations
import functools
import threading
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from decimal import Decimal


def good(n: int) -> int:
    """Be good."""
    return n


def guarded(n: int, lock: threading.Lock) -> int:
    """Take what JSON does not have."""
    return n


def paid(n: Decimal) -> int:
    """Take what only a type checker reads."""
    return n


def marked(n: int) -> int:
    """Have a mark that is none."""
    return n


marked.__pegboard__ = {"colour": "red"}


class Desk:
    """A desk."""

    def good(self, n: int) -> int:
        """Be good."""
        return n

    def locked(self, lock: threading.Lock) -> int:
        """Take what JSON does not have."""
        return 1


def make():
    """Make one that is good, and one that is none."""

    def good(n: int) -> int:
        """Be good."""
        return n

    def bad(lock: threading.Lock) -> int:
        """Take what JSON does not have."""
        return 1

    return [good, bad]


LISTED = {"good": good, "number": 7, "paid": paid}
'''

EXCLUDED = {
    "unfit_x": ["guarded", "paid", "marked", "make"],
    "unfit_x:Desk": ["locked"],
    "unfit_x:make": ["bad"],
    "unfit_x:LISTED": ["number", "paid"],
    "all_x": ["absent", "bad"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unfit_x.py").write_text(MODULE)
    (tmp_path / "all_x.py").write_text(
        "import threading\n"
        "__all__ = ['good', 'absent', 'bad', 'LIMIT', 'Kind']\n"
        "LIMIT = 3\n"
        "class Kind: pass\n"
        "def good(n: int) -> int:\n    'Be good.'\n    return n\n"
        "def bad(lock: threading.Lock) -> int:\n    'Be bad.'\n    return 1\n"
    )
    return tmp_path


def written(folder: Path, target: str) -> Path:
    path = folder / "pegboard.yaml"
    path.write_text(f"plugins:\n  p: {{python: '{target}'}}\nagents:\n  a: {{tools: [p]}}\n")
    return path


@pytest.mark.parametrize("target", EXCLUDED)
async def test_what_cannot_be_a_tool_takes_no_other_with_it(folder: Path, target: str) -> None:
    async with Pegboard.open(written(folder, target)) as board:
        session = await board.session(agent="a", session_id="s")
        assert "good" in (await session.surface()).names
        assert (await session.call("good", {"n": 2})).result.content[0]["text"] == "2"


@pytest.mark.parametrize(("target", "names"), EXCLUDED.items(), ids=EXCLUDED)
def test_check_reports_each_with_its_place_and_reason(
    folder: Path, target: str, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(folder, target)
    for options, status in ([], 0), (["--strict"], 1):
        assert main(["check", "--json", "--config", str(path), *options]) == status
        problems = [one for one in json.loads(capsys.readouterr().out)["problems"] if one["code"] == "no_tool"]
        found = [one["message"].split("'")[3] for one in problems]
        assert found == names
        assert all(one["severity"] == "warning" and one["line"] == 2 for one in problems)


def test_where_none_is_left_the_first_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "only_x.py").write_text("import threading\ndef bad(lock: threading.Lock) -> int:\n    return 1\n")
    assert main(["check", "--config", str(written(folder, "only_x"))]) == 0
    assert "JSON cannot express its parameter 'lock'" in capsys.readouterr().out


def test_a_stored_manifest_keeps_it() -> None:
    manifest = Manifest(excluded={"bad": "no"})
    assert manifest_from_json(manifest_to_json(manifest)) == manifest
    assert manifest_from_json('{"tools": [], "secrets": [], "excluded": {"bad": 1}}') is None
