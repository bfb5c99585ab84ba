"""Values that the keyring of the system keeps, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from pegboard.system_keyring import SERVICE, KeyringError, ask_keyring

_ELSEWHERE: Final = "Keep the value elsewhere: ${file:PATH}, ${cmd:COMMAND}, or ${NAME} from the environment."

T = TypeVar("T")


def usable() -> bool:
    """Return whether there is a keyring that may keep something; it is not opened."""
    try:
        return bool(_ask_keyring(lambda keyring: keyring.get_keyring().priority > 0))
    except KeyringError:
        return False


def value_of(name: str) -> str | None:
    """Return a value, or None where there is none; raises :class:`KeyringError`."""
    return _ask_keyring(lambda keyring: keyring.get_password(SERVICE, name))


def store(name: str, value: str) -> str:
    """Keep a value, and return how the keyring calls itself; raises :class:`KeyringError`."""

    def store_value(keyring: Any) -> str:
        keyring.set_password(SERVICE, name, value)
        return str(keyring.get_keyring().name)

    return _ask_keyring(store_value)


def delete(name: str) -> bool:
    """Remove a value, and return whether there was one; raises :class:`KeyringError`."""

    def delete_value(keyring: Any) -> bool:
        if keyring.get_password(SERVICE, name) is None:
            return False
        keyring.delete_password(SERVICE, name)
        return True

    return _ask_keyring(delete_value)


def _ask_keyring(work: Callable[[Any], T]) -> T:
    return ask_keyring(work, elsewhere=_ELSEWHERE)
