"""What functions return reaches a model as what it is: pictures, numbers, tables with how much of them is shown."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from function_plugins import session_with
from mcp_types import ImageContent, TextContent
from PIL import Image

from pegboard.core.model.tools import CallResult
from pegboard.wire.provider_forms import ModelCall, ToolResult
from pegboard.wire.result_blocks import parts_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(2_000)
BLOCK = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}


async def returned(function: Callable[[], Any]) -> CallResult:
    """Return the result of a function that is a tool."""
    async with session_with([function]) as session:
        answer = await session.call(function.__name__, {})
        assert answer.result is not None
        return answer.result


def giving(value: Any) -> Callable[[], Any]:
    """Return a tool that returns a value."""

    def give() -> Any:
        """Give it."""
        return value

    return give


def later(value: Any) -> Callable[[], Any]:
    """Return an asynchronous tool that returns a value."""

    async def give() -> Any:
        """Give it."""
        await asyncio.sleep(0)
        return value

    return give


class Drawn:
    """An object that draws itself for notebooks."""

    def _repr_png_(self) -> bytes:
        return PNG


class Bundled:
    """An object that gives notebooks its forms."""

    def __init__(self, *more: object) -> None:
        self.more = more

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        forms = {"text/plain": "a chart", "image/png": base64.b64encode(PNG).decode()}
        return (forms, *self.more) if self.more else forms


class Sketch:
    """A figure that is saved."""

    def savefig(self, file: io.BytesIO, format: str) -> None:  # noqa: A002
        Image.new("RGB", (2, 2)).save(file, format=format)


class NotDrawn:
    """An object that cannot draw itself now."""

    def _repr_png_(self) -> bytes:
        raise RuntimeError("no display")

    def __str__(self) -> str:
        return "a picture of nothing"


PICTURES = {
    "buffer": io.BytesIO(PNG),
    "view": memoryview(PNG),
    "drawn": Drawn(),
    "PIL": Image.new("RGB", (3, 3)),
    "bundle": Bundled(),
    "bundle with metadata": Bundled({"image/png": {"width": 2}}),
    "figure": Sketch(),
    "block": ImageContent(type="image", data=BLOCK["data"], mime_type="image/png"),
    "block as an object": BLOCK,
}


@pytest.mark.parametrize("tool", [giving, later])
@pytest.mark.parametrize("value", PICTURES.values(), ids=PICTURES)
async def test_a_picture_is_a_picture(value: Any, tool: Callable[..., Any]) -> None:
    (block,) = (await returned(tool(value))).content
    assert block["type"] == "image"
    assert base64.b64decode(block["data"]).startswith(PNG[:8])


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
async def test_pictures_stand_in_a_list_where_they_were(picture: Any) -> None:
    content = (await returned(giving(["before", picture, {"n": 1}, picture]))).content
    assert [block["type"] for block in content] == ["text", "image", "text", "image"]
    assert [block["text"] for block in content if "text" in block] == ["before", '{"n": 1}']


@pytest.mark.parametrize("value", [{"pages": [{"scan": PNG}], "n": 1}, [{"scan": Drawn()}], {"scan": bytearray(PNG)}])
async def test_a_picture_within_data_is_named_there(value: Any) -> None:
    text, picture = (await returned(giving(value))).content
    assert '"scan": "picture 1"' in text["text"]
    assert picture["data"] == BLOCK["data"]


async def test_blocks_of_mcp_pass_as_they_are() -> None:
    content = (await returned(giving([TextContent(type="text", text="a"), "b"]))).content
    assert content == ({"type": "text", "text": "a"}, {"type": "text", "text": "b"})


async def test_a_file_of_text_in_memory_is_its_text() -> None:
    assert (await returned(giving(io.StringIO("two\nlines")))).content == ({"type": "text", "text": "two\nlines"},)


async def test_what_cannot_draw_itself_is_text() -> None:
    assert (await returned(giving([NotDrawn()]))).content[0]["text"] == '["a picture of nothing"]'


def rows_of_a_database() -> list[sqlite3.Row]:
    """Return rows as sqlite has them."""
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    return database.execute("select 1 as n, 'x' as t").fetchall()


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (np.int64(3), 3),
        ({"n": np.int32(3), "x": np.float32(0.5), "ok": np.bool_(True)}, {"n": 3, "x": 0.5, "ok": True}),
        ([np.datetime64("2026-01-02")], ["2026-01-02"]),
        (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
        (np.array(7), 7),
        (pd.Series([1, 2], dtype="Int64"), [1, 2]),
        ([pd.NA, pd.Timestamp("2026-01-02")], [None, "2026-01-02T00:00:00"]),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), {"columns": ["a", "b"], "rows": [[1, "x"], [2, "y"]]}),
        (pd.Series({"ann": 1}, name="age"), {"columns": ["index", "age"], "rows": [["ann", 1]]}),
        ({"rows": rows_of_a_database()}, {"rows": [{"n": 1, "t": "x"}]}),
        (
            [ValueError("no"), ExceptionGroup("g", [KeyError("k"), OSError("o")])],
            ["ValueError: no", "KeyError: 'k'\nOSError: o"],
        ),
    ],
)
async def test_data_is_json(value: Any, data: Any) -> None:
    result = await returned(giving(value))
    assert json.loads(result.content[0]["text"]) == data
    assert result.structured == (data if isinstance(data, dict) else None)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (pd.DataFrame({"a": range(25_000)}), "100 of its 25,000 rows"),
        ({"found": pd.DataFrame({"a": range(25_000)})}, "100 of its 25,000 rows"),
        (pd.Series(range(25_000), index=[f"n{n}" for n in range(25_000)]), "100 of its 25,000 rows"),
        (np.zeros((5_000, 10)), "100 of 5,000 along"),
        ([np.zeros(2_000)], "1,000 of 2,000 along"),
    ],
)
async def test_what_is_cut_is_reported(value: Any, said: str) -> None:
    data, note = (await returned(giving(value))).content
    assert said in note["text"]
    assert len(data["text"]) < 10_000


async def async_lines() -> Any:
    """Yield."""
    for part in "ab":
        yield part


def passed_on() -> Any:
    """Return a generator that the loop has to run."""
    return async_lines()


async def awaited() -> Any:
    """Return one once it is awaited."""
    await asyncio.sleep(0)
    return async_lines()


@pytest.mark.parametrize("function", [async_lines, passed_on, awaited])
async def test_what_a_generator_yields_is_the_result(function: Callable[[], Any]) -> None:
    assert (await returned(function)).content[0]["text"] == "ab"


async def later_halves() -> str:
    """Return what an asynchronous function read."""
    return "\udc80" * 50_000_000


def halves() -> str:
    """Return what a function read."""
    return "\udc80" * 50_000_000


def halves_in_data() -> dict[str, Any]:
    """Return data that a function read."""
    return {"read": ["\udc80" * 50_000_000]}


@pytest.mark.parametrize("function", [halves, later_halves, halves_in_data])
async def test_fifty_megabytes_of_half_characters_are_a_result(function: Callable[[], Any]) -> None:
    """What a model reads of it is cut, and UTF-8 can carry it."""
    result = ToolResult(
        call=ModelCall(id="1", name="halves", arguments={}), result=await returned(function), limit=1_000
    )
    (part,) = parts_of(result)
    assert "\ufffd" * 900 in part.text
    assert len(part.text.encode()) < 4_000
