"""Keep a secret that someone pasted: in the keyring, or sealed in the store where there is none (G13)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegboard.core.model.references import Reference
from pegboard.errors import ConfigError
from pegboard.sources.references.keyring_values import store as put_into_keyring
from pegboard.sources.references.keyring_values import usable, value_of
from pegboard.sources.references.stored_names import note_stored
from pegboard.support.threads import run_in_thread
from pegboard.system_keyring import KeyringError

if TYPE_CHECKING:
    from pegboard.ports import Store


async def reference_for(store: Store, name: str, value: str) -> Reference:
    """Return the reference under which a secret would be kept: one that is free, or has this value already.

    Raises:
        ConfigError: there is a keyring that cannot be asked.
        StoreError: the store cannot be read.
    """
    in_keyring, number = await run_in_thread(usable), 1
    while True:
        target = name if number == 1 else f"{name}_{number}"
        one = Reference(scheme="keyring" if in_keyring else "secret", target=target)
        if await _kept_value(store, one) in (None, value):
            return one
        number += 1


async def keep(store: Store, one: Reference, value: str) -> None:
    """Keep a secret under a reference; raises ``ConfigError`` and ``StoreError``."""
    if one.scheme == "secret":
        await store.seal("secret", one.target, value, expected=None)
        return
    try:
        await run_in_thread(put_into_keyring, one.target, value)
        note_stored(one.target)
    except KeyringError as error:
        raise _keyring_error(one, error) from None


async def _kept_value(store: Store, one: Reference) -> str | None:
    if one.scheme == "secret":
        known = await store.sealed("secret", one.target)
        return None if known is None else known.text or ""
    try:
        return await run_in_thread(value_of, one.target)
    except KeyringError as error:
        raise _keyring_error(one, error) from None


def _keyring_error(one: Reference, error: KeyringError) -> ConfigError:
    return ConfigError(f"'{one.target}' is not kept: {error.message}.", code="keyring_failed", hint=error.hint)
