"""Compare CONTRIBUTING.md with the project: every path that it names exists, and so does every target of make."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
PATH = re.compile(r"`((?:src|tests|docs|tools|benchmarks)/[\w./-]*|[\w-]+\.(?:toml|md))`")
LINK = re.compile(r"\]\(([^)#]+)")
PLACEHOLDER = re.compile(r"NAME|NNNN")


def test_every_path_exists() -> None:
    named = {path for path in (*PATH.findall(TEXT), *LINK.findall(TEXT)) if not PLACEHOLDER.search(path)}
    assert len(named) > 20
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_every_target_of_make_exists() -> None:
    named = set(re.findall(r"`make (\w+)", TEXT))
    assert {"test", "rules", "bench", "pins"} <= named
    assert named - TARGETS == set()
