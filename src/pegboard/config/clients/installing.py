"""Put Pegboard into the file of a client in place of its servers, and give the client its servers back."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Collection, Container, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Final, Literal

from pegboard.config.client_files.client import (
    ClientFilePlace,
    ClientScope,
    McpClient,
    input_variable,
    references_of,
    with_inputs,
)
from pegboard.config.client_files.known import CLIENTS, spots_of_client
from pegboard.config.client_files.server_files import ServerFile, compose, missing_client_file, read_client_file
from pegboard.config.clients.compiled_servers import own_argument, own_command, own_configuration
from pegboard.config.clients.file_edits import (
    ClientFileEdit,
    edit_of_servers,
    editable,
    suffix,
    written_servers,
)
from pegboard.config.clients.kept_copies import KeptCopy, kept_for_client
from pegboard.config.clients.merging import DEFAULT
from pegboard.config.documents.document import display_path
from pegboard.config.documents.json_edits import JsonText
from pegboard.config.location import Machine
from pegboard.config.saving import require_writable
from pegboard.core.model.naming import did_you_mean
from pegboard.errors import ConfigError, UsageError
from pegboard.support.installed import lasting_command, lasting_line, shared_command

ENTRY: Final = "pegboard"
CONFIGURATION: Final = "pegboard.yaml"
_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")
"""What makes of a digest a word: a name of letters and digits would look like a secret."""


# -- which file ------------------------------------------------------------------------------------


def client_named(name: str) -> McpClient:
    """Return a client; raises ``UsageError``."""
    client = CLIENTS.get(name.casefold())
    if client is None:
        hint = f"{did_you_mean(name, CLIENTS)} Known: {', '.join(CLIENTS)}.".strip()
        raise UsageError(f"'{name[:60]}' is not a known client.", hint=hint)
    return client


def file_of(
    client: McpClient,
    machine: Machine,
    path: Path | None,
    *,
    scope: ClientScope | None = None,
    holding: bool = False,
    empty: ClientScope | None = None,
) -> ServerFile:
    """Return the client's file: the one named, else the first that has servers (``holding``: Pegboard).

    Where several have some, those of one person in this folder come first, then those of the project.

    Args:
        client: whose file it is.
        machine: where files lie.
        path: the file that is meant, or None.
        scope: whose servers are meant, or None.
        holding: whether Pegboard has to be in it.
        empty: where none has servers, the file of this scope, or what it would be when it is made.

    Raises:
        ConfigError: there is none.
    """
    if path is not None:
        _require_file(path)
        found = read_client_file(path, machine).spot
        spot = found if found.client == client else ClientFilePlace(client=client, path=path, scope="user")
        return _replaceable(read_client_file(path, machine, spot=spot))
    places = [
        spot for spot in spots_of_client(client, machine) if scope is None or spot.scope in (scope, _file_scope(scope))
    ]
    files = [file for file in files_of(client, machine) if scope is None or file.spot.scope == scope]
    wanted = [file for file in files if file.entries and (not holding or own_names(file, machine))]
    if wanted:
        return wanted[0]
    looked = ", ".join(dict.fromkeys(display_path(spot.path) for spot in places))
    if holding:
        message = f"Pegboard is not in the configuration of {client.title}."
        raise ConfigError(message, code="not_installed", hint=f"Looked at {looked}.")
    if empty is not None:
        own = [spot for spot in places if spot.scope == empty] or places
        there = [file for file in files if file.spot.scope in {spot.scope for spot in own}]
        return there[0] if there else missing_client_file(own[0], machine)
    message = f"{client.title} has no configuration with MCP servers."
    hint = f"Looked at {looked}. Name the file with --from FILE. {no_configuration(client)}"
    raise ConfigError(message, code="no_servers", hint=hint)


def scopes_of(client: McpClient) -> tuple[ClientScope, ...]:
    """Return the scopes in which a client has servers."""
    local: tuple[ClientScope, ...] = ("local",) if client.name == "claude-code" else ()
    return (*local, *(("project",) if client.project else ()), *(("user",) if client.user else ()))


def files_of(client: McpClient, machine: Machine) -> list[ServerFile]:
    """Return the files of a client that are there, each for one scope; raises ``ConfigError``."""
    found: list[ServerFile] = []
    for spot in spots_of_client(client, machine):
        if not spot.path.is_file():
            continue
        file = read_client_file(spot.path, machine, spot=spot)
        if (local := local_servers(file, machine)) is not None:
            found.insert(0, local)
        found.append(_replaceable(file))
    return found


def local_servers(file: ServerFile, machine: Machine) -> ServerFile | None:
    """Return a file of Claude Code with the servers that it has for this folder alone, None where it has none."""
    folder = file.project
    if folder is None or file.spot.scope != "user":
        return None
    spot = replace(file.spot, scope="local", folder=machine.folder / folder)
    return _replaceable(replace(file, spot=spot, root=("projects", folder, "mcpServers"), project=None))


def _file_scope(scope: ClientScope) -> ClientScope:
    """Return the scope of the file in which servers of a scope stand."""
    return "user" if scope == "local" else scope


def no_configuration(client: McpClient) -> str:
    """Return what to do where a client has no servers, and there is no configuration to give it."""
    return f"Or write a configuration with `pegboard init`, then: pegboard init --install {client.name} --config FILE"


def _require_file(path: Path) -> None:
    """Raise ``ConfigError`` for a pipe or a device: nothing can be put in its place."""
    with suppress(OSError, RuntimeError):
        mode = path.expanduser().stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            message = f"{display_path(path)} is not a file, so it was not changed."
            raise ConfigError(message, code="not_rewritable", hint="Name the client's own file.")


def _replaceable(file: ServerFile) -> ServerFile:
    """Return a file with those servers only that an edit replaces."""
    return replace(file, entries=written_servers(file))


def own_names(file: ServerFile, machine: Machine) -> tuple[str, ...]:
    """Return the servers of a file that are Pegboard."""
    entries = written_servers(file)
    return tuple(n for n, entry in entries.items() if own_configuration(entry, machine, file.spot.folder) is not None)


def movable(file: ServerFile, machine: Machine) -> ServerFile:
    """Return a file without the servers that are for its own client only, and without Pegboard."""
    client_only = file.client_only_servers()
    return without_servers(file, {*client_only, *own_names(file, machine)})


def without_servers(file: ServerFile, names: Container[str]) -> ServerFile:
    """Return a file without some of its servers."""
    return replace(file, entries={name: entry for name, entry in file.entries.items() if name not in names})


def configuration_in_use(file: ServerFile, machine: Machine) -> Path | None:
    """Return the configuration with which Pegboard runs in a client, or None where it does not."""
    names = own_names(file, machine)
    return own_configuration(file.entries[names[0]], machine, file.spot.folder) if names else None


def home_of_configuration(file: ServerFile, machine: Machine) -> Path:
    """Return where our configuration for a client's file goes: into its project, else the one of the user."""
    spot = file.spot
    if spot.scope == "project" and spot.folder is not None:
        return spot.folder / CONFIGURATION
    return machine.configuration / CONFIGURATION


def own_agent(file: ServerFile) -> str:
    """Return the name of the agent that a client gets whose servers are not those of the first."""
    name, folder = file.spot.client.name, file.spot.folder
    if file.spot.scope != "local" or folder is None:
        return name
    bare = re.sub(r"[^a-z0-9]+", "-", folder.name.casefold()).strip("-")[:20]
    digest = hashlib.sha256(str(folder).encode(errors="surrogatepass")).hexdigest()[:6].translate(_LETTERS)
    return "-".join(part for part in (name, bare, digest) if part)


def agent_in_use(file: ServerFile, machine: Machine) -> str:
    """Return the agent that Pegboard serves to a client into whose file it was put."""
    names = own_names(file, machine)
    return own_argument(file.entries[names[0]], "--agent") or DEFAULT


# -- in --------------------------------------------------------------------------------------------


def _program() -> list[str]:
    """Return how Pegboard is started from anywhere: clients do not have the user's ``PATH`` (G12).

    Raises ``ConfigError`` where nothing that lasts is there.
    """
    if (found := lasting_command()) is not None:
        return found
    message = "This Pegboard runs from a cache that is cleaned, and no index has it, so no client could start it later."
    raise ConfigError(message, code="not_lasting", hint=f"Run `{lasting_line()}`, then that pegboard.")


def inputs_as_variables(servers: Any) -> Any:
    """Return servers in which what only the client can ask for comes from the environment."""
    return with_inputs(servers, lambda name: f"${{{input_variable(name)}}}")


def entry_for(file: ServerFile, servers: Mapping[str, Any], config: Path, agent: str = DEFAULT) -> dict[str, Any]:
    """Return Pegboard as a server of this client.

    In a project's own file everything is written for all who have a copy of the project: a command that their own
    ``PATH`` finds, and paths from the project's folder, in which most clients start servers. In a file of one person
    the paths are absolute.

    Args:
        file: the client's file.
        servers: those behind it, in our own shape before :func:`inputs_as_variables`: what they need of the client's
            environment is passed on where the client would not pass it on by itself.
        config: our configuration.
        agent: the agent that it serves.

    Raises:
        ConfigError: nothing that lasts starts Pegboard.
    """
    command, *rest = _program()
    spot, where = file.spot, str(config.absolute())
    entry: dict[str, Any] = {}
    if spot.scope == "project" and spot.folder is not None:
        folder_as, folder = spot.client.project_folder, spot.folder.absolute()
        command, *rest = shared_command(folder, folder_as)
        beside = PurePath(os.path.relpath(where, folder)).as_posix()
        where = f"{folder_as}/{beside}" if folder_as else beside
        entry = {"cwd": folder_as} if spot.client.starts_elsewhere else {}
    elif spot.folder is not None:
        entry = {"cwd": str(spot.folder.absolute())}
    chosen = [] if agent == DEFAULT else ["--agent", agent]
    arguments = [*rest, "serve", "--stdio", "--config", where, *chosen]
    return spot.client.entry({"command": command, "args": arguments, **entry}, references_of(servers))


def needed_by_others(file: ServerFile, entry: Mapping[str, Any]) -> str:
    """Return what everyone has to install who has a copy of a project, nothing where a client's file is one's own."""
    command = own_command(entry)
    if file.spot.scope != "project" or not command or command[0] == "uvx":
        return ""
    if command[0] != "pegboard":
        return f"Everyone who uses {file.label} needs Pegboard at this path: {command[0]}"
    here = "" if shutil.which("pegboard") else " It is not on your own PATH now."
    return f"Everyone who uses {file.label} needs the command `pegboard`: {lasting_line()}.{here}"


def installation(file: ServerFile, entry: Mapping[str, Any], staying: Collection[str]) -> ClientFileEdit:
    """Return the edit after which Pegboard is the client's only server, but for those that stay with it."""
    kept_servers = {name: file.entries[name] for name in file.entries if name in staying}
    return edit_of_servers(
        file, with_pegboard_installed(file, entry, kept_servers=kept_servers), {ENTRY: entry, **kept_servers}
    )


def with_pegboard_installed(
    file: ServerFile, entry: Mapping[str, Any], *, kept_servers: Container[str], name: str = ENTRY
) -> str:
    """Return the text of a file in which Pegboard is in place of the servers, but for some as they are written."""
    text = editable(file)
    kept = {n: raw for n, raw in text.members(file.root).items() if n in kept_servers}
    return text.with_object(file.root, {name: entry, **kept})


Restored = Literal["restored", "put_back"]


def removal(file: ServerFile, machine: Machine) -> tuple[ClientFileEdit, Restored, Path]:
    """Return the edit that gives a client its servers back, how exact it is, and the copy it comes from.

    ``restored``: the file has not been changed since, and: restored byte for byte.
    Raises ``ConfigError`` where no copy was kept, it cannot be read, or it is not what was copied.
    """
    path = file.spot.path.expanduser().resolve()
    names, written_now = own_names(file, machine), written_servers(file)
    if not names:
        raise ConfigError(f"Pegboard is not in {file.label}.", code="not_installed")
    kept = kept_for_client(path, file.part)
    config = own_configuration(written_now[names[0]], machine, file.spot.folder)
    if kept is None:
        raise ConfigError(f"No copy of {file.label} was kept.", code="no_backup", hint=_by_hand_hint(config))
    was, text = _read_copy(kept, file, config, machine)
    kept_servers = {name for name, entry in written_now.items() if was.entries.get(name) == entry}
    if with_pegboard_installed(was, written_now[names[0]], name=names[0], kept_servers=kept_servers) == file.text:
        require_writable(file.label, path)
        return ClientFileEdit(file=file, path=path, data=path.read_bytes(), text=text), "restored", kept.path
    since = {n: e for n, e in written_now.items() if n not in names and was.entries.get(n) != e}
    servers = {**{n: e for n, e in was.entries.items() if n not in since}, **since}
    return edit_of_servers(file, _text_put_back(file, was, since), servers), "put_back", kept.path


def file_before_pegboard(file: ServerFile, machine: Machine) -> ServerFile:
    """Return a client's file as it would be without Pegboard: with the servers that it had, and those that came since.

    Raises ``ConfigError`` where that is not known.
    """
    text = removal(file, machine)[0].text
    if not text.strip():
        return missing_client_file(file.spot, machine)
    document = compose(text, file.label, suffix(file))
    found = replace(file, text=text, document=document)
    return replace(found, entries=written_servers(found))


def _by_hand_hint(config: Path | None) -> str:
    return f"The servers are in {config}. Put them back by hand." if config else ""


def _read_copy(kept: KeptCopy, file: ServerFile, config: Path | None, machine: Machine) -> tuple[ServerFile, str]:
    """Return what a client's file said before Pegboard, and its text, which may be blank."""
    try:
        data = kept.read()
    except OSError:
        message = f"The copy that was kept of {file.label}, {kept.path}, cannot be read."
        raise ConfigError(message, code="no_backup", hint=_by_hand_hint(config)) from None
    if data is None:
        message = f"The copy that was kept of {file.label}, {kept.path}, was changed after that, so it is not put back."
        raise ConfigError(message, code="backup_changed", hint=f"Nothing was changed. {_by_hand_hint(config)}".strip())
    text = data.decode("utf-8-sig")
    if not text.strip():
        return missing_client_file(file.spot, machine), text
    document = compose(text, file.label, suffix(file))
    was = ServerFile(spot=file.spot, text=text, document=document, root=file.root, entries={})
    return replace(was, entries=written_servers(was)), text


def _text_put_back(file: ServerFile, was: ServerFile, since: Mapping[str, Any]) -> str:
    """Return the file's text with the servers that it had, and those that came since."""
    now, then, root = editable(file), editable(was), file.root
    if isinstance(now, JsonText) and isinstance(then, JsonText) and not since:
        return now.with_object(root, then.object(root) or {})
    members = now.members(root)
    return now.with_object(root, {**then.members(root), **{name: members[name] for name in since}})
