"""The OpenAPI document, out of the signatures and docstrings of the endpoints."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from pegboard.console.api.endpoint import JSON, Endpoint, Signature, adapter, signature_of
from pegboard.console.refusals import status_of
from pegboard.support.version import __version__

_REF: Final = "#/components/schemas/{model}"
_ALWAYS: Final = ("operator_required", "right_required", "store_failed", "store_busy", "store_unavailable")
_OF_QUERY: Final = ("bad_request",)
_OF_BODY: Final = ("not_json", "bad_json", "body_too_large", "bad_request")
_ERROR: Final = {
    "description": "What went wrong, under a stable code, and what would be right.",
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("code", "message", "hint")},
            "required": ["code", "message", "hint"],
        }
    },
    "required": ["error"],
}


class _Schemas(GenerateJsonSchema):
    """JSON schemas without invented titles; an answer always has all of its fields."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        """Return whether a field is always there."""
        return self.mode == "serialization" or super().field_is_required(field, total)

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        """Return no: the name of a field is enough."""
        return False


def openapi(endpoints: Iterable[Endpoint], *, cookie: str) -> dict[str, Any]:
    """Return the OpenAPI document of endpoints; ``cookie`` is the name of the one that a browser signs in with."""
    paths, components = _paths_and_components(tuple(endpoints))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pegboard",
            "version": __version__,
            "description": "What the pages of the console show and do, as JSON. A request bears a token with "
            "`console`, or is made by a browser that has signed in; the latter sends what its page was given "
            "as `X-CSRF-Token` with whatever changes something.",
        },
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": _ERROR},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": cookie},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token"},
            },
        },
    }


@cache
def _paths_and_components(endpoints: tuple[Endpoint, ...]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Return the parts of the document that are the same for every request; to make them takes longer than a page."""
    schemas, components = _components(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return paths, components


def _components(endpoints: Iterable[Endpoint]) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Return the schema of every body and answer, and the definitions that they refer to."""
    wanted = {
        (part, mode, adapter(part))
        for endpoint in endpoints
        for part, mode in (
            (signature_of(endpoint).body, "validation"),
            (signature_of(endpoint).answer if JSON in endpoint.media else None, "serialization"),
        )
        if part is not None
    }
    ordered: Any = sorted(wanted, key=lambda one: (str(one[0]), one[1]))
    found, definitions = TypeAdapter.json_schemas(ordered, ref_template=_REF, schema_generator=_Schemas)
    return dict(found), dict(definitions.get("$defs", {}))


def _operation(endpoint: Endpoint, schemas: dict[Any, Any]) -> dict[str, Any]:
    signature = signature_of(endpoint)
    summary, _, description = inspect.cleandoc(endpoint.function.__doc__ or "").partition("\n")
    found: dict[str, Any] = {
        "operationId": endpoint.function.__name__,
        "summary": summary.rstrip("."),
        "tags": [endpoint.function.__module__.rpartition(".")[2].removesuffix("_endpoints")],
        "security": [{"token": []}, {"cookie": []} if endpoint.method == "GET" else {"cookie": [], "csrf": []}],
        "responses": _responses(endpoint, signature, schemas),
    }
    if description.strip():
        found["description"] = description.strip()
    if parameters := [*map(_segment, signature.segments), *_parameters(signature.query)]:
        found["parameters"] = parameters
    if signature.body is not None:
        schema = schemas[signature.body, "validation"]
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return found


def _segment(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _parameters(query: Any) -> list[dict[str, Any]]:
    """Return the parameters that the fields of a query are."""
    if query is None:
        return []
    # What stands below a field counts for its own class alone.
    classes = [kind for kind in reversed(query.__mro__) if is_dataclass(kind)]
    schemas = [adapter(kind).json_schema(schema_generator=_Schemas) for kind in classes]
    texts = {
        name: field.pop("description")
        for schema in schemas
        for name, field in schema["properties"].items()
        if "description" in field
    }
    schema = schemas[-1]
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": field}
        | ({"description": texts[name]} if name in texts else {})
        for name, field in schema["properties"].items()
    ]


def _responses(endpoint: Endpoint, signature: Signature, schemas: dict[Any, Any]) -> dict[str, Any]:
    content: dict[str, Any] = {media: {} for media in endpoint.media}
    if JSON in content:
        content[JSON] = {"schema": schemas[signature.answer, "serialization"]}
    codes = (*_ALWAYS, *endpoint.codes)
    codes += _OF_BODY if signature.body is not None else _OF_QUERY if signature.query is not None else ()
    by_status: dict[str, list[str]] = {}
    for code in dict.fromkeys(codes):
        by_status.setdefault(str(status_of(code)), []).append(f"`{code}`")
    error = {JSON: {"schema": {"$ref": _REF.format(model="Error")}}}
    return {
        "200": {"description": "Done.", "content": content},
        **{status: {"description": ", ".join(known), "content": error} for status, known in sorted(by_status.items())},
        "default": {"description": "Any other failure.", "content": error},
    }
