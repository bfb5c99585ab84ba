"""The audit trail as a file: in bounded memory, in turns with everything else, and only while someone reads (X4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from starlette.responses import Response, StreamingResponse

from pegboard.board.services import Services
from pegboard.console.operator_request import OperatorRequest
from pegboard.errors import UsageError
from pegboard.operators.audit import AuditLine, AuditQuery, as_csv_line, as_json_line, audit, csv_header, export

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

ExportForm = Literal["jsonl", "csv"]
MOST: Final = 2
"""How many exports an operator has under way at once."""
_WRITTEN: Final[Mapping[ExportForm, Callable[[AuditLine], str]]] = {"jsonl": as_json_line, "csv": as_csv_line}


class RunningExports:
    """The exports under way in one console; their parts are made one at a time, for all readers."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._under_way: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    async def response(
        self, visit: OperatorRequest, wanted: AuditQuery, form: ExportForm, *, media: str, name: str
    ) -> Response:
        """Return the records that are wanted as a file, newest first.

        Raises:
            UsageError: the operator has two exports under way.
        """
        await audit(self._services, replace(wanted, limit=1))
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        if visit.request.method == "HEAD":
            return Response(headers=headers, media_type=media)
        if self._under_way[visit.operator.name] >= MOST:
            raise UsageError(
                "Two of your exports are running.",
                code="too_many_exports",
                hint="Wait until one of them has ended, or cancel it.",
            )
        return _CountedFile(self._parts(wanted, form), media, headers, self._under_way, visit.operator.name)

    async def _parts(self, wanted: AuditQuery, form: ExportForm) -> AsyncGenerator[str]:
        if form == "csv":
            yield csv_header()
        parts = export(self._services, wanted)
        while True:
            async with self._turn:
                # Calls come first, and whoever has left is noticed.
                await asyncio.sleep(0)
                lines = await anext(parts, None)
                text = "".join(map(_WRITTEN[form], lines or ()))
            if lines is None:
                return
            yield text


class _CountedFile(StreamingResponse):
    """A file that counts as under way while it is sent."""

    def __init__(
        self, parts: AsyncGenerator[str], media: str, headers: Mapping[str, str], under_way: Counter[str], operator: str
    ) -> None:
        super().__init__(parts, media_type=media, headers=headers)
        self._parts = parts
        self._under_way = under_way
        self._operator = operator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._under_way[self._operator] += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._under_way[self._operator] -= 1
            await self._parts.aclose()
