"""Lists of tools with something odd in them: what is wrong costs itself, never what stands beside it."""

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_helpers import SERVERS, call, state

from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import Manifest
from pegboard.sources.mcp import McpSource

pytestmark = pytest.mark.cover(1)

MANY = 10_000
GOOD = {"name": "good", "inputSchema": {"type": "object"}}
BAD = {"name": "bad", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "perhaps"}}
ERAS = ["polite", "modern"]
ENVELOPES: list[dict[str, Any]] = [
    {"ttlMs": None},
    {"ttlMs": -1, "cacheScope": "shared"},
    {"ttlMs": "soon", "resultType": None, "cacheScope": None},
    {"resultType": 7, "nextCursor": None, "_meta": None},
    {"_meta": "none", "total": 1, "x-vendor": {"tools": []}},
    {"nextCursor": 0},
    {"nextCursor": {"page": 2}},
]
Listing = Callable[..., ServerSpec]


@pytest.fixture
def listing(tmp_path: Path) -> Listing:
    """Return a server that answers `tools/list` with just this."""

    def server(page: dict[str, Any], era: str = "polite") -> ServerSpec:
        files = [tmp_path / name for name in ("state", "log", "page")]
        files[0].write_text(f"{era} 1")
        files[2].write_text(json.dumps(page))
        args = (str(SERVERS / "era_server.py"), *map(str, files))
        return ServerSpec(name="odd", command=sys.executable, args=args)

    return server


def names(manifest: Manifest) -> list[str]:
    return [tool.name for tool in manifest.tools]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("around", ENVELOPES, ids=json.dumps)
async def test_what_stands_around_the_tools_costs_none_of_them(
    source: McpSource, listing: Listing, era: str, around: dict[str, Any]
) -> None:
    """G8: a field that is empty, unknown or wrong; the tool that is wrong is excluded with its own reason."""
    spec = listing({**around, "tools": [GOOD, BAD]}, era)
    manifest = await source.describe(spec, {})
    assert names(manifest) == ["good"]
    assert list(manifest.excluded) == ["bad"]
    assert manifest.excluded["bad"].startswith("annotations.readOnlyHint: ")
    assert not (await call(source, spec, "good")).is_error


async def test_a_cursor_that_is_none_ends_the_list_and_is_reported(source: McpSource, listing: Listing) -> None:
    """G8: nothing is lost without a word."""
    await source.describe(listing({"tools": [GOOD], "nextCursor": 7}), {})
    assert "cursor" in str(state(source, "odd")["dropped"])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "field",
    [{"outputSchema": {"type": 5}}, {"icons": [{"size": 1}]}, {"title": 5}, {"execution": {"taskSupport": "perhaps"}}],
    ids=json.dumps,
)
async def test_a_field_without_which_a_tool_can_be_called_costs_itself(
    source: McpSource, listing: Listing, era: str, field: dict[str, Any]
) -> None:
    """G8: the tool stays, without the field where that cannot be used, and that is said."""
    spec = listing({"tools": [{**GOOD, **field}]}, era)
    manifest = await source.describe(spec, {})
    assert names(manifest) == ["good"]
    assert manifest.excluded == {}
    (name,) = field
    kept = name in manifest.tools[0].extra or (name == "outputSchema" and manifest.tools[0].output_schema is not None)
    assert kept != any(f"`{name}` of 'good'" in what for what in manifest.cut)
    assert not (await call(source, spec, "good")).is_error


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"type": "object", "properties": []}, {"type": "object", "properties": {}}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        (
            {"type": "object", "properties": {"a": {"type": "object", "properties": []}}, "$defs": []},
            {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}, "$defs": {}},
        ),
        ({"type": "object", "properties": None}, {"type": "object", "properties": {}}),
        ({"type": "object", "required": {}}, {"type": "object", "required": []}),
        ({"type": None, "required": None}, {"type": "object", "required": []}),
        ([], {"type": "object"}),
        (None, {"type": "object"}),
    ],
    ids=json.dumps,
)
async def test_an_empty_object_that_is_written_as_a_list_is_an_object(
    source: McpSource, listing: Listing, era: str, written: Any, meant: dict[str, Any]
) -> None:
    """G8: as PHP writes it, or an empty list as Lua does, at any depth; what arguments are is an object."""
    spec = listing({"tools": [{"name": "good", "inputSchema": written, "annotations": []}]}, era)
    (tool,) = (await source.describe(spec, {})).tools
    assert tool.input_schema == meant


async def test_many_excluded_tools_are_one_line_of_the_log(
    source: McpSource, listing: Listing, caplog: pytest.LogCaptureFixture
) -> None:
    """G8: with how many they are, and the first few; every one is kept with its reason."""
    bad = [{**BAD, "name": f"bad_{number}"} for number in range(MANY)]
    with caplog.at_level(logging.WARNING, "pegboard"):
        manifest = await source.describe(listing({"tools": [*bad, GOOD]}), {})
        await source.describe(listing({"tools": [*bad, GOOD]}), {})
    assert names(manifest) == ["good"]
    assert len(manifest.excluded) == MANY
    (line,) = [record.getMessage() for record in caplog.records if "excluded" in record.getMessage()]
    assert "10,000" in line
    assert "'bad_0'" in line
    assert len(line) < 1000
