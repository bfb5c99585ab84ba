"""The names of what was put into the keyring, which no keyring lists: a file of this user, without any value."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pegboard.core.model.references import is_name
from pegboard.support import user_folders


def stored_names() -> tuple[str, ...]:
    """Return the names, in the order of the alphabet; none where the file is not there or is damaged."""
    try:
        found: Any = json.loads(_file().read_text("utf-8"))
    except (OSError, ValueError):
        return ()
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    return tuple(sorted({name for name in listed if isinstance(name, str) and is_name(name)}))


def note_stored(name: str) -> None:
    """Note that there is a value of this name; raises ``OSError``."""
    _write({*stored_names(), name})


def note_deleted(name: str) -> None:
    """Forget a name; raises ``OSError``."""
    if name in (known := stored_names()):
        _write({*known} - {name})


def _file() -> Path:
    return user_folders.state() / "secret-names.json"


def _write(names: set[str]) -> None:
    file = _file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, made = tempfile.mkstemp(dir=file.parent, prefix=file.stem)  # of this user alone: 0600
    try:
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            json.dump(sorted(names), stream)
        Path(made).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(made).unlink()
        raise
