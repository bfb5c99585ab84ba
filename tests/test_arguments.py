"""Arguments against a tool's schema: checked at once where that is quick, else in a process of its own."""

from typing import Any

import pytest

from pegboard.arguments import SchemaValidator
from pegboard.core.model.tools import Tool


def tool(schema: dict[str, Any]) -> Tool:
    return Tool(plugin="p", name="t", wire="p__t", input_schema={"type": "object", **schema})


def one(**schema: Any) -> Tool:
    return tool({"properties": {"a": schema}})


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"pattern": r"^\p{L}{1,64}$"}, "é", "1"),
        ({"pattern": r"^(?!.*\.\.)[a-z.]+@[a-z]+$"}, "a.b@c", "a..b@c"),
        ({"pattern": r"^(\w)\1$"}, "aa", "ab"),
        ({"enum": [f"{n}" for n in range(60_000)]}, "7", "x"),
        ({"type": "string", "maxLength": 5_000_000, "pattern": "^(a+)+$"}, "a" * 1_000_000, "a" * 1_000_000 + "!"),
    ],
    ids=["large", "look-around", "reference", "choices", "long text"],
)
async def test_what_takes_more_than_others_may_wait_for_is_checked_all_the_same(
    schema: dict[str, Any], good: Any, bad: Any
) -> None:
    """X2: one client's schema or text costs no check."""
    validator = SchemaValidator()
    assert await validator.problems(one(**schema), {"a": good}) == []
    (problem,) = await validator.problems(one(**schema), {"a": bad})
    assert problem.startswith("argument 'a': ")


@pytest.mark.parametrize(
    ("pattern", "good"),
    [("^((?!<script).)*$", "a" * 20_000), (r"^(?:(?!--)(?!/\*).)*$", "select 1 " * 2_000)],
)
async def test_a_long_text_that_fits_a_pattern_with_look_around_is_not_refused(pattern: str, good: str) -> None:
    """X2: what takes too many steps here is checked in a process of its own."""
    validator = SchemaValidator()
    assert await validator.problems(one(type="string", pattern=pattern), {"a": good}) == []
    assert await validator.problems(one(type="string", pattern=pattern), {"a": f"{good}<script--"}) != []


async def test_a_recursive_schema_goes_as_deep_as_its_arguments() -> None:
    """X2: a tree of conditions, as many tools take it, is checked at once and named by its place."""
    node = {
        "anyOf": [
            {"type": "object", "required": ["all"], "properties": {"all": {"items": {"$ref": "#/$defs/node"}}}},
            {"type": "object", "required": ["is"], "properties": {"is": {"type": "string"}}},
        ]
    }
    filtered = tool({"properties": {"where": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    value: Any = {"is": "x"}
    for _ in range(3):
        value = {"all": [value, {"is": "y"}]}
    assert SchemaValidator().fits(filtered, {"where": value})
    (problem,) = await SchemaValidator().problems(filtered, {"where": {"all": [{"is": 5}]}})
    assert problem.startswith("argument 'where': ")


@pytest.mark.parametrize("schema", [{"properties": 5}, {"properties": {"a": {"$ref": "https://x.example/y"}}}])
async def test_a_schema_that_is_not_valid_checks_nothing(schema: dict[str, Any]) -> None:
    """X2: the tool judges its arguments then."""
    validator, broken = SchemaValidator(), tool(schema)
    assert validator.fits(broken, {"a": object})
    assert await validator.problems(broken, {"a": 1}) == []


async def test_what_is_nested_too_deep_is_one_problem() -> None:
    """X2: no traceback."""
    value: Any = 1
    for _ in range(5_000):
        value = {"b": value}
    (problem,) = await SchemaValidator().problems(one(type="string"), {"a": value})
    assert problem.startswith("they are not JSON")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["integer", "string"], "minimum": 1},
        {"enum": ["x"]},
        {"anyOf": [{"type": "object"}, {"type": "array"}]},
        {"$ref": "#/$defs/name"},
    ],
)
async def test_null_fits_where_a_schema_says_so_in_the_way_of_openapi(schema: dict[str, Any]) -> None:
    """X2: `nullable: true`, at any depth; what else does not fit is refused as before."""
    validator, defs = SchemaValidator(), {"$defs": {"name": {"type": "string"}}}
    direct = tool({"properties": {"a": {**schema, "nullable": True}}, **defs})
    inside = tool({"properties": {"a": {"items": {**schema, "nullable": True}}}, **defs})
    assert await validator.problems(direct, {"a": None}) == []
    assert await validator.problems(inside, {"a": [None]}) == []
    assert await validator.problems(tool({"properties": {"a": schema}, **defs}), {"a": None}) != []
    assert await validator.problems(direct, {"a": 1.5}) != []
    assert await validator.problems(inside, {"a": [1.5]}) != []


async def test_an_argument_that_is_called_nullable_is_one_like_any_other() -> None:
    """X2: a name among properties, or a value among choices, says nothing of null."""
    schema = {"properties": {"nullable": {"type": "boolean"}, "a": {"enum": [{"nullable": True}]}}}
    validator = SchemaValidator()
    assert await validator.problems(tool(schema), {"nullable": True, "a": {"nullable": True}}) == []
    assert await validator.problems(tool(schema), {"nullable": None}) != []
    assert await validator.problems(tool(schema), {"a": None}) != []
