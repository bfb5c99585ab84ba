"""What this user accepted of a configuration, kept in their state folder: no cloned folder brings it (P10, P11)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pegboard.config.accepted_files import AcceptedFiles, accepted_files
from pegboard.errors import ConfigError, StoreError
from pegboard.support import user_folders

if TYPE_CHECKING:
    from pegboard.errors import NotAcceptedError

FOLDER: Final = "accepted"
_STORES: Final = "stores"
_MOST_ENTRIES: Final = 10_000
LOADOUTS: Final = "loadouts"
"""The folder beside a configuration whose files belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a user accepted of one configuration.

    ``text`` is the digest of the text that they accepted last. ``grants`` is what it granted when it was opened last,
    as the store keeps it, and ``store`` where that was; both are empty before it was opened.
    """

    configuration: str
    text: str = ""
    store: str = ""
    grants: str = ""


def key_of(path: Path) -> str:
    """Return the name under which a configuration is accepted: its absolute path without dots."""
    return os.path.abspath(path)  # noqa: PTH100


def record_of(configuration: str) -> Path:
    """Return the file that keeps what of a configuration was accepted."""
    name = hashlib.blake2b(configuration.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    return user_folders.state() / FOLDER / f"{name}.json"


def acceptance_of(configuration: str) -> Acceptance | None:
    """Return what was accepted of a configuration, None where nothing was.

    Raises ``StoreError`` where what is kept of it is damaged.
    """
    file = record_of(configuration)
    try:
        found = json.loads(file.read_bytes())
        parts = {part: str(found[part]) for part in ("configuration", "text", "store", "grants")}
    except OSError:  # what this user cannot read, this user has not written
        return None
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise unreadable(configuration, error) from error
    return Acceptance(**parts)


def unreadable(configuration: str, error: Exception) -> StoreError:
    """Return the error that says that what was accepted cannot be read."""
    return StoreError(
        f"The acceptance of {configuration} cannot be read: {error}",
        code="state_damaged",
        hint=f"Remove {record_of(configuration)} to accept the configuration as it is written.",
    )


def keep(acceptance: Acceptance) -> None:
    """Keep what was accepted, where that differs from what is kept; raises ``OSError``."""
    file = record_of(acceptance.configuration)
    data = json.dumps(asdict(acceptance)).encode()
    if file.exists() and file.read_bytes() == data:
        return
    from pegboard.config.saving import write_whole  # most starts have nothing to write

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(file, data, like=0o600)


def is_own_store(name: str) -> bool:
    """Return whether this user has used a store, wherever it lay; ``name`` tells it from every other one."""
    return (user_folders.state() / _STORES / name).exists()


def note_own_store(name: str) -> None:
    """Note that this user uses a store; raises ``OSError``."""
    folder = user_folders.state() / _STORES
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / name).touch(mode=0o600)


def accept_text(path: Path, digest: str | None = None) -> None:
    """Keep that this user accepts a configuration with the text of a digest, or that of now; raises ``OSError``."""
    name, texts = key_of(path), texts_of(path)
    known = acceptance_of(name) or Acceptance(configuration=name)  # what waits of it is accepted by `pegboard accept`
    keep(replace(known, text=digest or text_digest(texts)))
    accepted = accepted_files(path)
    if accepted is None or str(path) not in texts:
        return
    if digest == text_digest(texts):
        for file, text in texts.items():
            accepted = accepted_files(path) or accepted
            accepted.accept_saved(Path(file), text, ())
    elif accepted.key(path) not in accepted.files:  # it was written after its servers were tried
        accepted.accept_saved(path, texts[str(path)], ())


@contextmanager
def accept_written_text(path: Path, text: str) -> Generator[None]:
    """Keep that this user accepts the text that the context writes, or what was accepted before where it does not.

    Raises ``OSError``, and ``ConfigError`` where another edit of it waits, before anything is written.
    """
    name = key_of(path)
    known, counted = acceptance_of(name), accepted_files(path)
    if counted is not None and counted.key(path) in counted.files and counted.in_force_differs(path):
        raise ConfigError(
            f"{path} was changed outside Pegboard, and the change waits for a person.",
            code="file_waits",
            hint="Accept it (`pegboard accept`), or restore the file.",
        )
    others = {file: found for file, found in texts_of(path).items() if file != str(path)}
    keep(replace(known or Acceptance(configuration=name), text=text_digest({str(path): text, **others})))
    try:
        yield
        if counted is not None:
            counted.accept_saved(path, text, ())
    except BaseException:
        with suppress(OSError):
            if known is None:
                record_of(name).unlink(missing_ok=True)
            else:
                keep(known)
        raise


def require_accepted(path: Path, *, exactly: bool = False) -> None:
    """Raise ``NotAcceptedError`` where this user has not accepted a configuration that was found.

    One that cannot be read passes: nothing of it can be run, and its reader says what is wrong.

    Args:
        path: the configuration.
        exactly: whether its text has to be the one that was accepted; else later edits are judged when the
            configuration is opened, against what it granted before.

    Raises:
        NotAcceptedError: it has what it would run, and the digest of the text that says so.
        StoreError: what is kept of it is damaged.
    """
    accepted = acceptance_of(key_of(path))
    if accepted is not None and accepted.grants and not exactly:
        return
    texts = texts_of(path)
    digest = text_digest(texts)
    if str(path) not in texts or (accepted is not None and accepted.text == digest):
        return
    if (error := _waiting_error(path, texts, digest, can_be_named=not exactly)) is not None:
        raise error


def _waiting_error(path: Path, texts: Mapping[str, str], digest: str, *, can_be_named: bool) -> NotAcceptedError | None:
    from pegboard.config.documents.document import UnreadableError, display_path
    from pegboard.config.would_run import would_run
    from pegboard.errors import NotAcceptedError

    name = display_path(path)
    try:
        would = would_run(name, texts)
    except UnreadableError:
        return None
    return NotAcceptedError(name, path=path, digest=digest, would=would, can_be_named=can_be_named)


def texts_of(path: Path, accepted: AcceptedFiles | None = None) -> dict[str, str]:
    """Return what is in a configuration and in the files of its loadouts, by their paths; none of what is no text.

    With ``accepted`` it is what was accepted of those that something confined may write.
    """
    return dict(_texts(path, accepted))


def _texts(path: Path, accepted: AcceptedFiles | None) -> Iterator[tuple[str, str]]:
    from pegboard.config.documents.document import UnreadableError, read_text

    folder = path.absolute().parent / LOADOUTS
    try:
        with os.scandir(folder) as found:
            beside = sorted(folder / one.name for one in islice(found, _MOST_ENTRIES))
    except OSError:
        beside = []
    for file in (path, *(one for one in beside if one.suffix in (".yaml", ".yml"))):
        counting = file if accepted is None else accepted.in_force(file, "text")
        with suppress(UnreadableError):
            if counting is not None and counting.is_file():  # a pipe would be waited for
                yield str(file), read_text(counting, file=file.name)


def text_digest(texts: Mapping[str, str]) -> str:
    """Return the digest of what is in the files of a configuration."""
    made = hashlib.blake2b(digest_size=16)
    for name, text in texts.items():
        for part in (Path(name).name.encode(errors="surrogatepass"), text.encode(errors="surrogatepass")):
            made.update(b"%d:" % len(part))
            made.update(part)
    return made.hexdigest()
