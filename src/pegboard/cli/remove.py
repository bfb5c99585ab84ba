"""`pegboard remove`: take a server out of a configuration (G12)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pegboard.cli.common import Options, run_guarded, system_user
from pegboard.cli.edited_configuration import opened_configuration, user_configuration
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import JsonOption
from pegboard.cli.rendering import Printer
from pegboard.config.clients.merging import without_server
from pegboard.errors import ConfigError

EXAMPLE = "pegboard remove git"


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the server.")],
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help="The configuration. [default: that of your clients]")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Take a server away from all of your clients."""
    path = config or user_configuration()

    async def remove_from_file(printer: Printer) -> int:
        file = opened_configuration(path)
        file.server(name)
        agents = file.agents_with(name)
        text = without_server(file.text, name, file=path.name)
        try:
            file.usable(text)
        except ConfigError as error:
            message = f"{name} stays, since something else in {path} names it: {error.message.partition(': ')[2]}"
            raise ConfigError(message, code="server_in_use", hint="Take that out first.") from None
        await file.save(text, by=system_user(), reason=f"removed {name}")
        if printer.as_json:
            printer.document({"name": name, "config": str(path), "agents": agents})
        else:
            printer.say(f"Removed {name} from {path}; {', '.join(agents) or 'no agent'} had it.")
        return DONE

    return run_guarded(Options(as_json=as_json), remove_from_file)
