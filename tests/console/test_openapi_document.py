"""The document that describes the JSON interface."""

import re
from pathlib import Path

from openapi_spec_validator import OpenAPIV31SpecValidator

from pegboard.console.api.endpoints import ENDPOINTS

from .programs import Program

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "console_api.md"


async def test_the_document_fits_the_schema_of_openapi(ada: Program) -> None:
    """It is checked by a validator that others use, against the schema of OpenAPI 3.1."""
    assert ada.document["openapi"] == "3.1.0"
    assert [error.message for error in OpenAPIV31SpecValidator(ada.document).iter_errors()] == []


async def test_the_document_has_every_endpoint_with_all_that_it_takes(ada: Program) -> None:
    operations = {
        (method, path): operation
        for path, found in ada.document["paths"].items()
        for method, operation in found.items()
    }
    assert operations.keys() == {(endpoint.method.lower(), endpoint.path) for endpoint in ENDPOINTS}
    for (method, path), operation in operations.items():
        assert re.fullmatch(r"[A-Z][^`]*[^.]", operation["summary"]), operation
        in_path = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))
        assert ({"cookie": [], "csrf": []} in operation["security"]) == (method != "get")
        for parameter in operation.get("parameters", ()):
            assert parameter["in"] == "path" or parameter["description"], (path, parameter)
        if "requestBody" in operation:
            name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            fields = ada.document["components"]["schemas"][name]["properties"]
            assert [field for field, schema in fields.items() if not schema.get("description")] == []


async def test_the_document_names_the_cookie_of_this_port(ada: Program) -> None:
    """Browsers share cookies between the ports of a host."""
    schemes = ada.document["components"]["securitySchemes"]
    assert schemes["cookie"] == {"type": "apiKey", "in": "cookie", "name": "pegboard_console_8321"}
    assert schemes["token"] == {"type": "http", "scheme": "bearer"}


async def test_the_page_about_it_names_all_that_must_be_given(ada: Program) -> None:
    rows = re.findall(r"^\| `([A-Z]+) (\S+)` \| (.+) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    for method, path, told in rows:
        operation = ada.document["paths"][path][method.lower()]
        needed = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query" and one["required"]}
        if "requestBody" in operation:
            name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            needed |= set(ada.document["components"]["schemas"][name].get("required", ()))
        assert needed <= set(re.findall(r"`(\w+)`", told)), path


def test_the_page_about_it_has_every_address_and_no_other() -> None:
    rows = re.findall(r"^\| `(GET|PUT|POST|DELETE) (\S+)` \|", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted((endpoint.method, endpoint.path) for endpoint in ENDPOINTS)
