"""Plain command lines of `serve` are read without typer; everything else is typer's."""

from pathlib import Path
from typing import Any

import pytest
import typer.main

from pegboard.cli.command_line import app
from pegboard.cli.serve_options import DEFAULT, FLAGS, VALUES, ServeOptions, plain_options


def test_every_option_of_serve_is_known_without_typer() -> None:
    group: Any = typer.main.get_command(app)
    options = [p for p in group.get_command(None, "serve").params if "--help" not in p.opts]
    assert {name: p.name for p in options if p.is_flag for name in p.opts} == FLAGS
    assert {name: p.name for p in options if not p.is_flag for name in p.opts} == VALUES
    assert {p.name: p.default for p in options} == {p.name: getattr(DEFAULT, p.name) for p in options}
    assert [p.secondary_opts for p in options if p.secondary_opts] == []
    assert [p.envvar for p in options if p.envvar] == []


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], ServeOptions()),
        (["--stdio"], ServeOptions(stdio=True)),
        (["--port", "0", "--host=::1"], ServeOptions(port=0, host="::1")),
        (["--config", "a b.yaml", "--no-fast-path"], ServeOptions(config=Path("a b.yaml"), no_fast_path=True)),
        (["--no-console", "--host", "::1"], ServeOptions(no_console=True, host="::1")),
        (["--agent=a=b", "--session", "s"], ServeOptions(agent="a=b", session="s")),
    ],
)
def test_plain_options_are_read(arguments: list[str], options: ServeOptions) -> None:
    assert plain_options(arguments) == options


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"], ["-h"], ["--stdio", "--stdio"], ["--agent", "a", "--agent", "b"], ["--port", "many"],
        ["--port", "-1"],
        ["--port", "1_0"], ["--port"], ["--agent"], ["--agent", ""], ["--agent="], ["--agent", "--stdio"],
        ["--stdio=1"],
        ["--stdi"], ["--", "--stdio"], ["extra"], ["--session", "a\nb"], ["--port", "٣"], [""],
    ],
)  # fmt: skip
def test_anything_else_is_left_to_typer(arguments: list[str]) -> None:
    assert plain_options(arguments) is None
