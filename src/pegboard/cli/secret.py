"""`pegboard secret …`: values in the keyring of the system, which a configuration names and does not hold (G13)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from pegboard.cli.common import report
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer, TableColumn
from pegboard.config.inspection import inspect
from pegboard.configuration_source import choose, packages, registered_plugins
from pegboard.core.model.masking import Masker
from pegboard.core.model.references import ByReference, Reference, is_name, reference
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import NotAcceptedError, PegboardError, UsageError
from pegboard.sources.references.file_text import text_of
from pegboard.sources.references.keyring_values import delete as delete_value
from pegboard.sources.references.keyring_values import store, value_of
from pegboard.sources.references.stored_names import note_deleted, note_stored, stored_names
from pegboard.sources.references.value_text import LONGEST, without_newline
from pegboard.system_keyring import KeyringError

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Its name: letters, digits and _ . @ / -")]
COLUMNS: Final = (TableColumn("name"), TableColumn("value"), TableColumn("used by", flexible=True))
_VALUES: Final = {True: "yes", False: "none", None: "not known"}


def set_(
    name: NameArgument,
    value: Annotated[list[str] | None, typer.Argument(metavar="", hidden=True)] = None,
    as_json: JsonOption = False,
) -> int:
    """Put a value into the keyring of the system."""

    def set_secret(printer: Printer) -> int:
        if value:
            raise UsageError(
                "A value is never an argument: other users here can read those, and your shell keeps them.",
                hint="Write the name alone; the value is asked for, or read from standard input.",
            )
        _require_name(name)
        given = _read_value(name)
        printer.masker = Masker([given])
        try:
            keyring = store(name, given)
        except KeyringError as error:
            message = f"'{name}' is not stored: {error.message}."
            raise PegboardError(message, code="keyring_failed", hint=error.hint) from None
        note_stored(name)
        text = Reference(scheme="keyring", target=name).text
        if printer.as_json:
            printer.document({"name": name, "reference": text, "keyring": keyring})
        else:
            printer.say(f"'{name}' is in the keyring ({keyring}). Write {text} in place of the value.")
        return DONE

    return _run_guarded(set_secret, as_json=as_json)


def list_(config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """List the names of secrets, and those without a value."""

    def print_secrets(printer: Printer) -> int:
        found = list(_rows(_used_references(config, printer)))
        if printer.as_json:
            printer.document([row.json for row in found])
        elif found:
            printer.table(COLUMNS, [row.cells for row in found])
            for reason in dict.fromkeys(row.reason for row in found if row.reason):
                printer.say(reason)
        else:
            printer.say("The keyring has no secret of Pegboard, and the configuration refers to none.")
        return DONE

    return _run_guarded(print_secrets, as_json=as_json)


def delete(name: NameArgument, config: ConfigOption = None, as_json: JsonOption = False) -> int:
    """Remove a value from the keyring of the system."""

    def delete_secret(printer: Printer) -> int:
        _require_name(name)
        try:
            there = delete_value(name)
        except KeyringError as error:
            message = f"'{name}' is not deleted: {error.message}."
            raise PegboardError(message, code="keyring_failed", hint=error.hint) from None
        note_deleted(name)
        if not there:
            hint = "`pegboard secret list` lists the names."
            raise PegboardError(f"There is no '{name}' in the keyring.", code="unknown_secret", hint=hint)
        used = _used_references(config, printer)
        places = [str(one.place) for one in used if reference("keyring", name) in _bare_references(one)]
        if printer.as_json:
            printer.document({"name": name, "used": places})
        else:
            still = f" It is still referred to in {', '.join(places)}." if places else ""
            printer.say(f"'{name}' is deleted.{still}")
        return DONE

    return _run_guarded(delete_secret, as_json=as_json)


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "set": (set_, "pegboard secret set GITHUB_TOKEN"),
    "list": (list_, "pegboard secret list"),
    "delete": (delete, "pegboard secret delete GITHUB_TOKEN"),
}


def _run_guarded(done: Callable[[Printer], int], *, as_json: bool) -> int:
    """Do something without an event loop, which would keep Ctrl-C from whoever is asked."""
    printer = Printer(as_json=as_json)
    try:
        return done(printer)
    except (PegboardError, OSError) as error:
        return report(error, printer)


def _require_name(name: str) -> None:
    """Refuse what is no name, without repeating it: it may be a value."""
    if not is_name(name):
        raise UsageError("That is not a valid name of a secret.", hint="A name has letters, digits and _ . @ / - only.")


def _read_value(name: str) -> str:
    """Return the value that is typed at the terminal without being shown, or that comes on standard input."""
    if sys.stdin.isatty():
        import getpass

        try:
            value = getpass.getpass(f"Value of {name}: ")
        except EOFError:
            value = ""
    else:
        data = sys.stdin.buffer.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise UsageError("The value is larger than 64 KiB.", hint="Give the value alone.")
        try:
            value = without_newline(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise UsageError("The value is not UTF-8 text.", hint="Give it as text, such as base64.") from None
    if not value.strip():
        raise UsageError("The value is empty: nothing was stored.", hint="Type it, or pass it on standard input.")
    if "\0" in value:
        raise UsageError("The value has a zero byte in it.", hint="Give it as text, such as base64.")
    return value


# -- what is there, and where it is used -----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _SecretRow:
    """A reference, whether it has a value, None where that is not known, and where it is used."""

    reference: Reference
    has_value: bool | None
    used: Sequence[ByReference]
    reason: str = ""

    @property
    def cells(self) -> tuple[str, str, str]:
        keyring = self.reference.scheme == "keyring"
        places = ", ".join(one.place.path if one.place else "" for one in self.used)
        return self.reference.target if keyring else self.reference.text, _VALUES[self.has_value], places or "-"

    @property
    def json(self) -> dict[str, Any]:
        places = [one.place for one in self.used if one.place is not None]
        return {
            "name": self.reference.target if self.reference.scheme == "keyring" else None,
            "reference": self.reference.text,
            "has_value": self.has_value,
            "reason": self.reason,
            "used": [{"file": one.file, "line": one.line, "column": one.column, "path": one.path} for one in places],
        }


def _used_references(config: Path | None, printer: Printer) -> tuple[ByReference, ...]:
    """Return the texts with references in a configuration; none in one that cannot be used, which is noted."""
    try:
        path, _ = choose(config)
    except NotAcceptedError as waits:
        printer.note(f"pegboard: {waits}")
        return ()
    found, _ = inspect(path, registered=registered_plugins(), additions=packages())
    if found is None:
        printer.note(f"pegboard: {path} cannot be used, so its references are unknown. See `pegboard check`.")
        return ()
    printer.masker.add(found.secrets)
    servers = [spec for spec in found.specs.values() if isinstance(spec, ServerSpec)]
    return tuple(text for spec in servers for text in spec.references)


def _bare_references(text: ByReference) -> tuple[Reference, ...]:
    """Return the references in a text as they are written, wherever the configuration lies."""
    return tuple(Reference(scheme=one.scheme, target=one.target) for one in text.references)


def _rows(used: Sequence[ByReference]) -> Iterator[_SecretRow]:
    known = [Reference(scheme="keyring", target=name) for name in stored_names()]
    written = [one for text in used for one in text.references if one.scheme != "keyring"]
    named = [one for text in used for one in _bare_references(text) if one.scheme == "keyring"]
    for one in dict.fromkeys((*sorted({*known, *named}, key=lambda one: one.target), *written)):
        places = [text for text in used if one in (*text.references, *_bare_references(text))]
        has_value, reason = _look_up_reference(one)
        yield _SecretRow(reference=one, has_value=has_value, reason=reason, used=places)


def _look_up_reference(one: Reference) -> tuple[bool | None, str]:
    """Return whether a reference has a value, and why that is not known or it has none."""
    try:
        if one.scheme == "keyring":
            has = value_of(one.target) is not None
            return has, "" if has else f"{one.text} has no value. Run `pegboard secret set {one.target}`."
        if one.scheme == "file":
            return bool(text_of(one.path, one.text)), ""
    except KeyringError as error:
        return None, f"The keyring cannot be read: {error.message}. {error.hint}"
    except PegboardError as error:
        return False, f"{error.message}. {error.hint}"
    return None, f"{one.text} is read when its server starts; no command is run here."
