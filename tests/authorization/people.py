"""What a person's browser sees of the authorization server: it sends them on at once, or asks first."""

from collections.abc import Mapping
from html import escape
from urllib.parse import parse_qsl, urlencode, urlsplit

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.provider import construct_redirect_uri
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from authorization.grants import Grants
from authorization.options import ACCOUNTS, BASE_SCOPE

NO_STORE = {"Cache-Control": "no-store"}


async def authorize(request: Request, grants: Grants) -> Response:
    """Answer a client's address for a person: on to the question, which remembers `account`."""
    response = await AuthorizationHandler(grants).handle(request)
    to = response.headers.get("location", "")
    if to.startswith(f"{grants.origin}/consent?"):
        account = request.query_params.get("account")
        return RedirectResponse(f"{to}&{urlencode({'account': account})}", 302, NO_STORE) if account else response
    if "error" in dict(parse_qsl(urlsplit(to).query)):  # back to the client, which checks who says so
        return RedirectResponse(construct_redirect_uri(to, iss=grants.said_iss()), 302, NO_STORE)
    return response


def consent(request: Request, grants: Grants) -> Response:
    """Ask a person whether the client may act for them, or answer for them where no one is to be asked."""
    number = request.query_params.get("request", "")
    asked = grants.asked.get(number)
    if asked is None:
        return page("Nothing to allow", "<p>This question was answered, or was never asked.</p>", 404)
    account = chosen_account(request, grants)
    if grants.options.consent == "refuse" or "refuse" in request.query_params:
        del grants.asked[number]
        return RedirectResponse(grants.refuse(asked), 302, NO_STORE)
    if account is None:
        client = escape(asked.client.client_name or asked.client.client_id)
        scopes = escape(" ".join(asked.params.scopes or [BASE_SCOPE]))
        return page("Allow access", f"<p>{client} asks for: {scopes}</p>{choices({'request': number})}")
    del grants.asked[number]
    response = RedirectResponse(grants.allow(asked, account), 302, NO_STORE)
    response.set_cookie("account", account)
    return response


def chosen_account(request: Request, grants: Grants) -> str | None:
    """Return who logs in: named in the address, else known by a cookie, else the first; None if that is to be asked."""
    if named := request.query_params.get("account"):
        return named
    return None if grants.options.consent == "page" else request.cookies.get("account", ACCOUNTS[0])


def choices(query: Mapping[str, str]) -> str:
    """Return a link for each account that can agree, and one to refuse."""
    links = [(f"Continue as {name}", {**query, "account": name}) for name in ACCOUNTS]
    links.append(("Refuse", {**query, "refuse": "1"}))
    return "".join(f'<p><a href="?{escape(urlencode(to))}">{escape(text)}</a></p>' for text, to in links)


def page(title: str, body: str, status: int = 200) -> HTMLResponse:
    """Return a page of the authorization server."""
    return HTMLResponse(f"<!doctype html><html lang=en><title>{title}</title><h1>{title}</h1>{body}", status, NO_STORE)
