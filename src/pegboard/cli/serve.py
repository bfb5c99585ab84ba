"""`pegboard serve`: the MCP gateway."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard.cli.options import ConfigOption
from pegboard.cli.serve_options import DEFAULT, ServeOptions
from pegboard.cli.serving import serve_with

EXAMPLE = "pegboard serve --agent assistant --port 8321"
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="URL", help="The address at which other replicas reach this one; PEGBOARD_ADDRESS."
    ),
]
DrainOption = Annotated[
    float | None,
    typer.Option(
        "--drain",
        metavar="SECONDS",
        help="Seconds for open requests after SIGTERM; 5, on loopback 0.",
    ),
]
AcceptOption = Annotated[
    str | None,
    typer.Option(
        "--accept",
        metavar="DIGEST",
        help="Accept the configuration with this text: `pegboard check --digest`; PEGBOARD_ACCEPT.",
    ),
]


def serve(
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve the client that started this process.")] = DEFAULT.stdio,
    host: Annotated[
        str,
        typer.Option("--host", metavar="HOST", help="The address to listen on; other than loopback needs `tokens:`."),
    ] = DEFAULT.host,
    port: Annotated[int, typer.Option("--port", metavar="PORT", help="The port; 0 takes a free one.")] = DEFAULT.port,
    config: ConfigOption = DEFAULT.config,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="The agent at /mcp.")] = DEFAULT.agent,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="The session for clients that send no session id.")
    ] = DEFAULT.session,
    sub_app: Annotated[
        str | None, typer.Option("--sub-app", metavar="NAME", help="The sub-app of the agent at /mcp.")
    ] = DEFAULT.sub_app,
    address: AddressOption = DEFAULT.address,
    drain: DrainOption = DEFAULT.drain,
    no_fast_path: Annotated[
        bool,
        typer.Option("--no-fast-path", help="Handle all requests with the MCP SDK only, without the fast path."),
    ] = DEFAULT.no_fast_path,
    no_console: Annotated[
        bool, typer.Option("--no-console", help="Serve no console; stdio never has one.")
    ] = DEFAULT.no_console,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 4 if an edit of the configuration waits for a person.")
    ] = DEFAULT.strict,
    accept: AcceptOption = DEFAULT.accept,
    alone: Annotated[
        bool, typer.Option("--alone", help="With --stdio: serve in this process, not through the daemon.")
    ] = DEFAULT.alone,
) -> int:
    """Serve the tools to MCP clients, over HTTP or stdio."""
    return serve_with(
        ServeOptions(
            stdio=stdio,
            host=host,
            port=port,
            config=config,
            agent=agent,
            session=session,
            sub_app=sub_app,
            address=address,
            drain=drain,
            no_fast_path=no_fast_path,
            no_console=no_console,
            strict=strict,
            accept=accept,
            alone=alone,
        )
    )
