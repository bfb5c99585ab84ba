"""Values that a configuration names and does not hold: where each is kept, read when a server starts (G13)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pegboard.core.model.naming import did_you_mean
from pegboard.problems import Place

Scheme = Literal["keyring", "secret", "op", "file", "cmd"]
SCHEMES: Final[Mapping[Scheme, str]] = {
    "keyring": "NAME",
    "secret": "NAME",
    "op": "vault/item/field",
    "file": "PATH",
    "cmd": "COMMAND",
}
"""What is behind each scheme."""
WRITTEN: Final = ", ".join(f"${{{scheme}:{what}}}" for scheme, what in SCHEMES.items())
HOME: Final = "~/"
_NAME: Final = r"[A-Za-z0-9_.@/-]{1,200}"
Part = Literal["env", "headers", "args", "url"]
"""The settings of a server that may have references."""
PARTS: Final[tuple[Part, ...]] = ("env", "headers", "args", "url")
_WRITTEN: Final = rf"\$\{{(?:{'|'.join(SCHEMES)}):[^}}]*\}}"
_NOT_SCHEMES: Final = ("env", "input")
_OP_PARTS: Final = (3, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where one value is kept; paths and commands start from ``folder``: that of the configuration.

    Where a path begins with ``~/`` it is the home folder.
    """

    scheme: Scheme
    target: str
    folder: str = ""

    @property
    def text(self) -> str:
        """Return it as it is written.

        >>> Reference(scheme="keyring", target="GITHUB").text
        '${keyring:GITHUB}'
        """
        return f"${{{self.scheme}:{self.target}}}"

    @property
    def path(self) -> Path:
        """Return the file that is meant.

        >>> Reference(scheme="file", target="token.txt", folder="/srv").path.as_posix()
        '/srv/token.txt'
        """
        return Path(self.folder, self.target.removeprefix(HOME))


@dataclass(frozen=True, slots=True, kw_only=True)
class ByReference:
    """One text of a server with references in it.

    ``part`` is the setting and ``key`` the name of a variable or header, or the number of an argument; ``pieces`` put
    together are the text. ``place`` is where it is written.
    """

    part: Part
    key: str | int = ""
    pieces: tuple[str | Reference, ...]
    place: Place | None = None

    @property
    def references(self) -> tuple[Reference, ...]:
        """Return the references in it."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Reference))

    def filled(self, values: Mapping[Reference, str]) -> str:
        """Return the text with these values."""
        return "".join(values[piece] if isinstance(piece, Reference) else piece for piece in self.pieces)


def references_in(texts: Iterable[ByReference]) -> tuple[Reference, ...]:
    """Return the references in texts, each once, in their order."""
    return tuple(dict.fromkeys(reference for text in texts for reference in text.references))


def reference(scheme: str, target: str) -> Reference | str:
    """Return the reference that is written so, or why there is none such.

    >>> reference("keyring", "GITHUB").text, reference("op", "//Work/GitHub/token").text
    ('${keyring:GITHUB}', '${op:Work/GitHub/token}')
    >>> reference("keyrng", "GITHUB")
    "'${keyrng:' is not known. Did you mean 'keyring'?"
    >>> reference("op", "GitHub")
    "'${op:' is not followed by vault/item/field."
    """
    match scheme:
        case "keyring" | "secret" if is_name(target):
            return Reference(scheme=scheme, target=target)
        case "op" if _is_item(target.removeprefix("//")):
            return Reference(scheme=scheme, target=target.removeprefix("//"))
        case "file" if target.strip() and "\0" not in target:
            return Reference(scheme=scheme, target=target)
        case "cmd" if words(target):
            return Reference(scheme=scheme, target=target)
        case "keyring" | "secret" | "op" | "file" | "cmd":
            if scheme == "cmd" and target.strip():
                return "the command behind '${cmd:' cannot be split into words: a quotation mark is not closed."
            return f"'${{{scheme}:' is not followed by {SCHEMES[scheme]}."
        case _:
            unknown = f"'${{{scheme}:' is not known."
            return f"{unknown} {did_you_mean(scheme, (*SCHEMES, *_NOT_SCHEMES))}".rstrip()


def is_name(text: str) -> bool:
    """Return whether a text is a name in the keyring.

    >>> is_name("GITHUB_TOKEN"), is_name("A=b")
    (True, False)
    """
    return re.fullmatch(_NAME, text) is not None


def refers(text: str) -> bool:
    """Return whether a text looks like one with references in it.

    >>> refers("Bearer ${keyring:GITHUB}"), refers("${GITHUB}")
    (True, False)
    """
    return "${" in text and re.search(_WRITTEN, text) is not None


def only_refers(text: str) -> bool:
    """Return whether a text holds nothing but references, variables among them, and the scheme of a header.

    >>> only_refers("Bearer ${TOKEN}"), only_refers("${keyring:A}"), only_refers("${A:-hunter22}"), only_refers("x${A}")
    (True, True, False, False)
    """
    rest = re.sub(r"\$\{[^}]*\}", "", text) if "${" in text and ":-" not in text else text
    return rest != text and rest.strip().casefold() in ("", "bearer", "basic", "token")


def without_references(text: str) -> str:
    """Return a text without what looks like a reference.

    >>> without_references("Bearer ${op:Work/GitHub/token}")
    'Bearer '
    """
    return re.sub(_WRITTEN, "", text) if "${" in text else text


def words(command: str) -> tuple[str, ...]:
    """Return the words of a command as a shell splits them; none where it cannot be split.

    >>> words("pass show 'web/a b'"), words("pass 'show")
    (('pass', 'show', 'web/a b'), ())
    """
    import shlex  # no start without references needs it

    try:
        return tuple(shlex.split(command)) if "\0" not in command else ()
    except ValueError:
        return ()


def _is_item(target: str) -> bool:
    parts = target.split("/")
    return len(parts) in _OP_PARTS and all(part.strip() for part in parts) and target.isprintable()
