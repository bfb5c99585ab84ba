"""Edits of the configuration, proposed, looked at, saved and taken back; and servers that are to be added (P10)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.adding_servers import ChosenServer, ClientServers, GrantWay, ServerDraft, ServerTrial
from pegboard.operators.editable import ConfigurationChange
from pegboard.operators.editing import EditableParts, ProposedEdit, SavedEdit, WholeFile
from pegboard.operators.masked import Name


@request_class
class ProposedChange:
    """One change of the configuration."""

    path: Annotated[tuple[str, ...], Field(min_length=1, max_length=20)]
    """The keys that lead to what is different, such as `["agents", "assistant", "role"]`."""
    value: Any = None
    """What is to stand there, as JSON; a mark that stands for a secret is that secret."""
    remove: bool = False
    """Whether nothing is to stand there."""


@request_class
class ProposedChanges:
    """What is to be different."""

    changes: Annotated[tuple[ProposedChange, ...], Field(min_length=1, max_length=1000)]
    """The changes, made one after the other."""
    what: Annotated[str, Field(max_length=200)] = ""
    """What they do, in words."""


@request_class
class ProposedText:
    """Another text of the whole file."""

    text: str
    """The text; a mark that stands for a secret is that secret."""
    digest: str
    """That of the text which it was made from."""


async def file_text(context: Context, visit: OperatorRequest) -> WholeFile:
    """Return the configuration as it is written, with a mark in place of each secret."""
    context.require_every_agent(visit)
    return await context.editing.whole()


async def parts(context: Context, visit: OperatorRequest) -> EditableParts:
    """Return the names of what the operator may edit."""
    return await context.editing.parts(context.editor(visit))


async def propose(context: Context, visit: OperatorRequest, *, body: ProposedChanges) -> ProposedEdit:
    """Return what changes of the configuration come to; nothing is written."""
    meant = visit.names.meant
    changes = [
        ConfigurationChange(path=tuple(map(meant, one.path)), value=one.value, remove=one.remove)
        for one in body.changes
    ]
    return await context.editing.propose(context.editor(visit), changes, what=body.what)


async def propose_text(context: Context, visit: OperatorRequest, *, body: ProposedText) -> ProposedEdit:
    """Return what another text of the whole file comes to; nothing is written."""
    return await context.editing.propose_text(context.editor(visit), body.text, expected=body.digest)


async def proposed(context: Context, visit: OperatorRequest, *, id: str) -> ProposedEdit:  # noqa: A002 - the segment's name
    """Return an edit that is not saved yet, as it was proposed."""
    return await context.editing.shown(context.editor(visit), id)


async def again(context: Context, visit: OperatorRequest, *, id: str) -> ProposedEdit:  # noqa: A002
    """Return what an edit comes to in what the file is now; nothing is written."""
    return await context.editing.again(context.editor(visit), id)


async def save(context: Context, visit: OperatorRequest, *, id: str) -> SavedEdit:  # noqa: A002
    """Save an edit as it was proposed, or take a saved one back; what it widens counts as accepted by the operator."""
    return await context.editing.save(context.editor(visit), id)


_FILE: Final = ("not_editable", "file_not_saved", "file_changed")
_EDIT: Final = (*_FILE, "every_agent_required", "not_rewritable", "unknown_mark")
_ONE: Final = (*_EDIT, "unknown_edit")


@request_class
class PastedServers:
    """Servers as a client has them."""

    text: str
    """Any client's file, a part of one, or one server, in JSON, TOML or YAML."""


@request_class
class ClientFile:
    """The file of a client of this machine."""

    file: Name
    """Its name, as it is listed."""


@request_class
class TriedServer:
    """A server of a draft that is to be tried."""

    server: Name
    """Its name in the draft."""
    confine: bool | None = None
    """Whether it is confined; null is what the draft has."""


@request_class
class AddedServer:
    """A server of a draft that is to be added."""

    server: Name
    """Its name in the draft."""
    name: Name = ""
    """Its name in the configuration, the same where nothing is given."""
    replace: bool = False
    """Whether it takes the place of a server of this name."""
    plain: tuple[Name, ...] = ()
    """The variables whose secrets are written into the file."""
    from_environment: tuple[Name, ...] = ()
    """The variables that the environment has; all others are kept in the keyring or sealed in the store."""
    confine: bool | None = None
    """Whether it is confined; null is what the draft has."""


@request_class
class AddedServers:
    """Which servers are added, and who gets them."""

    servers: Annotated[tuple[AddedServer, ...], Field(min_length=1, max_length=50)]
    """The servers."""
    agents: tuple[Name, ...] = ()
    """The agents that get them."""
    grant: GrantWay = "needed"
    """How: loaded when they are needed, always loaded, or as a toolkit."""


async def clients(context: Context, visit: OperatorRequest) -> tuple[ClientServers, ...]:
    """Return the clients of this machine that have servers."""
    context.require_every_agent(visit)
    return await context.adding.clients()


async def paste(context: Context, visit: OperatorRequest, *, body: PastedServers) -> ServerDraft:
    """Return servers as a draft; secrets in them become variables, and are never returned."""
    context.require_every_agent(visit)
    return await context.adding.draft_from_paste(context.editor(visit), body.text)


async def import_servers(context: Context, visit: OperatorRequest, *, body: ClientFile) -> ServerDraft:
    """Return the servers of a client of this machine as a draft."""
    context.require_every_agent(visit)
    return await context.adding.import_from_client(context.editor(visit), body.file)


async def draft(context: Context, visit: OperatorRequest, *, id: str) -> ServerDraft:  # noqa: A002 - the segment's name
    """Return a draft."""
    context.require_every_agent(visit)
    return await context.adding.draft(context.editor(visit), id)


async def test_server(context: Context, visit: OperatorRequest, *, id: str, body: TriedServer) -> ServerTrial:  # noqa: A002
    """Start a server of a draft as it would be started, and return what it has; it is stopped again."""
    context.require_every_agent(visit)
    chosen = ChosenServer(server=visit.names.meant(body.server), confine=body.confine)
    return await context.adding.test(context.editor(visit), id, chosen)


async def propose_servers(context: Context, visit: OperatorRequest, *, id: str, body: AddedServers) -> ProposedEdit:  # noqa: A002
    """Return what it comes to to add servers and grant them to agents; nothing is written."""
    context.require_every_agent(visit)
    meant = visit.names.meant
    chosen = [
        ChosenServer(
            server=meant(one.server),
            name=meant(one.name),
            replace=one.replace,
            plain=one.plain,
            from_environment=one.from_environment,
            confine=one.confine,
        )
        for one in body.servers
    ]
    return await context.adding.propose(context.editor(visit), id, chosen, body.agents, body.grant)


_EVERY: Final = ("every_agent_required", "not_editable")
_ONE_DRAFT: Final = (*_EVERY, "unknown_edit", "unknown_name")


ENDPOINTS: Final = (
    Endpoint("GET", "/api/configuration/file", file_text, ("every_agent_required", *_FILE), "configure"),
    Endpoint("POST", "/api/configuration/file", propose_text, _EDIT, "configure"),
    Endpoint("GET", "/api/configuration/parts", parts, _FILE, "configure"),
    Endpoint("POST", "/api/configuration/edits", propose, _EDIT, "configure"),
    Endpoint("GET", "/api/configuration/edits/{id}", proposed, ("unknown_edit",), "configure"),
    Endpoint("POST", "/api/configuration/edits/{id}/again", again, _ONE, "configure"),
    Endpoint("POST", "/api/configuration/edits/{id}/save", save, (*_ONE, "edit_refused"), "configure"),
    Endpoint("GET", "/api/clients", clients, ("every_agent_required",), "configure"),
    Endpoint("POST", "/api/server-drafts", paste, (*_EVERY, "no_servers", "syntax"), "configure"),
    Endpoint("POST", "/api/server-drafts/import", import_servers, (*_EVERY, "unknown_name"), "configure"),
    Endpoint("GET", "/api/server-drafts/{id}", draft, (*_EVERY, "unknown_edit"), "configure"),
    Endpoint("POST", "/api/server-drafts/{id}/test", test_server, _ONE_DRAFT, "configure"),
    Endpoint(
        "POST",
        "/api/server-drafts/{id}/propose",
        propose_servers,
        (*_ONE_DRAFT, "edit_form", "server_exists", "unknown_agent", "not_rewritable"),
        "configure",
    ),
)
