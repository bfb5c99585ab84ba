"""A configuration that a command edits: read, judged as `check` does, and saved in one step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard.config.acceptance import accept_text, acceptance_of, key_of
from pegboard.config.clients.merging import may_load
from pegboard.config.documents.document import is_mapping
from pegboard.config.documents.value_edits import value_at
from pegboard.config.inspection import inspect
from pegboard.config.location import Machine
from pegboard.config.saving import create_whole, read_whole, replace_whole
from pegboard.configuration_source import registered_plugins
from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.tools import EMPTY
from pegboard.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pegboard.config.schema.configuration import Configuration
    from pegboard.core.principals.bearer_tokens import Token


def user_configuration() -> Path:
    """Return the configuration that the clients of this user share."""
    return Machine().configuration / "pegboard.yaml"


@dataclass(slots=True, kw_only=True)
class EditedConfiguration:
    """A configuration as it was read; ``digest`` is None where there is none yet."""

    path: Path
    text: str = field(repr=False)
    digest: str | None

    @property
    def value(self) -> Mapping[str, Any]:
        """Return what it says, as it is written."""
        return value_at(self.text, (), file=self.path.name) or EMPTY if self.text else EMPTY

    @property
    def servers(self) -> Sequence[str]:
        """Return the names of its servers."""
        found = self.value.get("servers")
        return list(found) if is_mapping(found) else []

    def server(self, name: str) -> Mapping[str, Any]:
        """Return a server as it is written; raises ``UsageError`` where there is none of this name."""
        found = self.value["servers"].get(name) if name in self.servers else None
        if found is None:
            known = self.servers
            hint = did_you_mean(name, known) or (f"There are: {', '.join(known)}." if known else "It has no servers.")
            raise UsageError(f"There is no server '{name[:60]}' in {self.path}.", code="unknown_name", hint=hint)
        return found if is_mapping(found) else EMPTY

    @property
    def tokens(self) -> Sequence[Token]:
        """Return the tokens of its operators."""
        if self.digest is None:
            return ()
        found, _ = inspect(self.path, registered=registered_plugins())
        return () if found is None else found.tokens

    def agents_with(self, server: str) -> list[str]:
        """Return the agents that may load a server."""
        return may_load(self.value, server)

    def usable(self, text: str) -> Configuration:
        """Return what it would say with another text; raises ``ConfigError`` where that has a mistake."""
        configuration, problems = inspect(self.path, registered=registered_plugins(), text=text)
        if configuration is None:
            errors = [problem for problem in problems if problem.severity == "error"]
            message = f"{self.path} could not be used, so it is left as it is: {'; '.join(map(str, errors))}"
            raise ConfigError(message, problems=errors)
        return configuration

    async def save(self, text: str, *, by: str, reason: str) -> None:
        """Put a text in its place, which counts at once.

        Raises:
            ConfigError: it was changed meanwhile, or that this person accepts it cannot be kept; it is left unchanged.
        """
        written = await self._write_text(text, by=by, reason=reason)
        try:
            accept_text(self.path)
        except OSError as error:
            self._restore_text(written)
            message = f"{self.path} is left as it is: {error.filename or 'a file'} cannot be written: {error.strerror}."
            raise ConfigError(message, code="file_not_saved", hint="Nothing was changed.") from None
        self.text, self.digest = text, written

    async def _write_text(self, text: str, *, by: str, reason: str) -> str:
        if self.digest is not None:
            return await saved_edit(self.path, text, expected=self.digest, by=by, reason=reason)
        if not self.path.parent.exists():
            self.path.parent.mkdir(mode=0o700, parents=True)
        try:
            return create_whole(self.path, text, mode=0o600)
        except FileExistsError:
            message = f"{self.path} was created in the meantime, so it was not changed."
            raise ConfigError(message, code="file_changed", hint="Try again.") from None

    def _restore_text(self, written: str) -> None:
        """Put back what was there, where no one has changed it since."""
        restore_text(self.path, None if self.digest is None else self.text, written)


def opened_configuration(path: Path) -> EditedConfiguration:
    """Return a configuration to edit; raises ``ConfigError`` where it cannot be read."""
    if not path.exists():
        return EditedConfiguration(path=path, text="", digest=None)
    found = read_whole(path)
    return EditedConfiguration(path=path, text=found.text, digest=found.digest)


def restore_text(path: Path, text: str | None, written: str) -> None:
    """Put a configuration back as it was where it still has the digest written; without a text there was none."""
    with suppress(ConfigError, OSError):
        if text is not None:
            replace_whole(path, text, expected=written)
        elif read_whole(path).digest == written:
            path.unlink()


async def saved_edit(path: Path, text: str, *, expected: str, by: str, reason: str) -> str:
    """Put a text in the place of a configuration that a person has asked for, and return its digest.

    What it grants counts at once, also for what serves the configuration now; what waited before waits on.

    Raises:
        ConfigError: ``file_changed`` where it is not the text of the digest that is expected.
    """
    known = acceptance_of(key_of(path))
    if known is None or not known.grants:  # no one has opened it
        return replace_whole(path, text, expected=expected)
    from pegboard.assembly import Pegboard

    async with Pegboard.open(path) as board:
        return await board.editable.save(text, expected=expected, by=by, decision="saved", reason=reason)
