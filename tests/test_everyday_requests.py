"""Hold that the data of the everyday requests are well-formed."""

from collections import Counter

import pytest
from benchmarks.everyday.collecting import SERVERS, about, written
from benchmarks.everyday.reading import FOLDER, Half, catalogs, effects, requests, small_talk

HALVES: tuple[Half, Half] = ("develop", "kept")
PERMISSIVE = {"Apache-2.0", "ISC", "MIT"}


def listed_tools() -> list[str]:
    return [f"{name}/{tool['name']}" for name, catalog in catalogs().items() for tool in catalog["tools"]]


def test_each_server_has_a_catalog_of_the_package_that_is_collected() -> None:
    assert len(SERVERS) == 20
    found = {name: {key: catalog[key] for key in about(SERVERS[name])} for name, catalog in catalogs().items()}
    assert found == {name: about(server) for name, server in SERVERS.items()}
    assert {server.licence for server in SERVERS.values()} <= PERMISSIVE


def test_a_catalog_holds_each_tool_once_with_its_description_and_schema() -> None:
    tools = listed_tools()
    assert len(tools) == len(set(tools))
    for name, catalog in catalogs().items():
        assert catalog["server"] == name
        for tool in catalog["tools"]:
            assert tool["description"].strip(), tool["name"]
            assert tool["inputSchema"]["type"] == "object", tool["name"]
        assert (FOLDER / "catalogs" / f"{name}.json").read_text("utf-8") == written(catalog)


def test_each_tool_has_an_effect_and_its_annotations_agree() -> None:
    found = effects()
    assert sorted(found) == sorted(listed_tools())
    for name, catalog in catalogs().items():
        for tool in catalog["tools"]:
            effect = found[f"{name}/{tool['name']}"]
            annotations = tool.get("annotations") or {}
            reads = annotations.get("readOnlyHint", False if annotations.get("destructiveHint") else None)
            assert effect.by == ("judgement" if reads is None else "annotation"), tool["name"]
            if reads is not None:
                assert effect.effect == ("read" if reads else "write"), tool["name"]
            assert effect.effect in ("read", "write")


@pytest.mark.parametrize("half", HALVES)
def test_a_half_has_five_requests_for_each_server_and_mostly_reading_ones(half: Half) -> None:
    found = requests(half)
    assert Counter(request.server for request in found) == dict.fromkeys(SERVERS, 5)
    assert {request.intent for request in found} == {"read", "write"}
    assert sum(request.intent == "read" for request in found) >= 60
    assert sum(request.language != "en" for request in found) >= 10
    assert len(small_talk(half)) == 20


@pytest.mark.parametrize("half", HALVES)
def test_each_request_names_tools_of_the_catalogs_its_own_server_among_them(half: Half) -> None:
    known = effects()
    for request in requests(half):
        assert request.tools, request.text
        assert request.tools <= known.keys(), request.text
        assert any(tool.startswith(f"{request.server}/") for tool in request.tools), request.text
        if request.intent == "write":
            assert any(known[tool].effect == "write" for tool in request.tools), request.text


def test_nothing_is_said_twice() -> None:
    said = [request.text for half in HALVES for request in requests(half)]
    said += [text for half in HALVES for text in small_talk(half)]
    chosen = [
        line.split("\t")[1]
        for path in (FOLDER.parent / "messages").glob("*.txt")
        for line in path.read_text("utf-8").splitlines()
        if not line.startswith("#")
    ]
    counted = Counter(text.casefold().strip(" .!?") for text in said)
    assert len(said) == 240
    assert [text for text, count in counted.items() if count > 1] == []
    assert counted.keys() & {text.casefold().strip(" .!?") for text in chosen} == set()


@pytest.mark.parametrize("name", ["requests.txt", "small_talk.txt"])
def test_the_kept_half_says_that_it_is_not_looked_at(name: str) -> None:
    head = (FOLDER / "kept" / name).read_text("utf-8").splitlines()[0]
    assert head.startswith("#")
    assert "not to be looked at while ranking is changed" in head
