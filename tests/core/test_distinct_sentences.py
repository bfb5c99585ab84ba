"""What an answer says of a tool: the sentence that tells it from others, its arguments, what its plugin is for."""

from hypothesis import given
from hypothesis import strategies as st
from states import access_of, plugin, tool

from pegboard.core.model.naming import SENTENCE_CHARACTERS, distinct_sentences
from pegboard.core.model.tools import Manifest, Plugin
from pegboard.core.surface.definitions import brief_schema, required_arguments
from pegboard.core.surface.hints import purposes

BANK = "This tool belongs to the bank. It is a bank. Tool description: "


def test_of_descriptions_that_begin_alike_the_sentence_is_taken_that_differs() -> None:
    """P3: every first sentence would be equal."""
    assert distinct_sentences([f"{BANK}Open an account.", f"{BANK}Close an account."]) == (
        "Tool description: Open an account.",
        "Tool description: Close an account.",
    )


def test_the_first_sentence_is_taken_where_it_tells_enough() -> None:
    """P3: a later one has more words of its own, and the first has some."""
    texts = ["List files. Recursively, hidden ones, links followed.", "Read one file. At once."]
    assert distinct_sentences(texts) == ("List files.", "Read one file.")
    assert distinct_sentences(["", "Same text.", "Same text."]) == ("", "Same text.", "Same text.")
    assert distinct_sentences(["一を読む。二を書く。", "一を読む。三を消す。"]) == ("二を書く。", "三を消す。")


@given(texts=st.lists(st.text(max_size=200), max_size=6))
def test_distinct_sentences_are_short_lines_and_the_same_every_time(texts: list[str]) -> None:
    """F2: whatever descriptions say."""
    found = distinct_sentences(texts)
    assert found == distinct_sentences(texts)
    assert len(found) == len(texts)
    assert all(len(line) <= SENTENCE_CHARACTERS and (not line or line.isprintable()) for line in found)


def test_required_arguments_have_their_type_or_their_few_values() -> None:
    """P3: a text is what an argument is where nothing is stated; what is long is left to the schema."""
    properties = {
        "city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["c", "f"]},
        "tags": {"type": "array", "items": {"type": "string"}}, "box": {"type": "object", "properties": {"x": {}}},
        "state": {"enum": [f"state-{number}" for number in range(50)], "type": "string"}, "more": {"type": "string"},
    }  # fmt: skip
    schema = {"properties": properties, "required": [*list(properties)[:-1], "odd", 7]}
    assert required_arguments(schema) == (
        "city", "days: integer", "unit: c|f", "tags: string[]", "box: object", "state", "odd",
    )  # fmt: skip
    assert required_arguments({"required": "all", "properties": []}) == ()


def test_a_brief_schema_loses_nothing() -> None:
    """F4: what one text cannot state stands as it is, and a schema that is more than arguments has no brief form."""
    properties = {
        "path": {"type": "string", "title": "Path", "description": "Where to\nread."},
        "depth": {"type": ["integer", "null"], "default": 2},
        "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
        "size": {"type": "integer", "minimum": 3},
        "kind": {"enum": ["string", "integer"]},
        "mark": {"enum": ["|", "x"]},
        "any": True,
    }
    assert brief_schema({"type": "object", "properties": properties, "required": ["path"]}) == {
        "path": "string: Where to read.",
        "depth?": "integer|null = 2",
        "kinds?": "(a|b)[]",
        "size?": {"type": "integer", "minimum": 3},
        "kind?": {"enum": ["string", "integer"]},
        "mark?": {"enum": ["|", "x"]},
        "any?": True,
    }
    assert brief_schema({"type": "object", "properties": {}, "oneOf": []}) is None
    assert brief_schema({"type": "object", "additionalProperties": {"type": "string"}}) is None
    assert brief_schema({"type": "object"}) == {}


def test_a_plugin_is_for_what_it_says_else_for_what_its_tools_are_called() -> None:
    """F2: "git" or "fetch" alone tells a model nothing."""
    git = plugin("git", *(f"git_{name}" for name in ("status", "log_show", "log", "commit", "branch", "log_search")))
    fetch = plugin("fetch", tool("fetch", "fetch", description="Get a page of the web. As text."))
    told = plugin("notes", "add", description="Notes of a user. Short ones.")
    named = plugin("jira", "search", description="Jira MCP server")
    hidden = plugin("off", "secret_thing", description="Off server")
    known = purposes(access_of(git, fetch, told, named, hidden, discoverable=("*",), switches={"off": False}), None)
    assert known["git"].cut_to(60) == "show, commit, search log, status, branch"
    assert (known["fetch"].text, known["notes"].text) == ("Get a page of the web.", "Notes of a user.")
    assert (known["jira"].cut_to(60), known["off"].text) == ("Does search.", "Off server")


def test_a_server_that_says_no_more_than_its_name_is_for_what_its_instructions_begin_with() -> None:
    """F2, G8: its title or description, else the first sentence of its instructions."""
    instructions = "Reads issues of a project. Always use me."
    bare = Plugin(name="jira", kind="server").with_manifest("", Manifest(instructions=instructions))
    titled = Plugin(name="jira").with_manifest("", Manifest(description="Jira Server", instructions=instructions))
    stated = Plugin(name="jira").with_manifest("", Manifest(description="Issues", instructions=instructions))
    own = Plugin(name="jira", description="Ours").with_manifest("", Manifest(description="Issues"))
    assert [p.description for p in (bare, titled, stated, own)] == [
        "Reads issues of a project.", "Reads issues of a project.", "Issues", "Ours",
    ]  # fmt: skip
