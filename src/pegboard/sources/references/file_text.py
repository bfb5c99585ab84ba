"""A value that is the text of a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pegboard.errors import ToolUnavailableError
from pegboard.sources.references.value_text import LONGEST, without_newline


def text_of(path: Path, name: str) -> str:
    """Return the text of a file without the newline at its end.

    Raises:
        ToolUnavailableError: it is not there, no file, too large or not UTF-8.
    """
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise ToolUnavailableError(f"{name} is a folder", hint="Name the file in it.")
        if not stat.S_ISREG(status.st_mode):
            raise ToolUnavailableError(f"{name} is not a file", hint="Name a file, or use ${cmd:…}.")
        with path.open("rb") as stream:
            data = stream.read(LONGEST + 1)
    except FileNotFoundError:
        raise ToolUnavailableError(f"{name} does not exist", hint=f"Write the value into {path}.") from None
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "the path is not valid"
        raise ToolUnavailableError(f"{name} cannot be read: {reason}", hint=f"See {path}.") from None
    if len(data) > LONGEST:
        raise ToolUnavailableError(f"{name} is larger than 64 KiB", hint="Name a file that has the value alone.")
    try:
        return without_newline(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ToolUnavailableError(f"{name} is not UTF-8 text", hint="Save the value as UTF-8.") from None
