"""The keyring of the system: values under the service ``pegboard``, by their names. Imports ``keyring`` late."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from pegboard.errors import PegboardError

SERVICE: Final = "pegboard"
INSTALL: Final = "pip install 'pegboard[keyring]'"
_ELSEWHERE: Final = "Keep the value elsewhere: ${file:PATH}, ${cmd:COMMAND}, or ${NAME} from the environment."

T = TypeVar("T")


class KeyringError(PegboardError):
    """The keyring cannot be used; the message is a clause, without any value."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, code="keyring_failed", hint=hint)


def installed() -> bool:
    """Return whether the package is there."""
    return find_spec("keyring") is not None


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
    """Return what the keyring answers; no text of its own is repeated, which may have the value in it."""
    try:
        import keyring
        from keyring import errors
    except ImportError:
        raise KeyringError("the package keyring is not installed", f"Run {INSTALL}.") from None
    try:
        return work(keyring)
    except errors.NoKeyringError:
        raise KeyringError("this system has no keyring", _ELSEWHERE) from None
    except errors.KeyringLocked:
        raise KeyringError("the keyring is locked", "Unlock it, then try again.") from None
    except errors.InitError:
        raise KeyringError("the keyring could not be opened", f"Unlock it, then try again. {_ELSEWHERE}") from None
    except errors.PasswordSetError:
        hint = "It is full, read-only or locked, or the value is too long for it."
        raise KeyringError("the keyring does not take the value", f"{hint} {_ELSEWHERE}") from None
    except Exception as error:  # each keyring has errors of its own
        raise KeyringError(f"the keyring failed ({type(error).__name__})", _ELSEWHERE) from None
