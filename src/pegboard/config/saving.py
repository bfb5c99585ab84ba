"""Put a new text in the place of a configuration in one step, if it still is what was shown."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from pegboard.config.documents.document import LARGEST_FILE, UnreadableError, display_path, read_text
from pegboard.errors import ConfigError
from pegboard.support.own_folder import sync_folder

_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFile:
    """A file as it was read; ``digest`` tells it from every other text, ``path`` is where it really lies."""

    path: Path
    file: str
    text: str = field(repr=False)
    digest: str


def read_whole(path: Path) -> ReadFile:
    """Return what is in a file, line breaks as they are.

    Raises:
        ConfigError: it cannot be read, or is no text.
    """
    file = display_path(path)
    try:
        real = path.resolve(strict=True)
        read_text(real, file=file)
        data = real.read_bytes()
        return ReadFile(path=real, file=file, text=data.decode("utf-8-sig"), digest=_digest(data))
    except UnreadableError as error:
        found = error.problem
        raise ConfigError(found.message, code=found.code, hint=found.hint, location=found.place) from None
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise _not_saved_error(file, error, "be read") from None


def replace_whole(path: Path, text: str, *, expected: str, private: bool = False) -> str:
    """Put a text in the place of a file, and return its digest.

    A link stays one: what it leads to is replaced. Mode, owner and byte order mark stay. Whatever happens, the file
    is the old one or the new one.

    Args:
        path: the file.
        text: what is to be in it.
        expected: the digest of what is in it.
        private: whether no one but its owner may read it from now on.

    Raises:
        ConfigError: it is another file by now, or cannot be written; it is left unchanged.
    """
    file = display_path(path)
    if len(text.encode()) > LARGEST_FILE:
        raise ConfigError(f"{file} would be more than 10 MB, so it was not changed.", code="file_not_saved")
    try:
        real = path.resolve(strict=True)
        require_writable(file, real)
        with _lock_folder(real.parent):
            before = real.read_bytes()
            if _digest(before) != expected:
                raise _changed_error(file)
            data = (_MARK if before.startswith(_MARK) else b"") + text.encode()
            unless = partial(_has_other_digest, real, expected)
            write_whole(real, data, like=real.stat(), private=private, unless=unless)
            return _digest(data)
    except _ChangedError:
        raise _changed_error(file) from None
    except (OSError, RuntimeError) as error:
        raise _not_saved_error(file, error, "be saved") from None


def create_whole(path: Path, text: str, *, mode: int) -> str:
    """Write a file that is not there yet, whole, and return the digest of it.

    Raises:
        FileExistsError: there is one by now.
    """
    with _lock_folder(path.parent):
        if path.exists() or path.is_symlink():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        data = text.encode()
        write_whole(path, data, like=mode)
        return _digest(data)


def _has_other_digest(path: Path, digest: str) -> bool:
    return _digest(path.read_bytes()) != digest


class _ChangedError(Exception):
    """The file was changed while the new one was written."""


def write_whole(
    path: Path,
    data: bytes,
    *,
    like: os.stat_result | int,
    private: bool = False,
    unless: Callable[[], bool] = bool,
) -> None:
    """Put a file in the place of what is there in one step: no one ever sees half of it.

    ``like`` is whose mode and owner it gets, or its mode; ``private`` takes the rights of all but its owner from that.
    Where ``unless``, asked last, is true, nothing changes. Raises ``OSError``, about this path.
    """
    with stage_file(path, data, like=like, private=private, unless=unless) as put:
        put()


@contextmanager
def stage_file(
    path: Path,
    data: bytes,
    *,
    like: os.stat_result | int,
    private: bool = False,
    unless: Callable[[], bool] = bool,
) -> Generator[Callable[[], None]]:
    """Write a file beside what is there, and yield what puts it in its place, for which the disk needs no more room.

    What was not put there is removed. See :func:`write_whole`.
    """
    temporary: Path | None = None
    try:
        with _name_file_in_errors(path):
            number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            temporary = Path(name)
            _write(number, temporary, data, like=like, private=private)

        def replace_file() -> None:
            with _name_file_in_errors(path):
                if unless():
                    raise _ChangedError
                Path(name).replace(path)
                sync_folder(path.parent)

        yield replace_file
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()  # it is gone where it was put in its place


def _write(number: int, temporary: Path, data: bytes, *, like: os.stat_result | int, private: bool) -> None:
    """Write an open file, with the mode and owner that it is to have."""
    with os.fdopen(number, "wb") as stream:
        stream.write(data)
        stream.flush()
        if isinstance(like, os.stat_result) and hasattr(os, "fchown"):
            made = os.fstat(stream.fileno())
            if (made.st_uid, made.st_gid) != (like.st_uid, like.st_gid):
                os.fchown(stream.fileno(), like.st_uid, like.st_gid)
        os.fsync(stream.fileno())
    mode = stat.S_IMODE(like.st_mode) if isinstance(like, os.stat_result) else like
    temporary.chmod(mode & 0o700 if private else mode)


@contextmanager
def _name_file_in_errors(path: Path) -> Generator[None]:
    """Let errors of the system name a file, not the one that is written beside it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def require_writable(file: str, path: Path) -> None:
    """Raise ``ConfigError`` for a file that no one is to write: putting another in its place would be easy."""
    if not stat.S_ISREG(path.stat().st_mode):
        message = f"{file} is not a file, so it was not changed."
        raise ConfigError(message, code="not_rewritable", hint="Name a file.")
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
        message = f"{file} is read-only, so it was not changed."
        raise ConfigError(message, code="not_rewritable", hint="Give yourself the right to write it, if it is yours.")
    if not path.parent.stat().st_mode & 0o222 or not os.access(path.parent, os.W_OK):
        message = f"The folder of {file} is read-only, so the file was not changed."
        hint = "A file is replaced in one step, which needs the right to write its folder."
        raise ConfigError(message, code="not_rewritable", hint=hint)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _changed_error(file: str) -> ConfigError:
    hint = "Look at its current state, and decide again."
    return ConfigError(
        f"{file} was changed in the meantime, so it was not overwritten.", code="file_changed", hint=hint
    )


def _not_saved_error(file: str, error: Exception, what: str) -> ConfigError:
    reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
    return ConfigError(f"{file} cannot {what}, so it was not changed: {reason}.", code="file_not_saved")


@contextmanager
def _lock_folder(folder: Path) -> Generator[None]:
    """Let one process at a time compare and replace files of a folder; where there are no such locks, no one waits."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)
