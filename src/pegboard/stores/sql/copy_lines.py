"""A copy of a store as JSON lines: written and read in bounded memory, and checked line by line.

The first line says what the file is, each that follows is a record by its kind, the last has counts and a digest.
Every line ends with the first digits of the digest of all lines up to it, so that what was changed, removed or put
in is found at its line.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, Final, NoReturn, cast

from pegboard.errors import StoreError
from pegboard.ports.store_copies import Cell, CopiedRecord
from pegboard.problems import Place
from pegboard.stores.sql.copies import KINDS
from pegboard.support.threads import run_in_thread

FORMAT: Final = 1
LONGEST: Final = 256 * 1024 * 1024
"""How many bytes a line may have."""
AT_ONCE: Final = 500
"""How many lines make a batch, where they are short."""
BYTES_AT_ONCE: Final = 4 * 1024 * 1024
_SUM: Final = ',"sum":"'
_DIGITS: Final = 8
_TAIL: Final = len(_SUM) + _DIGITS + len('"}\n')
_HEADER: Final = "pegboard_store"
_END: Final = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyHeader:
    """What a copy says of itself: the version of Pegboard that made it, of which kind of store, and when."""

    version: str
    store: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyEnd:
    """What a copy came to: records by kind, and the digest of all lines but the last."""

    counts: Mapping[str, int]
    sha256: str

    @property
    def records(self) -> int:
        """Return how many records there are."""
        return sum(self.counts.values())


class CopyWriter:
    """The lines of a copy, in order: ``header``, ``lines`` for each batch, ``end``."""

    def __init__(self) -> None:
        self._digest: Final = hashlib.sha256()
        self.counts: Final[Counter[str]] = Counter()

    def header(self, *, version: str, store: str) -> bytes:
        """Return the first line."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return self._line({_HEADER: FORMAT, "version": version, "store": store, "at": at})

    def lines(self, records: Iterable[CopiedRecord]) -> bytes:
        """Return the lines of records.

        Raises ``StoreError`` for one that would be too long to be read.
        """
        lines: list[bytes] = []
        for kind, values, _ in records:
            self.counts[kind] += 1
            lines.append(self._line({kind: dict(zip(KINDS[kind], map(_cell_to_json, values), strict=True))}))
            if len(lines[-1]) > LONGEST:
                raise StoreError(f"A record of the kind '{kind}' has more than {LONGEST} bytes, and cannot be copied.")
        return b"".join(lines)

    def end(self) -> tuple[bytes, CopyEnd]:
        """Return the last line and what it says."""
        end = CopyEnd(counts=dict(self.counts), sha256=self._digest.hexdigest())
        return self._line({_END: {"counts": end.counts, "sha256": end.sha256}}), end

    def _line(self, value: Mapping[str, Any]) -> bytes:
        body = json.dumps(value, separators=(",", ":"), allow_nan=False)[:-1]
        self._digest.update(body.encode())
        return f'{body}{_SUM}{self._digest.hexdigest()[:_DIGITS]}"}}\n'.encode()


class CopyReader:
    """The records in the lines of a copy.

    ``header`` is known after ``start``, ``end`` once the last batch was read. What is wrong is raised as a
    ``StoreError`` with the code ``copy_not_valid``, with the line.
    """

    header: CopyHeader
    end: CopyEnd

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._digest = hashlib.sha256()
        self._counts: Counter[str] = Counter()
        self._line = 0

    async def start(self) -> CopyHeader:
        """Read the first line; raises ``StoreError`` where this is no copy that this Pegboard can read."""
        self.header = await run_in_thread(self._read_header)
        return self.header

    async def batches(self) -> AsyncIterator[Sequence[CopiedRecord]]:
        """Yield the records in batches; the last is yielded only when the end of the file fits what came before."""
        while True:
            records, ended = await run_in_thread(self._next_batch)
            if records:
                yield records
            if ended:
                return

    def _read_header(self) -> CopyHeader:
        line = self._next_line()
        if not line.startswith(f'{{"{_HEADER}":'.encode()):
            self._refuse("This is not a copy of a store")
        found = self._check_line(line)
        if found.get(_HEADER) != FORMAT:
            self._refuse(f"The copy has the format {found.get(_HEADER)!r}; this Pegboard reads {FORMAT}")
        return CopyHeader(version=str(found.get("version")), store=str(found.get("store")), at=str(found.get("at")))

    def _next_batch(self) -> tuple[list[CopiedRecord], bool]:
        records: list[CopiedRecord] = []
        size = 0
        while len(records) < AT_ONCE and size < BYTES_AT_ONCE:
            digest = self._digest.hexdigest()
            line = self._next_line()
            found = self._check_line(line)
            size += len(line)
            kind, value = next(iter(found.items()), ("", None))
            if kind == _END:
                self._finish(value, digest)
                return records, True
            records.append(self._record(kind, value))
        return records, False

    def _next_line(self) -> bytes:
        self._line += 1
        line = self._file.readline(LONGEST + 1)
        if not line and self._line > 1:
            self._refuse("The copy ends before its last line: it was cut")
        if line and not line.endswith(b"\n"):
            self._refuse("The line is too long" if len(line) > LONGEST else "The copy ends within a line: it was cut")
        return line

    def _check_line(self, line: bytes) -> dict[str, Any]:
        """Return what a line says, without its sum, which is that of everything so far."""
        body, tail = line[:-_TAIL], line[-_TAIL:]
        self._digest.update(body)
        if tail != f'{_SUM}{self._digest.hexdigest()[:_DIGITS]}"}}\n'.encode():
            self._refuse("The copy was changed, in this line or by a line that was removed or put in before it")
        try:
            return json.loads(body + b"}")
        except ValueError:
            self._refuse("This is not JSON")

    def _record(self, kind: str, value: Any) -> CopiedRecord:
        fields = KINDS.get(kind)
        if fields is None:
            self._refuse(f"This Pegboard knows no records of the kind '{kind[:100]}'")
        given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        if given.keys() != set(fields):
            odd = min(given.keys() ^ set(fields))[:100]
            self._refuse(f"'{kind}' {'has no' if odd in given else 'needs a'} field '{odd}'")
        self._counts[kind] += 1
        try:
            return CopiedRecord(kind, [_cell_from_json(given[name]) for name in fields], self._line)
        except ValueError:
            self._refuse(f"A value of '{kind}' is neither a text nor a number")

    def _finish(self, said: Any, digest: str) -> None:
        self.end = CopyEnd(counts=dict(self._counts), sha256=digest)
        if said != {"counts": self.end.counts, "sha256": digest}:
            self._refuse("What the last line says does not fit the lines before it")
        self._line += 1
        if self._file.read(1):
            self._refuse("There is more text after the last line of the copy")

    def _refuse(self, what: str) -> NoReturn:
        hint = "Nothing was changed. Make another copy with `pegboard store export`."
        raise StoreError(f"{what}.", hint=hint, code="copy_not_valid", location=Place(file=self._name, line=self._line))


def _cell_to_json(value: Cell) -> Any:
    match value:
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case float() if value - value != 0:  # infinite, which JSON does not have
            return {"number": repr(value)}
        case _:
            return value


def _cell_from_json(value: Any) -> Cell:
    """Return the value that :func:`_to_json` was given; raises ``ValueError`` for any other."""
    match value:
        case {"bytes": str(text), **rest} if not rest:
            return base64.b64decode(text, validate=True)
        case {"number": "inf" | "-inf" as text, **rest} if not rest:
            return float(text)
        case None | str() | float():
            return value
        case int() if value is not True and value is not False:
            return value
        case _:
            raise ValueError("neither a text nor a number")
