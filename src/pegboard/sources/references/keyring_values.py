"""Values that the keyring of the system keeps, by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from pegboard.system_keyring import SERVICE, KeyringError, asked

_ELSEWHERE: Final = "Keep the value elsewhere: ${file:PATH}, ${cmd:COMMAND}, or ${NAME} from the environment."

T = TypeVar("T")


def usable() -> bool:
    """Return whether there is a keyring that may keep something; it is not opened."""
    try:
        return bool(_asked(lambda keyring: keyring.get_keyring().priority > 0))
    except KeyringError:
        return False


def value_of(name: str) -> str | None:
    """Return a value, or None where there is none; raises :class:`KeyringError`."""
    return _asked(lambda keyring: keyring.get_password(SERVICE, name))


def store(name: str, value: str) -> str:
    """Keep a value, and return how the keyring calls itself; raises :class:`KeyringError`."""

    def stored(keyring: Any) -> str:
        keyring.set_password(SERVICE, name, value)
        return str(keyring.get_keyring().name)

    return _asked(stored)


def delete(name: str) -> bool:
    """Remove a value, and return whether there was one; raises :class:`KeyringError`."""

    def deleted(keyring: Any) -> bool:
        if keyring.get_password(SERVICE, name) is None:
            return False
        keyring.delete_password(SERVICE, name)
        return True

    return _asked(deleted)


def _asked(work: Callable[[Any], T]) -> T:
    return asked(work, elsewhere=_ELSEWHERE)
