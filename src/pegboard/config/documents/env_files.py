"""Files of environment variables, as editors give them to servers: NAME=VALUE each."""

from __future__ import annotations

import io
import re
import stat
from pathlib import Path
from typing import Final

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
    """Return the variables of a file, and why there are none, or nothing; never what stands in it (X5)."""
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
        return {}, f"its envFile {path} holds a NUL character."
    return found, ""
