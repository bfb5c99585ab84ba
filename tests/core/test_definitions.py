"""The definitions of tools in texts for a model: what stands once, and what a text defines already."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pegboard.core.model.tools import Tool
from pegboard.core.surface.definitions import (
    all_defined_in,
    defined_in,
    definitions,
    definitions_ahead,
    is_definition_of,
)


def tool(name: str, about: str = "Something.", **arguments: str) -> Tool:
    properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(plugin="repo", name=name, wire=name, description=about, input_schema=schema)


READ = tool("read", owner="Whose repository it is.", path="The file.")
LIST = tool("list", owner="Whose repository it is.", path="The folder.")


def test_what_is_stated_of_an_argument_stands_once_in_a_text() -> None:
    """D4: where the same argument comes again it has its type alone; another description is another argument."""
    first, second = definitions([READ, LIST])
    assert first["arguments"] == {"owner": "string: Whose repository it is.", "path": "string: The file."}
    assert second["arguments"] == {"owner": "string", "path": "string: The folder."}
    assert definitions([LIST], before=[READ]) == [second]


def test_a_text_defines_the_tools_whose_descriptions_and_arguments_are_those_of_today() -> None:
    """D4: what is stated elsewhere in the text is no difference; a changed tool is defined again."""
    text = f"Answer: {json.dumps({'items': [{'name': 'repo', 'tools': definitions([READ, LIST])}]})} and more"
    known = defined_in(text)
    assert set(known) == {"read", "list"}
    assert all(is_definition_of(known[one.wire], one) for one in (READ, LIST))
    assert not is_definition_of(known["read"], replace(READ, description="Another thing."))
    assert not is_definition_of(known["list"], tool("list", owner="Whose repository it is."))
    assert not is_definition_of(known.get("write"), READ)


@pytest.mark.parametrize("properties", [None, [], "x", {"a": None}])
def test_a_schema_that_is_none_is_no_failure(properties: object) -> None:
    """G8: what a server lists may be anything."""
    odd = Tool(plugin="odd", name="o", wire="o", description="Odd.", input_schema={"properties": properties})
    assert [one["name"] for one in definitions([odd, READ], before=[odd])] == ["o", "read"]
    assert "o" in definitions_ahead([odd])


def test_no_text_of_another_kind_defines_a_tool() -> None:
    """Broken JSON, an item of a load and a result of a search define nothing."""
    texts = ['{"name": "read", "description": "Someth', '{"name": "repo", "status": "loaded"}', '{"name": "read"} {}']
    assert all_defined_in(texts) == {}
    assert all_defined_in([*texts, definitions_ahead([READ])]).keys() == {"read"}
