"""What the ``store:`` of a configuration means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pegboard.errors import ConfigError

StorePlace = tuple[Literal["memory"], None] | tuple[Literal["sqlite"], Path]

RIGHT = "Write sqlite:///relative/file.db, sqlite:////absolute/file.db or memory:."
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)


def parse_store_url(url: str, base: Path) -> StorePlace:
    """Return the kind of store and its absolute path; a relative one starts at the folder ``base``.

    Raises ``ConfigError`` for anything else; its text never repeats what follows the scheme, since
    that may hold a password (X5).

    >>> parse_store_url("memory:", Path("/srv"))
    ('memory', None)
    >>> parse_store_url("sqlite:///state/pegboard.db", Path("/srv"))[1].as_posix()
    '/srv/state/pegboard.db'
    >>> parse_store_url("sqlite:////var/pegboard.db", Path("/srv"))[1].as_posix()
    '/var/pegboard.db'
    """
    match = _SCHEME.fullmatch(url.strip())
    if match is None:
        raise ConfigError("the address of a store needs a scheme.", hint=RIGHT)
    scheme, rest = match[1].lower(), match[2]
    if scheme == "memory":
        if rest not in ("", "//"):
            raise ConfigError("a store in memory has no path.", hint=RIGHT)
        return "memory", None
    if scheme != "sqlite":
        raise ConfigError(f"there is no store of the kind '{match[1]}:'.", hint=RIGHT)
    return "sqlite", _sqlite_path(rest, base)


def _sqlite_path(rest: str, base: Path) -> Path:
    """Return the path that stands after ``sqlite:``."""
    if not rest.startswith("///"):
        raise ConfigError("a sqlite store is a file, so three slashes stand before its path.", hint=RIGHT)
    name = rest.removeprefix("///")
    if name in ("", ".", "/", ":memory:"):
        raise ConfigError("the sqlite store names no file.", hint=RIGHT)
    if "?" in name:
        raise ConfigError("a sqlite store takes no options after '?'.", hint=RIGHT)
    if "\0" in name:
        raise ConfigError("the path of the sqlite store holds a NUL character.", hint=RIGHT)
    path = Path(name)
    return (base.absolute() / (path.expanduser() if name.startswith("~") else path)).absolute()
