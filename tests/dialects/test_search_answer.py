"""The answer of a search: what it says of each result, and what it leaves off over its budget."""

import json
from typing import Any

from driving import tool_named

from pegboard.core.model.tools import EMPTY, Tool
from pegboard.dialects.names import Found, FoundTool
from pegboard.dialects.search_tool import TOKENS, search_payload, shorten_names
from pegboard.tokens import OfflineTokenCounter

COUNT = OfflineTokenCounter().count


def result(name: str, **more: Any) -> FoundTool:
    stated: dict[str, Any] = {"plugin": "p", "description": f"{name}.", "score": 1.0, "loaded": False, **more}
    return FoundTool(name=name, **stated)


def answer(found: Found, *loaded: Tool) -> dict[str, Any]:
    return json.loads(search_payload(found, loaded, EMPTY, COUNT).text())


def test_a_result_says_what_tells_it_what_it_requires_and_where_it_stands() -> None:
    """P3, P6, D2: a tool that has to be loaded says nothing of it, for most have to be."""
    results = (
        result("log", sentence="Show the log.", required=("branch", "days: integer")),
        result("diff", sentence="Show changes.", loaded=True, status="callable", need=1),
        result("late", loaded=True, status="next_request"),
        result("gone", status="unavailable", reason="GIT_TOKEN is not set.\nSet it."),
        result("devops", kind="toolkit", sentence="Deploy."),
    )
    assert answer(Found(query=("a", "b"), results=results))["results"] == [
        {"name": "log", "need": 1, "description": "Show the log.", "required": "branch, days: integer"},
        {"name": "diff", "need": 2, "description": "Show changes.", "loaded": True},
        {"name": "late", "need": 1, "loaded": "next_request"},
        {"name": "gone", "need": 1, "unavailable": "GIT_TOKEN is not set. Set it."},
        {"name": "devops", "need": 1, "kind": "toolkit", "description": "Deploy."},
    ]


def test_what_was_loaded_has_its_whole_description_and_its_arguments() -> None:
    """F4: in the brief form, and as the schema is where that would lose something."""
    schema = {"type": "object", "properties": {"branch": {"type": "string"}}}
    plain, odd = tool_named("log", input_schema=schema), tool_named("odd", input_schema={**schema, "minProperties": 1})
    found = Found(query=("a",), results=(result("log"), result("odd")), further=("git__a", "git__b", "c"))
    assert answer(found, plain, odd) == {
        "status": "ok",
        "results": [
            {"name": "log", "loaded": True, "description": "Does log. At once.", "arguments": {"branch?": "string"}},
            {"name": "odd", "loaded": True, "description": "Does odd. At once.", "inputSchema": odd.input_schema},
        ],
        "more": "git__{a, b}, c",
    }


def test_what_is_far_behind_the_best_of_its_need_is_only_named() -> None:
    """F4: it is hardly ever what was needed."""
    results = (result("log"), result("near", score=0.9), result("far", score=0.5), result("own", score=0.4, need=1))
    document = answer(Found(query=("a", "b"), results=results, further=("next",)))
    assert [one["name"] for one in document["results"]] == ["log", "near", "own"]
    assert document["more"] == "far, next"


def test_over_the_budget_siblings_go_then_names_then_sentences_and_never_arguments() -> None:
    """F4: 400 tokens; sentences go from the last result up, and results at the very last."""
    sentence = "Something that is said of a tool that nobody here has needed."
    names = tuple(f"another_tool_number_{number}" for number in range(10))

    def over(arguments: int) -> dict[str, Any]:
        required = tuple(f"argument_{number}: integer" for number in range(arguments))
        results = tuple(result(f"tool_{n}", sentence=sentence, required=required) for n in range(5))
        found = Found(query=("a",), results=results, further=names, siblings=("a_sibling",))
        document = answer(found)
        assert all(one["required"] == ", ".join(required) for one in document["results"])
        assert COUNT(json.dumps(document, separators=(",", ":"))) <= TOKENS or len(document["results"]) == 1
        return document

    assert over(7)["more"].endswith("another_tool_number_9, a_sibling")
    assert over(8)["more"] == ", ".join(names[:5])
    bare = over(10)
    assert "more" not in bare
    assert ["description" in one for one in bare["results"]] == [True, True, True, False, False]
    assert len(over(100)["results"]) == 1


def test_over_the_budget_texts_of_optional_arguments_are_shortened_and_the_answer_states_it() -> None:
    """F4: what is required stays unchanged."""
    text = "What it is for. And a good deal more on how it is used with the others."
    arguments: dict[str, Any] = {f"option_{n}": {"type": "string", "description": text} for n in range(40)}
    required = {"type": "string", "description": f"{text} It is needed."}

    def over(options: int) -> dict[str, Any]:
        known = {"must": required, **dict(list(arguments.items())[:options])}
        tool = tool_named("wide", input_schema={"type": "object", "properties": known, "required": ["must"]})
        document = answer(Found(query=("a",), results=(result("wide"),)), tool)
        assert COUNT(json.dumps(document, separators=(",", ":"))) <= TOKENS
        assert document["results"][0]["arguments"]["must"] == f"string: {text} It is needed."
        return document

    assert "shortened" not in over(3)
    assert over(20)["results"][0]["arguments"]["option_0?"] == "string: What it is for."
    bare = over(40)
    assert bare["results"][0]["arguments"]["option_0?"] == "string"
    assert bare["shortened"] == "texts of optional arguments; load_tools gives them whole"


def test_names_with_the_same_beginning_state_it_once() -> None:
    """F4: the names stay whole where there is nothing in front."""
    names = ["git__log", "read", "git__diff", "__", "a__", "b__c__d"]
    assert shorten_names(names) == "git__{log, diff}, read, __, a__, b__c__d"
    assert shorten_names([]) == ""
