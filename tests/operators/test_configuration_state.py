"""What operators see of the newest edit of a configuration."""

import asyncio
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.operators.configuration import ConfigurationState

GOOD = "store: 'memory:'\nservers: {git: {command: nothing}}\nagents: {ada: {tools: [git]}}\n"
BROKEN = "store: 'memory:'\nservers: {git: {command: nothing}}\nagents: {ada: {tools: [gti], alowed_toolkits: []}}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(GOOD)
    return path


def write(path: Path, text: str) -> None:
    path.write_text(text)


def seen(state: ConfigurationState) -> list[tuple[str, int | None, int | None, str]]:
    return [(problem.severity, problem.line, problem.column, problem.hint) for problem in state.problems]


async def test_the_first_reading_is_in_force_with_its_warnings(config: Path) -> None:
    """F5: also what does not stop the start."""
    write(config, GOOD.replace("nothing}", "nothing, env: {KEY: '${ABSENT_KEY}'}}"))
    async with Pegboard.open(config, env={}) as board:
        state = board.configuration_state
        assert not state.refused
        assert state.in_force_since == state.read_at
        assert state.file.endswith("pegboard.yaml")
        (problem,) = state.problems
        assert (problem.severity, problem.code, problem.line) == ("warning", "env_missing", 2)
        assert problem.path == "servers.git.env.KEY"


async def test_a_refused_edit_says_what_is_wrong_while_the_last_good_one_stays(config: Path) -> None:
    """F5: file, line, column and what would be right; taken again once it is mended."""
    async with Pegboard.open(config) as board:
        first = board.configuration_state
        write(config, BROKEN)
        await board.reload()
        refused = board.configuration_state
        assert refused.refused
        assert refused.in_force_since == first.in_force_since
        assert refused.read_at > first.read_at
        assert seen(refused) == [
            ("error", 3, 24, "Did you mean 'git'?"),
            ("error", 3, 30, "Did you mean 'allowed_toolkits'?"),
        ]
        assert {problem.file for problem in refused.problems} == {refused.file}
        write(config, "agents: [")
        await board.reload()
        assert board.configuration_state.refused
        assert board.configuration_state.problems[0].line is not None
        write(config, GOOD)
        await board.reload()
        mended = board.configuration_state
        assert not mended.refused
        assert mended.problems == ()
        assert mended.in_force_since > first.in_force_since


async def test_a_watched_file_that_is_broken_and_mended_is_seen_without_asking(config: Path) -> None:
    async with Pegboard.open(config, watch=True) as board:
        write(config, BROKEN)
        async with asyncio.timeout(30):
            while not board.configuration_state.refused:  # noqa: ASYNC110 - the file is watched
                await asyncio.sleep(0.01)
            write(config, GOOD + "# mended\n")
            while board.configuration_state.refused:  # noqa: ASYNC110 - the file is watched
                await asyncio.sleep(0.01)


async def test_no_secret_stands_in_the_problems(config: Path) -> None:
    """X5: a value of the environment that is written wrongly."""
    async with Pegboard.open(config, env={"KEY": "hunter2222"}) as board:
        write(config, GOOD.replace("[git]", "['${KEY}']"))
        await board.reload()
        state = board.configuration_state
        assert state.refused
        assert "hunter2222" not in repr(state)
        assert "***" in repr(state)


async def test_what_code_adds_is_in_force_and_a_refused_addition_changes_nothing(config: Path) -> None:
    """T11: the caller has the error already."""
    async with Pegboard.open(config) as board:
        first = board.configuration_state
        board.toolkits.register({"name": "dev", "description": "Code.", "tools": ["git"]})
        assert board.configuration_state.in_force_since > first.in_force_since
        assert not board.configuration_state.refused
