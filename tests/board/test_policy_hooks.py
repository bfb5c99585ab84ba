"""Policy that a hook writes, as a model is given it."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import Pegboard, Session
from pegboard.config.inspection import inspect

TOOLS = '''
ASKED = []


def commit(message: str) -> str:
    """Commit."""
    return message


def push() -> str:
    """Push."""
    return "pushed"


def plan(what: str) -> str:
    """Plan."""
    return what


def _policy(tools):
    ASKED.append(list(tools))
    return "## Self-evolution\\n" + "\\n".join(f"- {name}: only what was reviewed." for name in tools)


async def _later(tools):
    return f"Use {tools[0]}.\\x1b[31m"


def _raises(tools):
    raise ValueError("no policy for hunter2-secret")


def _none(tools):
    return None


def _long(tools):
    return "x" * 50_000
'''


@asynccontextmanager
async def opened(folder: Path, hook: str = "_policy", **agent: Any) -> AsyncIterator[Pegboard]:
    (folder / "evolution.py").write_text(TOOLS)
    kit = {"tools": ["commit", "push"], "icon": "${SECRET}", "policy": {"python": f"evolution:{hook}"}}
    agents = {"sea": {"tools": ["plan"], "allowed_toolkits": ["evolving"], "dialect": "pegboard", **agent}}
    document = {
        "store": "sqlite:///state.db",
        "plugins": {"evolution": {"python": "evolution"}},
        "toolkits": {"evolving": kit},
        "agents": agents,
    }
    (folder / "pegboard.yaml").write_text(json.dumps(document))
    async with Pegboard.open(folder / "pegboard.yaml", env={"SECRET": "hunter2-secret"}) as board:
        yield board


async def begun(board: Pegboard) -> Session:
    return await board.session(agent="sea", session_id="thread")


def asked(board: Pegboard) -> list[list[str]]:
    hooks: Any = board.services.hooks
    known = hooks._made._known if hooks._made is not None else {}
    return known["evolution:_policy"].__globals__["ASKED"] if known else []


async def test_a_hook_writes_the_policy_of_what_is_visible(tmp_path: Path) -> None:
    """T6, SJ1, SJ13, SJ14: it gets the visible members, and is not asked while none is."""
    async with opened(tmp_path) as board:
        sea = await begun(board)
        assert (await sea.surface()).policy == ""
        assert asked(board) == []
        outcome = await sea.load("evolving")
        assert outcome.policy == (
            "## Self-evolution\n- commit: only what was reviewed.\n- push: only what was reviewed."
        )
        assert (await sea.surface()).policy == "", "what comes later stands in the answer of the load"
        await board.permissions.set("sea", "push", False)
        await sea.unload("evolving")
        assert (await sea.load("evolving")).policy == "## Self-evolution\n- commit: only what was reviewed."
        assert asked(board) == [["commit", "push"], ["commit"]]


async def test_the_policy_of_an_initial_toolkit_stands_in_the_prefix_and_moves_nothing(tmp_path: Path) -> None:
    """T6, F1: the hook is asked once for the same members."""
    async with opened(tmp_path, initial_toolkits=["evolving"]) as board:
        sea = await begun(board)
        first = await sea.surface()
        assert first.policy.startswith("## Self-evolution\n- commit")
        assert (await sea.surface()).policy == first.policy
        assert first.policy in await sea.instructions()
        assert asked(board) == [["commit", "push"]]


@pytest.mark.parametrize(
    ("hook", "policy", "told"),
    [
        ("_later", "Use commit. [31m", ""),
        ("_raises", "", "ValueError: no policy for ***"),
        ("_none", "", "answers no text: NoneType"),
        ("_absent", "", "AttributeError"),
        ("_long", "x" * 20_000, ""),
    ],
)
async def test_a_hook_that_fails_writes_nothing_and_the_load_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, hook: str, policy: str, told: str
) -> None:
    """T6, X5: with a warning in the log, without a secret in it."""
    async with opened(tmp_path, hook) as board:
        sea = await begun(board)
        with caplog.at_level(logging.WARNING, "pegboard"):
            outcome = await sea.load("evolving")
        assert (outcome.status, outcome.policy) == ("ok", policy)
        assert told in caplog.text
        assert "hunter2" not in caplog.text


@pytest.mark.parametrize("policy", [{"python": "nope"}, {"python": "a:b", "x": 1}, {}, {"python": 3}, ["a:b"]])
def test_a_policy_is_a_text_or_a_hook(tmp_path: Path, policy: Any) -> None:
    """T6: anything else is one error with its place."""
    (tmp_path / "pegboard.yaml").write_text(json.dumps({"toolkits": {"t": {"policy": policy}}}))
    _, problems = inspect(tmp_path / "pegboard.yaml", registered={})
    assert [problem.severity for problem in problems] == ["error"]
    assert problems[0].place is not None
    assert problems[0].place.path.startswith("toolkits.t.policy")
