"""Schemas are repaired before a provider sees them, and what a model wrote by them is what the tool gets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pegboard import Tool
from pegboard.core.model.tools import Frozen
from pegboard.wire.acceptable_schemas import SchemaProvider, original_arguments, tool_for_provider

PROVIDERS: tuple[SchemaProvider, ...] = ("anthropic", "responses", "chat", "gemini", "any")
NUMBER, TEXT = {"type": "number"}, {"type": "string"}
REFERENCE = {"$ref": "#/$defs/N"}
PAIR = {"type": "array", "prefixItems": [NUMBER, NUMBER], "minItems": 2, "maxItems": 2}

CIRCLE = [{"$ref": f"#/$defs/A{n}"} for n in range(30)]


def taken(schema: Any, provider: SchemaProvider, description: str = "Pins.") -> tuple[Tool, tuple[str, ...]]:
    tool = Tool(plugin="p", name="pin", wire="pin", description=description, input_schema=Frozen(schema))
    return tool_for_provider(tool, provider)


def of_arguments(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def arrays_of(schema: Any) -> list[dict[str, Any]]:
    """Return every array within a schema."""
    found = [schema] if isinstance(schema, dict) and schema.get("type") == "array" else []
    parts = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return [*found, *(one for part in parts for one in arrays_of(part))]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "schema",
    [
        of_arguments(at=PAIR),
        of_arguments(at={"anyOf": [PAIR, {"type": "null"}]}),
        of_arguments(at={"type": "object", "properties": {"lines": {"type": "array", "items": PAIR}}}),
        of_arguments(at={"type": "array", "items": [NUMBER, TEXT], "additionalItems": False}),
        of_arguments(at={"type": "array", "prefixItems": [NUMBER, TEXT], "items": False}),
        of_arguments(at={"type": "array"}),
        {**of_arguments(at={"$ref": "#/$defs/Pair"}), "$defs": {"Pair": PAIR}},
    ],
)
def test_every_array_has_one_schema_for_its_items(schema: dict[str, Any], provider: SchemaProvider) -> None:
    """D4: tuples, in the forms of every draft, wherever they stand in a schema."""
    tool, changes = taken(schema, provider)

    found = arrays_of(tool.input_schema)
    assert found
    assert all(isinstance(one["items"], dict) for one in found)
    assert any("items" in change for change in changes)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("schema", "properties", "required", "beside"),
    [
        (
            {**of_arguments(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"a", "b"},
            [],
            "Give at least one of: a; b.",
        ),
        (
            {
                "oneOf": [
                    {**of_arguments(id=TEXT, at=NUMBER), "required": ["id", "at"]},
                    {**of_arguments(url=TEXT, at=NUMBER), "required": ["at", "url"]},
                ]
            },
            {"id", "at", "url"},
            ["at"],
            "Give exactly one of: id; url.",
        ),
        (
            {
                "allOf": [{**of_arguments(a=TEXT), "required": ["a"]}, {"$ref": "#/$defs/B"}],
                "$defs": {"B": of_arguments(b=TEXT)},
            },
            {"a", "b"},
            ["a"],
            "",
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": {**of_arguments(a=TEXT), "required": ["a"]}}}, {"a"}, ["a"], ""),
        ({"properties": {"a": TEXT}}, {"a"}, [], ""),
    ],
)  # fmt: skip
def test_a_root_is_one_object(
    schema: dict[str, Any], properties: set[str], required: list[str], beside: str, provider: SchemaProvider
) -> None:
    """D4: no argument is lost; what a choice demands is in the description."""
    tool, changes = taken(schema, provider)

    made = tool.input_schema
    assert (made["type"], set(made["properties"]), made.get("required", [])) == ("object", properties, required)
    assert not made.keys() & {"anyOf", "oneOf", "allOf", "$ref"}
    assert (tool.description, bool(changes)) == (f"Pins.\n{beside}".strip(), True)


@given(name=st.text(min_size=1, max_size=80), other=st.text(min_size=1, max_size=8))
def test_a_call_reaches_the_tool_under_the_names_that_it_has(name: str, other: str) -> None:
    """D4: names of arguments of any characters and length, at the root and within; values are never changed."""
    inner = {"type": "array", "items": of_arguments(**{name: TEXT, other: TEXT})}
    schema = {**of_arguments(**{name: TEXT, "rows": inner}), "required": [name]}
    made, _ = taken(schema, "anthropic")
    shown: Any = made.input_schema
    row = shown["properties"]["rows"]["items"]["properties"] if name != "rows" else {}
    written = {key: name for key in shown["properties"] if key != "rows"} | {"rows": [dict.fromkeys(row, name)]}

    assert all(key.isascii() and len(key) <= 64 for key in (*shown["properties"], *row))
    tool = Tool(plugin="p", name="pin", wire="pin", input_schema=Frozen(schema))
    rows = [{name: name, other: name}] if name != "rows" else [{}]
    assert original_arguments(tool, written) == {name: name, "rows": rows}


@pytest.mark.parametrize(("provider", "longest"), [("chat", 1024), ("responses", None), ("anthropic", None)])
def test_a_long_description_is_cut_where_the_provider_has_a_limit(
    provider: SchemaProvider, longest: int | None
) -> None:
    text = "It looks at a place. " * 80
    tool, changes = taken(of_arguments(at=NUMBER), provider, text)

    assert (len(tool.description) <= 1024) == (longest is not None)
    assert tool.description.startswith("It looks at a place. It looks")
    assert tool.description.endswith("place. …") == (longest is not None) == bool(changes)


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (of_arguments(of={"const": "x"}), [{"of": "x"}]),
        (of_arguments(of={"type": ["integer", "null"]}), [{"of": 3}]),
        ({**of_arguments(of=REFERENCE), "$defs": {"N": of_arguments(of=REFERENCE)}}, [{"of": {}}]),
        (of_arguments(of={"enum": [1, 2]}), [{"of": 2}]),
        (of_arguments(of={"oneOf": [NUMBER, {"type": "array", "items": {}}]}), [{"of": 1}, {"of": ["a"]}]),
        (of_arguments(of={"type": "string", "format": "uri"}), [{"of": "x:y"}]),
    ],
)  # fmt: skip
def test_gemini_reads_its_own_keywords_alone(schema: dict[str, Any], values: list[Any]) -> None:
    """D4: what the tool takes fits what the model is shown; recursion ends."""
    shown: Any = taken(schema, "gemini")[0].input_schema
    text = str(shown)

    assert not any(f"'{word}'" in text for word in ("$ref", "$defs", "const", "oneOf", "additionalProperties", "uri"))
    for value in values:
        Draft202012Validator(shown).validate(value)
        Draft202012Validator(schema).validate(value)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_every_provider_takes_is_the_same_object(provider: SchemaProvider) -> None:
    """F1: nothing of such a tool is copied or written again, and nothing reported."""
    plain = Tool(
        plugin="p", name="pin", input_schema=Frozen(of_arguments(city=TEXT, tags={"type": "array", "items": TEXT}))
    )

    assert tool_for_provider(plain, provider) == (plain, ())
    assert tool_for_provider(plain, provider)[0] is plain


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": CIRCLE, "$defs": {f"A{n}": {"anyOf": CIRCLE} for n in range(30)}},
        {"$ref": "#/nowhere", "allOf": "x", "properties": None},
        {**of_arguments(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}] * 9}}},
        of_arguments(a=True, b={"type": "array", "items": True}),
    ],
)
def test_a_hostile_schema_ends_in_one(schema: dict[str, Any], provider: SchemaProvider) -> None:
    """F4: a schema that leads back to itself, or is none, is repaired in a moment."""
    assert taken(schema, provider)[0].input_schema["type"] == "object"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_schema_of_3_000_levels_is_left_as_it_is(provider: SchemaProvider) -> None:
    deep: dict[str, Any] = TEXT
    for _ in range(3_000):
        deep = of_arguments(of=deep)
    tool = Tool(plugin="p", name="pin", input_schema=Frozen(deep))

    assert tool_for_provider(tool, provider) == (tool, ())
