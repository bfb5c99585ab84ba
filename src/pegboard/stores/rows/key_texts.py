"""Keys that secrets of a store are sealed with, as texts: those of the environment variable among them (G11)."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pegboard.errors import StoreError
from pegboard.stores.rows.sealing import Key

VARIABLE: Final = "PEGBOARD_KEY"
SECOND: Final = "PEGBOARD_SECOND_KEY"
"""The variable of a key that opens what it has sealed, and seals nothing."""
BYTES: Final = 32
MADE: Final = "python -c 'import base64, secrets; print(base64.b64encode(secrets.token_bytes(32)).decode())'"
"""The command that makes a key."""


def key_of_variable(env: Mapping[str, str] | None = None) -> Key | None:
    """Return the key that the environment gives, or None; ``env`` None is that of the process.

    Raises ``StoreError`` where it gives something else.
    """
    given = (os.environ if env is None else env).get(VARIABLE)
    if not given:
        return None
    return Key(place="variable", value=decoded(given, f"The environment variable {VARIABLE}"))


def with_second(*keys: Key, env: Mapping[str, str] | None = None) -> list[Key]:
    """Return keys, and behind them the second one that the environment gives, if it gives one.

    Raises ``StoreError`` where it gives something else, or the key that seals.
    """
    given = (os.environ if env is None else env).get(SECOND)
    if not given:
        return list(keys)
    second = Key(place="second", value=decoded(given, f"The environment variable {SECOND}"))
    if keys and second.value == keys[0].value:
        raise StoreError(
            f"The environment variable {SECOND} holds the key that secrets are sealed with already.",
            hint=f"Remove {SECOND}, or set it to another key, which is to open what it has sealed.",
            code="key_given_twice",
        )
    return [*keys, second]


def decoded(text: str, where: str) -> bytes:
    """Return the key that a text holds; ``where`` is what holds it. Raises ``StoreError``."""
    with suppress(binascii.Error, ValueError):
        key = base64.b64decode(text.strip(), validate=True)
        if len(key) == BYTES:
            return key
    raise StoreError(
        f"{where} does not hold a key: {BYTES} bytes in base64.", hint=f"Make one: {MADE}", code="key_not_valid"
    )
