"""Every section of a configuration, as it is written."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from pegboard.config.documents.document import is_mapping
from pegboard.config.schema.expressions import pattern_fault
from pegboard.config.schema.values import (
    MODEL_KEYS,
    Address,
    ApproveRule,
    ByteSize,
    Count,
    Days,
    Disabled,
    Entries,
    Flag,
    FunctionName,
    KeptSize,
    Model,
    Name,
    NamedStore,
    NameList,
    NeedsOfPlugin,
    Network,
    OperatorRights,
    PolicyValue,
    Rules,
    Seconds,
    SwitchedBounds,
    SwitchedOn,
    TextValue,
    bad,
)
from pegboard.core.model.addresses import STORE_GRACE
from pegboard.core.model.specs import PLUGIN_TIMEOUT

Transport = Literal["stdio", "http", "sse", "streamable-http", "streamableHttp", "streamable_http", "local", "remote"]
SwitchValue = Annotated[Any, WithJsonSchema({"type": "boolean"})]


def _optional(description: str, **rest: Any) -> Any:
    """Return an optional field, with what editors show of it."""
    rest = rest or {"default": None}
    return Field(description=description, **rest)


class Section(BaseModel):
    """One mapping of the file: known keys only; one without a value is as if it were not there."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, hide_input_in_errors=True, populate_by_name=True
    )

    @model_validator(mode="before")
    @classmethod
    def _without_empty_keys(cls, data: Any) -> Any:
        if data is None:
            return {}
        if not is_mapping(data):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in known_keys(cls)}


def known_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that may be written in a section."""
    keys = _KEYS.get(model)
    if keys is None:
        keys = _KEYS[model] = tuple(field.alias or name for name, field in model.model_fields.items())
    return keys


_KEYS: dict[type[BaseModel], tuple[str, ...]] = {}


def every_key() -> frozenset[str]:
    """Return the keys that may be written in any section, names that an author chooses not among them."""
    return MODEL_KEYS.union(key for section in Section.__subclasses__() for key in known_keys(section))


class TokenSection(Section):
    """Tokens of the gateway: who may use which agents."""

    token: TextValue = Field(
        description="The bearer token, or sha256: and its digest; write ${NAME} to take it from the environment."
    )
    agents: NameList = Field(description='The agents that this principal may use; "*" for all.')
    console: OperatorRights = _optional(
        "What this principal may do as an operator, of these agents: see, approve, switch, configure. "
        "true is see, approve and switch.",
        default=(),
    )


class GuardRule(Section):
    """What an argument may be."""

    allow: list[TextValue] | None = _optional("One of these patterns must match.")
    deny: list[TextValue] = _optional("None of these patterns may match.", default_factory=list)


class LimitsSection(Section):
    """What a server may send."""

    message: ByteSize = _optional(
        "The largest size of one message, uncompressed: 32MiB, 500kB.", default=32 * 1024 * 1024
    )


class Needs(Section):
    """What a tool cannot work without."""

    env: NameList = _optional("Environment variables.", default_factory=list)
    when: FunctionName | None = _optional("A function that says whether it can run now: module:function.")


def _instance_of_plugin(value: object) -> object:
    if value == "store":
        raise bad(
            "`instance: store` is one over all replicas, which only a server with a `command` can be.",
            "Write `instance: all` for one in each process.",
        )
    return value


InstanceOf = Annotated[Literal["session", "client", "principal", "all"], BeforeValidator(_instance_of_plugin)]
InstanceOfServer = Literal["session", "client", "principal", "all", "store"]
INSTANCE = "Who shares what it constructs, or its connections: one for each session, client or principal, or for all."
INSTANCE_OF_SERVER = (
    "Who shares its process or connection: one for each session, client or principal, for all of a process, or over "
    "all processes on one store."
)


class ConfineSection(Section):
    """What the process of a plugin may reach, besides the system, its program, and caches of its own."""

    write: list[TextValue] | None = _optional(
        "The only folders and files that it may change, relative to this file. [default: its own folder]"
    )
    read: list[TextValue] = _optional("What else it may read, relative to this file.", default_factory=list)
    network: Network | None = _optional(
        "none, or the only TCP ports that it may use. [default: the network without limits, but no Unix sockets]"
    )
    if_possible: Flag = _optional("Run it unconfined where the system cannot confine it.", default=False)
    scripts: Flag = _optional(
        "Let its package run its own scripts, unconfined, while it is installed (npx, uvx, pipx).", default=False
    )


ConfineValue = Annotated[ConfineSection | None, SwitchedOn]
CONFINE = "What its process may reach: true for its own folder, caches and temporary files, or what exactly."

PinsValue = Literal["additions", "ask", "trust"]
PINS = "Changed tools wait for a person; new ones pass, wait too (ask), or all pass (trust)."

NEEDS = "What a tool needs, by its name; without a name, what all of them need."


class AuthSection(Section):
    """How a remote server is logged in to, where it does not say so itself."""

    client_id: TextValue = _optional("The client id that was registered with its issuer.", default="")
    client_secret: TextValue = _optional("The secret of that client, or its private key in PEM.", default="")
    scopes: NameList = _optional(
        "Scopes that a login requests in addition to those of the server.", default_factory=list
    )
    issuer: TextValue = _optional("Which issuer, if the server names several.", default="")
    kind: Literal["code", "client_credentials", "private_key_jwt", "none"] = _optional(
        "code (a person logs in), client_credentials or private_key_jwt (the gateway does), or none.", default="code"
    )


class RecordSection(Section):
    """What is kept of calls beside their lines of the audit trail, masked.

    Of one that worked and asked no one that is nothing, unless arguments or results are kept.
    """

    errors: Flag | None = _optional("Whether error texts are kept. [default: true]")
    arguments: Flag | None = _optional(
        "Whether arguments are kept; a call can be tried again only with them. [default: false]"
    )
    results: KeptSize | None = _optional("How much is kept of each result: 4kB, 100kB; 0 for nothing. [default: 0]")
    days: Days | None = _optional("For how many days it is kept. [default: 7]")


RECORD = "What is stored of its calls at most; the stricter of this and the agent's is used."


class ServerSection(Section):
    """An MCP server, in the shape that every MCP client uses."""

    command: TextValue | None = _optional("The program to start (stdio).")
    args: list[TextValue] = _optional("Its arguments.", default_factory=list)
    env: dict[str, TextValue] = _optional("Its environment.", default_factory=dict)
    env_file: TextValue | None = _optional(
        "A file of lines NAME=VALUE for its environment, relative to this file.", alias="envFile", default=None
    )
    cwd: TextValue | None = _optional("The folder to start it in, relative to this file.")
    url: TextValue | None = _optional("The address of a remote server (HTTP).")
    headers: dict[str, TextValue] = _optional("HTTP headers to send with every request.", default_factory=dict)
    auth: AuthSection | None = _optional("How to log in to it, if it does not say so itself.")
    type: Transport | None = _optional("Its transport. [default: by `command` or `url`]")
    transport: Transport | None = _optional("Another name for `type`.")
    timeout: Seconds = _optional("How long one request may take: 60s, 2m, 500ms.", default=60.0)
    start: Seconds | None = _optional("How long its start may take: 60s; 3m if a package is installed first.")
    limits: LimitsSection | None = _optional("Limits for what it sends.")
    idle: Seconds | None = _optional("How long its process or connection is kept without a request: 10m, 90s.")
    disabled: Disabled = _optional("Do not use the server: true, or a sentence that says why.", default=False)
    auto_approve: NameList = _optional(
        "Tools that a client calls without asking; only the client reads this.",
        alias="autoApprove",
        default_factory=list,
    )
    always_allow: NameList = _optional(
        "Tools that a client calls without asking; only the client reads this.",
        alias="alwaysAllow",
        default_factory=list,
    )
    description: TextValue = _optional("What the server is for.", default="")
    category: Name | None = _optional("Its category, one of the thirteen or your own.")
    prefix: TextValue | None = _optional('The prefix before `__` in the names of its tools; "" for none.')
    shared: Flag = _optional("Let several principals share one process: `instance: all`.", default=False)
    instance: InstanceOfServer | None = _optional(INSTANCE_OF_SERVER)
    confine: ConfineValue = _optional(CONFINE)
    requires: dict[str, NameList] = _optional("Tools that a tool brings with it.", default_factory=dict)
    policy: dict[str, TextValue] = _optional("Policy text for the model while a tool is visible.", default_factory=dict)
    needs: Annotated[dict[str, Needs], NeedsOfPlugin] = _optional(NEEDS, default_factory=dict)
    guards: dict[str, dict[str, GuardRule]] = _optional(
        "By tool and argument: allowed and denied patterns.", default_factory=dict
    )
    approve: dict[str, ApproveRule] = _optional(
        "By tool, or pattern of tools: when a person approves a call first.", default_factory=dict
    )
    trust: Literal["annotations"] | None = _optional("Trust the annotations of its tools, as first seen.")
    pins: PinsValue | None = _optional(PINS)
    record: RecordSection | None = _optional(RECORD)
    default_on: Flag = _optional("Whether its granted tools are on if no switch is set.", default=True)
    shared_only: Flag | None = _optional("Refuse it to agents with a worker scope (`worker_scope`, `private`).")

    @model_validator(mode="after")
    def _shared_by_all(self) -> ServerSection:
        if self.shared and self.instance not in (None, "all"):
            raise bad(f"`shared: true` contradicts `instance: {self.instance}`.", "Remove one of them.")
        if self.instance == "store" and self.url is not None:
            raise bad(
                "`instance: store` is one process for all replicas, but a server with a `url` is not started by them.",
                "Write `instance: all`.",
            )
        return self


class PluginSection(Section):
    """A plugin written in Python, or without `python` what is said of a registered one."""

    python: Name | None = _optional(
        "A module, or module:object (a function, a class or a factory); without it, the plugin registered by this name."
    )
    description: TextValue = _optional("What the plugin is for.", default="")
    category: Name | None = _optional("Its category, one of the thirteen or your own.")
    prefix: TextValue | None = _optional("The prefix before `__` in the names of its tools.")
    requires: dict[str, NameList] = _optional("Tools that a tool brings with it.", default_factory=dict)
    policy: dict[str, TextValue] = _optional("Policy text for the model while a tool is visible.", default_factory=dict)
    needs: Annotated[dict[str, Needs], NeedsOfPlugin] = _optional(NEEDS, default_factory=dict)
    guards: dict[str, dict[str, GuardRule]] = _optional(
        "By tool and argument: allowed and denied patterns.", default_factory=dict
    )
    approve: dict[str, ApproveRule] = _optional(
        "By tool, or pattern of tools: when a person approves a call first.", default_factory=dict
    )
    default_on: Flag = _optional("Whether its granted tools are on if no switch is set.", default=True)
    shared_only: Flag | None = _optional("Refuse it to agents with a worker scope (`worker_scope`, `private`).")
    instance: InstanceOf | None = _optional(INSTANCE)
    timeout: Seconds = _optional("How long one call, or its construction, may take: 120s, 10m.", default=PLUGIN_TIMEOUT)
    idle: Seconds | None = _optional("How long its instance is kept without a call: 1h, 90s.")
    confine: ConfineValue = _optional(CONFINE)
    record: RecordSection | None = _optional(RECORD)


class FocusRule(Section):
    """When to narrow a step to some tools."""

    when: TextValue | None = _optional("A regular expression; the rule applies where the message matches it.")
    tools: NameList = _optional("The tools to narrow to; without it, all of the toolkit.", default_factory=list)
    choice: Literal["auto", "required"] = _optional("Whether the model must call one of them.", default="auto")
    python: FunctionName | None = _optional("A hook instead of a rule: module:function.")

    @field_validator("when")
    @classmethod
    def _is_a_pattern(cls, value: str | None) -> str | None:
        if fault := pattern_fault(value or ""):
            raise bad(f"is not a regular expression: {fault}.")
        return value

    @model_validator(mode="after")
    def _one_of_both(self) -> FocusRule:
        if (self.when is None) == (self.python is None):
            raise bad("a focus rule needs either `when` or `python`.", "Write {when: pattern, tools: [name]}.")
        return self


class ToolkitSection(Section):
    """Tools that are granted, loaded and switched as one."""

    description: TextValue = _optional("Its description for the model in lists.", default="")
    tools: Entries = _optional("Its members.", default_factory=list)
    policy: PolicyValue = _optional(
        "Policy text for the model while a member is visible, {tools} being the visible ones; or its hook.",
        default="",
    )
    focus: Annotated[list[FocusRule], Rules] = _optional(
        "When to narrow a step to some of its tools: a rule, or a list of rules.", default_factory=list
    )
    label: TextValue = _optional("Its name for people.", default="")
    icon: TextValue = _optional("Its icon for people.", default="")
    share_with: NameList = _optional(
        "At least two agents that share its loads and unloads in one session.", default_factory=list
    )


class LoadoutSection(Section):
    """What a kind of agent has."""

    extends: Name | None = _optional("The loadout that this one builds on.")
    categories: NameList = _optional("Categories whose plugins are active.", default_factory=list)
    plugins: NameList = _optional("Plugins that are active.", default_factory=list)
    discoverable: NameList = _optional("Plugins that may be loaded by name: name, prefix* or *.", default_factory=list)
    disabled: NameList = _optional(
        "Plugins that are always excluded, even if something else grants them.", default_factory=list
    )


class SubAppSection(Section):
    """What a session that is opened for a sub-app has besides."""

    tool_names: Entries = _optional("Its tools.", default_factory=list)


class AnticipateSection(Section):
    """How much one message of the user may load before anyone asks for it."""

    tools: Count = _optional("How many tools.", default=5)
    tokens: Count = _optional("The largest number of tokens of schemas.", default=1000)


Anticipated = Annotated[AnticipateSection, SwitchedBounds]
DialectName = Literal["pegboard", "toolkits", "invokeother", "discovery"]
ANTICIPATE = "What a message may load in advance, or false; by default only in the pegboard dialect."


class LeaseSection(Section):
    """How long loaded tools stay loaded."""

    kind: Literal["turn", "idle", "unload"] = _optional(
        "For one turn, while in use, or until unloaded.", default="idle"
    )
    turns: Count | None = _optional("How many turns without use are allowed (kind: idle).")

    @model_validator(mode="after")
    def _turns_belong_to_idle(self) -> LeaseSection:
        if self.turns is not None and self.kind != "idle":
            raise bad(f"`turns` has no meaning with `kind: {self.kind}`.", "Remove it, or write `kind: idle`.")
        return self


class DefaultsSection(Section):
    """What every agent has."""

    tools: Entries = _optional(
        "Static tools of every agent; an agent's own entry of the same name replaces one.", default_factory=list
    )
    anticipate: Anticipated | None = _optional(ANTICIPATE)
    dialect: DialectName | None = _optional("The dialect of agents that set none.")
    lease: LeaseSection | None = _optional("The lease of agents that set none.")
    pins: PinsValue = _optional("`pins` of servers that set none.", default="additions")
    remember: Flag = _optional(
        "Whether searches learn from which tool was called after them, if the agent does not say.", default=True
    )


class BudgetSection(Section):
    """How much may be loaded at once."""

    tools: Count | None = _optional("How many tools.")
    tokens: Count | None = _optional("How many tokens of schemas and text.")
    shrink: Flag = _optional("Use a smaller loadout if it does not fit.", default=False)


class HintsSection(Section):
    """How much text describes tools that are not loaded."""

    tokens: Count = _optional("How many tokens.", default=1500)


class PrivateSection(Section):
    """For whom the agent works apart."""

    per: Name = Field(description="user, or another unit of isolation.")


class SelfConfigSection(Section):
    """What an agent may change of itself, through the tool `self_config`."""

    allow: list[Literal["switches", "loadout", "initial_toolkits", "lease"]] = _optional(
        "Which settings it may change; without any, it may only read them.", default_factory=list
    )


class AgentSection(Section):
    """The profile of an agent."""

    display_name: TextValue = _optional("Its name for people.", default="")
    role: TextValue = _optional("What it is for.", default="")
    model: Name | None = _optional("One of `models`.")
    rooms: NameList = _optional("Where it is used.", default_factory=list)
    tools: Entries = _optional("Static tools: always loaded.", default_factory=list)
    essential: Entries = _optional("Tools that nothing can remove.", default_factory=list)
    allowed_toolkits: NameList = _optional("Toolkits that it may load.", default_factory=list)
    initial_toolkits: NameList = _optional(
        "Toolkits that are loaded from the start and stay; all of them allowed ones.", default_factory=list
    )
    loadout: Name | None = _optional("Its loadout.")
    discoverable: NameList = _optional("Plugins that it may load by name: name, prefix* or *.", default_factory=list)
    sub_apps: NameList = _optional("Sub-apps that clients may open of it.", default_factory=list)
    permissions: dict[str, SwitchValue] = _optional(
        "Switches: names of toolkits, plugins or tools, true or false.", default_factory=dict
    )
    worker_scope: Literal["shared", "user", "user_agent"] = _optional("Who shares one worker.", default="shared")
    private: PrivateSection | None = _optional("Keep a separate worker for each of these.")
    dialect: DialectName | None = _optional(
        "The family of meta-tools through which the model manages its tools. [default: as `defaults` says, else "
        "toolkits where it has toolkits and nothing else to load from, else pegboard]"
    )
    activation: Literal["next_step", "next_request"] | None = _optional("When a change takes effect.")
    lease: LeaseSection | None = _optional("How long loaded tools stay loaded.")
    budget: BudgetSection | None = _optional("How much may be loaded at once.")
    hints: HintsSection | None = _optional("How much text describes tools that are not loaded.")
    unloaded_call: Literal["safe", "schema", "run", "reject"] = _optional(
        "What happens when a tool is called that is not loaded.", default="safe"
    )
    anticipate: Anticipated | None = _optional(ANTICIPATE)
    may_delegate: NameList = _optional(
        "Agents that work for it with their own permissions; others are limited to its permissions.",
        default_factory=list,
    )
    self_config: SelfConfigSection | None = _optional("What it may change of itself, where it lists `self_config`.")
    record: RecordSection | None = _optional(
        "What is stored of its calls. [default: each key as in the top-level `record`]"
    )
    turn_gap: Seconds = _optional("After how long without a call a turn ends in the gateway.", default=120.0)
    remember: Flag | None = _optional(
        "Whether its searches learn from which tool was called after them. [default: as in `defaults`]"
    )


class SearchSection(Section):
    """How tools are found."""

    load: Flag = _optional("Whether a search loads the tool that answers a need best.", default=True)


class ApprovalsSection(Section):
    """Rules for calls that wait for approval."""

    expires: Seconds = _optional(
        "How long a call may wait, and how long an approval is valid: 1h, 15m.", default=3600.0
    )
    by: Literal["operator", "client"] | None = _optional(
        "Who may answer: an operator only, or also the user of the client, where the client can ask; by default the "
        "latter where there are no tokens.",
        default=None,
    )


class NotifySection(Section):
    """An address that is sent a message where a call waits for a person, or something else needs one."""

    url: Address = _optional("The URL that gets the message: https://…, secrets in it as ${NAME}.", default=...)
    shape: Literal["json", "ntfy", "slack"] = _optional("The format of the receiver.", default="json")
    events: Annotated[tuple[Literal["approval", "attention"], ...], Field(strict=False, min_length=1)] = _optional(
        "What is sent: calls that wait for approval, other things that need a person.",
        default=("approval", "attention"),
    )
    arguments: Flag = _optional("Whether the arguments of the call are sent too, secrets masked.", default=False)


class StoreSection(Section):
    """Where state is stored, and for how long calls go on without it."""

    url: TextValue = Field(description="Where state is stored: sqlite:///path, relative to this file.")
    grace: Seconds = _optional(
        "How long loaded tools can be called while the database cannot be reached.",
        default=STORE_GRACE,
    )


Stored = Annotated[StoreSection, NamedStore]


class File(Section):
    """A Pegboard configuration."""

    store: Stored | None = _optional("Where state is stored: sqlite:///path, relative to this file.")
    reload: Literal["live", "ask", "all"] = _optional(
        "What of an edit waits until a person accepts it: what would run code or send a secret that it did not before "
        "(live), all that lets an agent do more (ask), nothing (all).",
        default="live",
    )
    tokens: dict[Name, TokenSection] = _optional(
        "Tokens of the gateway: who may use which agents.", default_factory=dict
    )
    servers: dict[Name, ServerSection] = _optional("MCP servers.", default_factory=dict)
    plugins: dict[Name, PluginSection] = _optional("Plugins written in Python.", default_factory=dict)
    models: dict[Name, Model] = _optional(
        "Models, as your framework reads them, and what their tokens cost.", default_factory=dict
    )
    defaults: DefaultsSection = _optional("What every agent has.", default_factory=DefaultsSection)
    toolkits: dict[Name, ToolkitSection] = _optional("Tools that are loaded and switched as one.", default_factory=dict)
    loadouts: dict[Name, LoadoutSection] = _optional("What kinds of agents have.", default_factory=dict)
    sub_apps: dict[Name, SubAppSection] = _optional("Additional tools for sessions of a sub-app.", default_factory=dict)
    search: SearchSection = _optional("How tools are found.", default_factory=SearchSection)
    approvals: ApprovalsSection = _optional("Rules for calls that wait for approval.", default_factory=ApprovalsSection)
    record: RecordSection = _optional(
        "What is kept of calls beside the audit trail: by default, for a week, of those that failed, were refused or "
        "waited for a person.",
        default_factory=RecordSection,
    )
    notify: Annotated[list[NotifySection], Field(strict=False, max_length=20)] = _optional(
        "Webhooks for what waits for a person.", default_factory=list
    )
    console_url: Address | None = _optional(
        "The public address of the console, for links in messages. [default: its own address]"
    )
    agents: dict[Name, AgentSection] | None = _optional("Profiles of agents.")
