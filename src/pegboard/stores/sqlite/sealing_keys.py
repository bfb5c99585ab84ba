"""The key that the secrets of a store are sealed with: where it is kept, and when one is made (G11).

It is ``PEGBOARD_KEY`` (32 bytes in base64), else that of the file beside the store, which only its owner reads, else
one that the keyring of the user keeps. Where there is none, it is made in the keyring, or in that file where there is
no keyring. A keyring that cannot be asked may have the key, so none is made then.

A key that is to follow another one stands beside it until everything is sealed with it: in a file of its own, or behind
it in the same entry of the keyring, so that a person is asked once. Of the two that one seals whose mark the store has:
the change is one of the store, in one transaction with what is sealed anew.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pegboard.errors import StoreError
from pegboard.ports.store_copies import SealedState
from pegboard.stores.rows.key_texts import BYTES, MADE, VARIABLE, decoded, key_of_variable, with_second
from pegboard.stores.rows.sealing import Key, SealedRow, Sealing
from pegboard.support.durable import sync_folder
from pegboard.system_keyring import SERVICE, KeyringError, asked

SUFFIX: Final = ".key"
"""What the name of the key's file ends with; it begins with that of the store."""
NEXT: Final = "next"
"""What stands behind the name of a key's file in that of the key that is to follow it."""


def sealing_for(
    store: Path, env: Mapping[str, str] | None = None, *, rows: Sequence[SealedRow] = (), mark: bytes = b""
) -> Sealing:
    """Return what seals the secrets of a store; its key is made where there is none.

    Args:
        store: The file of the store.
        env: The environment; None is that of the process.
        rows: What is sealed in the store, which tells whether a key is the right one.
        mark: That of the key that seals, as the store has it; of several keys it chooses that one.

    Raises:
        StoreError: There is a key that cannot be used or cannot be had now, or none can be kept.
    """
    if (given := key_of_variable(env)) is not None:
        return Sealing(*with_second(given, env=env), read_at=mark)
    file = store.with_name(store.name + SUFFIX)
    if not file.exists():
        keys = _of_keyring(store, rows) or _of_file(file)
    else:
        keys = _with_keyring(store, _of_file(file), rows)
    return Sealing(*with_second(*_chosen(keys, mark), env=env), read_at=mark)


def unlock(store: Path, rows: Sequence[SealedRow], mark: bytes) -> None:
    """Ask for the keys of a store once, so that :func:`next_sealing` asks a keyring that is unlocked.

    Raises:
        StoreError: There is a key that cannot be used or cannot be had now.
    """
    _present(store, os.environ, rows, mark, always=True)


def next_sealing(store: Path, rows: Sequence[SealedRow], mark: bytes) -> Sealing | None:
    """Return what is to seal the secrets of a store from now on; None without a key.

    That is the key of the variable; else a new one, which is kept beside the present one before this returns. None is
    made where one that was made before is not used up, or where what is sealed is opened by no key that there is.
    """
    place, sealing = _present(store, os.environ, rows, mark, always=True)
    if sealing is None or place == "variable":
        return sealing
    if sealing.key.mark == mark and _next_of(store, place) == sealing.key:
        return sealing  # it was interrupted before the old one went
    if rows and not any(sealing.open(row.sealed, row.name) is not None for row in rows):
        return sealing
    following = _following(store, place)
    return Sealing(following, *(key for key in sealing.keys if key.value != following.value))


def end_old_key(store: Path, place: str, mark: bytes) -> None:
    """Let the key with this mark, which was the next one, be the only one; whoever calls lets nobody else write."""
    following = _next_of(store, place)
    if following is None or following.mark != mark:
        return
    file, text = store.with_name(store.name + SUFFIX), base64.b64encode(following.value).decode()
    if place == "file":
        _next_file(file).replace(file)
        sync_folder(file.parent)
        return
    try:
        asked(lambda keyring: keyring.set_password(SERVICE, _name(store), text))
    except KeyringError as error:
        raise refusal(store, error.message, error.hint, stored=True) from None


def sealed_state(
    store: Path, rows: Sequence[SealedRow], env: Mapping[str, str] | None = None, *, mark: bytes = b""
) -> SealedState:
    """Return how the secrets of a store stand to its key; none is made.

    Args:
        store: The file of the store.
        rows: What is sealed in it.
        env: The environment; None is that of the process.
        mark: That of the key that seals, as the store has it.
    """
    place, sealing, problem = "", None, ""
    try:
        place, sealing = _present(store, os.environ if env is None else env, rows, mark)
    except StoreError as error:
        problem = error.message
    except ImportError:
        problem = "The extra mcp is missing, which has what opens it."
    if sealing is None:
        return SealedState(place=place, there=len(rows), unopened=len(rows), problem=problem)
    return sealing.state(rows)


def _present(
    store: Path, env: Mapping[str, str], rows: Sequence[SealedRow], mark: bytes, *, always: bool = False
) -> tuple[str, Sealing | None]:
    """Return where the key is, empty without one, and what opens the rows with it, where there are any or ``always``.

    Without rows the package that seals may be missing.
    """
    needed = always or bool(rows)
    file = store.with_name(store.name + SUFFIX)
    if given := env.get(VARIABLE):
        with_second(Key(place="variable", value=decoded(given, f"The environment variable {VARIABLE}")), env=env)
        return "variable", sealing_for(store, env) if needed else None
    if file.exists():
        with_second(*_of_file(file), env=env)
        found = sealing_for(store, env, rows=rows, mark=mark) if needed else None
        return ("file" if found is None else found.place), found
    try:
        kept = asked(lambda keyring: _kept(keyring, store))
    except KeyringError as error:
        if error.absent and all(row.place != "keyring" for row in rows):
            return "", None
        raise refusal(store, error.message, error.hint, stored=bool(rows)) from None
    if not kept:
        return "", None
    keys = with_second(*_chosen(_keys(kept), mark), env=env)
    return "keyring", Sealing(*keys) if needed else None


def _chosen(keys: Sequence[Key], mark: bytes) -> list[Key]:
    """Return keys with the one first that has the mark."""
    return sorted(keys, key=lambda key: key.mark != mark)


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


def _of_file(file: Path) -> list[Key]:
    """Return the key in a file, which is made where it is missing, and the one that is to follow it.

    Several processes may do so at once. The next one is read first: a moment later it may be the only one.
    """
    try:
        following = _read(_next_file(file))
        return [_made(file), *([] if following is None else [following])]
    except OSError as error:
        raise _not_kept(file, error) from error


def _not_kept(file: Path, error: OSError) -> StoreError:
    return StoreError(
        f"The key of the store cannot be kept in {file}: {error.strerror}.",
        hint=f"Let Pegboard write there, or set {VARIABLE}: {MADE}",
    )


def _made(file: Path) -> Key:
    """Return the key in a file, which is made where it is missing."""
    if (key := _read(file)) is None:
        with suppress(FileExistsError):
            _make(file)
            sync_folder(file.parent)
        key = _read(file)
    if key is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    return key


def _read(file: Path) -> Key | None:
    try:
        text = file.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None
    return Key(place="file", value=decoded(text, str(file)))


def _next_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.{NEXT}")


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


def _next_of(store: Path, place: str) -> Key | None:
    """Return the key that is to follow the one at a place, or None."""
    if place == "file":
        return _read(_next_file(store.with_name(store.name + SUFFIX)))
    try:
        kept = asked(lambda keyring: _kept(keyring, store))
    except KeyringError as error:
        raise refusal(store, error.message, error.hint, stored=True) from None
    return _key(kept[1]) if len(kept) > 1 else None


def _following(store: Path, place: str) -> Key:
    """Return the key that is to follow the one at a place, made where there is none."""
    if place == "file":
        file = _next_file(store.with_name(store.name + SUFFIX))
        try:
            made = _made(file)
        except OSError as error:
            raise _not_kept(file, error) from error
        sync_folder(file.parent)  # whoever made it may have been killed before that
        return made
    try:
        kept = asked(lambda keyring: _with_next(keyring, store))
    except KeyringError as error:
        raise refusal(store, error.message, error.hint, stored=True) from None
    if len(kept) < 2:
        raise refusal(store, "the keyring keeps nothing", "", stored=True)
    return _key(kept[1])


def _of_keyring(store: Path, rows: Sequence[SealedRow]) -> list[Key]:
    """Return the keys that the user's keyring keeps for a store, made where there are none; none without a keyring.

    Raises ``StoreError`` where it may have the key and cannot be asked.
    """
    needed = any(row.place == "keyring" for row in rows)
    try:
        kept = asked(lambda keyring: _kept(keyring, store, make=True))
    except KeyringError as error:
        if error.absent and not needed:
            return []
        unsure = any(row.place == "" for row in rows)
        raise refusal(store, error.message, error.hint, stored=needed or unsure) from None
    if not kept and needed:
        raise refusal(store, "the keyring keeps nothing", "", stored=True)
    return _keys(kept)


def _kept(keyring: Any, store: Path, *, make: bool = False) -> list[str]:
    """Return the key that a keyring keeps for a store, and the one that is to follow it."""
    name = _name(store)
    kept: str | None = _kept_or_made(keyring, name) if make else keyring.get_password(SERVICE, name)
    return [] if kept is None else kept.split() or [kept]


def _with_next(keyring: Any, store: Path) -> list[str]:
    """Return the key that a keyring keeps for a store, and the one that is to follow it, made where there is none."""
    kept = _kept(keyring, store)
    if len(kept) != 1:
        return kept
    following = base64.b64encode(secrets.token_bytes(BYTES)).decode()
    keyring.set_password(SERVICE, _name(store), f"{kept[0]} {following}")
    return _kept(keyring, store)


def _kept_or_made(keyring: Any, name: str) -> str | None:
    """Return the key that a keyring keeps; None where it keeps nothing at all."""
    kept: str | None = keyring.get_password(SERVICE, name)
    if kept is None:
        keyring.set_password(SERVICE, name, base64.b64encode(secrets.token_bytes(BYTES)).decode())
        kept = keyring.get_password(SERVICE, name)
    return kept


def _with_keyring(store: Path, own: list[Key], rows: Sequence[SealedRow]) -> list[Key]:
    """Return the keys that open rows, those of the keyring among them where those of the file do not open all."""
    sealing = Sealing(*own)
    closed = [row for row in rows if sealing.open(row.sealed, row.name) is None]
    if not closed:
        return own
    try:
        kept = asked(lambda keyring: _kept(keyring, store))
    except KeyringError as error:
        if len(closed) < len(rows) or all(row.place != "keyring" for row in closed):
            return own
        raise refusal(store, error.message, error.hint, stored=True) from None
    if not kept:
        return own
    others = _keys(kept)
    theirs = len(closed) == len(rows) and any(Sealing(*others).open(row.sealed, row.name) is not None for row in closed)
    return [*others, *own] if theirs else [*own, *others]


def _keys(kept: Sequence[str]) -> list[Key]:
    return [_key(text) for text in kept]


def _key(kept: str) -> Key:
    return Key(place="keyring", value=decoded(kept, "The keyring"))


def _name(store: Path) -> str:
    """Return the name of the key of a store in the keyring."""
    return f"store {hashlib.sha256(os.fsencode(store)).hexdigest()[:16]}"
