"""The pages, by their addresses."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from pegboard.console.context import Context, Page
from pegboard.console.entry.own_requests import cookie_name
from pegboard.console.operator_request import EVENTS, OperatorRequest
from pegboard.console.pages import (
    access_page,
    activity_page,
    adding_page,
    appearance_page,
    approvals_page,
    calls_page,
    changed_tools_page,
    cost_page,
    editing_page,
    find_page,
    history_page,
    logins_page,
    overview_page,
    people_page,
    sent_page,
    servers_page,
    sessions_page,
    switch_page,
    tools_page,
    try_page,
    why_page,
)
from pegboard.errors import UsageError


async def events(context: Context, visit: OperatorRequest) -> Response:
    """Stream what changes, as long as the operator is signed in."""
    if context.streams.full(visit.operator.name):
        raise UsageError("There are too many open pages.", code="too_many_pages", hint="Close some, and try again.")
    request, access = visit.request, context.access
    cookie = request.cookies.get(cookie_name(request))
    by_token = request.headers.get("authorization") if visit.sign_in is None else None

    def still_signed_in() -> bool:
        if by_token is not None:
            return access.bearer(by_token) is not None
        return access.signed_in(cookie, renew=False) is not None

    response = context.streams.response(visit.operator.name, still_signed_in, request.query_params.get("after", ""))
    return Response(headers=dict(response.headers)) if request.method == "HEAD" else response


PAGES: Final = (
    Page(EVENTS, events),
    *adding_page.PAGES,
    *appearance_page.PAGES,
    *approvals_page.PAGES,
    *activity_page.PAGES,
    *cost_page.PAGES,
    *calls_page.PAGES,
    *editing_page.PAGES,
    *access_page.PAGES,
    *find_page.PAGES,
    *history_page.PAGES,
    *logins_page.PAGES,
    *overview_page.PAGES,
    *people_page.PAGES,
    *changed_tools_page.PAGES,
    *sent_page.PAGES,
    *servers_page.PAGES,
    *sessions_page.PAGES,
    *switch_page.PAGES,
    *tools_page.PAGES,
    *try_page.PAGES,
    *why_page.PAGES,
)
