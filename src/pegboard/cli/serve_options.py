"""What `pegboard serve` is to do, read from its plain command lines: every start of a client waits for this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple


class ServeOptions(NamedTuple):
    """What `pegboard serve` is to do; see its help."""

    stdio: bool = False
    host: str = "127.0.0.1"
    port: int = 8321
    config: Path | None = None
    agent: str | None = None
    session: str | None = None
    sub_app: str | None = None
    address: str | None = None
    drain: float | None = None
    no_fast_path: bool = False
    no_console: bool = False
    strict: bool = False
    accept: str | None = None
    alone: bool = False


DEFAULT: Final = ServeOptions()
FLAGS: Final = {
    "--stdio": "stdio",
    "--no-fast-path": "no_fast_path",
    "--no-console": "no_console",
    "--strict": "strict",
    "--alone": "alone",
}
VALUES: Final = {
    "--host": "host",
    "--port": "port",
    "--config": "config",
    "--agent": "agent",
    "--session": "session",
    "--sub-app": "sub_app",
    "--address": "address",
    "--drain": "drain",
    "--accept": "accept",
}
ACCEPT: Final = "PEGBOARD_ACCEPT"
"""The variable that says what ``--accept`` does, where that is not given."""


def plain_options(arguments: Sequence[str]) -> ServeOptions | None:
    """Return what plain arguments say, or None for what typer has to judge: help, mistakes, anything unusual.

    >>> plain_options(["--stdio", "--agent", "ada"]) == ServeOptions(stdio=True, agent="ada")
    True
    >>> plain_options(["--port", "many"]), plain_options(["--help"]), plain_options(["--stdio", "--stdio"])
    (None, None, None)
    """
    given: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        name, sign, value = argument.partition("=")
        if name in VALUES:
            field, read = VALUES[name], _value(VALUES[name], value if sign else next(rest, ""))
        else:
            field, read = FLAGS.get(argument, ""), True
        if not field or field in given or read is None:
            return None
        given[field] = read
    return ServeOptions(**given)


def _value(field: str, text: str) -> str | float | Path | None:
    """Return the value of an option, or None for one that is not plain."""
    if not text or text.startswith("-") or not text.isprintable():
        return None
    if field == "port":
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else None
    if field == "drain":
        return float(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else None
    return Path(text) if field == "config" else text


def served_by_daemon(options: ServeOptions, env: Mapping[str, str]) -> int | None:
    """Serve a client over stdio through the daemon, and return the exit code; None where this process is to do it."""
    if not options.stdio or options.alone or options.strict or options.accept or env.get(ACCEPT):
        return None  # what accepts or judges a configuration does so in a process of its own
    from pegboard.thin.connect import switched_off

    if switched_off():
        return None
    from pegboard.thin.stdio_proxy import serve

    named = {"agent": options.agent, "session": options.session, "sub_app": options.sub_app}
    config = str(options.config) if options.config is not None else None
    return serve({**named, "config": config, "no_fast_path": options.no_fast_path})
