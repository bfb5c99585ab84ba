"""Registered plugins that join because an agent's loadout names their category."""

import json
from pathlib import Path

import pytest

from acceptance import accept_found
from pegboard import Pegboard, Session
from pegboard.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def plugins(session: Session) -> set[str]:
    return {loaded.tool.plugin for loaded in (await session.surface()).tools} - {"pegboard"}


async def test_an_agent_with_a_loadout_takes_the_registered_plugins_of_its_categories() -> None:
    """L9, JD57: no one names them; a pattern of another agent never reaches them."""
    agents = {"developer": {"loadout": "developer"}, "other": {"discoverable": ["*"]}, "small": {"loadout": "minimal"}}
    async with Pegboard.open({"store": "memory:", "agents": agents}) as board:
        assert {"file", "shell", "git", "github", "search", "memory"} <= board.world.catalog.plugins.keys()
        assert {"file", "shell"} <= await plugins(await board.session(agent="developer", session_id="s"))
        assert await plugins(await board.session(agent="other", session_id="s")) == set()
        small = await board.session(agent="small", session_id="s")
        assert {"file", "shell"} <= await plugins(small)
        assert (await small.load("github")).items[0].status == "not_found"


async def test_a_category_that_the_configuration_gives_counts() -> None:
    """L9: for any registered plugin."""
    said = {
        "store": "memory:",
        "plugins": {"calculator": {"category": "Arithmetic"}},
        "loadouts": {"sums": {"categories": ["arithmetic"]}},
        "agents": {"a": {"loadout": "sums"}},
    }
    async with Pegboard.open(said) as board:
        assert await plugins(await board.session(session_id="s")) == {"calculator"}


def test_check_says_where_an_agent_has_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """L9, P7: it is a warning; `--strict` fails."""
    (folder / "pegboard.yaml").write_text('agents: {a: {discoverable: ["*"]}, b: {loadout: minimal}}\n')
    accept_found()
    assert main(["check", "--json"]) == 0
    (problem,) = (one for one in json.loads(capsys.readouterr().out)["problems"] if one["code"] == "nothing_granted")
    assert problem["message"].startswith("agent 'a' has no tool and may load none")
    assert main(["check", "--strict"]) == 1
