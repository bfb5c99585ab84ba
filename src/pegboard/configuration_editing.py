"""The file of a configuration for operators who edit it: read, judged as `check` does, saved and taken up (P10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pegboard import kept_secrets
from pegboard.config.acceptance import accept_text, texts_of
from pegboard.config.clients.literal_secrets import secrets_in_text
from pegboard.config.documents.document import display_path, is_mapping
from pegboard.config.documents.value_edits import is_json, value_at, with_value, without_value
from pegboard.config.documents.written import as_json, yaml_in_lines
from pegboard.config.file_differences import difference
from pegboard.config.saving import create_whole, read_whole, replace_whole
from pegboard.config.schema.mcp_json import servers_root
from pegboard.config.schema.sections import every_key
from pegboard.configuration_source import packages, registered_plugins
from pegboard.core.access.grants import FILES
from pegboard.core.access.permissions import LOCAL
from pegboard.core.model.masking import Masker
from pegboard.core.model.references import reference as parse_reference
from pegboard.errors import ConfigError
from pegboard.operators.configuration import ShownProblem, shown_problems
from pegboard.operators.editable import ConfigurationChange, EditJudgement, WrittenText
from pegboard.ports import SessionKey

if TYPE_CHECKING:
    from pegboard.accepted_grants import AcceptedGrants
    from pegboard.board.services import Services
    from pegboard.config.accepted_files import AcceptedFiles
    from pegboard.config.schema.configuration import Configuration
    from pegboard.configuration_source import ConfigurationSource
    from pegboard.core.access.grants import GrantChange
    from pegboard.core.model.agents import World
    from pegboard.problems import Problem


FIRST: Final = """\
# Tools that read, offline, under the current folder; add servers in the console or with `pegboard add`.
"""
"""How a first configuration begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditableFile:
    """The file of the configuration that a board has open.

    ``reload`` takes up what is in the file, in someone's name; ``reloading`` is held meanwhile. ``known`` gives the
    own names of tools that are known, by plugin; ``accepted`` is what was accepted of files, ``file_waits`` whether
    someone else's edit of it waits.
    """

    source: Callable[[], ConfigurationSource]
    quickstart: Callable[[], bool]
    env: Mapping[str, str]
    known: Callable[[], Mapping[str, Collection[str]]]
    grants: Callable[[], AcceptedGrants]
    reloading: asyncio.Lock
    reload: Callable[..., Awaitable[object]]
    services: Services
    file_waits: Callable[[], bool]
    accepted: Callable[[], AcceptedFiles | None]

    @property
    def file(self) -> str:
        """Return the file as messages name it."""
        return display_path(self.source().path)

    @property
    def path(self) -> str:
        """Return the absolute path of the file."""
        return str(self.source().path.absolute())

    @property
    def exists(self) -> bool:
        """Return whether there is a file that could be edited."""
        return not self.quickstart() and self.source().value is None

    @property
    def accepted_texts(self) -> Mapping[str, str]:
        """Return the texts of the configuration and its loadouts that are in force, by their paths."""
        return texts_of(self.source().path, self.accepted())

    def difference(self, change: GrantChange) -> tuple[str, ...]:
        """Return the lines in which a file that waits differs from what was accepted, without secrets."""
        accepted = self.accepted()
        if change.key[0] != FILES or accepted is None:
            return ()
        return difference(accepted, change, self.services.masker)

    async def read(self) -> WrittenText:
        """Return what is in the file; raises ``ConfigError`` where there is none that could be edited."""
        self._require_file()
        found = await asyncio.to_thread(read_whole, self.source().path)
        secrets = await asyncio.to_thread(self.secrets, found.text)
        return WrittenText(file=found.file, text=found.text, digest=found.digest, secrets=secrets)

    def value(self, text: str, path: Sequence[str]) -> Any:
        """Return what is at a path of keys in a text, as it is written; None where there is nothing."""
        return value_at(text, path, file=self.file)

    def servers(self, text: str) -> tuple[str, ...]:
        """Return the keys under which the servers of a text stand."""
        value = value_at(text, (), file=self.file)
        root = servers_root(value, json_file=is_json(self.file)) if is_mapping(value) else None
        return root or ("servers",)

    def edit_text(self, text: str, changes: Sequence[ConfigurationChange]) -> str:
        """Return a text with changes in it; raises ``ConfigError`` where one would change something else."""
        for change in changes:
            if change.remove:
                text = without_value(text, change.path, file=self.file)
            else:
                text = with_value(text, change.path, change.value, file=self.file)
        return text

    def lines(self, value: Mapping[str, Any]) -> list[str]:
        """Return the lines of a text which says this alone."""
        if is_json(self.file):
            return as_json(value, unit="  ", lead="", newline="\n").split("\n")
        return yaml_in_lines(value, 0) or []

    def secrets(self, text: str) -> frozenset[str]:
        """Return what is never shown of a text."""
        return secrets_in_text(text, self.file)

    def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of a configuration."""
        return _schema()

    async def judge_text(self, text: str) -> EditJudgement:
        """Return what a text would be as the configuration; nothing is stored or started."""
        configuration, problems = await asyncio.to_thread(self._inspect_text, text)
        masker = Masker(self.services.masker.values | await asyncio.to_thread(self.secrets, text))
        there, before = await asyncio.to_thread(self._inspect_text, None)
        known = {(problem.code, problem.message) for problem in before}
        added = [problem for problem in problems if (problem.code, problem.message) not in known]
        shown = partial(self._shown_problems, text=text, masker=masker)
        if configuration is None:
            return EditJudgement(problems=shown(problems), added=shown(added))
        made = await self.grants().would_change(there) if there is not None else ()
        changes = await self.grants().would_change(configuration)
        waiting = tuple(change for change in changes if change in made or change in self.grants().waiting)
        widening = [change for change in waiting if change.widens]
        counted = self.grants().without(configuration, widening)
        return EditJudgement(
            problems=shown(problems),
            added=shown(added),
            world=await asyncio.to_thread(self._world, counted),
            changes=changes,
            waiting=waiting,
            secrets=configuration.secrets,
        )

    def _world(self, configuration: Configuration) -> World:
        """Return what a configuration would be, with the catalog as far as it is known; of many tools it takes long."""
        return configuration.world(self.services.loader.supposed_catalog(configuration.specs))

    async def reference_for(self, name: str, value: str) -> str:
        """Return the reference under which a secret would be kept; its name is free, or has this value already."""
        return (await kept_secrets.reference_for(self.services.store, name, value)).text

    async def keep_secret(self, reference: str, value: str) -> None:
        """Keep a secret under a reference; raises ``ConfigError`` or ``StoreError`` where that cannot be."""
        scheme, _, target = reference.removeprefix("${").removesuffix("}").partition(":")
        known = parse_reference(scheme, target)
        assert not isinstance(known, str)
        await kept_secrets.keep(self.services.store, known, value)

    async def save(self, text: str, *, expected: str, by: str, decision: str, reason: str) -> str:
        """Put a text in the place of the one with a digest, take it up in someone's name, and return its digest.

        Raises:
            ConfigError: it was changed meanwhile, or cannot be written.
        """
        self._require_file()
        async with self.reloading:
            await self.reload()  # what someone else has edited waits, or counts, as theirs
            if self.file_waits():
                raise ConfigError(
                    f"{self.file} was changed outside Pegboard, and the change waits for a person.",
                    code="file_waits",
                    hint="Accept it (`pegboard accept`), or restore the file.",
                )
            save = partial(replace_whole, expected=expected, private=bool(self.secrets(text)))
            digest = await asyncio.to_thread(save, self.source().path, text)
            await self.reload(by=by, saved=text)
            key = SessionKey(principal=LOCAL, agent="", session="")
            recorder = self.services.recorder
            await recorder.note(recorder.entry(key, 0, "edit", self.file, decision, reason=reason, by=by))
        return digest

    def _inspect_text(self, text: str | None) -> tuple[Configuration | None, list[Problem]]:
        return self.source().inspect(
            registered=registered_plugins(), packages=packages(), env=self.env, tools=self.known(), text=text
        )

    def _shown_problems(self, problems: Sequence[Problem], *, text: str, masker: Masker) -> tuple[ShownProblem, ...]:
        def text_as_written(file: str) -> str | None:
            return text if file == self.file else self.source().written(file, self.env)

        return shown_problems(problems, masker, text_as_written, every_key())

    def _require_file(self) -> None:
        if not self.exists:
            raise ConfigError(
                "This configuration is not a file, so it cannot be edited here.",
                code="not_editable",
                hint="Create pegboard.yaml on the page *Add a server*, or write one with `pegboard init`.",
            )


@cache
def _schema() -> Mapping[str, Any]:
    """Return the schema; to make it takes a moment."""
    from pegboard.config.schema.json_schema import schema

    return schema()


def write_first(path: Path, like: Path) -> Path:
    """Write a first configuration with the plugins and agents of another one, accept it, and return its path.

    Its store is the default one of its folder. Raises ``ConfigError`` where there is a file already, or it cannot be
    written.
    """
    lines = [line for line in like.read_text("utf-8").split("\n") if not line.startswith(("#", "store:"))]
    try:
        create_whole(path, FIRST + "\n".join(lines).lstrip("\n"), mode=0o644)
        accept_text(path)
    except FileExistsError:
        hint = "Start Pegboard again to use it."
        raise ConfigError(f"{display_path(path)} already exists.", code="file_exists", hint=hint) from None
    except OSError as error:
        why = error.strerror or "it cannot be written"
        raise ConfigError(f"{display_path(path)} cannot be written: {why}.", code="file_not_saved") from None
    return path
