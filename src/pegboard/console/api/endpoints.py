"""The addresses under ``/api``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from starlette.responses import Response, StreamingResponse

from pegboard.console.api import (
    approval_endpoints,
    audit_endpoints,
    call_endpoints,
    edit_endpoints,
    figure_endpoints,
    history_endpoints,
    people_endpoints,
    search_endpoints,
    server_endpoints,
    session_endpoints,
    switch_endpoints,
)
from pegboard.console.api.endpoint import JSON, Endpoint, adapter, body_of, query_of, signature_of
from pegboard.console.api.openapi_document import openapi
from pegboard.console.context import Context, Handler, require_right
from pegboard.console.entry.own_requests import cookie_name
from pegboard.console.operator_request import OperatorRequest
from pegboard.console.pages.all_pages import events
from pegboard.operators.masked import resolve_names

EVENTS: Final = "text/event-stream"


async def openapi_document(context: Context, visit: OperatorRequest) -> Mapping[str, Any]:  # noqa: ARG001
    """Return this document."""
    return openapi(ENDPOINTS, cookie=cookie_name(visit.request))


async def event_stream(context: Context, visit: OperatorRequest) -> Response:
    """Return a stream of what changes, as server-sent events.

    An event ``changed`` carries a list of subjects, such as ``["switches", "audit"]``: whoever shows one asks for it
    again. ``started`` carries a text that is another one after a restart, ``signed_out`` ends the stream.
    """
    return await events(context, visit)


ENDPOINTS: Final = (
    *switch_endpoints.ENDPOINTS,
    *session_endpoints.ENDPOINTS,
    *call_endpoints.ENDPOINTS,
    *search_endpoints.ENDPOINTS,
    *approval_endpoints.ENDPOINTS,
    *server_endpoints.ENDPOINTS,
    *edit_endpoints.ENDPOINTS,
    *figure_endpoints.ENDPOINTS,
    *history_endpoints.ENDPOINTS,
    *people_endpoints.ENDPOINTS,
    *audit_endpoints.ENDPOINTS,
    Endpoint("GET", "/api/events", event_stream, ("too_many_pages",), media=(EVENTS,)),
    Endpoint("GET", "/api/openapi.json", openapi_document),
)


def addresses() -> Mapping[str, tuple[tuple[str, ...], Handler]]:
    """Return the methods and the handler of each address."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return {path: _address(known) for path, known in by_path.items()}


def _address(known: Mapping[str, Endpoint]) -> tuple[tuple[str, ...], Handler]:
    methods = (*known, *(("HEAD",) if "GET" in known else ()), "OPTIONS")

    async def handler(context: Context, visit: OperatorRequest) -> Response:
        method = visit.request.method
        if method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": ", ".join(methods)})
        response = await answer_request(known["GET" if method == "HEAD" else method], context, visit)
        if method == "HEAD" and isinstance(response, StreamingResponse):
            return Response(headers=dict(response.headers))
        return response

    return methods, handler


async def answer_request(endpoint: Endpoint, context: Context, visit: OperatorRequest) -> Response:
    """Return the answer of an endpoint to a request.

    Raises:
        PegboardError: the request does not fit, or is refused.
    """
    require_right(visit, endpoint.right)
    request, signature = visit.request, signature_of(endpoint)
    meant = visit.names.meant
    given: dict[str, Any] = {name: meant(unquote(request.path_params[name])) for name in signature.segments}
    if signature.query is not None:
        given["query"] = resolve_names(query_of(request, signature.query), visit.names)
    if signature.body is not None:
        given["body"] = resolve_names(await body_of(request, signature.body), visit.names)
    answer = await endpoint.function(context, visit, **given)
    if isinstance(answer, Response):
        return answer
    plain = adapter(signature.answer).dump_python(answer, mode="json")
    # ASCII: half a character, which a plugin's text may have, is written as an escape.
    return Response(json.dumps(plain, separators=(",", ":")), media_type=JSON)


def with_undecoded_path(scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request whose path is as it was written: a segment may hold ``%2F``."""
    raw = scope.get("raw_path")
    return {**scope, "path": raw.decode("ascii", "replace").partition("?")[0]} if raw else dict(scope)
