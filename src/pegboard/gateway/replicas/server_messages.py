"""What replicas say to each other of a server that one of them runs: lines of JSON (G14).

A request is one document; its response has a line for whatever comes of it meanwhile, and one for the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from pegboard.core.access.instances import LoginOwner
from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Tool
from pegboard.errors import PegboardError, ToolUnavailableError, UpstreamError, UpstreamTimeoutError, UsageError
from pegboard.ports import AskRefusedError, CallContext, Client, Progress
from pegboard.ports.owned_servers import OwnedServer

PATH: Final = "/replicas/servers"
"""Where a replica takes these requests; no one else can make them."""
_ERRORS: Final[Mapping[str, type[PegboardError]]] = {
    "timeout": UpstreamTimeoutError,
    "failed": UpstreamError,
    "unavailable": ToolUnavailableError,
    "usage": UsageError,
}
"""What a source raises, the narrower before the wider."""


class ServerQuestion(NamedTuple):
    """What one replica asks of a server at the other.

    ``what`` is ``describe``, ``call``, ``offers``, ``ask`` or ``restart``; ``answer`` is that of a client to what the
    server asks meanwhile, and ``changed`` says that its tools have changed.
    """

    server: OwnedServer
    what: str
    given: JsonObject = EMPTY
    context: JsonObject = EMPTY


def document_line(value: JsonObject) -> bytes:
    """Return a document, as a line."""
    return json.dumps(value, separators=(",", ":"), default=_plain_mapping).encode() + b"\n"


def _plain_mapping(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(cast("JsonObject", value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def question_to_json(question: ServerQuestion) -> JsonObject:
    """Return a question as it is sent."""
    return {"server": [*question.server], "what": question.what, "given": question.given, "context": question.context}


def question_from_json(document: Any) -> ServerQuestion:
    """Return a question as it was sent; raises ``ValueError`` where it is none."""
    match document:
        case {
            "server": [str(name), str(print_), str(scope)],
            "what": str(what),
            "given": {**given},
            "context": {**how},
        }:
            return ServerQuestion(OwnedServer(name, print_, scope), what, given, how)
        case _:
            raise ValueError("it is not a question of a replica")


def context_to_json(context: CallContext) -> JsonObject:
    """Return on whose behalf a call is made, and whether there are ways back."""
    client = context.client
    return {
        "whose": [context.principal, context.agent, context.session],
        "owner": [*context.owner],
        "meta": context.meta,
        "progress": context.progress is not None,
        "client": None if client is None else _client_to_json(client),
    }


def _client_to_json(client: Client) -> JsonObject:
    return {"level": client.level, "declares": client.declares, "task": client.wanted_task}


def context_from_json(document: JsonObject, scope: str, progress: Progress, client: Client) -> CallContext:
    """Return the circumstances of a call that was made elsewhere; raises ``LookupError``, ``TypeError``."""
    principal, agent, session = document["whose"]
    return CallContext(
        principal=principal,
        agent=agent,
        session=session,
        scope=scope,
        owner=LoginOwner(*document["owner"]),
        meta=Frozen(document["meta"]),
        progress=progress if document["progress"] else None,
        client=client if document["client"] is not None else None,
    )


def tool_to_json(tool: Tool) -> JsonObject:
    """Return what a source has to know of a tool that it calls."""
    return {"name": tool.name, "annotations": tool.annotations}


def tool_from_json(server: str, document: JsonObject) -> Tool:
    """Return a tool as far as its source has to know it."""
    return Tool(plugin=server, name=document["name"], annotations=Frozen(document["annotations"]))


def result_to_json(result: CallResult) -> JsonObject:
    """Return a result."""
    return {
        "content": list(result.content),
        "structured": result.structured,
        "is_error": result.is_error,
        "meta": result.meta,
        "more": result.more,
    }


def result_from_json(document: JsonObject) -> CallResult:
    """Return a result."""
    return CallResult(
        content=tuple(document["content"]),
        structured=document["structured"],
        is_error=document["is_error"],
        meta=document["meta"],
        more=document["more"],
    )


def error_to_json(error: PegboardError) -> JsonObject:
    """Return what a source raised."""
    kind = next((kind for kind, of in _ERRORS.items() if isinstance(error, of)), "failed")
    answer = error.answer if isinstance(error, UpstreamError) else None
    return {"kind": kind, "message": error.message, "hint": error.hint, "answer": answer}


def error_from_json(document: JsonObject) -> PegboardError:
    """Return what a source raised at the other replica."""
    error = _ERRORS[document["kind"]](document["message"], hint=document["hint"])
    if isinstance(error, UpstreamError):
        error.answer = document["answer"]
    return error


def refusal_to_json(refused: AskRefusedError) -> JsonObject:
    """Return why a client does not answer."""
    return {"message": refused.message, "code": refused.code, "data": refused.data}


def refusal_from_json(document: JsonObject) -> AskRefusedError:
    """Return why a client does not answer."""
    return AskRefusedError(document["message"], code=document["code"], data=document["data"])
