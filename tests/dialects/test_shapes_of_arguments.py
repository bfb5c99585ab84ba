"""Arguments of meta-tools in the shapes in which weaker models write them are read as what they mean."""

import json
from pathlib import Path
from typing import Any

import pytest
from noting_board import GIVEN, opened

from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.wire.passed_on import passed_on

AS_TEXT = json.dumps(GIVEN)


@pytest.mark.parametrize("arguments", [GIVEN, AS_TEXT, f"\n {AS_TEXT} ", json.dumps(AS_TEXT)])
async def test_arguments_that_are_written_as_text_are_those_of_the_tool(tmp_path: Path, arguments: Any) -> None:
    """X2: JSON in a text, and a text of JSON in a text."""
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        answered = await (await open_session()).call("call_tool", {"name": "purge", "arguments": arguments})
        assert (answered.status, ran) == ("ok", [("2020", True)])


@pytest.mark.parametrize("arguments", [None, "", " ", "null", "{}", '"{}"', [], {}])
async def test_nothing_in_any_shape_is_no_arguments(tmp_path: Path, arguments: Any) -> None:
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        answered = await (await open_session()).call("call_tool", {"name": "now", "arguments": arguments})
        assert (answered.status, ran) == ("ok", [()])


@pytest.mark.parametrize("arguments", ["purge", "[1]", 5, [GIVEN], '{"before": '])
async def test_what_is_no_object_in_any_shape_runs_nothing(tmp_path: Path, arguments: Any) -> None:
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        answered = await (await open_session()).call("call_tool", {"name": "purge", "arguments": arguments})
        assert (answered.status, ran) == ("invalid_arguments", [])


@pytest.mark.parametrize("end", ["\n", "\t", "\r\n"])
async def test_ends_of_lines_within_texts_are_read_as_they_are(tmp_path: Path, end: str) -> None:
    """X2: JSON wants them written as backslash and letter, which weaker models do not do."""
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        written = f'{{"meta": "a{end}b", "note": "c"}}'
        assert (await (await open_session()).call("call_tool", {"name": "note", "arguments": written})).status == "ok"
        assert ran == [(f"a{end}b", "c")]


async def test_what_is_for_the_tool_stays_as_the_model_wrote_it(tmp_path: Path) -> None:
    """X2: texts within its arguments are not read, and what does not fit its schema is refused."""
    written = {"meta": '{"a": 1}', "note": "5"}
    async with opened(tmp_path, "pegboard") as (open_session, ran):
        session = await open_session()
        assert (await session.call("call_tool", {"name": "note", "arguments": json.dumps(written)})).status == "ok"
        assert ran == [('{"a": 1}', "5")]
        wrong = {"name": "purge", "arguments": {"before": "2020", "dry_run": "true"}}
        assert (await session.call("call_tool", wrong)).result.is_error
        assert len(ran) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("load_tools", {"names": "purge"}),
        ("load_tools", {"names": '["purge"]'}),
        ("load_tools", {"names": ["purge"], "keep": None}),
        ("search_tools", {"queries": "delete old things", "limit": "3"}),
        ("search_tools", {"queries": '["delete old things"]', "limit": "3.0"}),
        ("search_tools", {"queries": ["delete old things"], "limit": ""}),
    ],
)
async def test_lists_and_numbers_of_meta_tools_may_be_texts(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    async with opened(tmp_path, "pegboard") as (open_session, _):
        answered = await (await open_session()).call(name, arguments)
        assert answered.status == "ok", answered.message
        assert "purge" in answered.message


@pytest.mark.parametrize("written", [GIVEN, AS_TEXT, json.dumps(AS_TEXT)])
def test_what_a_framework_passes_on_is_read_in_the_same_way(written: Any) -> None:
    """One decoder: what an adapter shows as the real call is what the session runs."""
    call = passed_on("call_tool", {"name": "purge", "arguments": written})
    assert call is not None
    assert (call.name, call.arguments) == ("purge", parsed_arguments(written))
