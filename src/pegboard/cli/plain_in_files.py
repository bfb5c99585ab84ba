"""Secrets that stand in plain in a file: what `check` and `measure` say of them, and `init` moves (G13)."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.person import ask_agreement
from pegboard.config.client_files.client import with_texts
from pegboard.config.client_files.server_files import read_client_file
from pegboard.config.clients.plain_secrets import KEYRING, file_reference_in, plain_secrets, without_plain
from pegboard.config.documents.document import dotted_path
from pegboard.config.documents.expansion import Expansion
from pegboard.config.location import Machine
from pegboard.config.saving import write_whole
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY
from pegboard.errors import PegboardError
from pegboard.problems import Problem
from pegboard.sources.references.keyring_values import delete, store, usable, value_of
from pegboard.sources.references.stored_names import note_deleted, note_stored
from pegboard.support import own_folder
from pegboard.support.installed import install_hint, install_line
from pegboard.system_keyring import KeyringError, is_keyring_installed

if TYPE_CHECKING:
    from pegboard.config.client_files.server_files import ServerFile
    from pegboard.config.clients.plain_secrets import PlainSecret
    from pegboard.config.schema.configuration import Configuration

_KEPT: Final = re.compile(r"\$\{(keyring|file):([^}]*)\}")


# -- reported --------------------------------------------------------------------------------------


def warnings_of(path: Path) -> Iterator[Problem]:
    """Yield a warning for each secret in plain text in a configuration, with what replaces it.

    A token of `tokens:` may stand there, as long as no one else can read the file.
    """
    try:
        file = read_client_file(path, Machine())
    except PegboardError:  # `check` has said so
        return
    mode = _mode_for_others(path)
    readable = f", in a file that others on this machine can read (mode {mode:04o})" if mode else ""
    for one in plain_secrets(file.entries):
        yield Problem(
            severity="warning",
            code="plain_secret",
            message=f"a secret is written here in plain text{readable}.",
            hint=f"Run `pegboard secret set {one.name}`, and write {one.line} here.",
            place=file.document.place((*file.root, one.server, *one.path)),
        )

    tokens = file.document.value.get("tokens") if mode and isinstance(file.document.value, Mapping) else None
    for name, token in tokens.items() if isinstance(tokens, Mapping) else ():
        text = token.get("token") if isinstance(token, Mapping) else token
        if isinstance(text, str) and text and "${" not in text:
            yield Problem(
                severity="warning",
                code="plain_secret",
                message=f"a secret is written here in plain text{readable}.",
                hint=f"Run `chmod 600 {file.document.file}`, or write ${{NAME}} here and set that variable.",
                place=file.document.place(("tokens", name, "token")),
            )


def _mode_for_others(path: Path) -> int:
    """Return the mode of a file that others than its owner can read, 0 of any other one."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0
    return mode if os.name == "posix" and mode & 0o044 else 0


def lines_of(file: ServerFile) -> list[str]:
    """Return what is said of the secrets that stand in plain in a client's file; nothing where there are none."""
    found = plain_secrets(file.entries)
    if not found:
        return []
    lines = [
        f"Plain-text secrets in {file.label}, and the reference to write in their place in a configuration of Pegboard:"
    ]
    lines += [f"  {one.server}: {one.line}" for one in found]
    return [*lines, f"`pegboard init --install {file.spot.client.name}` offers to move them into the keyring."]


def json_of(file: ServerFile) -> list[dict[str, Any]]:
    """Return the same as scripts read it."""
    return [
        {"server": one.server, "path": dotted_path(one.path, whole=True), "name": one.name, "replacement": one.line}
        for one in plain_secrets(file.entries)
    ]


def unread(configuration: Configuration) -> list[str]:
    """Return what `check` cannot know without starting a server: values that are read only then."""
    servers = [spec for spec in configuration.specs.values() if isinstance(spec, ServerSpec)]
    found: dict[str, list[str]] = {}
    for text in (text for spec in servers for text in spec.references):
        for one in text.references:
            found.setdefault(one.text, []).append(text.place.path if text.place else "")
    return [
        f"{reference} is read when a server starts, so it is unknown here whether it has a value ({', '.join(places)})."
        for reference, places in found.items()
    ]


def without_keyring(configuration: Configuration) -> Iterator[Problem]:
    """Yield what values in the keyring lack, where there are any."""
    servers = [spec for spec in configuration.specs.values() if isinstance(spec, ServerSpec)]
    texts = (text for spec in servers for text in spec.references)
    first = next((text for text in texts if any(one.scheme == "keyring" for one in text.references)), None)
    if first is not None and not is_keyring_installed():
        message = "the package keyring is not installed, which ${keyring:NAME} needs."
        yield Problem(
            severity="warning",
            code="keyring_missing",
            message=message,
            hint=install_hint(extra="keyring"),
            place=first.place,
        )


# -- moved -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretsMove:
    """Servers as they are to be written: they refer to their secrets, which are in the keyring or in files.

    ``names`` are those in the keyring, ``added`` those that this has put there, ``files`` those that it has written,
    ``folder`` is where they are, ``lines`` what a person is told.
    """

    servers: Mapping[str, Any] = field(default=EMPTY)
    names: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    folder: Path | None = None
    lines: tuple[str, ...] = ()

    def undo(self) -> None:
        """Take out of the keyring what was put there, and remove the files."""
        for name in self.added:
            try:
                delete(name)
                note_deleted(name)
            except (KeyringError, OSError):  # what failed before says more
                continue
        for path in self.files:
            path.unlink(missing_ok=True)
        if self.folder is not None:
            own_folder.remove_unused(self.folder)


async def moved_secrets(
    servers: Mapping[str, Any], config: Path, *, keyring: bool | None, ask: bool, stays_in: str
) -> SecretsMove:
    """Return servers without a secret in plain: each is in the keyring where that is wanted, else in a file.

    Args:
        config: the configuration that they are written into; the files are in the folder that it has.
        keyring: True moves secrets into the keyring, False does not; None asks the person at the terminal.

    Raises:
        PegboardError: ``keyring_failed`` where they are to be in the keyring and cannot be; then nothing is moved.
    """
    found = plain_secrets(servers)
    if not found:
        return SecretsMove(servers=servers)
    names = ", ".join(dict.fromkeys(one.name for one in found))
    if keyring is None and usable():
        keyring = ask and await _ask_agreement(found, names)
        later = "" if keyring else "Add --keyring to move them into the keyring."
    else:
        lacks = (
            "This system has no keyring."
            if is_keyring_installed()
            else f"There is no keyring ({install_line(extra='keyring')})."
        )
        later = lacks if keyring is None else ""
    return _move_into_keyring(servers, found, stays_in) if keyring else _move_into_files(servers, found, config, later)


async def _ask_agreement(found: tuple[PlainSecret, ...], names: str) -> bool:
    return bool(
        await ask_agreement([f"{_count(found)} in plain text: {names}.", "Move them into the keyring of the system?"])
    )


def _count(found: tuple[PlainSecret, ...]) -> str:
    servers = ", ".join(dict.fromkeys(one.server for one in found))
    return f"Settings of {servers} have secrets"


def _move_into_files(
    servers: Mapping[str, Any], found: tuple[PlainSecret, ...], config: Path, later: str
) -> SecretsMove:
    """Return servers whose secrets were each written into a file for its owner alone: all of them, or none."""
    folder = own_folder.folder_of(config)
    place = folder / own_folder.SECRETS
    added: list[Path] = []
    kept: list[PlainSecret] = []
    try:
        own_folder.make_private(folder)
        own_folder.make_private(place)
        for one in found:
            number, name = 1, one.name
            while (there := _value_in(place / name)) not in (None, one.value):
                number += 1
                name = f"{one.name}_{number}"
            if there is None:
                write_whole(place / name, f"{one.value}\n".encode(), like=0o600)
                added.append(place / name)
            kept.append(replace(one, name=name))
    except OSError:
        SecretsMove(files=tuple(added), folder=folder).undo()
        raise
    names = ", ".join(dict.fromkeys(one.name for one in kept))
    line = f"In {place}, not in {config.name}: {names}. {later}".strip()
    moved = without_plain(servers, kept, file_reference_in(config))
    return SecretsMove(servers=moved, files=tuple(added), folder=folder, lines=(line,))


def _value_in(path: Path) -> str | None:
    """Return the value in a file, or None where there is no file."""
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""


def _move_into_keyring(servers: Mapping[str, Any], found: tuple[PlainSecret, ...], stays_in: str) -> SecretsMove:
    """Return servers whose secrets were put into the keyring: all of them, or none."""
    added: list[str] = []
    kept: list[PlainSecret] = []
    try:
        for one in found:
            number, name = 1, one.name
            while (there := value_of(name)) not in (None, one.value):
                number += 1
                name = f"{one.name}_{number}"
            if there is None:
                store(name, one.value)
                added.append(name)
                note_stored(name)
            kept.append(replace(one, name=name))
    except KeyringError as error:
        SecretsMove(added=tuple(added)).undo()
        message = f"The secrets could not be moved: {error.message}. Nothing was changed."
        raise PegboardError(message, code="keyring_failed", hint=f"{error.hint} Or add --no-keyring.") from None
    names = tuple(dict.fromkeys(one.name for one in kept))
    line = f"Moved into the keyring: {', '.join(names)}. {stays_in}".strip()
    return SecretsMove(servers=without_plain(servers, kept, KEYRING), names=names, added=tuple(added), lines=(line,))


def filled_in(config: Path) -> Callable[[Any], Any]:
    """Return what fills in the values that servers of a configuration refer to, as far as they are known here.

    Those are variables of the environment, and what is in the keyring or in files; the others stay references.
    """
    folder = config.absolute().parent

    def value(found: re.Match[str]) -> str:
        with suppress(KeyringError, OSError):
            known = value_of(found[2]) if found[1] == "keyring" else _value_in(folder / Path(found[2]).expanduser())
            return found[0] if known is None else known
        return found[0]

    def fill_in(entry: Any) -> Any:
        return with_texts(Expansion(env=os.environ).value(entry), lambda text: _KEPT.sub(value, text))

    return fill_in
