"""Servers as `init` and `add` write them: confined where that is asked for, private where a secret may be in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.documents.document import is_mapping
from pegboard.config.schema.fetched import is_fetched
from pegboard.confined_servers import ConfinedServers, confine_servers
from pegboard.core.model.specs import PluginSpec, ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.mcp_extra import missing_requirements

_AT_ONCE: Final = 4


def held_servers(
    servers: Mapping[str, Any], config: Path, sandboxed: tuple[str, ...], *, confine: bool
) -> ConfinedServers:
    """Return servers as they are written: confined where that is asked for, or their client had them in a sandbox."""
    if confine:
        return confine_servers(servers, config, sandboxed=sandboxed)
    return ConfinedServers(servers=servers, sandboxed=sandboxed)


def confined_lines(held: ConfinedServers) -> list[str]:
    """Return what a person reads of confinement; where there is none, that it can be asked for."""
    free = [
        n for n, entry in held.servers.items() if is_mapping(entry) and is_fetched(entry) and "confine" not in entry
    ]
    if not free or held.names or held.outside:
        return held.lines
    offer = f"Fetched at start and run with all of your rights: {', '.join(free)}. --confine restricts them."
    return [*held.lines, offer]


def install_packages(specs: Iterable[PluginSpec]) -> Iterator[str]:
    """Install the packages of confined servers, and yield of each its version, or why it is not installed."""
    if missing_requirements():
        return
    servers = [spec for spec in specs if isinstance(spec, ServerSpec) and not spec.unavailable]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from filter(None, pool.map(_install_package, servers))


def _install_package(spec: ServerSpec) -> str:
    """Install the package of a confined server, and return its version, or why it is not installed."""
    from pegboard.sources.mcp.transports.server_process import newest_package

    try:
        version = newest_package(spec)
    except ToolUnavailableError as error:
        return f"{spec.name} is not installed, so it cannot start: {error}"
    newer = f"`pegboard update {spec.name}` looks for a newer one"
    return f"{spec.name} is installed in version {version}; {newer}." if version else ""


def may_read(servers: Mapping[str, Any]) -> int:
    """Return who may at most read a configuration with these servers: its owner alone where a secret may be in it."""
    return 0o600 if secrets_in(dict(servers)) else 0o666
