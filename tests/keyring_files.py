"""A keyring in a file of a test, as the package keyrings.alt has it, for this process and those that it starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyrings.alt.file import PlaintextKeyring


@contextmanager
def keyring_in(folder: Path) -> Iterator[KeyringBackend]:
    """Use a keyring in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyrings.alt.file.PlaintextKeyring")
        patch.setenv("XDG_DATA_HOME", str(folder))
        ours = PlaintextKeyring()
        assert Path(ours.file_path).is_relative_to(folder)
        with used(ours):
            yield ours


@contextmanager
def used(ours: KeyringBackend) -> Iterator[None]:
    """Use a keyring in this process; afterwards there is none."""
    keyring.set_keyring(ours)
    try:
        yield
    finally:
        keyring.set_keyring(NoKeyring())


class Lockable(PlaintextKeyring):
    """A keyring in a file that fails as long as it has a ``trouble``."""

    trouble: Exception | None = None

    def get_password(self, service: str, username: str) -> str | None:
        if self.trouble is not None:
            raise self.trouble
        return super().get_password(service, username)

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        super().set_password(service, username, password)


@contextmanager
def lockable_in(folder: Path) -> Iterator[Lockable]:
    """Use a keyring in a folder that can be locked."""
    with keyring_in(folder):
        ours = Lockable()
        with used(ours):
            yield ours
