"""What a call came to, as an agent or a person reads it: text, and files for what is large or not text."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pegboard.cli import caller
from pegboard.cli.exit_codes import exit_code_of_call
from pegboard.cli.rendering import Printer, UnmaskedText
from pegboard.errors import PegboardError
from pegboard.thin.address import NoFolderError, address_of
from pegboard.thin.files import keep_result, remove_old_results

if TYPE_CHECKING:
    from pegboard.core.model.tools import JsonObject
    from pegboard.core.state.call_plans import CallAnswer

MOST_CHARACTERS: Final = 20_000
"""How long a result may be that is printed whole."""
PREVIEW: Final = 2_000
"""How many characters of a longer one are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultOutput:
    """Where a result goes: ``to`` is the file that was named, None where none was, ``-`` prints all of it."""

    to: str | None = None

    @property
    def path(self) -> Path | None:
        """Return the file that was named, or None."""
        return None if self.to is None or self.to == "-" else caller.folder() / self.to


def show_answer(answer: CallAnswer, printer: Printer, output: ResultOutput) -> int:
    """Print what a call came to, and return the exit code; why it did not run goes to standard error."""
    if printer.as_json:
        _document(answer, printer, output)
        return exit_code_of_call(answer)
    ran = answer.status in ("ok", "error")
    if not ran:
        _show_refusal(answer, printer)
        return exit_code_of_call(answer)
    texts, binaries = _parts(answer)
    text = "\n".join(texts)
    path = output.path
    alone = path is not None and not texts and len(binaries) == 1
    if not alone:
        _show_text(text, printer, output)
    for part in binaries:
        printer.show(part.line(_save_result(path, part.data) if path is not None and alone else part.kept()))
    if answer.result.is_error:
        printer.note(f"pegboard: {answer.status}: the tool ran and answered with an error.")
    return exit_code_of_call(answer)


def _show_refusal(answer: CallAnswer, printer: Printer) -> None:
    """Say on standard error why nothing ran; what else the answer has, as the schema of the tool, is printed."""
    from pegboard.cli.tool_help import help_of

    printer.note(f"pegboard: {answer.status}: {answer.message}")
    if answer.approval is not None:
        printer.note(f"pegboard: approval {answer.approval.id}")
    if answer.status in ("invalid_arguments", "not_loaded") and answer.tool is not None:
        printer.show(help_of(answer.tool))


def _document(answer: CallAnswer, printer: Printer, output: ResultOutput) -> None:
    result = answer.result
    document: dict[str, Any] = {
        "status": answer.status,
        "is_error": result.is_error,
        "content": UnmaskedText(result.content),
        "structured": UnmaskedText(result.structured),
        "message": answer.message,
    }
    if answer.approval is not None:
        document["approval"] = answer.approval.id
        printer.note(f"pegboard: approval {answer.approval.id}")
    if (path := output.path) is not None:
        _save_result(path, json.dumps([*result.content], ensure_ascii=False, default=str).encode())
        document |= {"content": [], "structured": None, "file": UnmaskedText(str(path))}
    printer.document(document)


def _show_text(text: str, printer: Printer, output: ResultOutput) -> None:
    """Print a text; of one that is too long, or goes to a file that was named, the beginning and the file."""
    path = output.path
    whole = output.to == "-" or caller.keeps_large_results()
    if path is None and (whole or len(text) <= MOST_CHARACTERS):
        if text:
            printer.show(text)
        return
    data = text.encode(errors="surrogatepass")
    kept = _save_result(path, data) if path is not None else _keep_result(data, ".txt")
    shown = text[:PREVIEW]
    if shown:
        printer.show(shown)
    cut = f"{len(shown):,} of {len(text):,} characters; all of it is in " if len(shown) < len(text) else "Written to "
    printer.show(f"[{cut}{kept}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binary:
    """Content that is no text."""

    kind: str
    mime: str
    data: bytes

    def kept(self) -> str:
        return _keep_result(self.data, mimetypes.guess_extension(self.mime) or ".bin")

    def line(self, path: str) -> str:
        """Return the line that stands for it."""
        mime = f" {self.mime}" if self.mime else ""
        return f"[{self.kind}{mime}, {len(self.data):,} bytes: {path}]"


def _parts(answer: CallAnswer) -> tuple[list[str], list[_Binary]]:
    result = answer.result
    texts: list[str] = []
    binaries: list[_Binary] = []
    for block in result.content:
        part = _part(block)
        texts.append(part) if isinstance(part, str) else binaries.append(part)
    if not result.content and result.structured is not None:
        texts.append(json.dumps(result.structured, indent=2, ensure_ascii=False, default=str))
    return texts, binaries


def _part(block: JsonObject) -> str | _Binary:
    """Return a content block as people see it: its text, or its bytes."""
    kind = str(block.get("type", "content"))
    if kind == "text":
        return str(block.get("text", ""))
    resource = block.get("resource")
    content = cast("JsonObject", resource) if isinstance(resource, Mapping) else block
    if isinstance(content.get("text"), str):
        return content["text"]
    label = " ".join(str(content[key]) for key in ("mimeType", "uri", "name") if content.get(key))
    data = content.get("data") or content.get("blob")
    if not isinstance(data, str):
        return f"[{kind}{f' {label}' if label else ''}]"
    try:
        return _Binary(kind=kind, mime=str(content.get("mimeType") or ""), data=base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return f"[{kind}{f' {label}' if label else ''}, {len(data)} characters that are not base64]"


def forget_old_results() -> None:
    """Remove results that were kept for a day."""
    with suppress(NoFolderError):
        remove_old_results(_folder())


def _folder() -> str:
    return f"{address_of().folder}/results"


def _keep_result(data: bytes, suffix: str) -> str:
    """Keep a result in the runtime folder for a day; return where."""
    forget_old_results()
    try:
        return keep_result(_folder(), data, suffix)
    except NoFolderError as error:
        raise PegboardError(
            f"The result is too large to be printed, and was not written: {error}.",
            code="system_error",
            hint="Name a file with --out PATH, or print all of it with `--out -`.",
        ) from None
    except OSError as error:
        raise _not_written_error(error, "Name a file with --out PATH, or print all of it with `--out -`.") from None


def _save_result(path: Path, data: bytes) -> str:
    try:
        caller.save(path, data)
    except OSError as error:
        raise _not_written_error(error, "The tool has run. Name a file that can be written.") from None
    return str(path)


def _not_written_error(error: OSError, hint: str) -> PegboardError:
    where = f"{error.filename}: " if error.filename else ""
    return PegboardError(
        f"The result was not written: {where}{error.strerror or error}.", code="system_error", hint=hint
    )
