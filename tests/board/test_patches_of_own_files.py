"""Patches in the arguments of a call: the files that they name count as if they stood there alone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session

TOOLS = '''
from pegboard.marks import tool


def apply_patch(patch: str) -> str:
    """Apply a patch."""
    return "applied"


@tool(read_only=True)
def show_patch(patch: str) -> str:
    """Show a patch."""
    return "shown"
'''
UNIFIED = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-reload: ask\n+reload: all\n"
PATCHES = {
    "unified": UNIFIED.format("pegboard.yaml"),
    "with a text before it": f"Here is the fix.\n\n{UNIFIED.format('pegboard.yaml')}",
    "line ends of Windows": UNIFIED.format("pegboard.yaml").replace("\n", "\r\n"),
    "second file": UNIFIED.format("notes.txt") + UNIFIED.format("pegboard.yaml"),
    "new file": "--- /dev/null\n+++ b/.mcp.json\n@@ -0,0 +1 @@\n+{}\n",
    "no folder before it": "--- pegboard.yaml\t2026-01-01\n+++ pegboard.yaml\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n",
    "a date behind spaces": "--- pegboard.yaml 2026-01-01\n+++ pegboard.yaml 2026-01-02\n@@ -1 +1 @@\n-a\n+b\n",
    "in quotation marks": '--- "a/peg\\142oard.yaml"\n+++ "b/peg\\142oard.yaml"\n@@ -1 +1 @@\n-a\n+b\n',
    "git rename": "diff --git a/x.txt b/y.txt\nsimilarity index 100%\nrename from x.txt\nrename to .mcp.json\n",
    "git copy": "diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to loadouts/new.yaml\n",
    "git mode": "diff --git a/pegboard.yaml b/pegboard.yaml\nold mode 100644\nnew mode 120000\n",
    "context": "*** pegboard.yaml\t2026\n--- pegboard.yaml\t2026\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n",
    "svn": "Index: pegboard.yaml\n===================================\n@@ -1 +1 @@\n-a\n+b\n",
    "the index line alone": "Index: pegboard.yaml\n1c1\n< plugins:\n---\n> plugins: # x\n",
    "an index line in an indented text": "XX Index:pegboard.yaml\nXX 1c\nXX plugins: {}\nXX .\n",
    "a line before the change": "+++ pegboard.yaml\n \n@@ -1 +1 @@\n-a\n+b\n",
    "lines between the headers": "--- pegboard.yaml\n<<<<<<< so\n+++ notes.txt\nso\n@@ -1 +1 @@\n-a\n+b\n",
    "context with lines between": "*** pegboard.yaml\nso\n--- x\n***************\n*** 1 ****\n! a\n--- 1 ----\n! b\n",
    "below several folders": UNIFIED.format("c/d/pegboard.yaml"),
    "taken for the last part of its path": UNIFIED.format("examples/pegboard.yaml"),
    "update": "*** Begin Patch\n*** Update File: pegboard.yaml\n@@\n-a\n+b\n*** End Patch\n",
    "add": "*** Begin Patch\n*** Add File: ./loadouts/new.yaml\n+plugins: [shell]\n*** End Patch\n",
    "move": "*** Begin Patch\n*** Update File: x.txt\n*** Move to: pegboard.yaml\n*** End Patch\n",
    "blocks": "pegboard.yaml\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
    "fenced blocks": "pegboard.yaml\n```yaml\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n```\n",
    "edits": json.dumps([{"path": "notes.txt", "new": "a"}, {"path": "pegboard.yaml", "new": "b"}], indent=1),
    "edits in a text": 'The edits:\n```json\n[{"path": "pegboard.yaml", "new": "b"}]\n```\n',
    "edits by line": '{"path": "notes.txt"}\n{"path": "pegboard.yaml"}\n',
}
HARMLESS = {
    "a request": "Please edit pegboard.yaml,\nand commit it.\n",
    "a list": "Files:\n- pegboard.yaml\n* pegboard.yaml\n--- pegboard.yaml ---\n",
    "a rename in words": "please\nrename to pegboard.yaml\nthanks\n",
    "a name alone in a line": "I looked at\npegboard.yaml\nand found nothing.\n",
    "a patch of another file": UNIFIED.format("docs/notes.txt").replace("reload: ask", "see pegboard.yaml"),
    "a page with rules": "---\nx: y\n---\nSee `pegboard.yaml`.\n---\n--- pegboard.yaml ---\n***\n*** pegboard.yaml\n",
    "an update of a file elsewhere": "*** Begin Patch\n*** Update File: docs/examples/pegboard.yaml\n@@\n-a\n+b\n",
    "a patch of a list": f"{UNIFIED.format('docs/notes.txt')} - pegboard.yaml\n * pegboard.yaml\n---\n",
}


@pytest.fixture(params=["live", "ask"])
async def sessions(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Session, Session]]:
    """Return sessions of two agents with a tool that applies patches."""
    agents = {name: {"tools": ["hands"]} for name in ("ada", "bob")}
    config = {"reload": request.param, "store": "memory:", "plugins": {"hands": {"python": "hands"}}, "agents": agents}
    (tmp_path / "hands.py").write_text(TOOLS)
    (tmp_path / "pegboard.yaml").write_text(json.dumps(config))
    (tmp_path / "examples").mkdir()
    monkeypatch.chdir(tmp_path)
    async with Pegboard.open("pegboard.yaml") as board:
        yield await board.session(agent="ada"), await board.session(agent="bob")


async def test_a_patch_that_names_a_file_of_pegboards_own_is_refused(sessions: tuple[Session, Session]) -> None:
    """P10: whatever its form, for whichever agent; to show it changes nothing."""
    for session in sessions:
        for name, patch in PATCHES.items():
            refused = await session.call("apply_patch", {"patch": patch})
            assert refused.status == "refused", (name, refused)
            assert "its argument 'patch' names" in refused.message, name
            assert (await session.call("show_patch", {"patch": patch})).status == "ok", name


async def test_a_text_that_mentions_such_a_file_is_no_patch(sessions: tuple[Session, Session]) -> None:
    """P10: nor is a patch of other files whose lines mention it."""
    for session in sessions:
        for name, text in HARMLESS.items():
            done: Any = await session.call("apply_patch", {"patch": text})
            assert done.status == "ok", (name, done.message)
