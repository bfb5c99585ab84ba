"""Edits of the configuration by operators: proposed, looked at, saved and taken back, all in one way (P10, A5)."""

from __future__ import annotations

import asyncio
import difflib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pegboard.board.services import Services
from pegboard.core.access.grants import GrantChange
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import SUGGESTS
from pegboard.core.model.tools import EMPTY
from pegboard.errors import UsageError
from pegboard.operators.configuration import ShownProblem
from pegboard.operators.edit_preview import AgentChange, agent_changes
from pegboard.operators.editable import (
    ConfigurationChange,
    EditableConfiguration,
    EditJudgement,
    WrittenText,
    edited_agents,
)
from pegboard.operators.kept_for_operators import KeptForOperators
from pegboard.operators.masked import Name, ShownNames, Verbatim, mask_value, shown_names
from pegboard.operators.merged_text import merged_text
from pegboard.operators.staying_secrets import brings_secret, brings_variable
from pegboard.operators.switch_preview import ParsedLeases

MOST_KEPT: Final = 200
"""How many edits wait to be saved, or may be taken back, over all operators."""
MOST_OF_ONE: Final = 40
"""How many of them are of one operator; the oldest gives way."""
MOST_TEXTS: Final = 20
"""How many texts that the file had are known, to tell who changed what since."""
KEPT_FOR: Final = 3600.0
"""For how many seconds each of them does."""
MOST_CHANGES: Final = 200
"""How many changes of grants are listed."""
VERSIONS: Final = 100
"""How many texts of the configuration are kept in the store."""
_AROUND: Final = 3
_LEFT: Final = re.compile(r"\*\*\*~")
_MAY_BE_OF: Final = re.compile(r"; it may be a tool of [^;]*\Z")
"""What the message of a name that is not known yet says of plugins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Editor:
    """Who edits: the operator's name, and the agents that they see; None is every one."""

    name: str
    agents: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownGrant:
    """One change of what is granted: what was and what would be, and whether someone may more by it.

    ``waits`` is whether an earlier edit of the file made it, which waits for a person, or to be read.
    """

    text: str
    widens: bool
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a change of a file."""

    kind: Verbatim
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedEdit:
    """An edit that is not saved yet.

    Attributes:
        id: what it is saved under.
        what: what it does, in words.
        file: the file as messages name it.
        digest: that of what is in the file now: it is saved only there.
        diff: what changes in the file, secrets are marks in it; for who sees some agents, in what they edit alone.
        problems: what is wrong with the file then, as `check` reports it.
        errors: how many of them keep it from being used.
        grants: what it changes of what is granted.
        more_grants: how many more changes of grants there are.
        agents: what it changes for each agent, and for its sessions.
        saveable: whether it can be saved: it changes something, and has no error.
    """

    id: Verbatim
    what: str
    file: Verbatim
    digest: Verbatim
    diff: tuple[DiffLine, ...]
    problems: tuple[ShownProblem, ...]
    errors: int
    grants: tuple[ShownGrant, ...]
    more_grants: int
    agents: tuple[AgentChange, ...]
    saveable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEdit:
    """An edit that was saved: ``undo`` is what takes it back, as long as the file is what was saved."""

    file: Verbatim
    what: str
    digest: Verbatim
    undo: Verbatim


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """A configuration as it is written, with a mark in place of each secret; a mark that comes back is that secret."""

    file: Verbatim
    text: Verbatim
    digest: Verbatim


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedText:
    """A text that someone has typed in the place of a file, beside what the file is now; secrets are marks.

    Attributes:
        file: the file as messages name it.
        text: what was typed; where ``merged``, with what others have changed meanwhile.
        digest: that of what is in the file now.
        made_from: that of what the text was made from; of what is in the file now where ``merged``.
        now: what is in the file now; empty where it is what the text was made from.
        others: what others have changed meanwhile; nothing where it is not known what the text was made from.
        merged: whether that is in the text. Where it is not, and ``now`` is something, the text would take it back.
    """

    file: Verbatim
    text: Verbatim
    digest: Verbatim
    made_from: Verbatim
    now: Verbatim = ""
    others: tuple[DiffLine, ...] = ()
    merged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EditableParts:
    """What of a configuration an operator may edit by name; names of entries that the file has."""

    agents: tuple[Name, ...]
    toolkits: tuple[Name, ...]
    loadouts: tuple[Name, ...]
    servers: tuple[Name, ...]
    plugins: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedEntry:
    """One entry of the configuration as it is written, with marks for secrets; ``value`` is None where it is not there.

    ``path`` is where it stands.
    """

    path: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptEdit:
    """What is kept of an edit: it waits to be saved, or, where ``undoes``, is the one that takes another back."""

    what: str
    text: str = field(repr=False)
    expected: str
    changes: tuple[ConfigurationChange, ...] = field(default=(), repr=False)
    agents: frozenset[str] | None = None
    undoes: bool = False
    reason: str = ""
    shown: ProposedEdit | None = None
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    to_keep: Mapping[str, str] = field(default=EMPTY, repr=False)


class Editing:
    """The edits of one board's configuration."""

    def __init__(self, services: Services, configuration: EditableConfiguration) -> None:
        self._services = services
        self._configuration = configuration
        self._parsed = ParsedLeases()
        self._kept = KeptForOperators[_KeptEdit](seconds=KEPT_FOR, most=MOST_KEPT, most_of_one=MOST_OF_ONE)
        self._texts = KeptForOperators[str](seconds=KEPT_FOR, most=MOST_TEXTS, most_of_one=MOST_TEXTS)

    async def whole(self) -> WholeFile:
        """Return the file as it is written, secrets masked; raises ``ConfigError`` where there is none."""
        written = await self._read_whole()
        names = await self._names(written.secrets)
        return WholeFile(file=written.file, text=names.shown(written.text), digest=written.digest)

    async def schema(self) -> Mapping[str, Any]:
        """Return the JSON Schema of a configuration: what may be written, and what each key is for."""
        return await asyncio.to_thread(self._configuration.schema)

    async def read_noted(self) -> WholeFile:
        """Return the file, and keep it as a version where it was changed outside of Pegboard."""
        written = await self._configuration.read()
        await self._keep_version(written, by="", what="Changed in the file")
        return WholeFile(file=written.file, text="", digest=written.digest)

    async def _keep_version(self, written: WrittenText, *, by: str, what: str) -> None:
        """Keep a text of the file as a version, where it is not the newest; each secret in it is a mark."""
        names = await self._names(written.secrets)
        await self._services.store.note_configuration(
            self._configuration.path,
            at=time.time(),
            by=by,
            what=names.masker.text(what),
            digest=written.digest,
            text=names.shown(written.text),
            keep=VERSIONS,
        )

    async def _read_whole(self) -> WrittenText:
        """Return what is in the file, and know it where someone comes back with what they made of it."""
        written = await self._configuration.read()
        self._texts.keep("", written.text, identity=written.digest)
        return written

    async def parts(self, editor: Editor) -> EditableParts:
        """Return what an operator may edit by name.

        Raises:
            ConfigError: there is no file, or it cannot be read.
        """
        written = await self._configuration.read()
        whole = await asyncio.to_thread(self._configuration.value, written.text, ())  # a large file takes long to read
        roots: dict[str, tuple[str, ...]] = {name: (name,) for name in ("agents", "toolkits", "loadouts", "plugins")}
        roots["servers"] = self._configuration.servers(written.text)
        found = {name: list(_mapping_at(whole, path)) for name, path in roots.items()}
        own = [one.name for one in self._services.loader.specs.values() if one.name not in found["servers"]]
        found["plugins"] = sorted(dict.fromkeys((*own, *found["plugins"])))
        kept = {
            name: tuple([one for one in names if await self._may_edit(editor, (*roots[name], one))])
            for name, names in found.items()
        }
        return mask_value(EditableParts(**kept), await self._names(written.secrets))

    async def names_in(self, section: str) -> tuple[str, ...]:
        """Return the names of what a section of the file has; raises ``ConfigError`` where there is no file."""
        written = await self._configuration.read()
        return tuple(_mapping_at(await asyncio.to_thread(self._configuration.value, written.text, (section,)), ()))

    async def entry(self, editor: Editor, section: str, name: str) -> EditedEntry:
        """Return an entry of a section as it is written.

        Raises:
            ConfigError: there is no file, or it cannot be read.
            UsageError: it is for agents too that the editor does not see.
        """
        written = await self._configuration.read()
        path = self._path(section, name, written)
        if not await self._may_edit(editor, path):
            _require_every_agent(editor)
        names = await self._names(written.secrets)
        value = await asyncio.to_thread(self._configuration.value, written.text, path)
        return EditedEntry(path=path, value=_each_text(value, names.shown))

    def _path(self, section: str, name: str, written: WrittenText) -> tuple[str, ...]:
        root = self._configuration.servers(written.text) if section == "servers" else (section,)
        return (*root, name)

    async def _may_edit(self, editor: Editor, path: tuple[str, ...]) -> bool:
        """Return whether an editor may edit an entry as it is now; of a plugin its rules are meant."""
        if editor.agents is None:
            return True
        about = ConfigurationChange(path=(*path, "approve") if path[0] == "plugins" else path)
        reached = await edited_agents(self._services, [about], EditJudgement(problems=()), ())
        return reached is not None and reached <= editor.agents

    async def reference_for(self, name: str, value: str) -> str:
        """Return the reference under which a secret would be kept; raises ``ConfigError`` where that is not known."""
        return await self._configuration.reference_for(name, value)

    async def propose(
        self,
        editor: Editor,
        changes: Sequence[ConfigurationChange],
        *,
        what: str = "",
        kept: Mapping[str, str] = EMPTY,
    ) -> ProposedEdit:
        """Return what some changes would come to; nothing is written.

        ``kept`` are the secrets that are kept once the edit is saved, by their references.

        Raises:
            ConfigError: the file cannot be edited, or not without changing something else.
            UsageError: the editor may not edit for every agent that it would change something for.
        """
        written = await self._configuration.read()
        names = await self._names(written.secrets)
        meant, text = await asyncio.to_thread(self._edited, editor, written, changes, names)
        edit = await self._propose_edit(editor, written, text, meant, what or "Edit of the configuration")
        if kept:
            self._kept.change(edit.id, replace(self._find_edit(editor, edit.id), to_keep=dict(kept)))
        return edit

    def _edited(
        self, editor: Editor, written: WrittenText, changes: Sequence[ConfigurationChange], names: ShownNames
    ) -> tuple[tuple[ConfigurationChange, ...], str]:
        """Return changes with secrets in place of their marks, and the text with the changes in it."""
        meant = tuple(self._with_real_secrets(editor, written, change, names) for change in changes)
        return meant, self._configuration.edit_text(written.text, meant)

    def _with_real_secrets(
        self, editor: Editor, written: WrittenText, change: ConfigurationChange, names: ShownNames
    ) -> ConfigurationChange:
        """Return a change with secrets in place of their marks.

        Who sees some agents moves no secret, and no variable, to where it did not stand: a description is read.
        """
        there = self._configuration.value(written.text, change.path)
        value = _each_text(change.value, names.meant)
        if editor.agents is not None:
            new = self._new_names(written, change.path)
            if brings_secret(change.value, there, names) or any(names.shown(name) != name for name in new):
                raise _unknown_mark()
            if brings_variable(value, there) or brings_variable(new, None):
                _require_every_agent(editor)
        if _marks(value) > _marks(there):
            raise _unknown_mark()
        return replace(change, value=value)

    def _new_names(self, written: WrittenText, path: Sequence[str]) -> tuple[str, ...]:
        """Return the names in a path that lead to nothing yet."""
        value = self._configuration.value
        return tuple(part for depth, part in enumerate(path) if value(written.text, path[: depth + 1]) is None)

    async def propose_text(self, editor: Editor, text: str, *, expected: str, what: str = "") -> ProposedEdit:
        """Return what another text of the whole file would come to; nothing is written.

        Raises:
            ConfigError: the file cannot be edited, or was changed meanwhile.
            UsageError: the editor does not see every agent, or a mark in the text means nothing.
        """
        _require_every_agent(editor)
        written = await self._read_whole()
        if written.digest != expected:
            raise _changed_meanwhile(written.file)
        names = await self._names(written.secrets.union(*(kept.secrets for kept in self._kept.kept_by(editor.name))))
        ending = "\r\n" if "\r\n" in written.text else "\n"
        meant = names.meant(_with_plain_breaks(text).replace("\n", ending))
        if _marks(meant) > _marks(written.text):
            raise _unknown_mark()
        return await self._propose_edit(editor, written, meant, (), what or "Edit of the whole file")

    async def shown(self, editor: Editor, edit: str) -> ProposedEdit:
        """Return an edit as it was proposed; raises ``UsageError`` where there is none that this operator may see."""
        kept = self._find_edit(editor, edit)
        if kept.shown is None:
            raise _unknown_edit()
        if editor.agents is not None and (kept.agents is None or not kept.agents <= editor.agents):
            _require_every_agent(editor)
        return kept.shown

    async def typed_text(self, editor: Editor, edit: str) -> TypedText:
        """Return the text of an edit, secrets masked, with what others have changed meanwhile if that is elsewhere."""
        _require_every_agent(editor)
        kept = self._find_edit(editor, edit)
        return await self._over_the_file(kept.text, kept.expected, kept.secrets, masked=False)

    async def typed_over(self, editor: Editor, text: str, *, expected: str) -> TypedText:
        """Return a text that was typed, with what others have changed meanwhile if that is elsewhere."""
        _require_every_agent(editor)
        return await self._over_the_file(text, expected, frozenset(), masked=True)

    async def _over_the_file(self, text: str, expected: str, more: Iterable[str], *, masked: bool) -> TypedText:
        written = await self._read_whole()
        base = self._texts.find_kept("", expected)
        names = await self._names(written.secrets.union(more, self._configuration.secrets(base or "")))
        text = _with_plain_breaks(text if masked else names.shown(text))
        if written.digest == expected:
            return TypedText(file=written.file, text=text, digest=expected, made_from=expected)
        now = _with_plain_breaks(names.shown(written.text))
        was = _with_plain_breaks(names.shown(base)) if base is not None else None
        both = await asyncio.to_thread(merged_text, was, text, now) if was is not None else None
        return TypedText(
            file=written.file,
            text=text if both is None else both,
            digest=written.digest,
            made_from=expected if both is None else written.digest,
            now=now,
            others=_diff(_lines(was), _lines(now)) if was is not None else (),
            merged=both is not None,
        )

    async def again(self, editor: Editor, edit: str) -> ProposedEdit:
        """Return what an edit comes to in the file as it is now; raises what ``propose`` raises.

        Of one of the whole file that is what it changed, where no one else has changed the same lines.
        """
        kept = self._find_edit(editor, edit)
        if kept.changes:
            return await self.propose(editor, kept.changes, what=kept.what, kept=kept.to_keep)
        _require_every_agent(editor)
        base, written = self._texts.find_kept("", kept.expected), await self._read_whole()
        text = None
        if base is not None and kept.shown is not None:
            text = await asyncio.to_thread(merged_text, base, kept.text, written.text)
        if text is None:
            raise UsageError(
                "An edit of the whole file cannot be put into another one.",
                code="file_changed",
                hint="Look at what the file is now, and edit that.",
            )
        return await self._propose_edit(editor, written, text, (), kept.what)

    async def save(self, editor: Editor, edit: str) -> SavedEdit:
        """Save an edit as it was shown, take it up, and return what takes it back.

        Raises:
            ConfigError: the file was changed since it was shown, or cannot be written; it is left unchanged.
            UsageError: there is no such edit of this operator, or it has errors.
        """
        kept = self._find_edit(editor, edit)
        if kept.shown is not None and not kept.shown.saveable:
            raise UsageError("This edit cannot be saved as it is.", code="edit_refused", hint="Look at its problems.")
        if editor.agents is not None and (kept.agents is None or not kept.agents <= editor.agents):
            _require_every_agent(editor)
        before = await self._configuration.read()
        if before.digest != kept.expected:
            raise _changed_meanwhile(before.file)
        decision = "undone" if kept.undoes else "saved"
        reason = kept.reason if kept.shown is not None else await self._reason_back(kept)
        for reference, value in kept.to_keep.items():
            await self._configuration.keep_secret(reference, value)
        await self._keep_version(before, by="", what="Changed in the file")
        digest = await self._configuration.save(
            kept.text, expected=kept.expected, by=editor.name, decision=decision, reason=reason
        )
        after = replace(before, text=kept.text, digest=digest, secrets=before.secrets | kept.secrets)
        await self._keep_version(after, by=editor.name, what=f"Undo: {kept.what}" if kept.undoes else kept.what)
        self._kept.forget(edit)
        undo = self._kept.keep(
            editor.name,
            replace(
                kept,
                text=before.text,
                expected=digest,
                changes=(),
                undoes=not kept.undoes,
                to_keep=EMPTY,
                reason=reason,
                shown=None,
            ),
        )
        what = mask_value(kept.what, await self._names())
        return SavedEdit(file=before.file, what=what, digest=digest, undo=undo)

    async def _reason_back(self, kept: _KeptEdit) -> str:
        """Return what it changes to put a text back that was there before."""
        judgement = await self._configuration.judge_text(kept.text)
        return _reason(_own_changes(judgement)) if judgement.world is not None else f"takes back: {kept.reason}"

    # -- what is kept --------------------------------------------------------------------------

    def _find_edit(self, editor: Editor, edit: str) -> _KeptEdit:
        kept = self._kept.find_kept(editor.name, edit)
        if kept is None:
            raise _unknown_edit()
        return kept

    # -- what it comes to ----------------------------------------------------------------------

    async def _propose_edit(
        self, editor: Editor, written: WrittenText, text: str, changes: tuple[ConfigurationChange, ...], what: str
    ) -> ProposedEdit:
        judgement = await self._configuration.judge_text(text)
        agents = await self._changed_agents(judgement)
        reached = await edited_agents(self._services, changes, judgement, agents) if changes else None
        if editor.agents is not None and (reached is None or not reached <= editor.agents):
            _require_every_agent(editor)
        limited = editor.agents is not None
        own = _own_changes(judgement)
        listed = own if limited else judgement.changes
        problems = tuple(map(_without_others, judgement.added)) if limited else judgement.problems
        errors = sum(problem.severity == "error" for problem in judgement.problems)
        saveable = not errors and text != written.text
        secrets = judgement.secrets | await asyncio.to_thread(self._configuration.secrets, text)
        names = await self._names(written.secrets | secrets)
        kept = _KeptEdit(
            what=what,
            text=text,
            expected=written.digest,
            changes=changes,
            agents=reached,
            reason=_reason(own),
            secrets=secrets,
        )
        diff = await asyncio.to_thread(self._difference, written.text, text, changes if limited else None, names)
        identity = self._kept.keep(editor.name, kept)
        proposed = ProposedEdit(
            id=identity,
            what=what,
            file=written.file,
            digest=written.digest,
            diff=diff,
            problems=problems,
            errors=errors,
            grants=tuple(_shown_grant(change, judgement) for change in listed[:MOST_CHANGES]),
            more_grants=max(0, len(listed) - MOST_CHANGES),
            agents=agents,
            saveable=saveable,
        )
        shown = await asyncio.to_thread(mask_value, proposed, names)
        self._kept.change(identity, replace(kept, shown=shown))
        return shown

    def _difference(
        self, before: str, after: str, changes: Sequence[ConfigurationChange] | None, names: ShownNames
    ) -> tuple[DiffLine, ...]:
        """Return the lines that change; where there are changes, of the places that these are about alone."""
        if changes is None:
            return _diff(_lines(names.shown(before)), _lines(names.shown(after)))
        lines = _diff(self._edited_lines(before, changes, names), self._edited_lines(after, changes, names))
        return tuple(line for line in lines if line.kind != "place")

    def _edited_lines(self, text: str, changes: Iterable[ConfigurationChange], names: ShownNames) -> list[str]:
        """Return the lines of what some changes are about: what else stands beside it in the file is of others."""
        own: dict[str, Any] = {}
        for change in changes:
            *above, name = change.path
            beside = self._configuration.value(text, above)
            if not isinstance(beside, Mapping) or name not in beside:
                continue
            owner = own
            for key in above:
                owner = owner.setdefault(names.shown(key), {})
            owner[names.shown(name)] = _each_text(beside[name], names.shown)
        return self._configuration.lines(own)

    async def _changed_agents(self, judgement: EditJudgement) -> tuple[AgentChange, ...]:
        if judgement.world is None:
            return ()
        return await agent_changes(self._services, self._parsed, judgement.world)

    async def _names(self, more: Iterable[str] = ()) -> ShownNames:
        """Return how names are shown where more is secret than the configuration in force knows."""
        return (await shown_names(self._services)).with_masker(Masker(self._services.masker.values.union(more)))


def _shown_grant(change: GrantChange, judgement: EditJudgement) -> ShownGrant:
    return ShownGrant(text=str(change), widens=change.widens, waits=change in judgement.waiting)


def _without_others(problem: ShownProblem) -> ShownProblem:
    """Return a problem without names that were not written: they may be of agents that an operator does not see."""
    if problem.code == "unresolved_tool":
        problem = replace(problem, message=_MAY_BE_OF.sub(".", problem.message))
    return replace(problem, hint="") if problem.hint.startswith(SUGGESTS) else problem


def _own_changes(judgement: EditJudgement) -> tuple[GrantChange, ...]:
    """Return what an edit changes itself: what waited before it waits on, and is of whoever made it."""
    return tuple(change for change in judgement.changes if change not in judgement.waiting)


def _reason(changes: Sequence[GrantChange]) -> str:
    """Return what an edit changes of grants, for the audit trail."""
    if not changes:
        return "no grant changes"
    wider = sum(change.widens for change in changes)
    return f"{wider} wider, {len(changes) - wider} narrower: {'; '.join(map(str, changes))}"


def difference(before: str, after: str) -> tuple[DiffLine, ...]:
    """Return the lines that change between two texts, each with its kind, and some beside them."""
    return _diff(_lines(before), _lines(after))


def _diff(before: Sequence[str], after: Sequence[str]) -> tuple[DiffLine, ...]:
    """Return the lines that change, each with its kind, and some beside them."""
    lines = list(difflib.unified_diff(before, after, lineterm="", n=_AROUND))[2:]
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return tuple(DiffLine(kind=kinds.get(line[:1], "same"), text=line) for line in lines)


def _with_plain_breaks(text: str) -> str:
    return re.sub(r"\r\n|\r", "\n", text)


def _lines(text: str) -> list[str]:
    return re.split(r"\r?\n", text)


def _require_every_agent(editor: Editor) -> None:
    if editor.agents is not None:
        raise UsageError(
            "This edit changes agents that your token is not for.",
            code="every_agent_required",
            hint='Edit what belongs to your agents alone, or use a token with `agents: ["*"]`.',
        )


def _mapping_at(value: Any, path: Sequence[str]) -> Mapping[str, Any]:
    """Return the mapping at a path of keys, an empty one where there is none."""
    for key in path:
        value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """Return a plain value with every text in it changed, keys too."""
    match value:
        case str():
            changed = change(value)
            return changed if changed != value else value
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {_each_text(name, change): _each_text(inner, change) for name, inner in items}
        case list() | tuple():
            return [_each_text(inner, change) for inner in cast("Sequence[Any]", value)]
        case _:
            return value


def _marks(value: Any) -> int:
    return len(_LEFT.findall(str(value)))


def _unknown_mark() -> UsageError:
    return UsageError(
        "The placeholder does not match any value in the file.",
        code="unknown_mark",
        hint="Write the value, or ${NAME} for a variable.",
    )


def _unknown_edit() -> UsageError:
    return UsageError("There is no such edit.", code="unknown_edit", hint="Make it again: it is kept for an hour.")


def _changed_meanwhile(file: str) -> UsageError:
    return UsageError(
        f"{file} was changed in the meantime, so it was not overwritten.",
        code="file_changed",
        hint="Look at its current state, and decide again.",
    )
