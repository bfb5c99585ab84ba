"""`pegboard login` and `pegboard logout`: log in to a remote server, for everything that Pegboard serves (G11)."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.common import Options, run
from pegboard.cli.exit_codes import DONE, NEEDS_LOGIN
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer, TableColumn, plural, time_text
from pegboard.core.access.instances import LoginOwner
from pegboard.errors import PegboardError, UsageError
from pegboard.operators.logins import OperatorLogins

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.core.access.logins import PendingLogin
    from pegboard.operators.logins import LoginView

COLUMNS = (*map(TableColumn, ("server", "principal", "agent", "until")), TableColumn("scopes", flexible=True))
LONGEST_ADDRESS = 16_384

ServerArgument = Annotated[str, typer.Argument(metavar="SERVER", help="The name of a remote server.")]
PrincipalOption = Annotated[str, typer.Option("--principal", metavar="NAME", help="Whose login it is.")]
AgentOption = Annotated[
    str, typer.Option("--agent", metavar="NAME", help="The one agent that it is for. [default: all of the principal's]")
]


def login(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="The name of a remote server.")] = "",
    list_: Annotated[bool, typer.Option("--list", help="Show the logins that there are.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser; show the address only.")] = False,
    principal: PrincipalOption = "local",
    agent: AgentOption = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Log in to a remote server, or list your logins."""

    async def log_in(board: Pegboard, printer: Printer) -> int:
        logins = OperatorLogins(board.services)
        if list_:
            return _print(await logins.listed(), printer)
        if not server:
            raise UsageError("Which server?", hint="pegboard login SERVER, or pegboard login --list")
        owner = LoginOwner(principal, agent)
        with printer.working(f"Asking {server}"):
            pending = await logins.begin(server, owner, device=no_browser)
        if pending is None:
            return _print_answer(
                printer, server, owner, "unchanged", f"'{server}' requires no login, or has a valid one."
            )
        return await _wait_for_login(logins, pending, printer, browser=not no_browser)

    return run(Options(config=config, as_json=as_json), log_in, needs_mcp="pegboard login")


def logout(
    server: ServerArgument,
    principal: PrincipalOption = "local",
    agent: AgentOption = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Forget a login to a remote server, and revoke it."""

    async def log_out(board: Pegboard, printer: Printer) -> int:
        owner = LoginOwner(principal, agent)
        if not await OperatorLogins(board.services).end(server, owner):
            return _print_answer(
                printer, server, owner, "unchanged", f"There is no login to '{server}' of {principal}."
            )
        return _print_answer(printer, server, owner, "logged_out", f"Logged out of '{server}'.")

    return run(Options(config=config, as_json=as_json), log_out, needs_mcp="pegboard logout")


async def _wait_for_login(logins: OperatorLogins, pending: PendingLogin, printer: Printer, *, browser: bool) -> int:
    """Wait for the browser or for an address that is pasted, whichever comes first."""
    if pending.why:
        printer.note(f"{pending.why}\n")
    minutes = round((pending.expires_at - datetime.now(UTC).timestamp()) / 60)
    printer.note(f"Log in to '{pending.plugin}' within {plural(minutes, 'minute')}, at:\n\n  {pending.url}\n")
    if pending.code:
        printer.note(f"Or type the code {pending.code} at {pending.code_url}, with any browser.\n")
    if browser and _has_browser():
        import webbrowser

        webbrowser.open(pending.url)
    pasting = asyncio.create_task(_take_pasted_addresses(logins, pending, printer))
    try:
        with printer.working("Waiting for the login; or paste here the address that the browser was sent back to"):
            state = await logins.wait(pending)
    finally:
        pasting.cancel()
    if state == "completed":
        return _print_answer(printer, pending.plugin, pending.owner, "logged_in", f"Logged in to '{pending.plugin}'.")
    _print_answer(printer, pending.plugin, pending.owner, "failed", f"No one logged in to '{pending.plugin}'.")
    return NEEDS_LOGIN


async def _take_pasted_addresses(logins: OperatorLogins, pending: PendingLogin, printer: Printer) -> None:
    """Take addresses that are pasted at the terminal, until one completes the login."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read_lines() -> None:
        with suppress(OSError, ValueError, RuntimeError):  # the loop or the input ended
            while line := sys.stdin.readline(LONGEST_ADDRESS):
                loop.call_soon_threadsafe(lines.put_nowait, line)

    threading.Thread(target=read_lines, daemon=True).start()
    while True:
        line = (await lines.get()).strip()
        if not line:
            continue
        try:
            await logins.complete(pending.plugin, line, pending.owner)
        except PegboardError as error:
            printer.note(f"{error.message} {error.hint}".strip())


def _has_browser() -> bool:
    """Return whether a browser can be opened where someone sees it."""
    here = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return here and not os.environ.get("SSH_CONNECTION")


def _print_answer(printer: Printer, server: str, owner: LoginOwner, status: str, text: str) -> int:
    if printer.as_json:
        printer.document({"server": server, "principal": owner.principal, "agent": owner.agent, "status": status})
    else:
        printer.say(text)
    return DONE


def _print(found: Sequence[LoginView], printer: Printer) -> int:
    if printer.as_json:
        from dataclasses import asdict

        printer.document([asdict(view) for view in found])
    elif found:
        printer.table(COLUMNS, [_row(view) for view in found])
    else:
        printer.say("There are no logins.")
    return DONE


def _row(view: LoginView) -> tuple[str, ...]:
    until = "" if view.expires_at is None else time_text(datetime.fromtimestamp(view.expires_at, UTC))
    lasts = view.refused or ("renewed by itself" if view.renewable else until)
    return view.server or view.resource, view.principal, view.agent, lasts, " ".join(view.scopes)


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "login": (login, "pegboard login linear"),
    "logout": (logout, "pegboard logout linear"),
}
