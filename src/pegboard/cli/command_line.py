"""Find the command of a command line; only its module is imported."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from pegboard.cli.common import report
from pegboard.cli.exit_codes import DONE, INTERRUPTED, USAGE
from pegboard.cli.rendering import Printer
from pegboard.errors import UsageError
from pegboard.sources.stdout import reserved_stdout
from pegboard.support.version import full_version

WIDEST: Final = 80
MARGIN: Final = 2
_Base: Any = typer.Context.formatter_class


class HelpFormatter(_Base):
    """What writes help: names take at most a third of the width, so that their text has room on a narrow terminal."""

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names with their texts."""
        super().write_dl(rows, col_max=min(col_max, self.width // 3), col_spacing=col_spacing)


def _fit_to_terminal(context: Any) -> None:
    """Let the help of a command be as wide as the terminal."""
    context.formatter_class = HelpFormatter
    context.terminal_width = min(shutil.get_terminal_size().columns, WIDEST) - MARGIN


class HelpfulCommand(TyperCommand):
    """A command whose help names its arguments by what they are, not by their types in Python."""

    def get_help(self, ctx: Any) -> str:
        """Return the help of the command."""
        _fit_to_terminal(ctx)
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
        _fit_to_terminal(ctx)
        return super().get_help(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the signature of typer
        """Write the list of the commands, each with its whole line."""
        listed = self.headings or {"Commands": {name: one.help or "" for name, one in self.commands.items()}}
        widest = max(len(name) for rows in listed.values() for name in rows)
        for heading, rows in listed.items():
            with formatter.section(heading):
                formatter.write_dl([(f"{name:<{widest}}", text) for name, text in rows.items()])


PROGRAM = "pegboard"
CONTEXT = {"help_option_names": ["--help", "-h"]}
GROUPS: Final = {
    "Set up": {
        "measure": "Measure what MCP servers cost in every request today.",
        "init": "Write a pegboard.yaml, or put Pegboard into a client.",
        "add": "Add a server for all of your clients.",
        "remove": "Take a server away from all of your clients.",
        "update": "Change a server of all of your clients.",
        "check": "Report everything that is wrong with the configuration.",
        "login": "Log in to a remote server, or list your logins.",
        "logout": "Forget a login to a remote server, and revoke it.",
        "secret": "Keep secrets in the keyring of the system.",
        "schema": "Print the JSON Schema of pegboard.yaml, for editors.",
    },
    "Run": {
        "serve": "Serve the tools to MCP clients, over HTTP or stdio.",
        "console": "Print the address of the console and open it in the browser.",
        "call": "Run one tool as the agent would.",
        "load": "Load tools.",
        "unload": "Unload tools.",
        "session": "Load and unload tools of a session, and show what is loaded.",
    },
    "Look": {
        "tools": "List every tool, or all that an agent may use.",
        "search": "Search the tools that the agent may use.",
        "surface": "Show what is sent to the model now, and what it costs.",
        "explain": "Explain why an agent can or cannot call a tool now.",
        "loadouts": "Show what loadouts make active or discoverable.",
        "audit": "Show the audit trail, the newest record first.",
        "bill": "Show tokens sent, calls made, and what was saved.",
        "stats": "Show how often each tool was called, and how often it failed.",
        "suggest": "Propose what should be loaded from the start, and toolkits.",
        "eval": "Measure how often search finds the right tool.",
    },
    "Operate": {
        "permissions": "Show and set the switches of agents.",
        "approvals": "Show and answer the calls that wait for a person.",
        "pins": "Show and accept changed tools of servers.",
        "accept": "Accept a configuration found here, or edits that grant more.",
        "daemon": "Show, stop or install the process that serves your clients.",
        "doctor": "Check the store, replicas and clocks, or start one server.",
        "store": "Export, import and check the store.",
    },
}
"""Every command by what it is for, with its line of help."""
SUMMARIES: Final = {name: line for commands in GROUPS.values() for name, line in commands.items()}
_MODULES: Final = {"logout": "login", "bill": "audit", "unload": "load"}
"""The modules of commands that do not have one of their own name."""


def _make_typer(help_: str, cls: type[TyperGroup], epilog: str | None = None) -> typer.Typer:
    return typer.Typer(
        cls=cls,
        help=help_,
        epilog=epilog,
        add_completion=False,
        rich_markup_mode=None,
        context_settings=CONTEXT,
        subcommand_metavar="COMMAND",
    )


@cache
def _command(name: str) -> Any:
    """Return a command, or a group of them, from its module.

    The module has either a function of its name with an ``EXAMPLE``, or ``COMMANDS``: functions and examples by name.
    """
    module = import_module(f"pegboard.cli.{_MODULES.get(name, name)}")
    commands: dict[str, tuple[Callable[..., int], str]] = getattr(module, "COMMANDS", {})
    if not commands:
        commands = {name: (getattr(module, name), module.EXAMPLE)}
    elif name in commands:
        commands = {name: commands[name]}
    examples = {each: f"\b\nExample: {example}" for each, (_, example) in commands.items()}
    group = _make_typer(SUMMARIES[name], HelpfulGroup, epilog=next(iter(examples.values())))
    settings = {**CONTEXT, **getattr(module, "CONTEXT_SETTINGS", {})}
    for each, (function, _) in commands.items():
        group.command(each, cls=HelpfulCommand, epilog=examples[each], context_settings=settings)(function)
    made: Any = typer.main.get_command(group)
    made.name = name
    return made


class _LazyGroup(HelpfulGroup):
    """The top of the command line: a command is imported when it is run, and not for the list of all."""

    headings = GROUPS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name=name, help=summary) for name, summary in SUMMARIES.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the group's signature
        """Return a command by its name, None where there is none."""
        return _command(cmd_name) if cmd_name in SUMMARIES else None


app = _make_typer("Decide which tools a language model sees at each step, why, and what that costs.", _LazyGroup)


@app.callback()
def _run_top(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Decide which tools a language model sees at each step, why, and what that costs."""
    if version:
        Printer(as_json=False).say(f"{PROGRAM} {full_version()}")
        raise typer.Exit(DONE)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; what cannot be understood is reported in one line and exits 2."""
    with reserved_stdout():
        return run_parsed(arguments)


def run_parsed(arguments: Sequence[str]) -> int:
    """Run one command line in a process whose standard output is not that of the command."""
    try:
        code = app(args=list(arguments) or ["--help"], prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        before = arguments[: list(arguments).index("--")] if "--" in arguments else arguments
        return _report_misuse(error, as_json="--json" in before)
    except typer.Abort:
        return INTERRUPTED
    return code if isinstance(code, int) else DONE


def _report_misuse(error: typer.TyperException, *, as_json: bool) -> int:
    """Report a command line that the parser refuses."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else PROGRAM
    possible: Sequence[str] = getattr(error, "possibilities", None) or ()
    meant = f"Did you mean {' or '.join(sorted(possible))}? " if possible else ""
    message = (error.message if possible else error.format_message()).rstrip()
    misuse = UsageError(
        message if message.endswith((".", "?")) else f"{message}.", hint=f"{meant}See '{command} --help'."
    )
    report(misuse, Printer(as_json=as_json))
    return USAGE
