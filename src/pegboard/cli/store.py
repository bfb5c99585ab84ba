"""`pegboard store …`: the store as a file of no kind of database, put in again, looked over (S2)."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.assembly import read_configuration, store_copies
from pegboard.cli.common import Options, run_guarded, warnings_to
from pegboard.cli.exit_codes import DONE, FAILED
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.person import require_operator
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.store_lines import check_json, check_lines, rekeyed_line, sealed_line
from pegboard.core.model.masking import Masker
from pegboard.errors import PegboardError, StoreError, UsageError
from pegboard.ports.store_copies import OF_EVERY_STORE, store_not_empty
from pegboard.stores.sql.copy_lines import CopyReader, CopyWriter
from pegboard.support.version import __version__

if TYPE_CHECKING:
    from pegboard.config.schema.configuration import Configuration
    from pegboard.ports.store_copies import CopiedRecord, StoreCheck, StoreCopies
    from pegboard.stores.sql.copy_lines import CopyEnd

STANDARD: Final = "-"
EXPORT_RISK: Final = "A copy is as confidential as the store: sealed values stay sealed, all else is in plain text."


def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to write, or - for standard output.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Copy the whole store into a file."""

    async def export_store(printer: Printer) -> int:
        if file == STANDARD and as_json:
            raise UsageError("Both the copy and --json are for standard output.", hint="Name a file, or omit --json.")
        _, copies = _store(printer, config)
        found = await copies.check(thorough=False)
        with printer.working(f"Copying {copies.place}", lasting=True) as say, _open_for_writing(file) as written:
            end = await _write_copy(copies, written, say)
        if printer.as_json:
            printer.document({"file": file, **_end_json(end), "sealed": found.sealed.there, "key": found.sealed.place})
            return DONE
        tell = printer.note if file == STANDARD else printer.say
        where = "standard output" if file == STANDARD else file
        tell(f"{plural(end.records, 'record')} of {copies.place} {'is' if end.records == 1 else 'are'} in {where}.")
        if found.sealed.there:
            tell(sealed_line(found.sealed))
        tell(EXPORT_RISK)
        return DONE

    return run_guarded(Options(config=config, as_json=as_json), export_store)


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The copy, or - for standard input.")],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Remove the present contents of the store, which otherwise has to be empty."),
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Put a copy into the store, all of it or nothing."""

    async def import_store(printer: Printer) -> int:
        configuration, copies = _store(printer, config)
        with _open_for_reading(file) as opened:
            reader = CopyReader(opened, "standard input" if file == STANDARD else file)
            header = await reader.start()
            about = [f"It was made {header.at} by Pegboard {header.version}, of a store of the kind {header.store}."]
            about += await _what_would_be_replaced(copies, replace=replace)
            question = f"Import it into the store at {copies.place}?"
            await require_operator(configuration.tokens, "configure", question, about=about)
            with printer.working(f"Importing into {copies.place}", lasting=True) as say:
                await copies.import_(_report_progress(reader, say), replace=replace)
        found = await copies.check(thorough=False)
        _print_imported(printer, reader, found)
        return DONE

    return run_guarded(Options(config=config, as_json=as_json), import_store)


def check(config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Check the store: its schema, damage, size and key."""

    async def check_store(printer: Printer) -> int:
        _, copies = _store(printer, config)
        with printer.working(f"Reading {copies.place}", lasting=not as_json):
            found = await copies.check()
        if printer.as_json:
            printer.document(check_json(found))
        else:
            for line in check_lines(found):
                printer.say(line)
        return DONE if found.sound else FAILED

    return run_guarded(Options(config=config, as_json=as_json), check_store)


def rekey(config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Seal all logins with the key in PEGBOARD_KEY."""

    async def rekey_store(printer: Printer) -> int:
        _, copies = _store(printer, config)
        found = await copies.rekey()
        if printer.as_json:
            printer.document({"store": copies.place, **found._asdict()})
        else:
            printer.say(rekeyed_line(found))
        return FAILED if found.unopened else DONE

    return run_guarded(Options(config=config, as_json=as_json), rekey_store)


def _store(printer: Printer, config: Path | None) -> tuple[Configuration, StoreCopies]:
    """Return a configuration and its store; what is printed from now on has no secret of it."""
    with warnings_to(printer):
        read = read_configuration(config)
    printer.masker = Masker(read.configuration.secrets)
    return read.configuration, store_copies(read)


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "export": (export, "pegboard store export pegboard-copy.jsonl"),
    "import": (import_, "pegboard store import pegboard-copy.jsonl"),
    "check": (check, "pegboard store check"),
    "rekey": (rekey, "pegboard store rekey"),
}


async def _write_copy(copies: StoreCopies, file: IO[bytes], say: Callable[[str], None]) -> CopyEnd:
    """Write a copy and return what it came to."""
    writer = CopyWriter()
    file.write(writer.header(version=__version__, store=copies.kind))
    async with aclosing(copies.export()) as batches:
        async for batch in batches:
            file.write(writer.lines(batch))
            say(plural(writer.counts.total(), "record"))
            await asyncio.sleep(0)  # Ctrl-C ends it here
    line, end = writer.end()
    file.write(line)
    file.flush()
    return end


async def _report_progress(reader: CopyReader, say: Callable[[str], None]) -> AsyncIterator[Sequence[CopiedRecord]]:
    """Yield the batches of a copy, and say how far it is."""
    done = 0
    async for batch in reader.batches():
        yield batch
        done += len(batch)
        say(plural(done, "record"))


async def _what_would_be_replaced(copies: StoreCopies, *, replace: bool) -> list[str]:
    """Return what is said of what the store has; raises ``StoreError`` where that is in the way."""
    try:
        found = await copies.check(thorough=False)
    except StoreError as error:
        if error.code == "store_missing":
            return []
        raise
    held = {kind: count for kind, count in found.counts.items() if count and kind not in OF_EVERY_STORE}
    if held and not replace:
        raise store_not_empty(copies.place, held)
    return [f"The present contents of the store are removed: {_list_counts(held)}."] if held else []


def _print_imported(printer: Printer, reader: CopyReader, found: StoreCheck) -> None:
    end, header = reader.end, reader.header
    if printer.as_json:
        made = {"version": header.version, "store": header.store, "at": header.at}
        sealed = {"sealed": found.sealed.there, "unopened": found.sealed.unopened, "key": found.sealed.place}
        printer.document({"place": found.place, **_end_json(end), "from": made, **sealed})
        return
    printer.say(f"{plural(end.records, 'record')} {'is' if end.records == 1 else 'are'} in {found.place}.")
    if found.sealed.there:
        printer.say(sealed_line(found.sealed))


def _end_json(end: CopyEnd) -> dict[str, Any]:
    return {"records": end.records, "counts": dict(end.counts), "sha256": end.sha256}


def _list_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind}: {count:,}" for kind, count in counts.items())


@contextmanager
def _open_for_reading(file: str) -> Generator[IO[bytes]]:
    """Open what is read while this lasts."""
    with ExitStack() as stack:
        yield sys.stdin.buffer if file == STANDARD else stack.enter_context(Path(file).open("rb"))


@contextmanager
def _open_for_writing(file: str) -> Generator[IO[bytes]]:
    """Open what is written while this lasts; a file is there whole or not at all, and only its owner reads it."""
    path = Path(file)
    if file == STANDARD or (path.exists() and not path.is_file()):
        with ExitStack() as stack:
            yield sys.stdout.buffer if file == STANDARD else stack.enter_context(path.open("wb"))
        return
    exists = PegboardError(f"{file} already exists and was not changed.", hint="Name another file.", code="file_exists")
    if path.exists():
        raise exists
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    number = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(number, "wb") as opened:
            yield opened
            opened.flush()
            os.fsync(opened.fileno())
        try:
            os.link(part, path)
        except FileExistsError:
            raise exists from None
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
