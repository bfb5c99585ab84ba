"""Run the examples of docs/command.md one after the other, and compare what they print."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from pegboard.cli import main
from pegboard.cli.command_line import app

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "command.md"
CHANGING = re.compile(r'\d{4}-\d\d-\d\dT[\d:.]+\+00:00|(?<="duration": )[\d.]+|(?<="arguments": ")\w{16}')
"""What differs from run to run: times, durations, keyed digests."""


def steady(text: str) -> str:
    return CHANGING.sub("…", "\n".join(line.rstrip() for line in text.rstrip().splitlines()))


@pytest.mark.usefixtures("terminal")
def test_every_example_prints_what_the_document_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "notes.txt").write_text("milk\nbread and butter\n")
    blocks = re.findall(r"```console\n(.+?)\n```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    examples = [part for block in blocks for part in re.split(r"^\$ pegboard ", block, flags=re.MULTILINE) if part]
    assert len(examples) > 15
    for example in examples:
        line, _, told = example.partition("\n")
        assert main(shlex.split(line)) in (0, 1, 2, 3), line
        assert steady(capsys.readouterr().out) == steady(told), line


def test_a_common_option_is_one_of_the_commands_that_the_document_says_and_of_no_other() -> None:
    commands = dict(leaves(typer.main.get_command(app)))
    rows = re.findall(r"^\| `(--[\w-]+).*?` \|.*\| (.+) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == 6
    for option, told in rows:
        named = re.findall(r"`([\w -]+)`", told)
        said = {name for name in commands if any(f"{name} ".startswith(f"{one} ") for one in named)}
        has = {name for name, options in commands.items() if option in options}
        assert has == (commands.keys() - said if told.startswith("all but ") else said), option


def leaves(command: Any, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield the commands that do something, with their options."""
    for part in getattr(command, "commands", ()):
        own = command.get_command(None, part)
        yield from leaves(own, f"{name} {part}".strip())
    if not hasattr(command, "commands"):
        yield name, {option for parameter in command.params for option in parameter.opts}


def test_every_command_has_its_section() -> None:
    headings = re.findall(r"^## (\w+)$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    group = typer.main.get_command(app)
    assert sorted(headings) == sorted(getattr(group, "commands"))  # noqa: B009 - what typer returns is any command
