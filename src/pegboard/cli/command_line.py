"""Wire the commands together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from pegboard.cli import (
    accept,
    approvals,
    audit,
    call,
    check,
    console,
    doctor,
    explain,
    init,
    loadouts,
    login,
    measure,
    permissions,
    pins,
    schema,
    search,
    secret,
    serve,
    session,
    stats,
    store,
    suggest,
    surface,
    tools,
)
from pegboard.cli.common import DONE, USAGE, report
from pegboard.cli.rendering import Printer
from pegboard.errors import UsageError
from pegboard.sources.stdout import reserved_stdout

PROGRAM = "pegboard"
CONTEXT = {"help_option_names": ["--help", "-h"]}


def _group(help_: str) -> typer.Typer:
    return typer.Typer(
        help=help_, add_completion=False, rich_markup_mode=None, context_settings=CONTEXT, subcommand_metavar="COMMAND"
    )


app = _group("Decide which tools a language model sees at each step, why, and what that costs.")


@app.callback()
def _top(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Decide which tools a language model sees at each step, why, and what that costs."""
    if version:
        from importlib.metadata import version as version_of

        Printer(as_json=False).say(f"{PROGRAM} {version_of(PROGRAM)}")
        raise typer.Exit(DONE)


def _add(group: typer.Typer, name: str, command: Callable[..., int], example: str) -> None:
    group.command(name, epilog=f"\b\nExample: {example}", context_settings=CONTEXT)(command)


_add(app, "measure", measure.measure, measure.EXAMPLE)
_add(app, "init", init.init, init.EXAMPLE)
_add(app, "check", check.check, check.EXAMPLE)
_add(app, "doctor", doctor.doctor, doctor.EXAMPLE)
_add(app, "accept", accept.accept, accept.EXAMPLE)
_add(app, "login", login.login, login.EXAMPLE)
_add(app, "logout", login.logout, login.LOGOUT_EXAMPLE)
_add(app, "serve", serve.serve, serve.EXAMPLE)
_add(app, "console", console.console, console.EXAMPLE)
_add(app, "tools", tools.tools, tools.EXAMPLE)
_add(app, "search", search.search, search.EXAMPLE)
_add(app, "surface", surface.surface, surface.EXAMPLE)
_add(app, "explain", explain.explain, explain.EXAMPLE)
_add(app, "loadouts", loadouts.loadouts, loadouts.EXAMPLE)
_add(app, "call", call.call, call.EXAMPLE)

_session = _group("Load and unload tools of a session, and show what is loaded.")
for _name, (_command, _example) in session.COMMANDS.items():
    _add(_session, _name, _command, _example)
app.add_typer(_session, name="session")

_permissions = _group("Show and set the switches of agents.")
for _name, (_command, _example) in permissions.COMMANDS.items():
    _add(_permissions, _name, _command, _example)
app.add_typer(_permissions, name="permissions")

_approvals = _group("Show and answer the calls that wait for a person.")
for _name, (_command, _example) in approvals.COMMANDS.items():
    _add(_approvals, _name, _command, _example)
app.add_typer(_approvals, name="approvals")

_pins = _group("Show and accept what differs in the tools of servers.")
for _name, (_command, _example) in pins.COMMANDS.items():
    _add(_pins, _name, _command, _example)
app.add_typer(_pins, name="pins")

_secret = _group("Keep secrets in the keyring of the system.")
for _name, (_command, _example) in secret.COMMANDS.items():
    _add(_secret, _name, _command, _example)
app.add_typer(_secret, name="secret")

_store = _group("Export, import and check the store.")
for _name, (_command, _example) in store.COMMANDS.items():
    _add(_store, _name, _command, _example)
app.add_typer(_store, name="store")

_add(app, "audit", audit.audit, audit.EXAMPLE)
_add(app, "bill", audit.bill, audit.BILL_EXAMPLE)
_add(app, "stats", stats.stats, stats.EXAMPLE)
_add(app, "suggest", suggest.suggest, suggest.EXAMPLE)
_add(app, "schema", schema.schema, schema.EXAMPLE)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; what cannot be understood is reported in one line and exits 2."""
    try:
        with reserved_stdout():
            code = app(args=list(arguments) or ["--help"], prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        before = arguments[: list(arguments).index("--")] if "--" in arguments else arguments
        return _misused(error, as_json="--json" in before)
    except typer.Abort:
        return 130
    return code if isinstance(code, int) else DONE


def _misused(error: typer.TyperException, *, as_json: bool) -> int:
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
