"""Put Pegboard into the file of a client in place of its servers."""

from __future__ import annotations

import shutil
import stat
import sys
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pegboard.config.clients.client import McpClient, Spot, input_variable, references_of, with_inputs
from pegboard.config.clients.compiled_servers import own_configuration
from pegboard.config.clients.file_edits import Edit, editable, edited, written_servers
from pegboard.config.clients.known import CLIENTS, spots
from pegboard.config.clients.server_files import ServerFile, read, unwritten
from pegboard.config.documents.document import display_path
from pegboard.config.location import Machine
from pegboard.core.model.naming import did_you_mean
from pegboard.errors import ConfigError, UsageError

ENTRY: Final = "pegboard"


# -- which file ------------------------------------------------------------------------------------


def client_named(name: str) -> McpClient:
    """Return a client; raises ``UsageError``."""
    client = CLIENTS.get(name.casefold())
    if client is None:
        hint = f"{did_you_mean(name, CLIENTS)} Known: {', '.join(CLIENTS)}.".strip()
        raise UsageError(f"'{name[:60]}' is not a client that is known here.", hint=hint)
    return client


def file_of(
    client: McpClient, machine: Machine, path: Path | None, *, holding: bool = False, empty: bool = False
) -> ServerFile:
    """Return the client's file: the one named, else the first that has servers (``holding``: Pegboard).

    ``empty``: where none has servers, the first that is there, else what the first would be when it is made.
    Raises ``ConfigError`` where there is none.
    """
    if path is not None:
        _require_file(path)
        found = read(path, machine).spot
        spot = found if found.client == client else Spot(client=client, path=path, scope="user")
        return _replaceable(read(path, machine, spot=spot))
    places = list(spots(client, machine))
    files = [_replaceable(read(spot.path, machine, spot=spot)) for spot in places if spot.path.is_file()]
    wanted = [file for file in files if file.entries and (not holding or own_names(file, machine))]
    if wanted:
        return wanted[0]
    looked = ", ".join(display_path(spot.path) for spot in places)
    if holding:
        message = f"Pegboard does not stand in the configuration of {client.title}."
        raise ConfigError(message, code="not_installed", hint=f"Looked at {looked}.")
    if empty:
        return files[0] if files else unwritten(places[0], machine)
    message = f"{client.title} has no configuration with MCP servers."
    hint = f"Looked at {looked}. Name the file with --from FILE. {no_configuration(client)}"
    raise ConfigError(message, code="no_servers", hint=hint)


def no_configuration(client: McpClient) -> str:
    """Return what to do where a client has no servers, and there is no configuration to give it."""
    return f"Or write a configuration with `pegboard init`, then: pegboard init --install {client.name} --config FILE"


def _require_file(path: Path) -> None:
    """Raise ``ConfigError`` for a pipe or a device: nothing can be put in its place."""
    with suppress(OSError, RuntimeError):
        mode = path.expanduser().stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            message = f"{display_path(path)} is not a file, and is left as it is."
            raise ConfigError(message, code="not_rewritable", hint="Name the client's own file.")


def _replaceable(file: ServerFile) -> ServerFile:
    """Return a file with those servers only that an edit replaces."""
    return replace(file, entries=written_servers(file))


def own_names(file: ServerFile, machine: Machine) -> tuple[str, ...]:
    """Return the servers of a file that are Pegboard."""
    entries = written_servers(file)
    return tuple(name for name, entry in entries.items() if own_configuration(entry, machine) is not None)


def movable(file: ServerFile) -> ServerFile:
    """Return a file without the servers that are for its own client only."""
    client_only = file.client_only_servers()
    return replace(file, entries={name: entry for name, entry in file.entries.items() if name not in client_only})


def configuration_in_use(file: ServerFile, machine: Machine) -> Path | None:
    """Return the configuration with which Pegboard runs in a client, or None where it does not."""
    names = own_names(file, machine)
    return own_configuration(file.entries[names[0]], machine) if names else None


def home_of_configuration(file: ServerFile, machine: Machine) -> Path:
    """Return where our configuration for a client's file goes: into its project, else the user's folder."""
    spot = file.spot
    if spot.scope == "project" and spot.folder is not None:
        return spot.folder / "pegboard.yaml"
    return machine.configuration / f"{spot.client.name}.yaml"


# -- in --------------------------------------------------------------------------------------------


def program() -> list[str]:
    """Return how Pegboard is started from anywhere: clients do not have the user's ``PATH``."""
    beside = Path(sys.executable).parent / ("pegboard.exe" if sys.platform == "win32" else "pegboard")
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("pegboard")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "pegboard"]


def inputs_as_variables(servers: Any) -> Any:
    """Return servers in which what only the client can ask for comes from the environment."""
    return with_inputs(servers, lambda name: f"${{{input_variable(name)}}}")


def entry_for(file: ServerFile, servers: Mapping[str, Any], config: Path) -> dict[str, Any]:
    """Return Pegboard as a server of this client.

    ``servers`` are those behind it, in our own shape before :func:`inputs_as_variables`: what they
    need of the client's environment is passed on where the client would not pass it on by itself. In a
    project it starts in the project's folder, in which relative paths are meant; else where the client does.
    """
    command, *rest = program()
    arguments = [*rest, "serve", "--stdio", "--config", str(config.absolute())]
    entry: dict[str, Any] = {"command": command, "args": arguments}
    if file.spot.folder is not None:
        entry["cwd"] = str(file.spot.folder.absolute())
    return file.spot.client.entry(entry, references_of(servers))


def installation(file: ServerFile, entry: Mapping[str, Any]) -> Edit:
    """Return the edit after which Pegboard is the client's only server, but for those that are for it only."""
    kept_servers = {name: file.entries[name] for name in file.client_only_servers()}
    return edited(file, installed(file, entry, kept_servers=kept_servers), {ENTRY: entry, **kept_servers})


def installed(file: ServerFile, entry: Mapping[str, Any], *, kept_servers: Container[str], name: str = ENTRY) -> str:
    """Return the text of a file in which Pegboard stands in place of the servers, but for some as they are written."""
    text = editable(file)
    kept = {n: raw for n, raw in text.members(file.root).items() if n in kept_servers}
    return text.with_object(file.root, {name: entry, **kept})
