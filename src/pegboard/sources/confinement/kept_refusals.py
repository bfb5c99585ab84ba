"""What confined processes were refused, kept for other processes of Pegboard: the newest of each plugin (A7)."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from pegboard.core.model.specs import Confinement
from pegboard.ports import RefusedAccess
from pegboard.support.own_folder import make_private

MOST_KEPT = 20
"""How many are kept of one plugin."""


class KeptRefusals:
    """The refusals of the plugins of one configuration, one file for each plugin in a folder; nothing without a folder.

    They count for the confinement under which they were noted: another one may grant what they say.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._written: set[tuple[str, str, str, str]] = set()

    def refusals_of(self, plugin: str, confinement: Confinement | None) -> tuple[RefusedAccess, ...]:
        """Return what processes of a plugin were refused, whoever has started them."""
        if self._folder is None or confinement is None:
            return ()
        try:
            found = json.loads(self._file(plugin).read_bytes())
            if found["under"] != _digest(repr(confinement)):
                return ()
            return tuple(RefusedAccess(**one) for one in found["refused"][:MOST_KEPT])
        except (OSError, ValueError, LookupError, TypeError):
            return ()

    def note(self, plugin: str, confinement: Confinement, one: RefusedAccess, mask: Callable[[str], str]) -> None:
        """Keep one, without secrets; what cannot be written is not kept."""
        under = _digest(repr(confinement))
        known = (plugin, under, one.kind, one.what)
        if self._folder is None or known in self._written or mask(one.text) != one.text:
            return
        self._written.add(known)
        before = [
            each for each in self.refusals_of(plugin, confinement) if (each.kind, each.what) != (one.kind, one.what)
        ]
        kept = {"under": under, "refused": [asdict(each) for each in (one, *before)][:MOST_KEPT]}
        with suppress(OSError):
            make_private(self._folder)
            file = self._file(plugin)
            spare = file.with_suffix(f".{os.getpid()}")
            number = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(number, "w") as stream:
                json.dump(kept, stream)
            spare.replace(file)

    def _file(self, plugin: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{_digest(plugin)}.json"


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
