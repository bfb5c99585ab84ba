"""Servers that are about to be added: read, tried, and proposed with what grants them (P10, X5)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, received
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.operators.adding_servers import ChosenServer, ClientServers, GrantWay, ServerDraft, ServerTrial
from pegboard.operators.editing import ProposedEdit
from pegboard.operators.masked import Name


@received
class PastedServers:
    """Servers as a client has them."""

    text: str
    """Any client's file, a part of one, or one server, in JSON, TOML or YAML."""


@received
class ClientFile:
    """The file of a client of this machine."""

    file: Name
    """Its name, as it is listed."""


@received
class TriedServer:
    """A server of a draft that is to be tried."""

    server: Name
    """Its name in the draft."""
    confine: bool | None = None
    """Whether it is confined; null is what the draft has."""


@received
class AddedServer:
    """A server of a draft that is to be added."""

    server: Name
    """Its name in the draft."""
    name: Name = ""
    """Its name in the configuration, the same where nothing is given."""
    replace: bool = False
    """Whether it takes the place of a server of this name."""
    plain: tuple[Name, ...] = ()
    """The variables whose secrets are written into the file instead."""
    confine: bool | None = None
    """Whether it is confined; null is what the draft has."""


@received
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
    return await context.adding.pasted(context.editor(visit), body.text)


async def import_servers(context: Context, visit: OperatorRequest, *, body: ClientFile) -> ServerDraft:
    """Return the servers of a client of this machine as a draft."""
    context.require_every_agent(visit)
    return await context.adding.imported(context.editor(visit), body.file)


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
            server=meant(one.server), name=meant(one.name), replace=one.replace, plain=one.plain, confine=one.confine
        )
        for one in body.servers
    ]
    return await context.adding.propose(context.editor(visit), id, chosen, body.agents, body.grant)


_EVERY: Final = ("every_agent_required", "not_editable")
_ONE: Final = (*_EVERY, "unknown_edit", "unknown_name")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/clients", clients, ("every_agent_required",), "configure"),
    Endpoint("POST", "/api/server-drafts", paste, (*_EVERY, "no_servers", "syntax"), "configure"),
    Endpoint("POST", "/api/server-drafts/import", import_servers, (*_EVERY, "unknown_name"), "configure"),
    Endpoint("GET", "/api/server-drafts/{id}", draft, (*_EVERY, "unknown_edit"), "configure"),
    Endpoint("POST", "/api/server-drafts/{id}/test", test_server, _ONE, "configure"),
    Endpoint(
        "POST",
        "/api/server-drafts/{id}/propose",
        propose_servers,
        (*_ONE, "edit_form", "server_exists", "unknown_agent", "not_rewritable"),
        "configure",
    ),
)
