"""How help is printed: as wide as the terminal, down to 40 columns, and in words instead of types."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

WIDEST: Final = 80
MARGIN: Final = 2
_Base: Any = typer.Context.formatter_class


class HelpFormatter(_Base):
    """What writes help: names take at most a third of the width, so that their text has room on a narrow terminal."""

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names with their texts."""
        super().write_dl(rows, col_max=min(col_max, self.width // 3), col_spacing=col_spacing)


def _fit(context: Any) -> None:
    """Let the help of a command be as wide as the terminal."""
    context.formatter_class = HelpFormatter
    context.terminal_width = min(shutil.get_terminal_size().columns, WIDEST) - MARGIN


class HelpfulCommand(TyperCommand):
    """A command whose help names its arguments by what they are, not by their types in Python."""

    def get_help(self, ctx: Any) -> str:
        """Return the help of the command."""
        _fit(ctx)
        return super().get_help(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage: no hidden argument."""
        shown = [
            one for one in self.params if not (one.param_type_name == "argument" and getattr(one, "hidden", False))
        ]
        return [*TyperCommand(name=self.name, params=shown, add_help_option=False).collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                text = record[1].removesuffix("[required]").rstrip()  # the usage has the others in brackets
                sections["Arguments"].append((str(parameter.metavar), text))
            elif record is not None:
                sections["Options"].append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class HelpfulGroup(TyperGroup):
    """A group of commands, listed under headings where there are some."""

    headings: Mapping[str, Mapping[str, str]] = {}
    """By heading, the commands with the line that each is listed with; none are listed with their own."""

    def get_help(self, ctx: Any) -> str:
        """Return the help of the group."""
        _fit(ctx)
        return super().get_help(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the signature of typer
        """Write the list of the commands, each with its whole line."""
        listed = self.headings or {"Commands": {name: one.help or "" for name, one in self.commands.items()}}
        widest = max(len(name) for rows in listed.values() for name in rows)
        for heading, rows in listed.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{widest}}", text) for name, text in rows.items()])
