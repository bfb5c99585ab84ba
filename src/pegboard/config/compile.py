"""From sections to core values, each with its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from pegboard.config.documents.document import Expanded, PathKey, YamlWord, is_mapping
from pegboard.config.documents.expansion import read_variables, references_as_written
from pegboard.config.location import SQLITE
from pegboard.config.schema.fetched import may_be_installed_first
from pegboard.config.schema.sections import (
    AgentSection,
    AuthSection,
    ConfineSection,
    DefaultsSection,
    File,
    LeaseSection,
    LimitsSection,
    LoadoutSection,
    PluginSection,
    RecordSection,
    ServerSection,
)
from pegboard.config.schema.validation import ValidatedDocument
from pegboard.config.schema.values import EntryWithOverrides, HookName
from pegboard.core.model.agents import HINT_TOKENS, Agent, Anticipate, Budget, DialectName, World
from pegboard.core.model.catalog import Catalog, split_kind
from pegboard.core.model.hooks import Hook
from pegboard.core.model.leases import IDLE_TURNS, TURN, UNLOAD, LeaseTerm
from pegboard.core.model.loadouts import BUILT_IN, Loadout, category_of
from pegboard.core.model.prices import Prices, millionths
from pegboard.core.model.recording import EVERYTHING, UNLESS_STATED, Recording
from pegboard.core.model.references import HOME, PARTS, ByReference, Reference
from pegboard.core.model.selectors import Member, member
from pegboard.core.model.specs import (
    CONFINE_DEFAULT,
    HTTP_SPACE,
    ApproveRule,
    Confinement,
    LoginSettings,
    PluginSettings,
    PythonSpec,
    ServerSpec,
)
from pegboard.core.model.toolkits import HOST_TOOLS, META_TOOLS, SHARED_ONLY, Toolkit
from pegboard.core.model.tools import EMPTY, Frozen, JsonObject, Plugin
from pegboard.core.principals.bearer_tokens import Token
from pegboard.support import user_folders
from pegboard.support.own_folder import store_of

NO_REFERENCES: Final[Mapping[tuple[PathKey, ...], Sequence[str | Reference]]] = {}
STARTED_WITHIN: Final = 60.0
INSTALLED_WITHIN: Final = 180.0
"""How long the start of a server may take, in seconds, where it says nothing of that."""
_DECIDING: Final = ("command", "args", "env", "cwd", "url", "headers", "auth", "type", "transport")


@dataclass(frozen=True, slots=True, kw_only=True)
class UncheckedConfig:
    """The core values of a file whose references have not been checked.

    ``written`` are the plugins of the file itself, ``settings`` what it says of registered ones, ``off``
    those that are switched off or written wrongly; ``loadouts`` are the ones that people wrote, by
    their case-folded names. ``added`` says where toolkits are written that are not the file's (T11); ``packaged``
    are the case-folded names of the loadouts that packages bring.
    """

    validated: ValidatedDocument[File]
    written: Mapping[str, ServerSpec | PythonSpec]
    toolkits: Mapping[str, Toolkit]
    loadouts: Mapping[str, Loadout]
    agents: Mapping[str, Agent]
    sub_apps: Mapping[str, tuple[Member, ...]]
    tokens: tuple[Token, ...]
    generated: bool = False
    settings: Mapping[str, PluginSettings] = field(default=EMPTY)
    off: frozenset[str] = field(default=frozenset())
    added: Mapping[str, ValidatedDocument[File]] = field(default=EMPTY)
    packaged: frozenset[str] = field(default=frozenset())

    def document_of(self, toolkit: str) -> ValidatedDocument[File]:
        """Return where a toolkit is written: the file, or what code or a package gives."""
        return self.added.get(toolkit, self.validated)

    def world(self, plugins: Iterable[Plugin]) -> World:
        """Return the world of these plugins, as far as a file says of it."""
        return World(
            catalog=Catalog(plugins),
            toolkits=self.toolkits,
            loadouts={**BUILT_IN, **self.loadouts},
            agents=self.agents,
            sub_apps=self.sub_apps,
        )


def compile_file(
    validated: ValidatedDocument[File],
    folder: Path,
    *,
    loadouts: Mapping[str, Loadout],
    unavailable: Mapping[str, str],
    filters: Mapping[str, dict[str, Any]],
    client: bool,
    in_view: Iterable[str] = (),
    references: Mapping[tuple[PathKey, ...], Sequence[str | Reference]] = NO_REFERENCES,
    variables: Callable[[Path], tuple[dict[str, str], str]] = read_variables,
) -> UncheckedConfig:
    """Return the core values of a file.

    ``client`` takes it for the file of an MCP client: every server is a toolkit of its own, and those
    that the client is to keep ``in_view`` are initial. ``references`` are the texts of servers with values that are
    read when they start, by their paths; ``variables`` reads an environment file. Where a file has no ``agents``
    section, one agent ``default`` may load everything that it names.
    """
    file = validated.section
    written: dict[str, ServerSpec | PythonSpec] = {
        name: replace(
            _server(name, part, folder, validated, _why_disabled(part) or unavailable.get(name, ""), variables),
            references=_by_reference(name, references, folder, validated) if references else (),
        )
        for name, part in file.servers.items()
        if part.disabled is not True
    }
    settings: dict[str, PluginSettings] = {}
    for name, part in file.plugins.items():
        said = _settings(name, part, validated, "plugins")
        said["confine"] = confinement(name, part.confine, folder)
        if part.python is None:
            settings[name] = PluginSettings(**said)
        else:
            written[name] = PythonSpec(**said, target=part.python, folder=str(folder))
    toolkits = {name: toolkit_of(name, validated) for name in file.toolkits}
    if client:
        toolkits = {name: _own_toolkit(spec, filters.get(name)) for name, spec in written.items()}
    own = {name.casefold(): loadout_of(name, part, validated, "loadouts", name) for name, part in file.loadouts.items()}
    return UncheckedConfig(
        validated=validated,
        written=written,
        toolkits=toolkits,
        loadouts={**loadouts, **own},
        agents=_agents(validated, tuple(toolkits), client=client, initial=tuple(n for n in in_view if n in toolkits)),
        sub_apps={
            n: tuple(_members(part.tool_names, validated, "sub_apps", n, "tool_names"))
            for n, part in file.sub_apps.items()
        },
        tokens=tuple(_tokens(validated)),
        generated=client,
        settings=settings,
        off=(validated.declared_names("servers") | validated.declared_names("plugins"))
        - written.keys()
        - settings.keys(),
    )


def _agents(
    validated: ValidatedDocument[File], toolkits: tuple[str, ...], *, client: bool, initial: tuple[str, ...]
) -> dict[str, Agent]:
    parts = validated.section.agents
    if parts is None and "agents" not in validated.raw:
        everything = () if client else ("*",)
        defaults = validated.section.defaults
        dialect = defaults.dialect or "pegboard"
        agent = Agent(
            name="default",
            allowed_toolkits=toolkits,
            initial_toolkits=initial,
            discoverable=everything,
            dialect=dialect,
            lease=lease_term(defaults.lease),
            hint_tokens=hint_tokens(AgentSection(), dialect),
            anticipate=anticipate(AgentSection(), defaults, dialect),
            search_loads=validated.section.search.load,
            remember=defaults.remember,
            record=merge_recording(UNLESS_STATED, validated.section.record),
            approval_expires=validated.section.approvals.expires,
            approvals_by=approvals_by(validated.section),
        )
        return {"default": agent}
    return {name: _agent(name, part, validated) for name, part in (parts or {}).items()}


def approvals_by(section: File) -> Literal["operator", "client"]:
    """Return who may answer calls that wait: where there are tokens someone else than a client is there (A5)."""
    return section.approvals.by or ("operator" if section.tokens else "client")


def _members(
    entries: Iterable[EntryWithOverrides], validated: ValidatedDocument[Any], *path: PathKey
) -> Iterable[Member]:
    for index, entry in enumerate(entries):
        yield member(*entry, place=validated.place(*path, index), written=entry.written)


def shared_only(name: str, stated: bool | None) -> bool:
    """Return whether a plugin works only where it is shared (P5)."""
    return name.casefold() in SHARED_ONLY if stated is None else stated


def _why_disabled(part: ServerSection) -> str:
    return f"it is switched off: {part.disabled}" if isinstance(part.disabled, str) else ""


def _server(
    name: str,
    part: ServerSection,
    folder: Path,
    validated: ValidatedDocument[File],
    unavailable: str,
    variables: Callable[[Path], tuple[dict[str, str], str]],
) -> ServerSpec:
    kind = part.type or part.transport or ""
    remote = part.url is not None and not (part.command is not None and kind in ("", "stdio", "local"))
    transport = "stdio" if not remote else "sse" if kind == "sse" else "http"
    given, lacks = ({}, "") if remote or part.env_file is None else variables(env_file_of(part.env_file, folder))
    cwd = folder / _expand_home(part.cwd) if part.cwd else None
    fetched = not remote and may_be_installed_first(part.command, part.args)
    return ServerSpec(
        **_settings(name, part, validated, "servers"),
        confine=None if remote else confinement(name, part.confine, folder, own=cwd),
        command=part.command if not remote else None,
        args=tuple(part.args),
        env=Frozen({**given, **part.env}),
        cwd=str(cwd) if cwd else None,
        url=part.url.strip(HTTP_SPACE) if remote and part.url is not None else None,
        headers=Frozen({header: value.strip(HTTP_SPACE) for header, value in part.headers.items()}),
        auth=_login(part.auth) if remote else None,
        written=_template_as_written(validated.raw["servers"][name], given),
        transport=transport,
        start=part.start if part.start is not None else INSTALLED_WITHIN if fetched else STARTED_WITHIN,
        fetched=fetched,
        message_limit=(part.limits or LimitsSection()).message,
        trust_annotations=part.trust == "annotations",
        pins=part.pins or validated.section.defaults.pins,
        unavailable=unavailable or lacks,
    )


def _template_as_written(raw: Any, given: Mapping[str, str]) -> str:
    """Return what of a server decides what runs and what is sent, as it is written, where it refers to variables."""
    said = {key: raw[key] for key in _DECIDING if key in raw} if is_mapping(raw) else {}
    found = references_as_written(said)
    return "" if found is None else json.dumps([found, dict(given)], sort_keys=True, default=str)


def _login(part: AuthSection | None) -> LoginSettings | None:
    if part is None:
        return None
    return LoginSettings(
        client_id=part.client_id,
        client_secret=part.client_secret,
        scopes=tuple(part.scopes),
        issuer=part.issuer,
        kind=part.kind,
    )


def may_refer(path: Sequence[PathKey]) -> bool:
    """Return whether what is at a path of a file may have values that are read when a server starts."""
    return len(path) > 2 and path[0] == "servers" and path[2] in PARTS


def _by_reference(
    name: str,
    references: Mapping[tuple[PathKey, ...], Sequence[str | Reference]],
    folder: Path,
    validated: ValidatedDocument[File],
) -> tuple[ByReference, ...]:
    """Return the texts of a server with values that are read when it starts; their paths start from ``folder``."""
    base = str(folder.absolute())
    return tuple(
        ByReference(
            part=part,
            key=path[3] if len(path) > 3 else "",
            pieces=tuple(_place_reference(piece, base) if isinstance(piece, Reference) else piece for piece in pieces),
            place=validated.document.place(path),
        )
        for path, pieces in references.items()
        for part in PARTS
        if path[1] == name and path[2] == part
    )


def _place_reference(reference: Reference, folder: str) -> Reference:
    """Return a reference whose path or command starts from a folder, or from the home folder where it says so."""
    at_home = reference.scheme == "file" and reference.target.startswith(HOME)
    return replace(reference, folder=str(_expand_home("~")) if at_home else folder)


def env_file_of(stated: str, folder: Path) -> Path:
    """Return where the environment file of a server lies."""
    return folder / _expand_home(stated)


def _expand_home(path: str) -> Path:
    """Return a path with its home folder; as it is where there is none, which `check` says."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def confinement(name: str, part: ConfineSection | None, folder: Path, own: Path | None = None) -> Confinement | None:
    """Return what a plugin is confined to (A7), None where the file does not say that it is.

    Paths start in ``folder``, that of the file; ``own`` is the folder of the plugin, where it has another one.
    Under a configuration of no project that is a folder for the data of this plugin alone.
    """
    if part is None:
        return None
    base = folder.absolute()
    of_plugin = own or (user_folders.data_of_plugin(name, base) if user_folders.is_of_user(base) else base)
    return Confinement(
        write=CONFINE_DEFAULT.write if part.write is None else tuple(str(base / _expand_home(p)) for p in part.write),
        read=tuple(str(base / _expand_home(path)) for path in part.read),
        network=part.network,
        if_possible=part.if_possible,
        scripts=part.scripts,
        folder=str(of_plugin.absolute()),
    )


def _settings(
    name: str, part: ServerSection | PluginSection, validated: ValidatedDocument[File], section: str
) -> dict[str, Any]:
    """Return what can be said of any plugin, as the fields of :class:`PluginSettings` (T10)."""
    return {
        "name": name,
        "category": part.category or category_of(name),
        "description": part.description,
        "prefix": part.prefix,
        "requires": Frozen({tool: tuple(others) for tool, others in part.requires.items()}),
        "policy": Frozen(part.policy),
        "needs": Frozen({tool: tuple(needs.env) for tool, needs in part.needs.items() if needs.env or not needs.when}),
        "when": Frozen({tool: needs.when for tool, needs in part.needs.items() if needs.when}),
        "guards": _guards(part),
        "approve": _approve(part),
        "approve_places": Frozen(
            {rule: validated.place(section, name, "approve", rule, key=True) for rule in part.approve}
        ),
        "default_on": part.default_on,
        "shared_only": shared_only(name, part.shared_only),
        "instance": "all" if isinstance(part, ServerSection) and part.shared else part.instance,
        "timeout": part.timeout,
        "idle": part.idle,
        "record": merge_recording(EVERYTHING, part.record),
        "place": validated.place(section, name, key=True),
    }


def _guards(part: ServerSection | PluginSection) -> JsonObject:
    return Frozen(
        {
            tool: {argument: rule.model_dump(exclude_none=True) for argument, rule in rules.items()}
            for tool, rules in part.guards.items()
        }
    )


def _approve(part: ServerSection | PluginSection) -> Mapping[str, ApproveRule]:
    return Frozen({tool: _frozen(rule) for tool, rule in part.approve.items()})


def _frozen(rule: Any) -> ApproveRule:
    return Frozen({key: _frozen(value) for key, value in rule.items()}) if is_mapping(rule) else rule


def toolkit_of(name: str, validated: ValidatedDocument[File]) -> Toolkit:
    """Return a toolkit of a file."""
    part = validated.section.toolkits[name]
    return Toolkit(
        name=name,
        description=part.description,
        members=tuple(_members(part.tools, validated, "toolkits", name, "tools")),
        policy="" if isinstance(part.policy, HookName) else part.policy,
        policy_hook=str(part.policy) if isinstance(part.policy, HookName) else "",
        focus=tuple(Frozen(rule.model_dump(exclude_none=True)) for rule in part.focus),
        label=part.label,
        icon=part.icon,
        share_with=tuple(dict.fromkeys(part.share_with)),
        place=validated.place("toolkits", name, key=True),
    )


def _own_toolkit(spec: ServerSpec | PythonSpec, overrides: dict[str, Any] | None) -> Toolkit:
    only = member(spec.name, overrides, place=spec.place)
    return Toolkit(name=spec.name, description=spec.description, members=(only,), place=spec.place)


def loadout_of(name: str, part: LoadoutSection, validated: ValidatedDocument[Any], *path: PathKey) -> Loadout:
    """Return a loadout that is at this path of a file."""
    return Loadout(
        name=name,
        parent=part.extends,
        plugins=tuple(part.plugins),
        categories=tuple(part.categories),
        discoverable=tuple(part.discoverable),
        disabled=tuple(part.disabled),
        place=validated.place(*path, key=True),
    )


def _agent(name: str, part: AgentSection, validated: ValidatedDocument[File]) -> Agent:
    budget, defaults = part.budget, validated.section.defaults
    dialect, dialect_reason = dialect_of(part, defaults)
    own = list(_members(part.tools, validated, "agents", name, "tools"))
    essential = tuple(_members(part.essential, validated, "agents", name, "essential"))
    taken = {split_kind(item.name)[1] for item in (*own, *essential)}
    shared = [m for m in _members(defaults.tools, validated, "defaults", "tools") if split_kind(m.name)[1] not in taken]
    meta = META_TOOLS - validated.declared_names("plugins") - validated.declared_names("servers")
    switches = {key: truth for key, value in part.permissions.items() if (truth := boolean(value)) is not None}
    places = {key: validated.place("agents", name, "permissions", key, key=True) for key in switches}
    return Agent(
        name=name,
        static=tuple(m for m in (*own, *shared) if m.name not in HOST_TOOLS | meta),
        essential=tuple(m for m in essential if m.name not in meta),
        host_tools=tuple(dict.fromkeys(m.name for m in (*own, *shared) if m.name in HOST_TOOLS)),
        may_delegate=tuple(dict.fromkeys(part.may_delegate)),
        allowed_toolkits=tuple(dict.fromkeys(part.allowed_toolkits)),
        initial_toolkits=tuple(dict.fromkeys(part.initial_toolkits)),
        loadout=part.loadout,
        discoverable=tuple(part.discoverable),
        sub_apps=tuple(dict.fromkeys(part.sub_apps)),
        self_config=tuple(dict.fromkeys(part.self_config.allow)) if part.self_config else (),
        switches=Frozen(switches),
        switch_places=Frozen(places),
        worker_scope=part.worker_scope,
        private_per=part.private.per if part.private else None,
        dialect=dialect,
        dialect_reason=dialect_reason,
        activation=part.activation,
        lease=lease_term(part.lease or defaults.lease),
        budget=Budget(tools=budget.tools, tokens=budget.tokens, shrink=budget.shrink) if budget else Budget(),
        hint_tokens=hint_tokens(part, dialect),
        unloaded_call=part.unloaded_call,
        anticipate=anticipate(part, defaults, dialect),
        search_loads=validated.section.search.load,
        turn_gap=part.turn_gap,
        approval_expires=validated.section.approvals.expires,
        approvals_by=approvals_by(validated.section),
        remember=defaults.remember if part.remember is None else part.remember,
        record=merge_recording(UNLESS_STATED, validated.section.record, part.record),
        display_name=part.display_name,
        role=part.role,
        model=part.model or "",
        provider_model=_provider_model(validated, part.model or "default"),
        prices=_prices(validated, part.model or "default"),
        rooms=tuple(part.rooms),
        place=validated.place("agents", name, key=True),
    )


def _provider_model(validated: ValidatedDocument[File], name: str) -> str:
    """Return a model of ``models:`` as ``provider:id``; these are free keys, and either may be missing."""
    model = validated.section.models.get(name, EMPTY)
    provider, known = model.get("provider"), model.get("id")
    return f"{provider}:{known}" if provider and known else ""


def _prices(validated: ValidatedDocument[File], name: str) -> Prices | None:
    """Return the prices of a model of ``models:``; None where it has none, or wrong ones, which is a problem."""
    written: Any = validated.section.models.get(name, EMPTY).get("prices")
    try:
        plain = millionths(written["input"])
        return Prices(
            input=plain,
            cached=millionths(written.get("cached", written["input"])),
            written=millionths(written.get("written", written["input"])),
            output=millionths(written["output"]),
            currency=str(written.get("currency", "USD")).strip(),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def boolean(value: Any) -> bool | None:
    """Return the value of a switch; None for what is not a boolean and counts as absent (P2)."""
    match value:
        case bool():
            return value
        case YamlWord():
            return value.truth
        case Expanded() if value.lower() in ("true", "false"):
            return value.lower() == "true"
        case _:
            return None


def _tokens(validated: ValidatedDocument[File]) -> Iterable[Token]:
    for principal, part in validated.section.tokens.items():
        agents = None if "*" in part.agents else tuple(part.agents)
        yield Token(
            principal=principal,
            value=part.token.strip(HTTP_SPACE),
            agents=agents,
            rights=frozenset(part.console),
            written=_text_as_written(validated.raw["tokens"][principal]["token"]),
            place=validated.place("tokens", principal, "token"),
        )


def _text_as_written(raw: Any) -> str:
    return references_as_written(raw) or ""


def hooks_of(validated: ValidatedDocument[File]) -> tuple[Hook, ...]:
    """Return who else is told what waits for a person."""
    return tuple(
        Hook(
            url=part.url,
            shape=part.shape,
            events=tuple(dict.fromkeys(part.events)),
            arguments=part.arguments,
            written=_text_as_written(validated.raw["notify"][index]["url"]),
            place=validated.place("notify", index),
        )
        for index, part in enumerate(validated.section.notify)
    )


def store_url(stated: str | None, configuration: Path) -> str:
    """Return the URL of the store of a configuration with an absolute path.

    >>> store_url("sqlite:////var/pegboard.db", Path("/home/ada/pegboard.yaml"))
    'sqlite:////var/pegboard.db'
    """
    if stated is None:
        return f"{SQLITE}{store_of(configuration)}"
    path = stated.removeprefix(SQLITE)
    if not stated.startswith(SQLITE) or path in ("", ":memory:"):
        return stated
    return f"{SQLITE}{configuration.absolute().parent / _expand_home(path)}"


def dialect_of(part: AgentSection, defaults: DefaultsSection) -> tuple[DialectName, str]:
    """Return the dialect of an agent, judged from the file alone, so that no switch changes it, and why.

    Where no one states one, an agent that loads toolkits and nothing else has that of seed 000. The reason is empty
    where one is stated, or where there are no toolkits that could decide it.
    """
    if part.dialect or defaults.dialect:
        return part.dialect or defaults.dialect or "pegboard", ""
    if not part.allowed_toolkits:
        return "pegboard", ""
    others = {"`loadout`": part.loadout is not None, "`discoverable`": part.discoverable, "`sub_apps`": part.sub_apps}
    beside = [key for key, value in others.items() if value]
    if beside:
        return "pegboard", f"{' and '.join(beside)} {'is' if len(beside) == 1 else 'are'} set beside `allowed_toolkits`"
    return "toolkits", "`allowed_toolkits` is set, and `loadout`, `discoverable` and `sub_apps` are not"


def merge_recording(start: Recording, *parts: RecordSection | None) -> Recording:
    """Return what is kept of calls (X4): of each key what the last of these sections says that has it."""
    for part in parts:
        if part is not None:
            start = replace(start, **part.model_dump(exclude_none=True))
    return start


def hint_tokens(part: AgentSection, dialect: DialectName) -> int | None:
    """Return the budget of hints: in the dialect of seed 002 there is none unless one is stated (F2)."""
    if part.hints is not None:
        return part.hints.tokens
    return None if dialect == "invokeother" else HINT_TOKENS


def lease_term(part: LeaseSection | None) -> LeaseTerm | None:
    """Return how long what is loaded stays, None where no one says so."""
    if part is None:
        return None
    match part.kind:
        case "turn":
            return TURN
        case "unload":
            return UNLOAD
        case "idle":
            return LeaseTerm("idle", IDLE_TURNS if part.turns is None else part.turns)


def anticipate(part: AgentSection, defaults: DefaultsSection, dialect: DialectName) -> Anticipate | None:
    """Return what an agent may load ahead: its own bounds, else those of all, else the dialect's."""
    chosen = part.anticipate if part.anticipate is not None else defaults.anticipate
    if chosen is None:
        return Anticipate() if dialect == "pegboard" else None
    return Anticipate(tools=chosen.tools, tokens=chosen.tokens) if chosen.tools and chosen.tokens else None
