"""What the ``store:`` of a configuration means."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pegboard.core.model.addresses import STORE_RIGHT, split_store, store_fault
from pegboard.core.model.postgres_addresses import SCHEMES
from pegboard.errors import ConfigError

StorePlace = tuple[Literal["memory"], None] | tuple[Literal["sqlite"], Path] | tuple[Literal["postgresql"], None]


def parse_store_url(url: str, base: Path) -> StorePlace:
    """Return the kind of store and, of a file, its absolute path; a relative one starts at the folder ``base``.

    Raises ``ConfigError`` for anything else; its text never repeats what follows the scheme, since
    that may hold a password (X5).

    >>> parse_store_url("memory:", Path("/srv"))
    ('memory', None)
    >>> parse_store_url("sqlite:///state/pegboard.db", Path("/srv"))[1].as_posix()
    '/srv/state/pegboard.db'
    >>> parse_store_url("sqlite:////var/pegboard.db", Path("/srv"))[1].as_posix()
    '/var/pegboard.db'
    """
    if fault := store_fault(url):
        raise ConfigError(fault, hint=STORE_RIGHT)
    scheme, rest = split_store(url)
    if scheme == "memory":
        return "memory", None
    if scheme in SCHEMES:
        return "postgresql", None
    path = Path(rest.removeprefix("///"))
    return "sqlite", (base.absolute() / (path.expanduser() if path.parts[0].startswith("~") else path)).absolute()
