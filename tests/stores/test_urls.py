"""What the `store:` of a configuration means."""

from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.stores.urls import parse_store_url


def test_a_relative_path_starts_at_the_folder_of_the_configuration(tmp_path: Path) -> None:
    assert parse_store_url("sqlite:///state/pegboard.db", tmp_path) == (
        "sqlite",
        tmp_path / "state" / "pegboard.db",
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
    "url",
    [
        "postgresql://db/pegboard",
        "postgres://ada:p%40ss@db:5433/pegboard?sslmode=require&schema=mine",
        "postgresql://ada@[::1]:5432,other:5433/pegboard",
        "postgresql:///pegboard?host=/run/postgresql",
    ],
)
def test_a_database_of_a_server_is_no_file(url: str) -> None:
    assert parse_store_url(url, Path()) == ("postgresql", None)


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
        ("postgresql:db/pegboard", "two slashes"),
        ("postgresql://db", "names no database"),
        ("postgresql://db/", "names no database"),
        ("postgresql://db/a/b", "names no database"),
        ("postgresql://ada:a/b@db/pegboard", "written as %2F"),
        ("postgresql://ada:a%b@db/pegboard", "written as %25"),
        ("postgresql://ada:a#b@db/pegboard", "written as %23"),
        ("postgresql://db:port/pegboard", "not a number from 1 to 65535"),
        ("postgresql://db:65536/pegboard", "not a number from 1 to 65535"),
        ("postgresql://db/pegboard?pool_size=3", "no option 'pool_size'"),
        ("postgresql://db/pegboard?schema=a%25s", "up to 63 letters"),
        ("postgresql://db/pegboard?schema=", "up to 63 letters"),
        ("postgresql://db/peg%00board", "NUL"),
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
    ["postgresql://ada:hunter2@db", "sqlite://ada:hunter2@db", "//ada:hunter2@db", "memory:hunter2"],
)
def test_the_error_does_not_repeat_a_password(url: str) -> None:
    """X5: the userinfo of a URL is never written."""
    for url in (
        "postgresql://ada:hunter2@db",
        "sqlite://ada:hunter2@db",
        "//ada:hunter2@db",
        "memory:hunter2",
    ):
        with pytest.raises(ConfigError) as caught:
            parse_store_url(url, Path())
        assert "hunter2" not in str(caught.value)
