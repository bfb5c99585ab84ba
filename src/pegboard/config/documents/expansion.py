"""Fill in ``${NAME}`` from the environment and files of variables, and remember what must never be shown (X5)."""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pegboard.config.documents.document import Expanded, PathKey, is_list, is_mapping
from pegboard.core.model.naming import one_line
from pegboard.core.model.references import Reference, reference

REFERENCE: Final = re.compile(r"(?<!\$)\$\{([^}]*)\}")
"""A reference in a text, whatever it refers to; ``$${`` begins none."""
ROOT: Final = "root"
"""The name that stands for the folder of the client; without one it is the current folder."""
_EACH_KIND: Final = re.compile(
    r"\$\$\{|\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{input:([^}]*)\}"
    r"|\$\{(?!env:)([A-Za-z][\w-]*):([^}]*)\}|\$\{"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingValue:
    """What a value needs and does not get: a ``variable`` that is not set, an ``input`` that only a client asks for.

    ``syntax`` is what is no reference at all, ``reference`` what is no right one of those that are read later: then
    ``name`` says why. ``text`` is how it is written, up to the end of the reference.
    """

    path: tuple[PathKey, ...]
    name: str
    kind: Literal["variable", "input", "syntax", "reference"] = "variable"
    text: str = ""


@dataclass(slots=True, kw_only=True)
class Expansion:
    """One filling-in of references: it collects the secrets, and what is missing or malformed.

    ``also`` gives values that are no secrets and count where the environment has none. ``references`` are the texts
    with values that are read when a server starts (G13): where each stands, and its pieces; in the value they stay as
    they are written. What a variable holds is never read as a reference.
    """

    env: Mapping[str, str]
    also: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: set[str] = field(default_factory=set[str])
    missing: list[MissingValue] = field(default_factory=list[MissingValue])
    references: dict[tuple[PathKey, ...], tuple[str | Reference, ...]] = field(
        default_factory=dict[tuple[PathKey, ...], tuple[str | Reference, ...]]
    )

    def value(self, value: Any, path: tuple[PathKey, ...] = ()) -> Any:
        """Return the value with every reference in it filled in; ``$${`` is written for ``${``."""
        if isinstance(value, str):
            return self._text(value, path) if "${" in value else value
        if is_mapping(value):
            return {key: self.value(inner, (*path, key)) for key, inner in value.items()}
        if is_list(value):
            return [self.value(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    def _text(self, text: str, path: tuple[PathKey, ...]) -> str:
        pieces: list[str | Reference] = []
        end = 0
        for found in _EACH_KIND.finditer(text):
            pieces += [text[end : found.start()], self._expand_reference(found, path)]
            end = found.end()
        pieces.append(text[end:])
        if any(isinstance(piece, Reference) for piece in pieces):
            self.references[path] = tuple(piece for piece in pieces if piece)
        return Expanded("".join(piece.text if isinstance(piece, Reference) else piece for piece in pieces), text)

    def _expand_reference(self, found: re.Match[str], path: tuple[PathKey, ...]) -> str | Reference:
        if found[0] == "$${":
            return "${"
        name, default, asked, scheme, target = found.groups()
        if scheme is not None:
            known = reference(scheme, target)
            if isinstance(known, str):
                self.missing.append(
                    MissingValue(path=path, name=known, kind="reference", text=one_line(found[0], limit=80))
                )
                return found[0]
            return known
        if name is None:
            text = found.string[found.start() :].partition("}")
            self.missing.append(
                MissingValue(
                    path=path,
                    name=asked or "",
                    kind="syntax" if asked is None else "input",
                    text=one_line("".join(text[:2]), limit=80),
                )
            )
            return found[0]
        if name == ROOT:
            return self.env.get(ROOT) or os.getcwd()  # noqa: PTH109
        value = self.env.get(name)
        if default is not None and not value:
            return default
        if value is None and name in self.also:
            return self.also[name]
        if value is None:
            self.missing.append(MissingValue(path=path, name=name))
            return found[0]
        if value:
            self.secrets.add(value)
        return value


def escape_references(text: str) -> str:
    """Return a text in which a sign is no reference that begins none; ``${NAME}`` and the like stay.

    >>> escape_references("${1} of ${HOME}")
    '$${1} of ${HOME}'
    """
    return _EACH_KIND.sub(lambda found: "$${" if found[0] == "${" else found[0], text)


def references_as_written(value: Any) -> Any:
    """Return a value whose references are filled in with the references themselves; None where it has none."""
    return _remove_references(value) if _is_filled(value) else None


def _is_filled(value: Any) -> bool:
    if is_mapping(value):
        return any(_is_filled(inner) for inner in value.values())
    return any(map(_is_filled, value)) if is_list(value) else isinstance(value, Expanded)


def _remove_references(value: Any) -> Any:
    if is_mapping(value):
        return {key: _remove_references(inner) for key, inner in value.items()}
    if is_list(value):
        return [_remove_references(inner) for inner in value]
    return value.written if isinstance(value, Expanded) else value


ENV_FILE: Final = "its envFile "
"""How every reason begins why such a file gives nothing."""
LARGEST: Final = 1_000_000
"""How many bytes such a file may have."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def variables(text: str) -> dict[str, str]:
    r"""Return the variables of a text; what has another form is ignored, the last of a name counts.

    >>> variables("# keys\nexport A=one two # three\nB='x # y'\nC=\"a\\nb\"\nD=\nnonsense\nE='two\nlines'")
    {'A': 'one two', 'B': 'x # y', 'C': 'a\nb', 'D': '', 'E': 'two\nlines'}
    """
    from dotenv.parser import parse_stream

    found = parse_stream(io.StringIO(text.removeprefix("\ufeff")))
    named = ((one.key, one.value) for one in found if one.key is not None and one.value is not None)
    return {key: value for key, value in named if _NAME.fullmatch(key)}


def read_variables(path: Path) -> tuple[dict[str, str], str]:
    """Return the variables of a file, and why there are none, or nothing; never what is in it (X5)."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            return {}, f"its envFile {path} is not a file."
        if status.st_size > LARGEST:
            return {}, f"its envFile {path} is larger than {LARGEST // 1_000_000} MB."
        found = variables(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, f"its envFile {path} does not exist."
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        return {}, f"its envFile {path} cannot be read: {reason}."
    if any("\0" in value for value in found.values()):
        return {}, f"its envFile {path} contains a NUL character."
    return found, ""
