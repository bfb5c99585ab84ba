"""What the address of a store must look like, and how long calls go on without it."""

from __future__ import annotations

import re
from typing import Final

from pegboard.core.model.postgres_addresses import SCHEMES, postgres_fault, secrets_of, without_login

STORE_RIGHT: Final = (
    "Write sqlite:///relative/file.db, sqlite:////absolute/file.db, postgresql://host/database or memory:."
)
STORE_GRACE: Final = 30.0
"""For how many seconds calls go on that cannot reach the store, where a configuration does not say."""
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_LONGEST_PART: Final = 255
"""Bytes that a name in a path may have, on every common file system."""


def split_store(url: str) -> tuple[str, str]:
    """Return the scheme of a store's address, and what follows it; no scheme where there is none.

    >>> split_store("sqlite:///state.db")
    ('sqlite', '///state.db')
    """
    match = _SCHEME.fullmatch(url.strip())
    return (match[1].lower(), match[2]) if match else ("", url)


def store_fault(url: str) -> str:
    """Return what is wrong with a store's address, or nothing; never what follows the scheme, it may be secret (X5).

    >>> store_fault("sqlite:///state.db"), store_fault("memory:")
    ('', '')
    >>> store_fault("sqlite:state.db")
    'a sqlite store is a file, so its path comes after three slashes.'
    """
    scheme, rest = split_store(url)
    match scheme:
        case "":
            return "the address of a store needs a scheme."
        case "memory":
            return "a store in memory has no path." if rest not in ("", "//") else ""
        case "sqlite":
            return _path_fault(rest)
        case kind if kind in SCHEMES:
            return postgres_fault(rest)
        case kind:
            return f"there is no store of the kind '{kind}:'."


def store_secrets(url: str) -> set[str]:
    """Return what must not be shown of a store's address: the password of a database (X5)."""
    scheme, rest = split_store(url)
    return secrets_of(rest) if scheme in SCHEMES else set()


def store_name(url: str) -> str:
    """Return what tells a store from others, without who logs in there: it may be written down (X5).

    >>> store_name("sqlite:////srv/state.db"), store_name("postgresql://ada:secret@db/pegboard")
    ('sqlite:////srv/state.db', 'postgresql://db/pegboard')
    """
    scheme, rest = split_store(url)
    return f"postgresql:{without_login(rest)}" if scheme in SCHEMES else url


def _path_fault(rest: str) -> str:
    """Return what is wrong with what stands after ``sqlite:``."""
    if not rest.startswith("///"):
        return "a sqlite store is a file, so its path comes after three slashes."
    name = rest.removeprefix("///")
    if name in ("", ".", "/", ":memory:"):
        return "the sqlite store names no file."
    if "?" in name:
        return "a sqlite store takes no options after '?'."
    if "\0" in name:
        return "the path of the sqlite store contains a NUL character."
    if any(len(part.encode(errors="surrogatepass")) > _LONGEST_PART for part in name.split("/")):
        return f"a name in the path of the sqlite store has more than {_LONGEST_PART} bytes."
    return ""
