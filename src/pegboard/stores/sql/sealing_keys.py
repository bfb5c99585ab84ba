"""The keys that the secrets of a store are sealed with: where they are kept, and when one is made (G11).

The key is ``PEGBOARD_KEY`` (32 bytes in base64); that of a store in a file may also be in the file beside it, which
only its owner reads, or in the keyring of the user. Where such a store has none, it is made in the keyring, or in that
file where there is no keyring. A keyring that cannot be asked may have the key, so none is made then.
``PEGBOARD_SECOND_KEY`` opens what it has sealed, and seals nothing: with it the key can be changed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pegboard.errors import StoreError
from pegboard.ports.store_copies import SealedState
from pegboard.stores.sql.sealing import SealedRow, Sealing, SealingKey
from pegboard.support.own_folder import sync_folder
from pegboard.system_keyring import SERVICE, KeyringError, ask_keyring

VARIABLE: Final = "PEGBOARD_KEY"
SECOND: Final = "PEGBOARD_SECOND_KEY"
SUFFIX: Final = ".key"
"""What the name of the key's file ends with; it begins with that of the store."""
BYTES: Final = 32
MAKE: Final = "python -c 'import base64, secrets; print(base64.b64encode(secrets.token_bytes(32)).decode())'"


class SealingKeys:
    """The keys of a store, which is in a ``file`` or, without one, at a ``place`` of which every process has them."""

    def __init__(self, place: str, file: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        self._place: Final = place
        self._file: Final = file
        self._env: Final = env

    def find_sealing(self, rows: Sequence[SealedRow] = ()) -> Sealing:
        """Return what seals; the key is made where there is none. It may wait for a person who unlocks a keyring.

        ``rows`` is what is sealed, which tells whether a key is the right one. Raises ``StoreError`` where a key cannot
        be used or cannot be had now, or none can be kept.
        """
        return Sealing(*self._keys_with_second(self._keys_of_variable() or self._kept_or_made(rows)))

    def sealing_if_present(self, rows: Sequence[SealedRow]) -> Sealing | None:
        """Return what seals and opens with the keys that are there, None without one; none is made."""
        keys = self._keys_of_variable() or self._kept_keys(rows)
        return Sealing(*self._keys_with_second(keys)) if keys else None

    def state(self, rows: Sequence[SealedRow]) -> SealedState:
        """Return how what is sealed is opened by the keys that are there; none is made."""
        place = problem = ""
        try:
            keys = self._keys_of_variable() or self._kept_keys(rows)
            place = keys[0].place if keys else ""
            keys = self._keys_with_second(keys)
            if place and rows:
                return Sealing(*keys).state(rows)
        except StoreError as error:
            problem = error.message
        except ImportError:
            problem = "The extra mcp, which is needed to open it, is missing."
        return SealedState(place=place, there=len(rows), unopened=len(rows), problem=problem)

    def refusal(self, why: str, hint: str, *, stored: bool) -> StoreError:
        """Return the error for a key that cannot be had now; ``stored`` is whether something may be sealed with it."""
        shown = f"to that key, which `keyring get {SERVICE} '{self._name}'` prints where the keyring can be used."
        return StoreError(
            f"The key of {self._place} cannot be read: {why}.",
            hint=f"{hint} Without the keyring, set {VARIABLE} {shown if stored else f'to a new key: {MAKE}'}".strip(),
            code="key_not_available",
        )

    # -- the variables -----------------------------------------------------------------------------

    def _key_of_variable(self, variable: str) -> bytes | None:
        text = (os.environ if self._env is None else self._env).get(variable)
        return _decode_key(text, f"The environment variable {variable}") if text else None

    def _keys_of_variable(self) -> list[SealingKey]:
        value = self._key_of_variable(VARIABLE)
        return [] if value is None else [SealingKey(place="variable", value=value)]

    def _keys_with_second(self, keys: list[SealingKey]) -> list[SealingKey]:
        value = self._key_of_variable(SECOND)
        if value is None:
            return keys
        if keys and value == keys[0].value:
            raise StoreError(
                f"The environment variable {SECOND} contains the key that secrets are sealed with now.",
                hint=f"Remove {SECOND}, or set it to the older key that opens the other secrets.",
                code="key_given_twice",
            )
        return [*keys, SealingKey(place="second", value=value)]

    # -- the file, and the keyring -----------------------------------------------------------------

    def _kept_or_made(self, rows: Sequence[SealedRow]) -> list[SealingKey]:
        if self._file is None:
            raise StoreError(
                f"There is no key to seal secrets in {self._place} with.",
                hint=f"Set {VARIABLE} to the same 32 bytes in base64 for every process on it: {MAKE}",
                code="key_not_available",
            )
        if (key := self._key_of_file()) is not None:
            return self._keys_with_keyring(key, rows)
        needed = any(row.place == "keyring" for row in rows)
        try:
            kept = ask_keyring(self._kept_or_made_in_keyring)
        except KeyringError as error:
            if not error.absent or needed:
                raise self.refusal(error.message, error.hint, stored=needed) from None
            kept = None
        if kept is None and needed:
            raise self.refusal("the keyring does not keep values", "", stored=True)
        return [_key_of_keyring(kept) if kept is not None else self._made_in_file()]

    def _kept_keys(self, rows: Sequence[SealedRow]) -> list[SealingKey]:
        """Return the keys that are kept somewhere."""
        if self._file is None:
            return []
        if (key := self._key_of_file()) is not None:
            return self._keys_with_keyring(key, rows) if rows else [key]
        try:
            kept = ask_keyring(lambda keyring: keyring.get_password(SERVICE, self._name))
        except KeyringError as error:
            if error.absent and all(row.place != "keyring" for row in rows):
                return []
            raise self.refusal(error.message, error.hint, stored=bool(rows)) from None
        return [] if kept is None else [_key_of_keyring(kept)]

    def _keys_with_keyring(self, own: SealingKey, rows: Sequence[SealedRow]) -> list[SealingKey]:
        """Return the key of the file, and that of the keyring where it opens what the other does not."""
        sealing = Sealing(own)
        closed = [row for row in rows if sealing.open(row.sealed, row.name) is None]
        if not closed:
            return [own]
        try:
            kept = ask_keyring(lambda keyring: keyring.get_password(SERVICE, self._name))
        except KeyringError as error:
            if len(closed) < len(rows) or all(row.place != "keyring" for row in closed):
                return [own]
            raise self.refusal(error.message, error.hint, stored=True) from None
        if kept is None:
            return [own]
        theirs = _key_of_keyring(kept)
        opens = any(Sealing(theirs).open(row.sealed, row.name) is not None for row in closed)
        return [theirs, own] if opens and len(closed) == len(rows) else [own, theirs]

    def _kept_or_made_in_keyring(self, keyring: Any) -> str | None:
        """Return the key that a keyring keeps; None where it keeps nothing at all."""
        if (kept := keyring.get_password(SERVICE, self._name)) is None:
            keyring.set_password(SERVICE, self._name, _make_key())
            kept = keyring.get_password(SERVICE, self._name)
        return kept

    @property
    def _name(self) -> str:
        """Return the name of the key in the keyring."""
        return f"store {hashlib.sha256(os.fsencode(self._file or '')).hexdigest()[:16]}"

    @property
    def _key_file(self) -> Path:
        assert self._file is not None
        return self._file.with_name(self._file.name + SUFFIX)

    def _key_of_file(self) -> SealingKey | None:
        file = self._key_file
        try:
            text = file.read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._not_kept_error(error) from error
        return SealingKey(place="file", value=_decode_key(text, str(file)))

    def _made_in_file(self) -> SealingKey:
        """Make the file with a new key, whole or not at all; return the key that it has then."""
        file = self._key_file
        part = file.with_name(f"{file.name}.{os.urandom(4).hex()}")
        try:
            number = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            try:
                with os.fdopen(number, "w", encoding="ascii") as opened:
                    opened.write(f"{_make_key()}\n")
                    opened.flush()
                    os.fsync(opened.fileno())
                with suppress(FileExistsError):  # another process was first
                    os.link(part, file)
            finally:
                part.unlink()
            sync_folder(file.parent)
            key = self._key_of_file()
        except OSError as error:
            raise self._not_kept_error(error) from error
        assert key is not None
        return key

    def _not_kept_error(self, error: OSError) -> StoreError:
        return StoreError(
            f"The key of the store cannot be kept in {self._key_file}: {error.strerror}.",
            hint=f"Let Pegboard write there, or set {VARIABLE}: {MAKE}",
        )


def _key_of_keyring(text: str) -> SealingKey:
    return SealingKey(place="keyring", value=_decode_key(text, "The keyring"))


def _make_key() -> str:
    return base64.b64encode(os.urandom(BYTES)).decode()


def _decode_key(text: str, where: str) -> bytes:
    """Return the key that a text holds; ``where`` is what holds it. Raises ``StoreError``."""
    with suppress(binascii.Error, ValueError):
        key = base64.b64decode(text.strip(), validate=True)
        if len(key) == BYTES:
            return key
    raise StoreError(f"{where} is not a key: {BYTES} bytes in base64.", hint=f"Make one: {MAKE}", code="key_not_valid")
