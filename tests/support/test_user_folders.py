"""Where files of a user lie: the folders of 0.1.0 on Linux, wherever the XDG variables point."""

from pathlib import Path

import pytest

from pegboard.assembly import quickstart_store
from pegboard.support import user_folders
from pegboard.tokens import default_memory


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_folders_are_where_they_were(home: Path) -> None:
    assert default_memory().parent == user_folders.cache() == home / ".cache" / "pegboard"
    assert user_folders.state() == home / ".local" / "state" / "pegboard"
    assert quickstart_store().is_relative_to(user_folders.state())
    assert user_folders.configuration({}) == home / ".config" / "pegboard"


def test_variables_count(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "c"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "s"))
    assert default_memory().parent == home / "c" / "pegboard"
    assert user_folders.state() == home / "s" / "pegboard"
    assert user_folders.configuration({"XDG_CONFIG_HOME": str(home / "f")}) == home / "f" / "pegboard"
