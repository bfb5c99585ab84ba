"""Read a configuration that an earlier start compiled, from the files of the cache.

There is one for each configuration and working folder, of this user alone, each with a checksum. What this imports
stays free of the schema: importing that takes longer than compiling most configurations.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pegboard.config.accepted_files import accepted_files
from pegboard.config.cache.configuration_json import decode_value
from pegboard.config.cache.origin import Origin
from pegboard.config.schema.configuration import Configuration
from pegboard.errors import StoreError
from pegboard.support import user_folders

FOLDER: Final = "configurations"
MOST: Final = 32
"""Of how many configurations the newest are kept."""


def read_cached(path: Path, env: Mapping[str, str]) -> Configuration | None:
    """Return the configuration that was compiled from exactly what is there now, or None."""
    try:
        if accepted_files(path) is not None:  # what counts is not what lies there
            return None
        return restore_configuration(load(cache_file(path)), env)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError, StoreError):
        return None


def restore_configuration(content: Any, env: Mapping[str, str]) -> Configuration | None:
    """Return the configuration of what is kept, or None where something that it was made from has changed."""
    origin = Origin(**{name: tuple(values) for name, values in content["origin"].items()})
    if origin.digest(env, bytes.fromhex(content["salt"])) != content["digest"]:
        return None
    texts = {marker: env[name][len(beginning_of(env[name])) :] for name, marker in content["markers"].items()}
    found = decode_value(content["configuration"], texts)
    return found if isinstance(found, Configuration) else None


def cache_file(path: Path) -> Path:
    """Return where the configuration of a file is kept for the working folder, which its texts are relative to."""
    named = f"{Path.cwd()}\0{path}".encode(errors="surrogatepass")
    return user_folders.cache() / FOLDER / f"{hashlib.blake2b(named, digest_size=16).hexdigest()}.json"


def load(file: Path) -> Any:
    """Return what is kept in a file; raises ``OSError`` or ``ValueError`` for one that is damaged or of someone else.

    What is kept names commands that are started: no one else may have written it.
    """
    with file.open("rb") as stream:
        status = os.fstat(stream.fileno())
        if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077):
            raise ValueError(file.name)
        checksum, _, body = stream.read().partition(b"\n")
    if checksum != _checksum(body):
        raise ValueError(file.name)
    return json.loads(body)


def save(file: Path, content: Any) -> None:
    """Put content in place of what is kept in a file, in one step; raises ``OSError``."""
    import tempfile

    body = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem)  # of this user alone: 0600
    try:
        with os.fdopen(number, "wb") as stream:
            stream.write(_checksum(body) + b"\n" + body)
        os.replace(name, file)  # noqa: PTH105
    except BaseException:
        os.unlink(name)  # noqa: PTH108
        raise
    _remove_oldest(file.parent)


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()


def _remove_oldest(folder: Path) -> None:
    """Remove what was written longest ago, beyond the newest."""
    with suppress(OSError):
        files = sorted(folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in files[MOST:]:
            file.unlink()


_BEGINNING: Final = re.compile(r"[a-z][a-z0-9+.-]{0,15}://|~?[/\\]|[A-Za-z]:[/\\]|")
"""What a value may show of itself, so that a URL stays one and a path absolute."""


class Lookups(Mapping[str, str]):
    """An environment that remembers in ``names`` which variables were looked up."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        """Return the value of a variable."""
        self.names.add(name)
        return self._env[name]

    def given(self, name: str) -> str | None:
        """Return the value of a variable, without remembering it."""
        return self._env.get(name)

    def __iter__(self) -> Iterator[str]:
        """Yield every name."""
        return iter(self._env)

    def __len__(self) -> int:
        """Return how many variables there are."""
        return len(self._env)


class MarkedEnvironment(Lookups):
    """An environment whose variables have markers for values: each but the beginning of a URL or path."""

    def __init__(self, env: Mapping[str, str], salt: str) -> None:
        super().__init__(env)
        self._salt = salt
        self.markers: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """Return a value that shows nothing of the real one; the user's own folder of configurations must stay."""
        value = super().__getitem__(name)
        if not value or name == "XDG_CONFIG_HOME":
            return value
        beginning, marker = beginning_of(value), f"marked{self._salt}n{len(self.markers)}n"
        marker = self.markers.setdefault(name, marker)
        return beginning + marker


def beginning_of(value: str) -> str:
    """Return the part of a value that is no secret: the scheme of a URL, the root of a path.

    >>> beginning_of("https://ada@example.org"), beginning_of("/srv/x"), beginning_of("hunter22")
    ('https://', '/', '')
    """
    found = _BEGINNING.match(value)
    return found[0] if found else ""
