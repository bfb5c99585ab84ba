"""Changes of a client's file: nothing but its servers, with a backup, and in one step."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tomlkit.exceptions import TOMLKitError

from pegboard.config.client_files.server_files import ServerFile, compose
from pegboard.config.clients.kept_copies import (
    keep_for_client,
    kept_for_client,
    note_for_client,
    remove_for_client,
)
from pegboard.config.clients.literal_secrets import names_in, secrets_in
from pegboard.config.documents.document import UnreadableError, is_mapping
from pegboard.config.documents.json_edits import JsonText
from pegboard.config.documents.toml_edits import TomlText
from pegboard.config.documents.yaml_members import YamlText
from pegboard.config.saving import require_writable, stage_file
from pegboard.core.model.masking import MASK, Masker, mask_overrides
from pegboard.errors import ConfigError

_PAIR: Final = re.compile(r'("?)([A-Za-z_][\w.-]*)\1(\s*[:=]\s*)("(?!\$)(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFileEdit:
    """A change of a client's file.

    ``data`` is what is in it now, byte for byte, or None where it is not there. ``before`` is the text that is kept to
    put it back by, where that is another one: what it was before Pegboard, with the servers that came since.
    """

    file: ServerFile
    path: Path
    data: bytes | None = field(repr=False)
    text: str = field(repr=False)
    before: str | None = field(default=None, repr=False)

    def diff(self) -> str:
        """Return what changes, without secrets and without the lines around it, which may have some."""
        blank = not self.text.strip()  # as it was before Pegboard
        after = {} if blank else compose(self.text, self.file.label, self.path.suffix.lower()).value
        before = self.file.document.value
        masker = Masker(secrets_in(before) | secrets_in(after))
        names = names_in(before) | names_in(after)

        def hide_secret(found: re.Match[str]) -> str:
            secret = found[2] in names or mask_overrides({found[2]: "value"}, Masker(), frozenset())[found[2]] == MASK
            return f'{found[1]}{found[2]}{found[1]}{found[3]}"{MASK}"' if secret else found[0]

        lines = difflib.unified_diff(
            self.file.text.splitlines(), self.text.splitlines(), self.file.label, self.file.label, lineterm="", n=0
        )
        return "\n".join(masker.text(_PAIR.sub(hide_secret, line)) for line in lines)

    @contextmanager
    def stage_files(self, *, keep_in: Path | None = None) -> Generator[Callable[[], Path | None]]:
        """Write everything beside the file, and yield what puts it in its place.

        That returns where a copy of what was there is kept, in a folder of Pegboard's own. Where it is not put there,
        or the context fails, everything is as it was.

        Raises:
            ConfigError: ``file_changed`` where someone else changed the file meanwhile.
            OSError: there is no room or no right for it.
        """
        self._require_unchanged()
        mark = "\ufeff" if (self.data or b"").startswith(b"\xef\xbb\xbf") else ""
        parent, part = self.path.parent, self.file.part
        made = not parent.exists()
        parent.mkdir(parents=True, exist_ok=True)
        earlier, copy = kept_for_client(self.path, part), None
        try:
            copy = keep_for_client(self.path, self._bytes_of_copy(mark), keep_in, part) if keep_in is not None else None
            like = 0o600 if self.data is None else self.path.stat()
            with stage_file(self.path, (mark + self.text).encode(), like=like) as put:

                def commit_edit() -> Path | None:
                    self._require_unchanged()
                    put()
                    return copy

                yield commit_edit
        except BaseException:
            if copy is not None:
                remove_for_client(self.path, part)
                if earlier is not None:
                    note_for_client(self.path, earlier, part)
            if made:
                with suppress(OSError):
                    parent.rmdir()
            raise
        if self.before is not None and copy is not None and earlier is not None:
            earlier.path.unlink(missing_ok=True)

    def _require_unchanged(self) -> None:
        """Raise ``ConfigError`` where the file is another one than when it was read."""
        if (self.path.read_bytes() if self.path.exists() else None) != self.data:
            message = f"{self.file.label} was changed in the meantime, so it was not overwritten."
            raise ConfigError(message, code="file_changed", hint="Try again.")

    def _bytes_of_copy(self, mark: str) -> bytes:
        """Return what is kept to put the file back by; of one that was not there, an empty one."""
        if self.before is not None:
            return (mark + self.before).encode()
        return self.file.text.encode() if self.data is None else self.data


def written_servers(file: ServerFile) -> Mapping[str, Any]:
    """Return the servers that an edit replaces: not those of single projects in ``.claude.json``."""
    value: Any = file.document.value
    for key in file.root:
        value = value.get(key) if is_mapping(value) else None
    return value if is_mapping(value) else {}


def editable(file: ServerFile) -> JsonText | TomlText | YamlText:
    """Return the text of a client's file, ready to be changed; raises ``ConfigError`` where it cannot be."""
    if suffix(file) in (".yaml", ".yml"):
        return YamlText(file.text)
    if suffix(file) != ".toml":
        return JsonText(file.text, file.document)
    try:
        return TomlText(file.text)
    except TOMLKitError:
        raise _not_rewritable(file) from None


def suffix(file: ServerFile) -> str:
    """Return how the name of the file ends."""
    return file.spot.path.suffix.lower()


def edit_of_servers(file: ServerFile, text: str, servers: Mapping[str, Any]) -> ClientFileEdit:
    """Return an edit that changes nothing but the servers; raises ``ConfigError`` where that cannot be done."""
    path = file.spot.path.expanduser().resolve()
    there = path.exists()
    if there:
        require_writable(file.label, path)
    expected: dict[str, Any] = {**file.document.value}
    level = expected
    for key in file.root[:-1]:
        inner = level.get(key)
        level[key] = {**inner} if is_mapping(inner) else {}
        level = level[key]
    level[file.root[-1]] = dict(servers)
    try:
        after = compose(text, file.label, suffix(file))
    except UnreadableError:
        after = None
    if after is None or after.value != expected or after.problems or file.document.problems:
        raise _not_rewritable(file)
    return ClientFileEdit(file=file, path=path, data=path.read_bytes() if there else None, text=text)


def _not_rewritable(file: ServerFile) -> ConfigError:
    return ConfigError(
        f"{file.label} cannot be edited without changing something else, so it was not changed.",
        code="not_rewritable",
        hint=f"Write each server once, and as a {'table' if suffix(file) == '.toml' else 'member'} of its own.",
    )
