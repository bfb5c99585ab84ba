"""People and tokens: who may use the gateway, with which agents and rights; granted and revoked (G2, A5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from starlette.datastructures import FormData
from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.editing_page import to_proposal
from pegboard.console.pages.forms import text_of
from pegboard.core.principals.bearer_tokens import Right
from pegboard.errors import PegboardError, UsageError
from pegboard.operators.people import grant_token, people, revoke_token

_HOME: Final = "/console/people"
RIGHTS: Final[tuple[Right, ...]] = get_args(Right)


async def people_page(context: Context, visit: OperatorRequest) -> Response:
    """Show who has a token, with the form that grants one."""
    context.require_every_agent(visit)
    return await _page(context, visit)


async def _page(
    context: Context, visit: OperatorRequest, *, sent: FormData | None = None, error: PegboardError | None = None
) -> Response:
    mask = visit.names.masker.text
    return context.templates.page(
        "people.html",
        visit,
        status=200 if error is None else 422,
        people=await people(context.services, context.board.configuration.tokens),
        agents=context.shown_agents(visit),
        all_rights=RIGHTS,
        typed={
            "name": text_of(sent, "name") if sent is not None else "",
            "agents": _all_values(sent, "agent"),
            "rights": _all_values(sent, "right"),
        },
        error={"message": mask(error.message), "hint": mask(error.hint)} if error is not None else None,
    )


def _all_values(sent: FormData | None, name: str) -> list[str]:
    values = sent.getlist(name) if sent is not None else []
    return [value for value in values if isinstance(value, str)]


async def grant_new_token(context: Context, visit: OperatorRequest) -> Response:
    """Grant a token at once and show it once; what the form has wrong comes back as it was typed."""
    context.require_every_agent(visit)
    sent, editor, meant = await visit.request.form(), context.editor(visit), visit.names.meant
    try:
        made = await grant_token(
            context.editing,
            editor,
            name=meant(text_of(sent, "name")).strip(),
            agents=[meant(agent) for agent in _all_values(sent, "agent")],
            rights=_rights(_all_values(sent, "right")),
            new="replace" not in sent,
            first=not context.board.configuration.tokens,
        )
    except UsageError as error:
        if error.code not in ("edit_form", "name_taken"):
            raise
        return await _page(context, visit, sent=sent, error=error)
    wrong = next((one for one in made.edit.problems if one.severity == "error"), None)
    if wrong is not None:
        return await _page(context, visit, sent=sent, error=UsageError(wrong.message, hint=wrong.hint))
    saved = await context.editing.save(editor, made.edit.id)
    return context.templates.page(
        "token.html", visit, name=text_of(sent, "name").strip(), token=made.token, saved=saved, edit=made.edit
    )


def _rights(given: Sequence[str]) -> tuple[Right, ...]:
    return tuple(right for right in RIGHTS if right in given)


async def propose_revocation(context: Context, visit: OperatorRequest) -> Response:
    """Propose that the token of someone counts no more."""
    context.require_every_agent(visit)
    name = visit.names.meant(text_of(await visit.request.form(), "name"))
    return to_proposal(await revoke_token(context.editing, context.editor(visit), name), _HOME)


PAGES: Final = (
    Page(_HOME, people_page),
    Page(f"{_HOME}/grant", grant_new_token, "POST", "configure"),
    Page(f"{_HOME}/revoke", propose_revocation, "POST", "configure"),
)
"""The addresses of people."""
