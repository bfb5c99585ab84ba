"""The key that secrets of a store are sealed with, and the sealing: AES-GCM with 256 bits (G11).

The key is ``PEGBOARD_KEY`` (32 bytes in base64), else one that the keyring of the user keeps, else a file beside the
store that only its owner reads.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pegboard.errors import StoreError

VARIABLE: Final = "PEGBOARD_KEY"
SUFFIX: Final = ".key"
"""What the name of the key's file ends with; it begins with that of the store."""
_SERVICE: Final = "pegboard"
_BYTES: Final = 32
_NONCE: Final = 12
_MADE: Final = "python -c 'import base64, secrets; print(base64.b64encode(secrets.token_bytes(32)).decode())'"


class Sealing:
    """Seals texts with one key, each under its name, which must be the same when it is opened."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def seal(self, text: str, name: str) -> bytes:
        """Return the text, sealed."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher.encrypt(nonce, _bytes(text), _bytes(name))

    def open(self, sealed: bytes, name: str) -> str | None:
        """Return the text, or None where it was sealed with another key or under another name."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], _bytes(name)).decode("utf-8", "surrogatepass")
        except (InvalidTag, ValueError):
            return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def sealing_for(store: Path, env: Mapping[str, str] | None = None) -> Sealing:
    """Return what seals the secrets of a store; its key is made where there is none.

    Raises ``StoreError`` where there is a key that cannot be used, or none can be kept.
    """
    given = (os.environ if env is None else env).get(VARIABLE)
    if given:
        return Sealing(_decoded(given, f"The environment variable {VARIABLE}"))
    file = store.with_name(store.name + SUFFIX)
    if file.exists():
        return Sealing(_from_file(file))
    return Sealing(_from_keyring(store) or _from_file(file))


def _decoded(text: str, where: str) -> bytes:
    with suppress(binascii.Error, ValueError):
        key = base64.b64decode(text.strip(), validate=True)
        if len(key) == _BYTES:
            return key
    raise StoreError(
        f"{where} does not hold a key: {_BYTES} bytes in base64.", hint=f"Make one: {_MADE}", code="key_not_valid"
    )


def _from_file(file: Path) -> bytes:
    """Return the key in a file, which is made where it is missing; several processes may do so at once."""
    try:
        with suppress(FileExistsError):
            _make(file)
        return _decoded(file.read_text(encoding="ascii", errors="replace"), str(file))
    except OSError as error:
        raise StoreError(
            f"The key of the store cannot be kept in {file}: {error.strerror}.",
            hint=f"Let Pegboard write there, or set {VARIABLE}: {_MADE}",
        ) from error


def _make(file: Path) -> None:
    """Make the file with a new key, whole or not at all; raises ``FileExistsError``."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    number = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(number, "wb") as opened:
            opened.write(base64.b64encode(secrets.token_bytes(_BYTES)) + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        os.link(part, file)
    finally:
        part.unlink()


def _from_keyring(store: Path) -> bytes | None:
    """Return the key that the user's keyring keeps for a store, made where there is none; None without a keyring."""
    try:
        keyring: Any = import_module("keyring")
        unusable: type[Exception] = import_module("keyring.errors").KeyringError
    except ImportError:
        return None
    name = f"store {hashlib.sha256(os.fsencode(store)).hexdigest()[:16]}"
    try:
        kept: str | None = keyring.get_password(_SERVICE, name)
        if kept is None:
            keyring.set_password(_SERVICE, name, base64.b64encode(secrets.token_bytes(_BYTES)).decode())
            kept = keyring.get_password(_SERVICE, name)
    except unusable:
        return None
    return None if kept is None else _decoded(kept, "The keyring")
