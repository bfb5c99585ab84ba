"""The coding agent of `benchmarks/coding_agent.py` does the same by a client, by a deferred list and by the command."""

import asyncio
import sys
from pathlib import Path

import pytest
from benchmarks import coding_agent
from benchmarks.coding_agent import WAYS, Step, Task, World
from benchmarks.own_daemon import SMALL_SERVER


def small_world(folder: Path, said: Path) -> World:
    """Return a server whose calls a person approves, one that goes down, and a tool that is denied."""
    gone = folder / "gone.py"
    gone.write_text(SMALL_SERVER.read_text())
    servers = {
        "small": {"command": sys.executable, "args": [str(SMALL_SERVER), str(said)]},
        "other": {"command": sys.executable, "args": [str(SMALL_SERVER)]},
        "gone": {"command": sys.executable, "args": [str(gone)]},
    }
    return World(
        servers=servers,
        tasks=(
            Task(name="asked", need="say a word", steps=(_say("small", "hi", "said"), _say("small", "ho", "said"))),
            Task(name="denied", need="", steps=(_say("other", "no", "not found"),)),
            Task(name="down", need="", steps=(_say("gone", "hi", "not available"),)),
        ),
        approved=frozenset({"small__say"}),
        denied=frozenset({"other__say"}),
        remove=gone,
    )


def _say(server: str, word: str, expects: str) -> Step:
    return Step(tool=f"{server}__say", arguments={"word": word}, expects=expects)


@pytest.mark.parametrize("kind", WAYS)
def test_g12_a_coding_agent_does_the_same_by_mcp_and_by_the_command(kind: str, tmp_path: Path) -> None:
    """G12, A1, P3: a call that is approved runs, one that is denied is not found, and a server that is down says so."""
    said = tmp_path / "said"
    found = asyncio.run(coding_agent.played(kind, lambda folder: small_world(folder, said)))
    assert said.read_text().split() == ["hi", "ho"]
    assert [one.commands > 0 for one in found.values()] == [False, True, True, True]
    assert all(one.read > 0 for one in found.values())
