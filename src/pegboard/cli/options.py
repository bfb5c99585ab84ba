"""The options that commands have in common, as typer takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.cli.common import Options

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        help="The configuration. [default: ./pegboard.yaml, else yours, else the packaged quickstart]",
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option("--agent", metavar="NAME", help="The agent. [default: 'default', else the only one]"),
]
SessionOption = Annotated[str, typer.Option("--session", metavar="ID", help="The session.")]
PrincipalOption = Annotated[
    str, typer.Option("--principal", metavar="NAME", help="The user (principal) of the session.")
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="NAME",
        help="The name of the person who decides, for the audit trail. [default: the user of the system]",
    ),
]
SubAppOption = Annotated[
    str | None, typer.Option("--sub-app", metavar="NAME", help="The sub-app to open, one that the agent lists.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

Command = Callable[..., int]
_SHARED: tuple[tuple[str, object, object], ...] = (
    ("config", ConfigOption, None),
    ("agent", AgentOption, None),
    ("session", SessionOption, "default"),
    ("principal", PrincipalOption, "local"),
    ("sub_app", SubAppOption, None),
    ("as_json", JsonOption, False),
)


def with_session_options(command: Command) -> Command:
    """Return a command with the options that name a session behind its own; it takes them as ``Options``, first."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, kind, default in _SHARED
    ]

    def run_with_options(**given: Any) -> int:
        options = Options(**{name: given.pop(name) for name, _, _ in _SHARED})
        return command(options, **given)

    parameters = [*(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own), *shared]
    run_with_options.__name__, run_with_options.__doc__ = command.__name__, command.__doc__
    run_with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run_with_options.__dict__["__signature__"] = inspect.Signature(parameters)
    return run_with_options
