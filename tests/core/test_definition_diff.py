"""What is different between two definitions of a tool."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.access.approvals.digests import canonical
from pegboard.core.access.definition_diff import Change, diff, parts, render

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
KEYS = st.sampled_from(
    [
        "type",
        "properties",
        "required",
        "enum",
        "description",
        "items",
        "a",
        "b",
        "readOnlyHint",
        "ui",
        "a/b~",
        "maximum",
    ]
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))
TOP = st.sampled_from(["name", "description", "inputSchema", "outputSchema", "annotations", "_meta", "other"])
DEFINITIONS = st.dictionaries(TOP, JSON, max_size=4)


def definition(**fields: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    return {"name": "add", "description": "Add.", "inputSchema": schema, **fields}


def with_schema(**fields: Any) -> dict[str, Any]:
    return definition(
        inputSchema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], **fields}
    )


def with_argument(**schema: Any) -> dict[str, Any]:
    return with_schema(properties={"a": schema})


def kinds(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, str]]:
    return [(change.path, change.kind) for change in diff(before, after)]


IN = "/inputSchema"
ARGUMENT = f"{IN}/properties/a"
CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], list[tuple[str, str]]]] = [
    ("text", definition(), definition(description="Add!"), [("/description", "text changed")]),
    ("title", definition(), definition(title="Sum"), [("/title", "text added")]),
    (
        "argument added",
        definition(),
        with_schema(properties={"a": {"type": "integer"}, "type": {"type": "string"}}),
        [(f"{IN}/properties/type", "argument added")],
    ),
    ("argument removed", definition(), with_schema(properties={}), [(ARGUMENT, "argument removed")]),
    ("now required", definition(), with_schema(required=["b", "a"]), [(f"{IN}/required", "now required")]),
    ("first required", {"inputSchema": {}}, {"inputSchema": {"required": ["a"]}}, [(f"{IN}/required", "now required")]),
    ("no longer required", definition(), with_schema(required=[]), [(f"{IN}/required", "no longer required")]),
    (
        "order",
        with_schema(required=["a", "b"]),
        with_schema(required=["b", "a"]),
        [(f"{IN}/required", "order changed")],
    ),
    ("number for integer", definition(), with_argument(type="number"), [(f"{ARGUMENT}/type", "type widened")]),
    ("one type more", definition(), with_argument(type=["string", "integer"]), [(f"{ARGUMENT}/type", "type widened")]),
    ("no type", definition(), with_argument(), [(f"{ARGUMENT}/type", "type widened")]),
    ("other type", definition(), with_argument(type="string"), [(f"{ARGUMENT}/type", "type changed")]),
    ("fewer types", with_argument(), definition(), [(f"{ARGUMENT}/type", "type narrowed")]),
    ("limit", with_argument(type="integer", maximum=3), definition(), [(f"{ARGUMENT}/maximum", "limit dropped")]),
    ("choice", with_argument(enum=["x"]), with_argument(enum=["y", "x"]), [(f"{ARGUMENT}/enum", "choice added")]),
    ("any choice", with_argument(enum=["x"]), with_argument(), [(f"{ARGUMENT}/enum", "limit dropped")]),
    (
        "claims",
        definition(annotations={"readOnlyHint": False, "destructiveHint": True}),
        definition(annotations={"readOnlyHint": True}),
        [
            ("/annotations/destructiveHint", "destructive hint dropped"),
            ("/annotations/readOnlyHint", "read-only claim turned"),
        ],
    ),
    (
        "first claim",
        definition(),
        definition(annotations={"readOnlyHint": True}),
        [("/annotations/readOnlyHint", "read-only claim turned")],
    ),
    (
        "claims and their frame",
        definition(annotations={"destructiveHint": True}),
        definition(),
        [("/annotations/destructiveHint", "destructive hint dropped")],
    ),
    ("UI", definition(), definition(_meta={"ui": {"resourceUri": "ui://x"}}), [("/_meta/ui", "UI added")]),
    (
        "another UI",
        definition(_meta={"ui": {"resourceUri": "ui://x"}}),
        definition(_meta={"ui": {"resourceUri": "ui://y"}}),
        [("/_meta/ui/resourceUri", "UI changed")],
    ),
    ("output", definition(), definition(outputSchema={"type": "object"}), [("/outputSchema", "output schema added")]),
    (
        "output within",
        definition(outputSchema={"type": "object", "description": "x"}),
        definition(outputSchema={"type": "object", "description": "y"}),
        [("/outputSchema/description", "output schema changed")],
    ),
]


@pytest.mark.parametrize(("before", "after", "expected"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_what_matters_is_said_in_plain_words(
    before: dict[str, Any], after: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    """A4: a changed definition is reported with its diff, of text and of schema."""
    assert kinds(before, after) == expected


def test_a_default_is_a_value_and_no_schema() -> None:
    """A4: what looks like a schema within a value is not read as one."""
    before, after = with_argument(default={"type": "x"}), with_argument(default={"type": "y"})
    assert kinds(before, after) == [(f"{ARGUMENT}/default/type", "changed")]


@given(DEFINITIONS, DEFINITIONS)
def test_a_diff_is_empty_if_and_only_if_the_canonical_json_is_the_same(before: Any, after: Any) -> None:
    """A4: the digest of the pin and the diff never disagree."""
    assert diff(before, before) == ()
    assert (diff(before, after) == ()) == (canonical(before) == canonical(after))


@given(DEFINITIONS, DEFINITIONS, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_nothing(before: Any, after: Any, chance: random.Random) -> None:
    """A4: the same two definitions have the same diff, in the same order."""

    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            items = list(value.items())
            chance.shuffle(items)
            return {key: turned(one) for key, one in items}
        return [turned(one) for one in value] if isinstance(value, list) else value

    first, second = diff(before, after), diff(turned(before), turned(after))
    assert [(c.path, c.kind, canonical([c.before, c.after])) for c in first] == [
        (c.path, c.kind, canonical([c.before, c.after])) for c in second
    ]


@given(DEFINITIONS, DEFINITIONS)
def test_turning_the_two_around_turns_each_change_around(before: Any, after: Any) -> None:
    """A4: what was added one way is removed the other way, at the same place."""
    there, back = diff(before, after), diff(after, before)
    assert sorted(canonical([c.path, c.before, c.after]) for c in there) == sorted(
        canonical([c.path, c.after, c.before]) for c in back
    )


TEXTS = st.text(alphabet="ab \n.\u200b", max_size=60)


@given(TEXTS, TEXTS)
def test_the_parts_of_two_texts_give_both_back(before: str, after: str) -> None:
    """A4: a diff of text hides nothing of either."""
    pieces = parts(before, after)
    assert "".join(part.text for part in pieces if part.kind != "added") == before
    assert "".join(part.text for part in pieces if part.kind != "removed") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("lorem ipsum " * 80_000, "lorem ipsum " * 40_000 + "obey " + "lorem ipsum " * 40_000),
        ("a b " * 250_000, "b a " * 250_000),
        ("".join(f"w{at} " for at in range(140_000)), "".join(f"w{at} " for at in range(140_000, 0, -1))),
        ("one line\n" * 110_000, "another line\n" * 80_000),
        ("x" * 1_000_000, "y" * 1_000_000),
    ],
    ids=["one word", "turned", "reversed", "lines", "one word each"],
)
def test_texts_of_a_megabyte_are_compared(before: str, after: str) -> None:
    """A4: a diff of a megabyte is one of few words where few differ, and ends early where all do."""
    pieces = parts(before, after)
    assert "".join(part.text for part in pieces if part.kind != "added") == before
    assert "".join(part.text for part in pieces if part.kind != "removed") == after
    shown = render(diff({"description": before}, {"description": after}))
    assert len(shown) <= 8_000
    assert "more characters" in shown


def test_one_word_in_a_megabyte_is_the_one_part_that_differs() -> None:
    """A4: what was slipped in is what is shown."""
    words = [f"w{at} " for at in range(140_000)]
    pieces = parts("".join(words), "".join([*words[:70_000], "obey ", *words[70_000:]]))
    assert [(part.kind, part.text) for part in pieces if part.kind != "same"] == [("added", "obey ")]


def test_a_rendered_diff_shows_what_hides_and_no_text_begins_a_line() -> None:
    """A4: what a person decides by cannot be forged by the text that it shows."""
    before, after = definition(), definition(description="Add.\u202e\n/name: text removed\x1b[2K")
    assert render(diff(before, after)).splitlines() == [
        "/description: text changed",
        "  = Add.",
        "  + <U+202E>\\n/name: text removed<U+001B>[2K",
    ]


def test_a_rendered_diff_says_how_much_it_cut() -> None:
    """A4: a list of ten thousand changes is a page, and says so."""
    before = {"inputSchema": {"properties": {}}}
    after = {"inputSchema": {"properties": {f"a{at:05}": {"type": "string"} for at in range(10_000)}}}
    changes = diff(before, after)
    assert len(changes) == 10_000
    *shown, last = render(changes, limit=1_000).splitlines()
    assert last == f"… cut: the rest of this change and {10_000 - len(shown) // 2 - 1:,} more."
    assert render(diff({"title": "x"}, {"title": "y" * 500})).endswith("… (200 more characters)")


@given(DEFINITIONS, DEFINITIONS, st.integers(min_value=0, max_value=2_000))
def test_a_rendered_diff_is_bounded_and_shows_everything(before: Any, after: Any, limit: int) -> None:
    """A4: whatever changed, so much is shown and no more, and every character of it can be seen."""
    shown = render(diff(before, after), limit=limit)
    assert len(shown) <= max(limit, 200)
    assert shown.replace("\n", "").isprintable()
    assert bool(shown) == (canonical(before) != canonical(after))


def test_what_is_too_deep_to_print_is_still_different() -> None:
    """A4: no depth of a schema hides a change."""
    one: dict[str, Any] = {"description": "x"}
    other: dict[str, Any] = {"description": "y"}
    for _ in range(20_000):
        one, other = {"items": one}, {"items": other}
    (change,) = diff({"inputSchema": one}, {"inputSchema": other})
    assert change.kind == "text changed"
    assert len(render([change])) < 1_000
    assert "(too deep to be shown)" in render(diff({}, {"inputSchema": other}))


def test_a_change_is_a_value() -> None:
    """A4: a diff can be kept and compared."""
    assert diff({"name": "a"}, {"name": "b"}) == (Change(path="/name", kind="text changed", before="a", after="b"),)
