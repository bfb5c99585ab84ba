"""The public names of the faces, and those that docs/library.md documents."""

import ast
import inspect
import re
import textwrap
from pathlib import Path

from pegboard import Pegboard, Permissions, Session
from pegboard.board.calls.approvals import Approvals
from pegboard.board.pins import Pins

LIBRARY = Path(__file__).resolve().parents[2] / "docs" / "library.md"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
FOR_ADAPTERS = "For adapters"
MENTIONS: dict[type, re.Pattern[str]] = {
    Pegboard: re.compile(r"\b(?:board|Pegboard)\.(?!yaml\b)([a-z]\w*)"),
    Session: re.compile(r"\b(?:session|child)\.([a-z]\w*)"),
    Permissions: re.compile(r"\bpermissions\.([a-z]\w*)"),
    Approvals: re.compile(r"\bapprovals\.(?!md\b)([a-z]\w*)"),
    Pins: re.compile(r"\bpins\.(?!md\b)([a-z]\w*)"),
}


def of(face: type) -> set[str]:
    """Return the public attributes of a class: methods, properties, annotations, what its methods set."""
    found: set[str] = set()
    for base in face.__mro__:
        if not base.__module__.startswith("pegboard."):
            continue
        found |= {*vars(base), *inspect.get_annotations(base)}
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            match node:
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    found.add(name)
                case _:
                    pass
    return {name for name in found if not name.startswith("_")}


def sections() -> dict[str, str]:
    """Return the text of each section by its heading."""
    parts = SECTION.split(LIBRARY.read_text("utf-8"))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(face: type) -> set[str]:
    """Return the attributes of a class that the page names: ``session.load``, ``board.permissions.set`` …"""
    return set(MENTIONS[face].findall(LIBRARY.read_text("utf-8")))


def for_adapters(face: type) -> set[str]:
    """Return those that only the section for adapters names."""
    named = {name: set(MENTIONS[face].findall(text)) for name, text in sections().items()}
    return named.pop(FOR_ADAPTERS) - set().union(*named.values())
