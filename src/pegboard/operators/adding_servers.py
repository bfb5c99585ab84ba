"""Servers that operators add: found in what they paste or have, tried, and granted to agents (P10, X5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, cast

from pegboard.board.services import Services
from pegboard.core.model.loadouts import matches_pattern
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import EMPTY
from pegboard.errors import UsageError
from pegboard.operators.editable import ConfigurationChange
from pegboard.operators.editing import Editing, Editor, ProposedEdit
from pegboard.operators.kept_for_operators import KeptForOperators
from pegboard.operators.masked import Name, Verbatim, mask_value, shown_names

MOST_KEPT: Final = 50
"""How many drafts are kept over all operators."""
MOST_OF_ONE: Final = 20
"""How many of one; the oldest gives way."""
KEPT_FOR: Final = 3600.0
"""For how many seconds one is kept: what was pasted may hold secrets."""
MOST_SERVERS: Final = 50
GrantWay = Literal["needed", "always", "toolkit"]
"""How an agent gets a server: loaded when it needs it, always loaded, or as a toolkit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """A server in our own shape, with a reference in place of each secret; ``variables`` are those, by name.

    ``rule`` is which of its tools its client showed, ``unsupported_reason`` why it cannot be added, ``confine`` what it
    is confined to by default, None where it is not.
    """

    name: str
    entry: Mapping[str, Any] = field(repr=False)
    variables: Mapping[str, str] = field(default=EMPTY, repr=False)
    rule: Mapping[str, Any] = field(default=EMPTY)
    unsupported_reason: str = ""
    confine: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServers:
    """The servers of one text or file, whose it is, and what is wrong with it."""

    title: str
    file: str
    servers: tuple[FoundServer, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedTool:
    """A tool of a server that was tried; ``warnings`` are what its definition says to a model."""

    name: Name
    description: str
    tokens: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTrial:
    """What became of the trial of a server: its tools, or why there are none; ``seconds`` is how long it took."""

    name: Name
    ok: bool
    message: str
    seconds: float
    tools: tuple[TriedTool, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftVariable:
    """A variable in place of a secret that was pasted; ``is_set`` is whether Pegboard has it in its environment."""

    name: Name
    is_set: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftServer:
    """A server that may be added.

    Attributes:
        name: its name.
        suggested: the name under which it is added where no one chooses another: without characters that are not seen.
        target: its command, or its address.
        environment: the names of its variables.
        headers: the names of its headers.
        variables: those that stand in place of secrets.
        taken: whether the configuration has a server of this name.
        staying: why it cannot be added, or nothing.
        confined: whether it is confined where no one says otherwise.
        confinable: whether it can be: it is a program.
        trial: what became of its last trial.
    """

    name: Name
    suggested: Name
    target: str
    environment: tuple[str, ...]
    headers: tuple[str, ...]
    variables: tuple[DraftVariable, ...]
    taken: bool
    staying: str
    confined: bool
    confinable: bool
    trial: ServerTrial | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerDraft:
    """Servers that were found and are not in the configuration yet; ``agents`` are those that may be granted them."""

    id: Verbatim
    title: str
    file: str
    servers: tuple[DraftServer, ...]
    agents: tuple[Name, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientServers:
    """The servers of one client of this machine."""

    title: str
    file: str
    servers: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenServer:
    """How a server of a draft is added: under which name, and in place of another or not.

    ``plain`` are the variables whose secrets are written into the file, ``from_environment`` those that stay variables;
    all others are kept in the keyring or the store. ``confine`` is whether it is confined; None is what the draft has.
    """

    server: str
    name: str = ""
    replace: bool = False
    plain: tuple[str, ...] = ()
    from_environment: tuple[str, ...] = ()
    confine: bool | None = None


class ServerFinder(Protocol):
    """What finds and tries servers, as the assembly makes it."""

    async def read_pasted(self, text: str) -> FoundServers:
        """Return the servers of a text; raises ``ConfigError`` where it has none that can be read."""
        ...

    async def installed(self) -> tuple[FoundServers, ...]:
        """Return the servers of this machine's clients."""
        ...

    async def read_written(self, name: str, entry: Mapping[str, Any]) -> FoundServers:
        """Return a server that someone has written by hand."""
        ...

    async def try_server(self, name: str, entry: Mapping[str, Any], variables: Mapping[str, str]) -> ServerTrial:
        """Start a server as it would be started, with these variables beside the environment, and stop it."""
        ...

    def has_variable(self, variable: str) -> bool:
        """Return whether the environment has a variable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptDraft:
    found: FoundServers
    trials: Mapping[str, ServerTrial] = field(default=EMPTY)


class AddingServers:
    """The servers that operators of one board are about to add."""

    def __init__(self, services: Services, finder: ServerFinder, editing: Editing) -> None:
        self._services = services
        self._finder = finder
        self._editing = editing
        self._kept = KeptForOperators[_KeptDraft](seconds=KEPT_FOR, most=MOST_KEPT, most_of_one=MOST_OF_ONE)

    async def clients(self) -> tuple[ClientServers, ...]:
        """Return this machine's clients that have servers."""
        found = (
            ClientServers(title=one.title, file=one.file, servers=tuple(server.name for server in one.servers))
            for one in await self._finder.installed()
        )
        return mask_value(tuple(found), await shown_names(self._services))

    async def draft_from_paste(self, editor: Editor, text: str) -> ServerDraft:
        """Return the servers of a text as a draft; raises ``ConfigError`` where it has none that can be read."""
        return await self._store_draft(editor, await self._finder.read_pasted(text))

    async def import_from_client(self, editor: Editor, file: str) -> ServerDraft:
        """Return the servers of a client's file as a draft; raises ``UsageError`` where there is no such file."""
        found = next((one for one in await self._finder.installed() if one.file == file), None)
        if found is None:
            raise UsageError(
                "There is no such file of a client with servers.",
                code="unknown_name",
                hint="Load the page again.",
            )
        return await self._store_draft(editor, found)

    async def draft_from_form(self, editor: Editor, name: str, entry: Mapping[str, Any]) -> ServerDraft:
        """Return a server that was written by hand as a draft."""
        return await self._store_draft(editor, await self._finder.read_written(name, entry))

    async def draft(self, editor: Editor, draft: str) -> ServerDraft:
        """Return a draft; raises ``UsageError`` where there is none of this operator."""
        return await self._show_draft(editor, draft, self._find_draft(editor, draft))

    async def test(self, editor: Editor, draft: str, chosen: ChosenServer) -> ServerTrial:
        """Start a server of a draft as it would be started, and return what it has; it is stopped again.

        Raises:
            UsageError: there is no such draft, or no such server in it.
        """
        kept = self._find_draft(editor, draft)
        server = _server(kept, chosen.server)
        entry = _entry(server, replace(chosen, plain=()))
        trial = await self._finder.try_server(server.name, entry, server.variables)
        names = (await shown_names(self._services)).with_masker(self._masker(kept))
        trial = mask_value(trial, names)
        if (now := self._kept.find_kept(editor.name, draft)) is not None:
            self._kept.change(draft, replace(now, trials={**now.trials, server.name: trial}))
        return trial

    async def propose(
        self, editor: Editor, draft: str, chosen: Sequence[ChosenServer], agents: Sequence[str], grant: GrantWay
    ) -> ProposedEdit:
        """Return what it would come to to add servers and grant them to agents; nothing is written.

        Raises:
            UsageError: there is no such draft, no such server in it, or a server of this name in the configuration.
            ConfigError: the file cannot be edited.
        """
        kept = self._find_draft(editor, draft)
        if not chosen:
            raise UsageError("No server is chosen.", code="edit_form", hint="Choose one.")
        changes: list[ConfigurationChange] = []
        toolkits: dict[str, Any] = {}
        secrets: dict[str, str] = {}
        for one in chosen:
            server, name = _server(kept, one.server), one.name or _suggest_name(one.server)
            if server.unsupported_reason:
                raise UsageError(f"'{server.name}' cannot be added: {server.unsupported_reason}.", code="edit_form")
            there = await self._editing.entry(editor, "servers", name)
            if there.value is not None and not one.replace:
                hint = "Give it another name, or let it replace that one."
                raise UsageError("The configuration has a server of this name.", code="server_exists", hint=hint)
            references = await self._references(server, one)
            secrets |= {text: server.variables[variable] for variable, text in references.items()}
            changes.append(
                ConfigurationChange(path=there.path, value=_fill_texts(_entry(server, one), references, raw=True))
            )
            toolkits[name] = [{name: dict(server.rule)}] if server.rule else [name]
        for agent in agents:
            changes += await self._grant_changes(editor, agent, toolkits, grant)
        what = (
            f"Add {'server' if len(chosen) == 1 else 'servers'} {', '.join(one.name or one.server for one in chosen)}"
        )
        return await self._editing.propose(editor, _without_duplicates(changes), what=what, kept=secrets)

    async def _references(self, server: FoundServer, chosen: ChosenServer) -> dict[str, str]:
        """Return the references of the secrets that are kept, by the variables in whose place they stand."""
        elsewhere = {*chosen.plain, *chosen.from_environment}
        wanted = {name: value for name, value in server.variables.items() if name not in elsewhere and value}
        return {name: await self._editing.reference_for(name, value) for name, value in wanted.items()}

    async def _grant_changes(
        self, editor: Editor, agent: str, toolkits: Mapping[str, Any], grant: GrantWay
    ) -> list[ConfigurationChange]:
        """Return what grants servers to an agent; what it has already is not written again."""
        found = await self._editing.entry(editor, "agents", agent)
        if found.value is None:
            raise UsageError("The configuration has no such agent.", code="unknown_agent")
        profile = cast("dict[str, Any]", found.value) if isinstance(found.value, dict) else {}
        by_toolkit = grant == "toolkit" or (grant == "needed" and _by_toolkits_alone(profile))
        key = "tools" if grant == "always" else "allowed_toolkits"
        changes: list[ConfigurationChange] = []
        lists: dict[str, list[Any]] = {}
        for name, members in toolkits.items():
            if grant == "needed" and not by_toolkit and not isinstance(members[0], dict):
                patterns = lists.setdefault("discoverable", list(profile.get("discoverable") or ()))
                if not any(isinstance(one, str) and matches_pattern(one, name) for one in patterns):
                    patterns.append(name)
                continue
            items = lists.setdefault(key, list(profile.get(key) or ()))
            added = members[0] if grant == "always" else name
            if added not in items:
                items.append(added)
            if grant != "always":
                kit = {"description": f"Tools of {name}", "tools": members}
                changes.append(ConfigurationChange(path=("toolkits", name), value=kit))
        lists = {part: items for part, items in lists.items() if items != list(profile.get(part) or ())}
        return [
            *changes,
            *(ConfigurationChange(path=(*found.path, part), value=items) for part, items in lists.items()),
        ]

    # -- what is kept --------------------------------------------------------------------------

    async def _store_draft(self, editor: Editor, found: FoundServers) -> ServerDraft:
        found = replace(found, servers=found.servers[:MOST_SERVERS])
        kept = _KeptDraft(found=found)
        shown = await self._show_draft(editor, "", kept)
        return replace(shown, id=self._kept.keep(editor.name, kept))

    def _find_draft(self, editor: Editor, draft: str) -> _KeptDraft:
        kept = self._kept.find_kept(editor.name, draft)
        if kept is None:
            raise UsageError(
                "There is no such draft.",
                code="unknown_edit",
                hint="Paste the servers again: it is kept an hour.",
            )
        return kept

    async def _show_draft(self, editor: Editor, draft: str, kept: _KeptDraft) -> ServerDraft:
        parts = await self._editing.parts(editor)
        names = (await shown_names(self._services)).with_masker(self._masker(kept))
        servers = tuple(self._server_shown(one, kept, parts.servers) for one in kept.found.servers)
        shown = ServerDraft(
            id=draft,
            title=kept.found.title,
            file=kept.found.file,
            servers=servers,
            agents=(),
            problems=kept.found.problems,
        )
        return replace(mask_value(shown, names), agents=parts.agents)

    def _server_shown(self, server: FoundServer, kept: _KeptDraft, there: Sequence[str]) -> DraftServer:
        entry = server.entry
        words = [str(entry["command"]), *map(str, entry.get("args") or ())] if entry.get("command") else []
        return DraftServer(
            name=server.name,
            suggested=_suggest_name(server.name),
            target=" ".join(words) or str(entry.get("url") or ""),
            environment=tuple(_names_of(entry.get("env"))),
            headers=tuple(_names_of(entry.get("headers"))),
            variables=tuple(DraftVariable(name=one, is_set=self._finder.has_variable(one)) for one in server.variables),
            taken=server.name in there,
            staying=server.unsupported_reason,
            confined=server.confine is not None,
            confinable=bool(entry.get("command")),
            trial=kept.trials.get(server.name),
        )

    def _masker(self, kept: _KeptDraft) -> Masker:
        """Return what hides the secrets that were pasted, too."""
        pasted = (secret for server in kept.found.servers for secret in server.variables.values())
        return Masker(self._services.masker.values.union(pasted))


def _suggest_name(name: str) -> str:
    """Return a name without characters that are not seen, or that turn others around."""
    return "".join(character for character in name if character.isprintable()).strip() or "server"


def _server(kept: _KeptDraft, name: str) -> FoundServer:
    found = next((server for server in kept.found.servers if server.name == name), None)
    if found is None:
        raise UsageError("The draft has no such server.", code="unknown_name", hint="Load the page again.")
    return found


def _entry(server: FoundServer, chosen: ChosenServer) -> dict[str, Any]:
    """Return a server as it is written: secrets that are to stand in it, and what it is confined to."""
    plain = {name: server.variables[name] for name in chosen.plain if name in server.variables}
    entry = {key: _fill_texts(value, plain) for key, value in server.entry.items()}
    wanted = server.confine is not None if chosen.confine is None else chosen.confine
    if not wanted:
        entry.pop("confine", None)
    elif entry.get("command"):
        entry["confine"] = server.confine if server.confine is not None else True
    return entry


def _fill_texts(value: Any, texts: Mapping[str, str], *, raw: bool = False) -> Any:
    """Return a value with texts in place of variables; those that are ``raw`` may refer to something."""
    match value:
        case str():
            for name, text in texts.items():
                value = value.replace(f"${{{name}}}", text if raw else text.replace("${", "$${"))
            return value
        case dict():
            return {name: _fill_texts(inner, texts, raw=raw) for name, inner in cast("dict[str, Any]", value).items()}
        case list():
            return [_fill_texts(inner, texts, raw=raw) for inner in cast("list[Any]", value)]
        case _:
            return value


def _by_toolkits_alone(profile: Mapping[str, Any]) -> bool:
    """Return whether an agent loads toolkits only: a plugin that it may load by name would be another dialect."""
    others = ("dialect", "loadout", "discoverable", "sub_apps")
    return bool(profile.get("allowed_toolkits")) and not any(profile.get(key) for key in others)


def _names_of(pairs: Any) -> Iterator[str]:
    return iter(cast("dict[str, Any]", pairs)) if isinstance(pairs, dict) else iter(())


def _without_duplicates(changes: Sequence[ConfigurationChange]) -> list[ConfigurationChange]:
    """Return changes without those that are there already."""
    found: list[ConfigurationChange] = []
    for change in changes:
        if change not in found:
            found.append(change)
    return found
