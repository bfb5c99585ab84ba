"""The stream of what changes, for a program."""

import json
from collections.abc import AsyncIterator

import httpx2

from pegboard import Pegboard

from .programs import program, serving
from .sites import site

ADA = {"authorization": "Bearer ada-ada-ada-ada-ada-ada"}


async def events(response: httpx2.Response) -> AsyncIterator[tuple[str, str]]:
    event = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            event = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield event, line.removeprefix("data: ")


async def test_a_program_hears_what_changes_and_the_end(mailer: Pegboard) -> None:
    """A change is heard as the names of what to ask for again."""
    async with serving(mailer) as (app, _), site(app) as origin, httpx2.AsyncClient(headers=ADA) as client:
        async with client.stream("GET", f"{origin}/api/events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            heard = events(response)
            assert (await anext(heard))[0] == "started"
            await mailer.permissions.set("mailer", "post", False, by="carl")
            event, data = await anext(heard)
            assert (event, "switches" in json.loads(data)) == ("changed", True)
            await app.close()
            assert [event async for event, _ in heard] == []
        head = await client.head(f"{origin}/api/events")
        assert head.status_code == 503


async def test_once_the_console_is_closed_no_stream_begins(mailer: Pegboard) -> None:
    async with serving(mailer) as (app, _), program(app, "ada-ada-ada-ada-ada-ada") as ada:
        await app.close()
        code, message, hint = await ada.refused("GET", "/api/events", 503)
        assert (code, message, bool(hint)) == ("too_many_pages", "There are too many open pages.", True)
