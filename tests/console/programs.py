"""A program of an operator: it asks for JSON, and every answer has to fit the document that describes it."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import jsonschema_rs

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.operators.attention import HookFault

ORIGIN = "http://127.0.0.1:8321"


class Program:
    """A program that bears a token; ``document`` is the OpenAPI document of what it asks."""

    def __init__(self, client: httpx2.AsyncClient, document: dict[str, Any]) -> None:
        self.client = client
        self.document = document

    async def ask(self, method: str, address: str, *, status: int = 200, **options: Any) -> Any:
        """Return the JSON of an answer, which has this status and fits the document."""
        response = await self.client.request(method, address, **options)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/json"
        found = response.json()
        problems = [error.message for error in self.validator(method, address, status).iter_errors(found)]
        assert problems == [], (method, address, found)
        return found

    async def refused(self, method: str, address: str, status: int, **options: Any) -> tuple[str, str, str]:
        """Return code, message and hint of an error."""
        error = (await self.ask(method, address, status=status, **options))["error"]
        return error["code"], error["message"], error["hint"]

    def validator(self, method: str, address: str, status: int) -> Any:
        """Return what validates an answer."""
        schema = self.operation(method, address)["responses"]
        content = schema.get(str(status), schema["default"])["content"]["application/json"]["schema"]
        return jsonschema_rs.validator_for({**content, "components": self.document["components"]})

    def operation(self, method: str, address: str) -> Any:
        """Return what the document says of an address."""
        path = address.partition("?")[0]
        for template, operations in self.document["paths"].items():
            if re.fullmatch(
                re.sub(r"\{\w+\}", "[^/]+", re.escape(template).replace(r"\{", "{").replace(r"\}", "}")), path
            ):
                return operations[method.lower()]
        return {"responses": {"default": {"content": {"application/json": {"schema": {"$ref": REFUSED}}}}}}


REFUSED = "#/components/schemas/Error"


@asynccontextmanager
async def serving(
    board: Pegboard, hooks: Callable[[], Sequence[HookFault]] = tuple
) -> AsyncIterator[tuple[ConsoleApp, OperatorAccess]]:
    """Serve the console of a board; yields the app, and who may use it."""
    access = OperatorAccess(lambda: board.configuration.tokens)
    app = ConsoleApp(board, access, hooks)
    yield app, access
    await app.close()


@asynccontextmanager
async def program(app: ConsoleApp, token: str, **headers: str) -> AsyncIterator[Program]:
    """Connect a program that bears a token."""
    headers = {"authorization": f"Bearer {token}", **headers}
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers) as client:
        yield Program(client, (await client.get("/api/openapi.json")).json())
