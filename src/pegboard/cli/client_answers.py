"""What putting Pegboard into a client, and taking it out, print in common."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pegboard.cli.exit_codes import DONE
from pegboard.config.acceptance import accept_written_text
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.cli.rendering import Printer
    from pegboard.config.client_files.server_files import ServerFile
    from pegboard.config.clients.file_edits import ClientFileEdit


def heading_of(file: ServerFile) -> dict[str, Any]:
    """Return whose file it is about."""
    return {"client": file.spot.client.name, "file": file.label}


def staying_json(staying: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the servers that stay with a client, each with the reason."""
    return [{"name": name, "reason": why} for name, why in staying.items()]


def answer(printer: Printer, document: Mapping[str, Any], lines: Sequence[str]) -> int:
    """Print the document for scripts, or the lines for people."""
    if printer.as_json:
        printer.document(document)
    else:
        for line in lines:
            printer.say(line)
    return DONE


def save_client_file(edit: ClientFileEdit, *, keep_in: Path | None = None) -> Path | None:
    """Write a client's file, which this user accepts by that; return where a copy of what was there is kept.

    Raises ``ConfigError`` where it cannot be written; everything is then as it was.
    """
    with (
        left_as_it_is(edit.file.label),
        edit.stage_files(keep_in=keep_in) as put,
        accept_written_text(edit.path, edit.text),
    ):
        return put()


@contextmanager
def left_as_it_is(*files: str) -> Generator[None]:
    """Say of an error of the system what it left alone; raises ``ConfigError``."""
    try:
        yield
    except OSError as error:
        which = f"{' and '.join(files)} {'are left as they are' if len(files) > 1 else 'is left as it is'}"
        reason = os.strerror(error.errno) if error.errno else str(error)
        message = f"{which}: {error.filename or 'a file'} cannot be written: {reason}."
        raise ConfigError(message, code="file_not_saved", hint="Nothing was changed.") from None
