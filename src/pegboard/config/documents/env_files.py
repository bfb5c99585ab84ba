"""Files of environment variables, as editors give them to servers: a line NAME=VALUE each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ENV_FILE: Final = "its envFile "
"""How every reason begins why such a file gives nothing."""
LARGEST: Final = 1_000_000
"""How many bytes such a file may have."""
_LINE: Final = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=[ \t]*(.*)")
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)\"""")
_ESCAPE: Final = re.compile(r"\\(.)")
_MEANT: Final = {"n": "\n", "r": "\r", "t": "\t"}


def variables(text: str) -> dict[str, str]:
    r"""Return the variables of a text; lines of another form are passed over, the last of a name counts.

    >>> variables("# keys\nexport A=one two # three\nB='x # y'\nC=\"a\\nb\"\nD=\nnonsense")
    {'A': 'one two', 'B': 'x # y', 'C': 'a\nb', 'D': ''}
    """
    lines = (_LINE.fullmatch(line) for line in text.removeprefix("\ufeff").splitlines())
    return {found[1]: _value(found[2]) for found in lines if found is not None}


def _value(written: str) -> str:
    quoted = _QUOTED.match(written)
    if quoted is None:
        return re.split(r"(?:^|\s)#", written, maxsplit=1)[0].strip()
    if quoted[1] is not None:
        return quoted[1]
    return _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), quoted[2])


def read_variables(path: Path) -> tuple[dict[str, str], str]:
    """Return the variables of a file, and why there are none, or nothing; never what stands in it (X5)."""
    try:
        if path.stat().st_size > LARGEST:
            return {}, f"its envFile {path} is larger than {LARGEST // 1_000_000} MB."
        found = variables(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}, f"its envFile {path} does not exist."
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        return {}, f"its envFile {path} cannot be read: {reason}."
    if any("\0" in value for value in found.values()):
        return {}, f"its envFile {path} holds a NUL character."
    return found, ""
