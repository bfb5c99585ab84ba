"""`pegboard console`: where the console of a running gateway is, opened in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pegboard.cli.common import Options, run_guarded
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer
from pegboard.config.documents.document import display_path
from pegboard.configuration_source import choose
from pegboard.console.entry.running_consoles import PATIENCE, RunningConsole, running_consoles
from pegboard.errors import PegboardError, UsageError
from pegboard.support.user_token import UserToken

EXAMPLE = "pegboard console --no-browser"


def console(
    config: ConfigOption = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="PORT", min=1, max=65535, help="The port of the gateway, in place of --config."),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", "--print", help="Print the address and open nothing.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Print the address of the console and open it in the browser."""

    async def open_console(printer: Printer) -> int:
        chosen = _choose_console(running_consoles(), config, port)
        code = _code(chosen)
        url = chosen.url if code is None else f"{chosen.url}?code={code}"
        if as_json:
            printer.document(
                {**{k: v for k, v in asdict(chosen).items() if k not in ("secret", "hides_codes")}, "url": url}
            )
            return DONE
        printer.say(url)
        if code is None:
            printer.note("Sign in with a token that has `console: true`.")
        hidden = chosen.hides_codes or UserToken(chosen.port).needs_token()
        if not no_browser and code is not None and hidden:
            why = "what is confined could read its code in the command line of a browser"
            printer.note(f"pegboard: open this address yourself: {why}.")
        elif not no_browser and not _open_browser(url):
            printer.note("pegboard: no browser can be started here; open this address yourself.")
        return DONE

    return run_guarded(Options(config=config, as_json=as_json), open_console)


def _choose_console(running: Sequence[RunningConsole], config: Path | None, port: int | None) -> RunningConsole:
    """Return the console that is meant; raises ``PegboardError`` where there is none, or there are several."""
    path, quickstart = choose(config)
    own = str(path.resolve())
    match [one for one in running if (one.configuration == own if port is None else one.port == port)]:
        case [one]:
            return one
        case []:
            raise _not_running_error(running, None if quickstart else path, port)
        case several:
            message = f"Several consoles run: {_list_consoles(several)}."
            raise UsageError(message, code="several_consoles", hint="Choose one with --port.")


def _not_running_error(running: Sequence[RunningConsole], path: Path | None, port: int | None) -> PegboardError:
    """Return the error that says what to start; ``path`` None is the quickstart."""
    start, where = "pegboard serve", "for the quickstart"
    if path is not None:
        start, where = f"{start} --config {display_path(path)}", f"for {display_path(path)}"
    if port is not None:
        start, where = f"{start} --port {port}", f"on port {port}"
    others = f" Or name one that runs with --port: {_list_consoles(running)}." if running else ""
    return PegboardError(f"No console runs {where}.", code="no_console", hint=f"Start it with '{start}'.{others}")


def _list_consoles(consoles: Sequence[RunningConsole]) -> str:
    return ", ".join(f"{one.url} (process {one.pid}, {one.configuration})" for one in consoles)


def _code(console: RunningConsole) -> str | None:
    """Return a new one-time code, or None where one signs in with a token; raises ``PegboardError``."""
    import json
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    parts = urlsplit(console.url)
    connection = HTTPConnection(parts.hostname or "", console.port, timeout=PATIENCE)
    try:
        connection.request("POST", f"{parts.path}/codes", headers={"Authorization": f"Bearer {console.secret}"})
        answer = connection.getresponse()
        return str(json.loads(answer.read())["code"]) if answer.status == 200 else None
    except (OSError, HTTPException, ValueError, KeyError) as error:
        raise PegboardError(
            f"The console at {console.url} does not answer: {error}.",
            code="console_failed",
            hint=f"Look at the output of process {console.pid}, or start it again.",
        ) from None
    finally:
        connection.close()


def _open_browser(url: str) -> bool:
    """Return whether the user's browser was started."""
    import webbrowser

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False
