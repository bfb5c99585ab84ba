"""Take Pegboard out of the file of a client, and give the client its servers back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pegboard.config.client_files.server_files import ServerFile, compose
from pegboard.config.clients.compiled_servers import own_configuration
from pegboard.config.clients.file_edits import (
    Edit,
    editable,
    edited,
    suffix,
    written_servers,
)
from pegboard.config.clients.installing import installed, own_names
from pegboard.config.clients.kept_copies import KeptCopy, kept_for_client
from pegboard.config.documents.json_edits import JsonText
from pegboard.config.location import Machine
from pegboard.config.saving import require_writable
from pegboard.errors import ConfigError

Restored = Literal["restored", "put_back"]


def removal(file: ServerFile, machine: Machine) -> tuple[Edit, Restored, Path]:
    """Return the edit that gives a client its servers back, how exact it is, and the copy it comes from.

    ``restored``: the file has not been changed since, and is again what it was, byte for byte.
    Raises ``ConfigError`` where no copy was kept, it cannot be read, or it is not what was copied.
    """
    path = file.spot.path.expanduser().resolve()
    names, written_now = own_names(file, machine), written_servers(file)
    if not names:
        raise ConfigError(f"Pegboard does not stand in {file.label}.", code="not_installed")
    kept = kept_for_client(path, file.part)
    config = own_configuration(written_now[names[0]], machine, file.spot.folder)
    if kept is None:
        raise ConfigError(f"No copy of {file.label} was kept.", code="no_backup", hint=_by_hand(config))
    was = _read_copy(kept, file, config)
    kept_servers = {name for name, entry in written_now.items() if was.entries.get(name) == entry}
    if installed(was, written_now[names[0]], name=names[0], kept_servers=kept_servers) == file.text:
        require_writable(file.label, path)
        return Edit(file=file, path=path, data=path.read_bytes(), text=was.text), "restored", kept.path
    since = {n: e for n, e in written_now.items() if n not in names and was.entries.get(n) != e}
    servers = {**{n: e for n, e in was.entries.items() if n not in since}, **since}
    return edited(file, _put_back(file, was, since), servers), "put_back", kept.path


def before_pegboard(file: ServerFile, machine: Machine) -> ServerFile:
    """Return a client's file as it would be without Pegboard: with the servers that it had, and those that came since.

    Raises ``ConfigError`` where that is not known.
    """
    text = removal(file, machine)[0].text
    document = compose(text, file.label, suffix(file))
    found = replace(file, text=text, document=document)
    return replace(found, entries=written_servers(found))


def _by_hand(config: Path | None) -> str:
    return f"The servers stand in {config}. Put them back by hand." if config else ""


def _read_copy(kept: KeptCopy, file: ServerFile, config: Path | None) -> ServerFile:
    try:
        data = kept.read()
    except OSError:
        message = f"The copy that was kept of {file.label}, {kept.path}, cannot be read."
        raise ConfigError(message, code="no_backup", hint=_by_hand(config)) from None
    if data is None:
        message = f"The copy that was kept of {file.label}, {kept.path}, was changed since, so it is not put back."
        raise ConfigError(message, code="backup_changed", hint=f"Nothing was changed. {_by_hand(config)}".strip())
    text = data.decode("utf-8-sig")
    document = compose(text, file.label, suffix(file))
    was = ServerFile(spot=file.spot, text=text, document=document, root=file.root, entries={})
    return replace(was, entries=written_servers(was))


def _put_back(file: ServerFile, was: ServerFile, since: Mapping[str, Any]) -> str:
    """Return the file's text with the servers that it had, and those that came since."""
    now, then, root = editable(file), editable(was), file.root
    if isinstance(now, JsonText) and isinstance(then, JsonText) and not since:
        return now.with_object(root, then.object(root) or {})
    members = now.members(root)
    return now.with_object(root, {**then.members(root), **{name: members[name] for name in since}})
