"""What `make newest` makes of what a resolver returned; it asks the index itself, which the tests do not."""

import newest


def test_versions_are_read_from_pins_and_nothing_else() -> None:
    pins = "agno==3.1.10\npegboard @ file:///pegboard.whl\nanyio==4.16.0 ; python_version < '4'\n    --hash=sha256:0\n"
    assert dict(newest.versions(pins)) == {"agno": "3.1.10", "anyio": "4.16.0"}


def test_beside_pegboard_no_resolver_gives_way_to_an_older_version() -> None:
    found = {"langchain": "1.4.7", "anyio": "4.16.0"}
    assert newest.at_least(["langchain", "langgraph"], found) == ["langchain>=1.4.7", "langgraph"]


def test_a_framework_in_the_same_version_is_not_held_back() -> None:
    found = {"langchain": "1.4.7", "langgraph": "1.2.22", "anyio": "4.16.0"}
    beside = {**found, "anyio": "4.15.0"}
    row = newest.row(["langchain", "langgraph"], found, beside)
    assert row == ("langchain langgraph", "1.4.7 1.2.22", "1.4.7 1.2.22", True)


def test_an_older_version_or_none_beside_pegboard_is_held_back() -> None:
    alone = {"agno": "3.1.10"}
    assert newest.row(["agno"], alone, {"agno": "2.0.0"}) == ("agno", "3.1.10", "2.0.0", False)
    assert newest.row(["agno"], alone, {}) == ("agno", "3.1.10", "does not resolve", False)


def test_what_does_not_resolve_alone_proves_nothing() -> None:
    assert newest.row(["agno"], {}, {})[3] is False
