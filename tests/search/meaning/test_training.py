"""What the table of word pieces learns from may be read, and the documentation names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from training.licences import impermissible

ROOT = Path(__file__).resolve().parents[3]


def test_the_documentation_names_every_package_that_is_read() -> None:
    used = re.findall(r"^([\w-]+)==", (ROOT / "training" / "packages.txt").read_text("utf-8"), re.MULTILINE)
    text = (ROOT / "docs" / "retrieval.md").read_text("utf-8")
    cells = re.search(r"^\| Licence \| Packages \|\n.*?\n\n", text, re.MULTILINE | re.DOTALL)
    assert cells
    named = [name for line in cells[0].splitlines()[2:] if line for name in line.split("|")[2].strip().split(", ")]
    assert sorted(named) == sorted(used)


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ("License-Expression: BSD-3-Clause AND MIT\n", []),
        ("License: see the file\nClassifier: License :: OSI Approved :: MIT License\n", []),
        ("License: Apache 2.0\n", []),
        ("", ["some (none named)"]),
        ("License-Expression: MIT AND LGPL-2.1-only\n", ["some (MIT, LGPL-2.1-only)"]),
        ("License: LGPL\n", ["some (LGPL)"]),
    ],
)
def test_a_package_without_a_permissive_licence_is_named(tmp_path: Path, metadata: str, said: list[str]) -> None:
    (tmp_path / "some-1.dist-info").mkdir()
    (tmp_path / "some-1.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.4\nName: some\n{metadata}")
    assert impermissible(tmp_path) == said
