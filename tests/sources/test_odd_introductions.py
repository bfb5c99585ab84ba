"""What a server says of itself when it begins, with something odd in it: the server is used all the same."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import SERVERS, call, state

from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource

pytestmark = pytest.mark.cover(1)

GOOD = {"name": "good", "inputSchema": {"type": "object"}}
ODD: list[dict[str, Any]] = [
    {"instructions": None},
    {"instructions": 5, "_meta": None},
    {"capabilities": {"tools": {"listChanged": []}, "prompts": None, "extensions": []}},
    {"capabilities": {"tools": {}, "logging": "yes", "x-vendor": 3}},
]
ODD_NAMES: list[dict[str, Any]] = [
    {"serverInfo": {"name": "a", "title": None, "version": None}},
    {"serverInfo": {"name": "a", "version": 1, "icons": "none", "websiteUrl": 3}},
    {"serverInfo": {}},
    {"serverInfo": None},
    {"serverInfo": "gone"},
    {"capabilities": []},
    {"capabilities": "gone"},
]


def server(folder: Path, era: str, introduction: dict[str, Any]) -> ServerSpec:
    """Return a server that introduces itself in this way."""
    files = [folder / name for name in ("state", "log", "page", "introduction")]
    files[0].write_text(f"{era} 1")
    files[2].write_text(json.dumps({"tools": [GOOD]}))
    files[3].write_text(json.dumps(introduction))
    return ServerSpec(name="odd", command=sys.executable, args=(str(SERVERS / "era_server.py"), *map(str, files)))


@pytest.mark.parametrize(
    ("era", "introduction"),
    [*(("polite", one) for one in (*ODD, *ODD_NAMES)), *(("modern", one) for one in ODD)],
    ids=json.dumps,
)
async def test_a_field_of_an_introduction_costs_itself(
    source: McpSource, tmp_path: Path, era: str, introduction: dict[str, Any]
) -> None:
    """G7, G8: name, version, instructions and capabilities that are empty, missing or of another type."""
    spec = server(tmp_path, era, introduction)
    manifest = await source.describe(spec, {})
    assert [tool.name for tool in manifest.tools] == ["good"]
    assert not (await call(source, spec, "good")).is_error


@pytest.mark.parametrize(
    ("introduction", "reason"),
    [
        ({"protocolVersion": 7}, "its answer does not follow the protocol: protocolVersion"),
        ({"protocolVersion": "1999-01-01"}, "1999-01-01"),
        ({"capabilities": "all"}, "its answer does not follow the protocol: capabilities"),
    ],
    ids=["a number", "a version that is not known", "text"],
)
async def test_an_introduction_without_which_nothing_works_is_the_reason(
    source: McpSource, tmp_path: Path, introduction: dict[str, Any], reason: str
) -> None:
    """G8: in words, without the name of a class or an address of someone else's documentation."""
    with pytest.raises(ToolUnavailableError) as caught:
        await source.describe(server(tmp_path, "polite", introduction), {})
    assert reason in caught.value.message
    assert not [part for part in ("https://", "Error:", "validation error") if part in caught.value.message]
    assert state(source, "odd")["state"] != "up"
