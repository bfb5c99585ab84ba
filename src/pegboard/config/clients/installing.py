"""Put Pegboard into the file of a client in place of its servers, and take it out again."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from pegboard.config.clients.compiled_servers import own_configuration
from pegboard.config.clients.known import CLIENTS, CODEX, GEMINI, VSCODE, ZED, Client, Machine, Spot, spots
from pegboard.config.clients.literal_secrets import names_in, secrets_in
from pegboard.config.clients.server_files import ServerFile, compose, read
from pegboard.config.documents import toml_edits
from pegboard.config.documents.document import UnreadableError, is_list, is_mapping, shown
from pegboard.config.documents.json_edits import JsonText
from pegboard.core.model.masking import MASK, Masker, masked
from pegboard.core.model.naming import did_you_mean
from pegboard.errors import ConfigError, UsageError

ENTRY: Final = "pegboard"
_BACKUP: Final = "pegboard-backup"
_REFERENCE: Final = re.compile(r"(?<!\$)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)[:}]")
_INPUT: Final = re.compile(r"\$\{input:([^}]*)\}")
_PAIR: Final = re.compile(r'("?)([A-Za-z_][\w.-]*)\1(\s*[:=]\s*)("(?!\$)(?:[^"\\]|\\.)*")')

Restored = Literal["restored", "put_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Hold how a client's file is to be changed; ``data`` is what is in it now, byte for byte."""

    file: ServerFile
    path: Path
    data: bytes = field(repr=False)
    text: str = field(repr=False)

    def diff(self) -> str:
        """Return what changes, without secrets and without the lines around it, which may hold some."""
        after = compose(self.text, self.file.shown, self.path.suffix.lower()).value
        before = self.file.document.value
        masker = Masker(secrets_in(before) | secrets_in(after))
        names = names_in(before) | names_in(after)

        def hidden(found: re.Match[str]) -> str:
            secret = found[2] in names or masked({found[2]: "value"}, Masker(), frozenset())[found[2]] == MASK
            return f'{found[1]}{found[2]}{found[1]}{found[3]}"{MASK}"' if secret else found[0]

        lines = difflib.unified_diff(
            self.file.text.splitlines(), self.text.splitlines(), self.file.shown, self.file.shown, lineterm="", n=0
        )
        return "\n".join(masker.text(_PAIR.sub(hidden, line)) for line in lines)

    def save(self, *, backup: bool) -> Path | None:
        """Write the file whole and keep what was there; return where.

        Raises ``ConfigError`` where somebody else changed it meanwhile.
        """
        if self.path.read_bytes() != self.data:
            message = f"{self.file.shown} was changed meanwhile, and is left as it is."
            raise ConfigError(message, code="file_changed", hint="Try again.")
        kept = _keep(self.path) if backup else None
        mark = "\ufeff" if self.data.startswith(b"\xef\xbb\xbf") else ""
        write_whole(self.path, (mark + self.text).encode(), mode=self.path.stat().st_mode & 0o777)
        return kept


def write_whole(path: Path, data: bytes, *, mode: int) -> None:
    """Put a file in the place of what is there in one step: nobody ever sees half of it."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _keep(path: Path) -> Path:
    """Copy a file to where nothing is yet, and return that."""
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    number = 0
    while (kept := path.with_name(f"{path.name}.{stamp}{number or ''}Z.{_BACKUP}")).exists():
        number += 1
    shutil.copy2(path, kept)
    return kept


def backup_of(path: Path) -> Path | None:
    """Return the newest of the copies that were kept of a file."""
    found = path.parent.glob(f"{_globbed(path.name)}.*Z.{_BACKUP}")
    return max(found, key=lambda kept: (kept.stat().st_mtime_ns, kept.name), default=None)


def _globbed(name: str) -> str:
    return re.sub(r"([\[\]*?])", r"[\1]", name)


# -- which file ------------------------------------------------------------------------------------


def client_named(name: str) -> Client:
    """Return a client; raises ``UsageError``."""
    client = CLIENTS.get(name.casefold())
    if client is None:
        hint = f"{did_you_mean(name, CLIENTS)} Known: {', '.join(CLIENTS)}.".strip()
        raise UsageError(f"'{name[:60]}' is not a client that is known here.", hint=hint)
    return client


def file_of(client: Client, machine: Machine, path: Path | None, *, holding: bool = False) -> ServerFile:
    """Return the client's file: the one named, else the first that has servers (``holding``: Pegboard).

    Raises ``ConfigError`` where there is none.
    """
    if path is not None:
        told = read(path, machine).spot
        spot = told if told.client == client else Spot(client=client, path=path, scope="user")
        return _replaceable(read(path, machine, spot=spot))
    places = list(spots(client, machine))
    found = [_replaceable(read(spot.path, machine, spot=spot)) for spot in places if spot.path.is_file()]
    wanted = [file for file in found if file.entries and (not holding or own_names(file, machine))]
    if wanted:
        return wanted[0]
    looked = ", ".join(shown(spot.path) for spot in places)
    if holding:
        message = f"Pegboard does not stand in the configuration of {client.title}."
        raise ConfigError(message, code="not_installed", hint=f"Looked at {looked}.")
    message = f"{client.title} has no configuration with MCP servers."
    raise ConfigError(message, code="no_servers", hint=f"Looked at {looked}. Name the file with --from FILE.")


def _replaceable(file: ServerFile) -> ServerFile:
    """Return a file with those servers only that an edit replaces."""
    return replace(file, entries=_written_servers(file))


def own_names(file: ServerFile, machine: Machine) -> tuple[str, ...]:
    """Return the servers of a file that are Pegboard."""
    entries = _written_servers(file)
    return tuple(name for name, entry in entries.items() if own_configuration(entry, machine) is not None)


def movable(file: ServerFile) -> ServerFile:
    """Return a file without the servers that only its own client can start."""
    staying = file.only_its_own()
    return replace(file, entries={name: entry for name, entry in file.entries.items() if name not in staying})


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


def _written_servers(file: ServerFile) -> Mapping[str, Any]:
    """Return the servers that an edit replaces: not those of single projects in ``.claude.json``."""
    value: Any = file.document.value
    for key in file.root:
        value = value.get(key) if is_mapping(value) else None
    return value if is_mapping(value) else {}


# -- in --------------------------------------------------------------------------------------------


def program() -> list[str]:
    """Return how Pegboard is started from anywhere: clients do not have the user's ``PATH``."""
    beside = Path(sys.executable).parent / ("pegboard.exe" if sys.platform == "win32" else "pegboard")
    if beside.is_file():
        return [str(beside)]
    found = shutil.which("pegboard")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "pegboard"]


def inputs_as_variables(value: Any) -> Any:
    """Return servers in which what only the client can ask for comes from the environment."""
    if isinstance(value, str):
        return _INPUT.sub(lambda found: f"${{{_variable(found[1])}}}", value)
    if is_mapping(value):
        return {key: inputs_as_variables(inner) for key, inner in value.items()}
    return [inputs_as_variables(inner) for inner in value] if is_list(value) else value


def _variable(name: str) -> str:
    bare = re.sub(r"\W+", "_", name).strip("_").upper() or "INPUT"
    return f"INPUT_{bare}" if bare[0].isdigit() else bare


def entry_for(file: ServerFile, servers: Mapping[str, Any], config: Path) -> dict[str, Any]:
    """Return Pegboard as a server of this client.

    ``servers`` are those behind it, in our own shape before :func:`inputs_as_variables`: what they
    need of the client's environment is passed on where the client would keep it back.
    """
    client = file.spot.client.name
    command, *rest = program()
    arguments = [*rest, "serve", "--stdio", "--config", str(config.absolute())]
    entry: dict[str, Any] = {"command": command, "args": arguments}
    names = sorted(set(_referred(servers)))
    match client:
        case VSCODE.name:
            entry = {"type": "stdio", **entry}
            asked = {_variable(name): f"${{input:{name}}}" for name in _asked(servers)}
            return {**entry, "env": asked} if asked else entry
        case ZED.name:
            return {"source": "custom", **entry, "env": {}}
        case CODEX.name if names:
            return {**entry, "env_vars": names}
        case GEMINI.name if names:
            return {**entry, "env": {name: f"${name}" for name in names}}
        case _:
            return entry


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if is_mapping(value) else value if is_list(value) else ()
    return [text for item in inner for text in _texts(item)]


def _referred(servers: Mapping[str, Any]) -> list[str]:
    return [name for text in _texts(servers) for name in _REFERENCE.findall(text)]


def _asked(servers: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for text in _texts(servers) for name in _INPUT.findall(text)))


def installation(file: ServerFile, entry: Mapping[str, Any]) -> Edit:
    """Return the edit after which Pegboard is the client's only server, but for those that only it can start."""
    staying = {name: file.entries[name] for name in file.only_its_own()}
    return _edit(file, _installed(file, entry), {ENTRY: entry, **staying})


def _installed(file: ServerFile, entry: Mapping[str, Any], *, name: str = ENTRY) -> str:
    if _is_toml(file):
        return toml_edits.replaced(file.text, file.root, toml_edits.rendered((*file.root, name), entry))
    text = JsonText(file.text, file.document)
    staying = {n: raw for n, raw in text.members(file.root).items() if n in file.only_its_own()}
    return text.with_object(file.root, {name: entry, **staying})


def _is_toml(file: ServerFile) -> bool:
    return _suffix(file) == ".toml"


def _suffix(file: ServerFile) -> str:
    return file.spot.path.suffix.lower()


def _edit(file: ServerFile, text: str, servers: Mapping[str, Any]) -> Edit:
    """Return an edit that changes nothing but the servers; raises ``ConfigError`` where that cannot be done."""
    path = file.spot.path.expanduser().resolve()
    _require_writable(file, path)
    expected: dict[str, Any] = {**file.document.value}
    level = expected
    for key in file.root[:-1]:
        inner = level.get(key)
        level[key] = {**inner} if is_mapping(inner) else {}
        level = level[key]
    level[file.root[-1]] = dict(servers)
    try:
        after = compose(text, file.shown, _suffix(file))
    except UnreadableError:
        after = None
    if after is None or after.value != expected or after.problems or file.document.problems:
        raise ConfigError(
            f"{file.shown} cannot be rewritten without changing something else, and is left as it is.",
            code="not_rewritable",
            hint=f"Write each server once, and as a {'table' if _is_toml(file) else 'member'} of its own.",
        )
    return Edit(file=file, path=path, data=path.read_bytes(), text=text)


def _require_writable(file: ServerFile, path: Path) -> None:
    """Raise ``ConfigError`` for a file that nobody is to write: putting another in its place would be easy."""
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
        message = f"{file.shown} is read-only, and is left as it is."
        raise ConfigError(message, code="not_rewritable", hint="Give yourself the right to write it, if it is yours.")


# -- out -------------------------------------------------------------------------------------------


def removal(file: ServerFile, machine: Machine) -> tuple[Edit, Restored, Path]:
    """Return the edit that gives a client its servers back, how exact it is, and the copy it comes from.

    ``restored``: the file has not been changed since, and is again what it was, byte for byte.
    Raises ``ConfigError`` where no copy was kept.
    """
    path = file.spot.path.expanduser().resolve()
    names, written_now = own_names(file, machine), _written_servers(file)
    if not names:
        raise ConfigError(f"Pegboard does not stand in {file.shown}.", code="not_installed")
    backup, config = backup_of(path), own_configuration(written_now[names[0]], machine)
    if backup is None:
        raise ConfigError(f"No copy of {file.shown} was kept.", code="no_backup", hint=_by_hand(config))
    was = _read_copy(backup, file, config)
    if _installed(was, written_now[names[0]], name=names[0]) == file.text:
        _require_writable(file, path)
        return Edit(file=file, path=path, data=path.read_bytes(), text=was.text), "restored", backup
    since = {n: e for n, e in written_now.items() if n not in names and was.entries.get(n) != e}
    servers = {**{n: e for n, e in was.entries.items() if n not in since}, **since}
    return _edit(file, _put_back(file, was, since), servers), "put_back", backup


def _by_hand(config: Path | None) -> str:
    return f"The servers stand in {config}. Put them back by hand." if config else ""


def _read_copy(backup: Path, file: ServerFile, config: Path | None) -> ServerFile:
    try:
        text = backup.read_bytes().decode("utf-8-sig")
        document = compose(text, file.shown, _suffix(file))
    except (UnreadableError, UnicodeDecodeError):
        message = f"The copy that was kept of {file.shown}, {backup.name}, cannot be read."
        raise ConfigError(message, code="no_backup", hint=_by_hand(config)) from None
    was = ServerFile(spot=file.spot, text=text, document=document, root=file.root, entries={})
    return replace(was, entries=_written_servers(was))


def _put_back(file: ServerFile, was: ServerFile, since: Mapping[str, Any]) -> str:
    """Return the file's text with the servers that it had, and those that came since."""
    root = file.root
    if _is_toml(file):
        texts = {name: toml_edits.written(was.text, (*root, name)) for name in was.entries if name not in since}
        texts |= {name: toml_edits.written(file.text, (*root, name)) for name in since}
        return toml_edits.replaced(file.text, root, "\n".join(filter(None, texts.values())))
    now, then = JsonText(file.text, file.document), JsonText(was.text, was.document)
    whole = then.object(root)
    if not since:
        return now.with_object(root, whole if whole is not None else {})
    members = now.members(root)
    return now.with_object(root, {**then.members(root), **{name: members[name] for name in since}})
