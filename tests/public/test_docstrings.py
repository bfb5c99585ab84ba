"""Test that whatever is reachable from `pegboard` documents its arguments, what it returns and what it raises."""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import public_names
import pytest

import pegboard

FACES = ("Pegboard", "Permissions", "Session", "SyncPegboard", "SyncSession")
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:^[ \t]+\S.*\n?|\n)+)", re.MULTILINE)
NAME = re.compile(r"^    (\w+): \S", re.MULTILINE)
IMPERATIVE = {
    "Answer", "Build", "Describe", "Give", "Hold", "Keep", "Make", "Name", "Offer", "Open", "Refuse", "Report", "Say",
    "Take",
}  # fmt: skip


def classes() -> dict[str, type]:
    return {name: value for name in pegboard.__all__ if inspect.isclass(value := getattr(pegboard, name))}


def functions() -> Iterator[tuple[str, Any]]:
    """Yield everything that can be called by its name, properties too."""
    yield "tool", pegboard.tool
    for owner, face in classes().items():
        for name in sorted(public_names.of(face)):
            value = inspect.getattr_static(face, name, None)
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if inspect.isfunction(function):
                yield f"{owner}.{name}", function


FUNCTIONS = {name: function for name, function in functions() if not name.startswith("Sync")}


def sections(value: object) -> dict[str, set[str]]:
    """Return the names that stand in each section of a docstring."""
    text = inspect.getdoc(value) or ""
    return {title: set(NAME.findall(body)) for title, body in SECTION.findall(f"{text}\n")}


def raised(function: Any) -> set[str]:
    """Return the names of the errors that a function raises itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id.endswith("Error")
    }  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_returns_and_raises_are_documented(name: str) -> None:
    function = FUNCTIONS[name]
    written, text = sections(function), inspect.getdoc(function) or ""
    signature = inspect.signature(inspect.unwrap(function))
    assert text.partition("\n")[0].endswith("."), "one line, one sentence"
    parameters, described = set(signature.parameters) - {"self", "cls"}, written.get("Args", set())
    assert described == parameters if name.partition(".")[0] in (*FACES, "tool") else described <= parameters
    if signature.return_annotation not in ("None", "NoReturn") and not text.startswith("Return "):
        assert "Returns:" in text
    assert raised(function) <= written.get("Raises", set())
    assert not re.search(r"[Rr]aises ``", text), "a section of its own"


@pytest.mark.parametrize("name", classes())
def test_a_class_says_what_it_is_and_documents_what_it_is_made_of(name: str) -> None:
    face = classes()[name]
    assert (inspect.getdoc(face) or "").split()[0] not in IMPERATIVE
    if name in FACES:
        return  # Pegboard makes them
    written = {**sections(face), **({} if dataclasses.is_dataclass(face) else sections(face.__init__))}
    parameters = set(inspect.signature(face).parameters)
    assert parameters <= written.get("Args", set()) | written.get("Attributes", set())
