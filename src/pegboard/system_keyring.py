"""The keyring of the system, and why it cannot be used. Imports ``keyring`` late."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, TypeVar

from pegboard.errors import PegboardError
from pegboard.support.installed import install_hint

SERVICE: Final = "pegboard"
"""The service under which everything of Pegboard is there, by its name."""

T = TypeVar("T")


class KeyringError(PegboardError):
    """The keyring cannot be used; the message is a clause, without any value.

    ``absent`` is whether there is no keyring at all, so that nothing of ours can be in it.
    """

    def __init__(self, message: str, hint: str, *, absent: bool = False) -> None:
        super().__init__(message, code="keyring_failed", hint=hint.strip())
        self.absent = absent


def is_keyring_installed() -> bool:
    """Return whether the package is there."""
    return find_spec("keyring") is not None


def ask_keyring(work: Callable[[Any], T], *, elsewhere: str = "") -> T:
    """Return what the keyring answers; no text of its own is repeated, which may have the value in it.

    Args:
        work: asks the package, which it is handed.
        elsewhere: the sentence that says where else the value may be kept, for the hint of an error.

    Raises:
        KeyringError: the keyring cannot be used, for whatever reason.
    """
    try:
        import keyring
        from keyring import errors
    except ImportError:
        raise KeyringError("the package keyring is not installed", install_hint(extra="keyring"), absent=True) from None
    try:
        return work(keyring)
    except errors.NoKeyringError:
        raise KeyringError("this system has no keyring", elsewhere, absent=True) from None
    except errors.KeyringLocked:
        raise KeyringError("the keyring is locked", "Unlock it, then try again.") from None
    except errors.InitError:
        raise KeyringError("the keyring could not be opened", f"Unlock it, then try again. {elsewhere}") from None
    except errors.PasswordSetError:
        hint = "It is full, read-only or locked, or the value is too long for it."
        raise KeyringError("the keyring rejects the value", f"{hint} {elsewhere}") from None
    except Exception as error:  # each keyring has errors of its own
        raise KeyringError(f"the keyring failed ({type(error).__name__})", elsewhere) from None
