"""Which folders a confined server works in without being told: its own, and those that it is given (A7)."""

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import SERVERS

from pegboard import Pegboard

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder of a user, with the folders that belong into one."""
    (home := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


async def tried(config: Path, attempts: dict[str, str], *args: str, **more: Any) -> dict[str, str]:
    """Return what became of each attempt of a confined server under a configuration."""
    program = [str(SERVERS / "reaching_server.py"), *args]
    entry = {"command": sys.executable, "args": program, "prefix": "", "confine": True, **more}
    text = json.dumps({"servers": {"reaching": entry}, "agents": {"default": {"tools": ["reaching"]}}})
    await asyncio.to_thread(put, config, text)
    encoded = {name: base64.b64encode(code.encode()).decode() for name, code in attempts.items()}
    async with Pegboard.open(config) as board:
        await board.ready("reaching")
        session = await board.session()
        answer = await session.call("reach", {"attempts": encoded, "depth": 0})
        assert answer.result is not None, answer.message
        assert not answer.result.is_error, answer.result
        return json.loads(answer.result.content[0]["text"])


def writes(path: Path | str) -> str:
    """Return code that makes a file."""
    return f"open({str(path)!r}, 'w').write('x')"


@pytest.mark.parametrize("place", [".config/pegboard/pegboard.yaml", "pegboard.yaml", ".claude/pegboard.yaml"])
async def test_under_a_configuration_of_no_project_a_server_has_a_data_folder_of_its_own(
    home: Path, place: str
) -> None:
    "A7: it starts there, what it writes stays, and nothing else of the user's is writable."
    config = home / place
    attempts = {
        "here": "import os; open('kept', 'a').write('x'); answer = os.getcwd()",
        "home": writes(home / "new"),
        "beside": writes(config.parent / "new"),
        "hidden": writes(home / ".bashrc"),
    }
    found = [await tried(config, attempts) for _ in range(2)]
    folder = Path(found[0].pop("here").removeprefix("done: "))
    assert folder.is_relative_to(home / ".local/share/pegboard-plugins")
    assert (folder / "kept").read_text() == "xx"
    assert [how for how in found[0].values() if not how.startswith("refused")] == []
    other = home / "other" / "pegboard.yaml"
    assert Path((await tried(other, {"own": "import os; answer = os.getcwd()"}))["own"]) != folder


async def test_a_folder_among_its_arguments_is_writable_and_its_neighbour_is_not(home: Path) -> None:
    "A7: whole, behind the name of an option too; a link that the server may set itself is refused with the reason."
    one, two, three = (home / "work" / name for name in ("one", "two", "three"))
    for folder in (one, two, three):
        folder.mkdir(parents=True)
    attempts = {folder.name: writes(folder / "new") for folder in (one, two, three)}
    found = await tried(home / "project" / "pegboard.yaml", attempts, str(one), f"--folder={two}")
    assert [name for name, how in found.items() if how.startswith("done")] == ["one", "two"]


@pytest.mark.parametrize("argument", ["/", "/usr", "~/"])
async def test_an_argument_gives_away_neither_home_nor_the_system(home: Path, argument: str) -> None:
    "A7: what no one meant to grant by an argument is not granted."
    for name in (".config/pegboard", ".local/state/pegboard"):
        (home / name).mkdir(parents=True)
    places = (".", ".config/pegboard", ".local/state/pegboard")
    attempts = {str(number): writes(home / place / "new") for number, place in enumerate(places)}
    found = await tried(home / "project" / "pegboard.yaml", attempts, argument)
    assert [name for name, how in found.items() if how.startswith("done")] == []
