"""The scripted client, in front of a gateway of this process and of one that it starts."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pegboard import Pegboard
from pegboard.testing import (
    HANDSHAKE,
    MODERN,
    Adapters,
    CallTool,
    FakeResources,
    FakeSource,
    GetPrompt,
    Initialize,
    ListPrompts,
    ListResources,
    ListTools,
    ManualClock,
    ReadResource,
    Received,
    ScriptedClient,
    Subscribe,
)

ERAS = (MODERN, HANDSHAKE)
CONFIG = """
servers:
  wiki: {command: this-program-is-not-started}
plugins:
  notes: {python: notes}
agents:
  ada: {tools: [wiki], discoverable: [notes], turn_gap: 60s, unloaded_call: schema}
"""
LOAD = CallTool(name="load_tools", arguments={"names": ["notes"], "keep": "turn"})
NOTE = CallTool(name="call_tool", arguments={"name": "note_add", "arguments": {"text": "x"}})


def note_add(text: str) -> str:
    """Write a note."""
    return text


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    (tmp_path / "notes.py").write_text("def note_add(text: str) -> str:\n    return text\n")
    return path


@pytest.fixture
def resources() -> FakeResources:
    return FakeResources(
        resources={"wiki": {"wiki://start": "Welcome"}},
        templates={"wiki": ["wiki://page/{name}"]},
        prompts={"wiki": {"summary": "Sum it up."}},
    )


@pytest.fixture
async def board(config: Path, resources: FakeResources) -> AsyncIterator[Pegboard]:
    source = FakeSource({"wiki": {"look_up": "Tea"}, "notes": [note_add]}, resources=resources)
    async with Pegboard.open(config, adapters=Adapters(sources=[source])) as opened:
        yield opened


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["in process", "over stdio"])
async def test_a_script_opens_lists_and_calls(config: Path, board: Pegboard, era: str, way: str) -> None:
    """G4, G5: over both ways in and in both eras; what a step is answered with is JSON as on the wire."""
    opened: AbstractAsyncContextManager[ScriptedClient] = ScriptedClient.in_process(board, session="s", era=era)
    if way == "over stdio":
        opened = ScriptedClient.over_stdio(config, "--session", "s", era=era)
    async with opened as client:
        opening, listed, loaded, answer, refused = await client.run(
            Initialize(), ListTools(), LOAD, NOTE, CallTool(name="no_such_tool")
        )
    assert [one["error"] for one in (opening, listed, loaded, answer) if "error" in one] == []
    assert opening["capabilities"]["tools"] == {"listChanged": True}
    assert (opening["protocolVersion"] == MODERN) == (era == MODERN)
    assert {"load_tools", "call_tool"} <= {tool["name"] for tool in listed["tools"]}
    assert json.loads(loaded["content"][0]["text"])["status"] == "ok"
    assert answer["content"] == [{"type": "text", "text": "x"}]
    assert "no_such_tool" in refused["error"]["message"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_waits_for_notifications(board: Pegboard, era: str) -> None:
    """P4: a switch takes a listed tool away."""
    async with ScriptedClient.in_process(board, era=era) as client:
        await client.run(*([Subscribe()] if era == MODERN else []), ListTools())
        await board.permissions.set("ada", "wiki", False)
        await client.step(Received(method="notifications/tools/list_changed"))
        listed = await client.step(ListTools())
        assert "wiki__look_up" not in {tool["name"] for tool in listed["tools"]}
        with pytest.raises(TimeoutError, match=r"no 'notifications/never' came within 0\.01 seconds; received: notif"):
            await client.step(Received(method="notifications/never", within=0.01))


async def test_resources_and_prompts_are_listed_read_and_watched(board: Pegboard, resources: FakeResources) -> None:
    """G7: through the gateway, from memory; a read that the server refuses is an answer too."""
    async with ScriptedClient.in_process(board) as client:
        listed, prompts, prompt = await client.run(ListResources(), ListPrompts(), GetPrompt(name="wiki__summary"))
        (resource,) = listed["resources"]
        assert [item["name"] for item in prompts["prompts"]] == ["wiki__summary"]
        assert prompt["messages"][0]["content"]["text"] == "Sum it up."
        await client.step(Subscribe(tools=False, resources=True, uris=(resource["uri"],)))
        resources.put("wiki", "wiki://start", "Changed")
        await client.step(Received(method="notifications/resources/updated"))
        resources.put("wiki", "wiki://second", "New")
        await client.step(Received(method="notifications/resources/list_changed"))
        read, missing = await client.run(
            ReadResource(uri=resource["uri"]), ReadResource(uri=resource["uri"].replace("start", "none"))
        )
        assert read["contents"][0]["text"] == "Changed"
        assert "error" in missing
        assert ("wiki", "resources/read") in [(server, method) for server, method, _ in resources.asked]


@pytest.mark.parametrize("era", ERAS)
async def test_a_pause_on_a_manual_clock_ends_a_turn(board: Pegboard, era: str) -> None:
    """G3: what was loaded for the turn is not loaded after it."""
    clock = ManualClock()
    async with ScriptedClient.in_process(board, session="s", era=era, clock=clock) as client:
        assert not (await client.run(LOAD, NOTE))[1]["isError"]
        clock.advance(59)
        assert not (await client.step(NOTE))["isError"]
        clock.advance(61)
        assert (await client.step(NOTE))["isError"]
    with pytest.raises(ValueError, match="cannot go back by 1 "):
        clock.advance(-1)
