"""What the `store:` of a configuration means."""

from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.stores.urls import parse_store_url


def test_a_relative_path_starts_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    assert parse_store_url("sqlite:///.pegboard/pegboard.db", tmp_path) == (
        "sqlite",
        tmp_path / ".pegboard" / "pegboard.db",
    )


def test_a_fourth_slash_makes_the_path_absolute(tmp_path: Path) -> None:
    absolute = tmp_path / "elsewhere" / "my state.db"
    assert parse_store_url(f"sqlite:///{absolute}", Path("ignored")) == ("sqlite", absolute)


def test_a_relative_base_gives_an_absolute_path() -> None:
    assert parse_store_url("sqlite:///x.db", Path("folder")) == ("sqlite", Path.cwd() / "folder" / "x.db")


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert parse_store_url("sqlite:///~/x.db", Path("ignored")) == ("sqlite", tmp_path / "x.db")


@pytest.mark.parametrize("url", ["memory:", "memory://", " MEMORY: "])
def test_memory_has_no_path(url: str) -> None:
    assert parse_store_url(url, Path()) == ("memory", None)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "needs a scheme"),
        ("pegboard.db", "needs a scheme"),
        ("./state/pegboard.db", "needs a scheme"),
        ("redis://localhost:6379/0", "no store of the kind 'redis:'"),
        ("sqlite:pegboard.db", "three slashes"),
        ("sqlite://pegboard.db", "three slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:////", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///x.db?mode=ro", "no options"),
        ("sqlite:///x\0.db", "NUL"),
        ("memory:x", "has no path"),
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(url: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_store_url(url, Path())
    assert says in caught.value.message
    assert "sqlite:///relative/file.db" in caught.value.hint
    assert "memory:" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    ["postgresql://ada:hunter2@db/pegboard", "sqlite://ada:hunter2@db", "//ada:hunter2@db", "memory:hunter2"],
)
def test_the_error_does_not_repeat_a_password(url: str) -> None:
    """X5: the userinfo of a URL is never written."""
    for url in (
        "postgresql://ada:hunter2@db/pegboard",
        "sqlite://ada:hunter2@db",
        "//ada:hunter2@db",
        "memory:hunter2",
    ):
        with pytest.raises(ConfigError) as caught:
            parse_store_url(url, Path())
        assert "hunter2" not in str(caught.value)
