"""The conversation of seed 002 through the real command and a real client: twelve turns, a kill in the middle."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from pegboard.assembly import Pegboard

from .clients import ERAS, HANDSHAKE, Connected
from .test_seed_000 import Serving

ESSENTIAL = ("webaccess_tool", "reminder_tool")
HINTS = {
    "weather_tool": "Get weather forecasts and conditions for any location",
    "calendar_tool": "Manage calendar events",
    "email_tool": "Read and send email",
    "travel_tool": "Book travel",
    "maps_tool": "Find places and routes",
    "notes_tool": "Keep notes",
    "contacts_tool": "Look people up",
    "finance_tool": "Follow accounts",
    "music_tool": "Play music",
    "news_tool": "Read the news",
}
CONFIG = """
store: sqlite:///state.db
plugins:
  mira: {python: mira_tools}
agents:
  assistant:
    tools: [webaccess_tool, reminder_tool]
    discoverable: [mira]
    dialect: invokeother
    unloaded_call: reject
"""
NAME = "invokeother_tool"
ALL_OUT = "Fallback mode: All 12 tools loaded for this turn only"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    about = {**dict.fromkeys(ESSENTIAL, "Always there"), **HINTS}
    functions = (
        f'def {n}(location: str = "") -> str:\n    """{t}."""\n    return "{n} did"\n' for n, t in about.items()
    )
    (tmp_path / "mira_tools.py").write_text("\n\n".join(functions))
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
async def serving(config: Path) -> AsyncIterator[Serving]:
    running = Serving(config)
    await running.start()
    yield running
    await running.end(signal.SIGTERM)


class Chat:
    """Talk in one turn after the other, each with its label; read the suffix that follows every answer."""

    def __init__(self, client: Connected) -> None:
        self.client = client
        self.turn = 1

    async def invoke(self, mode: str, query: str | None = None) -> tuple[dict[str, Any], list[str]]:
        """Return the payload and the blocks that follow it."""
        given = {"mode": mode} if query is None else {"mode": mode, "query": query}
        result = await self.client.call(NAME, self.meta, **given)
        first, *rest = [block.text for block in result.content if isinstance(block, types.TextContent)]
        return json.loads(first), rest

    async def suffix(self) -> str:
        """Return what follows a call that changes nothing, or nothing where nothing is loaded."""
        _, rest = await self.invoke("unload", f"nothing_of_turn_{self.turn}")
        return rest[-1] if rest else ""

    async def runs(self, tool: str) -> bool:
        result = await self.client.call(tool, self.meta, location="Seattle")
        return not result.is_error

    @property
    def meta(self) -> dict[str, str]:
        return {"pegboard/turn": f"turn-{self.turn}"}

    async def hints(self) -> str:
        listed = await self.client.client.list_tools(cache_mode="refresh")
        return next(tool.description or "" for tool in listed.tools if tool.name == NAME)

    def into(self, client: Connected, turn: int) -> "Chat":
        chat = Chat(client)
        chat.turn = turn
        return chat


async def stored_turn(config: Path) -> int:
    async with Pegboard.open(config) as board:
        session = await board.session(agent="assistant", session_id="lobby")
        return (await session.snapshot()).state.turn


@pytest.mark.parametrize("era", ERAS)
async def test_twelve_turns_of_seed_002(serving: Serving, era: str) -> None:
    """G3, S2, S7, S8, F2, MI4, MI5, MI7, MI8, MI9, MI12: hint, load, use, idle, fallback, a kill; the suffix tells."""
    async with serving.client(era=era) as client:
        chat = Chat(client)
        before = await chat.hints()
        assert all(f"\n{name}: {text}." in before for name, text in HINTS.items())
        assert not await chat.runs("weather_tool")
        payload, (schemas, suffix) = await chat.invoke("load", "weather_tool")
        assert payload["message"] == "Successfully loaded: weather_tool"
        assert [tool["name"] for tool in json.loads(schemas)["tools"]] == ["weather_tool"]
        assert suffix == "Loaded now: weather_tool."
        assert await chat.runs("weather_tool")
        assert await chat.hints() == before, "hints do not shrink"

        chat.turn = 2
        payload, _ = await chat.invoke("load", "calendar_tool,email_tool")
        assert payload["message"] == "Successfully loaded: calendar_tool, email_tool"
        assert await chat.runs("webaccess_tool")

        chat.turn = 3
        payload, _ = await chat.invoke("fallback")
        assert (payload["message"], payload["total_active"], len(payload["loaded"])) == (ALL_OUT, 12, 7)
        assert await chat.runs("travel_tool")
        if era == HANDSHAKE:
            assert set(HINTS) <= set(await client.names())

        chat.turn = 4
        assert not await chat.runs("travel_tool")
        assert "travel_tool" in (gone := await chat.suffix()).partition("Unloaded at")[2]
        assert gone.startswith("Loaded now: weather_tool, calendar_tool, email_tool.")

        chat.turn = 5
        assert await chat.runs("email_tool")

    await serving.end(signal.SIGKILL)
    await serving.start()

    async with serving.client(era=era) as client:
        chat = chat.into(client, 5)
        assert await chat.suffix() == "Loaded now: weather_tool, calendar_tool, email_tool."
        for chat.turn in (6, 7):
            assert await chat.runs("reminder_tool")
        assert await chat.suffix() == "Loaded now: weather_tool, calendar_tool, email_tool.", "five idle turns stay"

        chat.turn = 8
        assert not await chat.runs("weather_tool"), "the sixth is too many"
        expected = "Loaded now: calendar_tool, email_tool. Unloaded at the end of the last turn: weather_tool."
        assert await chat.suffix() == expected

        chat.turn = 9
        expected = "Loaded now: email_tool. Unloaded at the end of the last turn: calendar_tool."
        assert await chat.suffix() == expected
        for chat.turn in (10, 11):
            assert await chat.runs("webaccess_tool")
        assert await chat.suffix() == "Loaded now: email_tool.", "it was used in turn 5"

        chat.turn = 12
        assert await chat.suffix() == "Unloaded at the end of the last turn: email_tool."
        assert await chat.hints() == before
        payload, _ = await chat.invoke("load", "weather_tool")
        assert payload["success"]
    assert await stored_turn(serving.config) == 12
