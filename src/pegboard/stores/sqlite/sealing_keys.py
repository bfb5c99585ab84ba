"""The key that the secrets of a store are sealed with: where it is kept, and when one is made (G11).

It is ``PEGBOARD_KEY`` (32 bytes in base64), else that of the file beside the store, which only its owner reads, else
one that the keyring of the user keeps. Where there is none, it is made in the keyring, or in that file where there is
no keyring. A keyring that cannot be asked may have the key, so none is made then.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pegboard.errors import StoreError
from pegboard.ports.store_copies import SealedState
from pegboard.stores.rows.key_texts import BYTES, MADE, VARIABLE, decoded, key_of_variable
from pegboard.stores.rows.sealing import Key, SealedRow, Sealing
from pegboard.system_keyring import SERVICE, KeyringError, asked

SUFFIX: Final = ".key"
"""What the name of the key's file ends with; it begins with that of the store."""


def sealing_for(store: Path, env: Mapping[str, str] | None = None, *, rows: Sequence[SealedRow] = ()) -> Sealing:
    """Return what seals the secrets of a store; its key is made where there is none.

    Args:
        store: The file of the store.
        env: The environment; None is that of the process.
        rows: What is sealed in the store, which tells whether a key is the right one.

    Raises:
        StoreError: There is a key that cannot be used or cannot be had now, or none can be kept.
    """
    if (given := key_of_variable(env)) is not None:
        return Sealing(given)
    file = store.with_name(store.name + SUFFIX)
    if not file.exists():
        return Sealing(_of_keyring(store, rows) or _of_file(file))
    return _with_keyring(store, _of_file(file), rows)


def sealed_state(store: Path, rows: Sequence[SealedRow], env: Mapping[str, str] | None = None) -> SealedState:
    """Return how the secrets of a store stand to its key; none is made.

    Args:
        store: The file of the store.
        rows: What is sealed in it.
        env: The environment; None is that of the process.
    """
    place, sealing, problem = "", None, ""
    try:
        place, sealing = _present(store, os.environ if env is None else env, rows)
    except StoreError as error:
        problem = error.message
    except ImportError:
        problem = "The extra mcp is missing, which has what opens it."
    if sealing is None:
        return SealedState(place=place, there=len(rows), unopened=len(rows), problem=problem)
    unopened = sum(sealing.open(row.sealed, row.name) is None for row in rows)
    return SealedState(place=place, there=len(rows), unopened=unopened)


def _present(store: Path, env: Mapping[str, str], rows: Sequence[SealedRow]) -> tuple[str, Sealing | None]:
    """Return where the key is, empty without one, and what opens the rows with it, where there are any."""
    file = store.with_name(store.name + SUFFIX)
    if given := env.get(VARIABLE):
        decoded(given, f"The environment variable {VARIABLE}")
        return "variable", sealing_for(store, env) if rows else None
    if file.exists():
        _of_file(file)
        return "file", sealing_for(store, env, rows=rows) if rows else None
    try:
        kept = asked(lambda keyring: keyring.get_password(SERVICE, _name(store)))
    except KeyringError as error:
        if error.absent and all(row.place != "keyring" for row in rows):
            return "", None
        raise refusal(store, error.message, error.hint, stored=bool(rows)) from None
    return ("", None) if kept is None else ("keyring", Sealing(_key(kept)) if rows else None)


def refusal(store: Path, why: str, hint: str, *, stored: bool) -> StoreError:
    """Return the error for a key that cannot be had now; ``stored`` is whether something may be sealed with it."""
    shown = f"to that key, which `keyring get {SERVICE} '{_name(store)}'` prints where the keyring can be used."
    made = f"to a new key: {MADE}"
    return StoreError(
        f"The key of {store} cannot be had: {why}.",
        hint=f"{hint} Without the keyring, set {VARIABLE} {shown if stored else made}".strip(),
        code="key_not_available",
    )


# -- the file --------------------------------------------------------------------------------------


def _of_file(file: Path) -> Key:
    """Return the key in a file, which is made where it is missing; several processes may do so at once."""
    try:
        with suppress(FileExistsError):
            _make(file)
        return Key(place="file", value=decoded(file.read_text(encoding="ascii", errors="replace"), str(file)))
    except OSError as error:
        raise StoreError(
            f"The key of the store cannot be kept in {file}: {error.strerror}.",
            hint=f"Let Pegboard write there, or set {VARIABLE}: {MADE}",
        ) from error


def _make(file: Path) -> None:
    """Make the file with a new key, whole or not at all; raises ``FileExistsError``."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    number = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(number, "wb") as opened:
            opened.write(base64.b64encode(secrets.token_bytes(BYTES)) + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        os.link(part, file)
    finally:
        part.unlink()


# -- the keyring -----------------------------------------------------------------------------------


def _of_keyring(store: Path, rows: Sequence[SealedRow]) -> Key | None:
    """Return the key that the user's keyring keeps for a store, made where there is none; None without a keyring.

    Raises ``StoreError`` where it may have the key and cannot be asked.
    """
    needed = any(row.place == "keyring" for row in rows)
    try:
        kept = asked(lambda keyring: _kept_or_made(keyring, _name(store)))
    except KeyringError as error:
        if error.absent and not needed:
            return None
        unsure = any(row.place == "" for row in rows)
        raise refusal(store, error.message, error.hint, stored=needed or unsure) from None
    if kept is None and needed:
        raise refusal(store, "the keyring keeps nothing", "", stored=True)
    return None if kept is None else _key(kept)


def _kept_or_made(keyring: Any, name: str) -> str | None:
    """Return the key that a keyring keeps; None where it keeps nothing at all."""
    kept: str | None = keyring.get_password(SERVICE, name)
    if kept is None:
        keyring.set_password(SERVICE, name, base64.b64encode(secrets.token_bytes(BYTES)).decode())
        kept = keyring.get_password(SERVICE, name)
    return kept


def _with_keyring(store: Path, own: Key, rows: Sequence[SealedRow]) -> Sealing:
    """Return what opens rows that the key of the file does not open, where the keyring has the key to them."""
    sealing = Sealing(own)
    closed = [row for row in rows if sealing.open(row.sealed, row.name) is None]
    if not closed:
        return sealing
    try:
        kept = asked(lambda keyring: keyring.get_password(SERVICE, _name(store)))
    except KeyringError as error:
        if len(closed) < len(rows) or all(row.place != "keyring" for row in closed):
            return sealing
        raise refusal(store, error.message, error.hint, stored=True) from None
    if kept is None:
        return sealing
    other = _key(kept)
    theirs = len(closed) == len(rows) and any(Sealing(other).open(row.sealed, row.name) is not None for row in closed)
    return Sealing(other, own) if theirs else Sealing(own, other)


def _key(kept: str) -> Key:
    return Key(place="keyring", value=decoded(kept, "The keyring"))


def _name(store: Path) -> str:
    """Return the name of the key of a store in the keyring."""
    return f"store {hashlib.sha256(os.fsencode(store)).hexdigest()[:16]}"
