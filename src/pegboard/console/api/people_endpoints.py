"""Who has a token, and tokens that are granted and revoked."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.operator_request import OperatorRequest
from pegboard.core.principals.bearer_tokens import Right
from pegboard.operators.editing import ProposedEdit
from pegboard.operators.masked import Name
from pegboard.operators.people import GrantedToken, PersonOverview, grant_token, people, revoke_token


@request_class
class NewPerson:
    """Who gets a token."""

    name: Annotated[Name, Field(min_length=1, max_length=100)]
    """The principal."""
    agents: tuple[Name, ...]
    """The agents that the token opens; `*` for all."""
    rights: tuple[Right, ...] = ()
    """What its owner may do in the console."""
    replace: bool = False
    """Whether it takes the place of the token that they have."""


async def list_people(context: Context, visit: OperatorRequest) -> tuple[PersonOverview, ...]:
    """Return who has a token; no token is in it."""
    context.require_every_agent(visit)
    return await people(context.services, context.board.configuration.tokens)


async def grant(context: Context, visit: OperatorRequest, *, body: NewPerson) -> GrantedToken:
    """Return a new token, once, with the edit that lets it count; nothing is written."""
    context.require_every_agent(visit)
    return await grant_token(
        context.editing,
        context.editor(visit),
        name=body.name,
        agents=body.agents,
        rights=body.rights,
        new=not body.replace,
        first=not context.board.configuration.tokens,
    )


async def revoke(context: Context, visit: OperatorRequest, *, name: str) -> ProposedEdit:
    """Return the edit after which a token counts no more; nothing is written."""
    context.require_every_agent(visit)
    return await revoke_token(context.editing, context.editor(visit), name)


_EDIT: Final = ("every_agent_required", "not_editable", "file_not_saved", "not_rewritable")


ENDPOINTS: Final = (
    Endpoint("GET", "/api/people", list_people, ("every_agent_required",)),
    Endpoint("POST", "/api/people", grant, (*_EDIT, "edit_form", "name_taken"), "configure"),
    Endpoint("POST", "/api/people/{name}/revoke", revoke, (*_EDIT, "unknown_name"), "configure"),
)
