"""Copies of files before Pegboard changes them: in the folder of the configuration, for their owner alone.

The digest of a client's copy is in the user's state folder, which nothing that is confined may write: what such a
process makes of the copy is never given to a client.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pegboard.config.saving import write_whole
from pegboard.support import own_folder, user_folders

_RECORDS: Final = "copies"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCopy:
    """The copy of a client's file, and the digest of what was copied."""

    path: Path
    digest: str

    def read(self) -> bytes | None:
        """Return what is in the copy, or None where that is not what was copied; raises ``OSError``."""
        data = self.path.read_bytes()
        return data if hashlib.sha256(data).hexdigest() == self.digest else None


def keep(data: bytes, name: str, folder: Path) -> Path:
    """Write a copy of a file into a folder of Pegboard's own under a name that nothing has yet; return its path."""
    own_folder.make_private(folder)
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    number = 0
    while True:
        copy = folder / f"{name}.{stamp}{number or ''}Z.backup"
        try:
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            number += 1
            continue
        try:
            write_whole(copy, data, like=0o600)
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        return copy


def keep_for_client(path: Path, data: bytes, folder: Path, part: str = "") -> Path:
    """Keep a copy of a client's file to put it back by, and return where.

    Args:
        path: where the file really lies.
        data: what is in it.
        folder: where the copy is kept.
        part: which part of the file it is about, where several are put back apart from each other.
    """
    copy = keep(data, path.name, folder)
    try:
        note_for_client(path, KeptCopy(path=copy, digest=hashlib.sha256(data).hexdigest()), part)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return copy


def note_for_client(path: Path, kept: KeptCopy, part: str = "") -> None:
    """Note that a copy is the one to put a client's file back by."""
    record = {"file": str(path), "copy": str(kept.path), "sha256": kept.digest}
    place = _record(path, part)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(place, json.dumps(record).encode(), like=0o600)


def kept_for_client(path: Path, part: str = "") -> KeptCopy | None:
    """Return the copy that was kept last of a client's file, or None where none is known."""
    try:
        record = json.loads(_record(path, part).read_bytes())
        return KeptCopy(path=Path(record["copy"]), digest=str(record["sha256"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_for_client(path: Path, part: str = "") -> None:
    """Remove the copy of a client's file, and what is known of it."""
    kept = kept_for_client(path, part)
    with suppress(OSError):
        if kept is not None:
            kept.path.unlink(missing_ok=True)
        _record(path, part).unlink(missing_ok=True)


def _record(path: Path, part: str) -> Path:
    name = hashlib.sha256(f"{path}\0{part}".encode(errors="surrogatepass")).hexdigest()
    return user_folders.state() / _RECORDS / f"{name}.json"
