"""`pegboard serve`: the MCP gateway."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.cli.common import DONE, ConfigOption, Options, run
from pegboard.cli.rendering import Printer

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard

EXAMPLE = "pegboard serve --agent assistant --port 8321"


def serve(
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve the client that started this process.")] = False,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; off loopback tokens are demanded.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.")] = 8321,
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent at /mcp.")] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The session of clients that name none.")
    ] = None,
    no_fast_path: Annotated[
        bool,
        typer.Option("--no-fast-path", help="Handle every request through the MCP SDK, towards clients and servers."),
    ] = False,
) -> int:
    """Serve the tools to MCP clients, over HTTP or stdio.

    Edits of the configuration are picked up while it runs.
    """

    async def served(board: Pegboard, printer: Printer) -> int:
        from pegboard import gateway  # HTTP imports the SDK at once, stdio later

        def reloaded(_: object) -> None:
            printer.masker = board.services.masker
            printer.note(f"pegboard: the edited {board.configuration.path.name} is in use now.")

        unsubscribe = board.on("configuration_changed", reloaded)
        try:
            if stdio:
                await gateway.run_stdio(board, agent=agent, session=session, settled=_collect_rarely)
            else:
                await gateway.run_http(
                    board,
                    host=host,
                    port=port,
                    agent=agent,
                    session=session,
                    ready=lambda url: printer.note(gateway.announce(board, url, agent=agent, session=session)),
                    settled=_collect_rarely,
                )
        finally:
            unsubscribe()
        return DONE

    gc.disable()  # nothing that the start makes is garbage
    try:
        return run(Options(config=config, agent=agent), served, watch=True, fast_path=False if no_fast_path else None)
    finally:
        gc.enable()


def _collect_rarely() -> None:
    """Collect garbage again, seldom, and never what was imported: that took a sixth of the time of a call."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
