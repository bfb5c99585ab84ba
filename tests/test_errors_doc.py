"""Compare docs/errors.md with the source and the tests, both ways."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from pegboard.config.problem_codes import ProblemCode
from pegboard.core.model.leases import LeaseReason
from pegboard.core.state.commands import Status

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pegboard"
DOCUMENT = ROOT / "docs" / "errors.md"
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
PLACEHOLDER = re.compile(r"\{\w+\}")
HOLE = "\0"
AT_A_LOAD = {"conflict", "over_budget", "scope_incompatible"}
"""What a call answers that loads first where the load is refused (X1)."""


@cache
def trees() -> dict[str, ast.Module]:
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}


def nodes(*files: str) -> Iterator[ast.AST]:
    for name, tree in trees().items():
        if not files or name in files:
            yield from ast.walk(tree)


def calls(*files: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call with the last part of the name that is called."""
    for node in nodes(*files):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2], node


def constants(node: ast.AST | None) -> set[str]:
    """Return the texts that an expression may be: a constant, or either side of a condition."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.IfExp(body=body, orelse=other):
            return constants(body) | constants(other)
        case _:
            return set()


def keyword(call: ast.Call, name: str) -> set[str]:
    return constants(next((k.value for k in call.keywords if k.arg == name), None))


def first(call: ast.Call) -> set[str]:
    return constants(call.args[0]) if call.args else set()


def assigned(name: str, *files: str) -> set[str]:
    """Return the texts that a variable of this name gets, alone or first of several."""
    found: set[str] = set()
    for node in nodes(*files):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found |= constants(value)
            case ast.Assign(targets=[ast.Tuple(elts=[ast.Name(id=target), *_])], value=ast.Tuple(elts=[value, *_])) if (
                target == name
            ):
                found |= constants(value)
            case _:
                pass
    return found


def errors() -> set[str]:
    raised = {code for name, call in calls() if name.endswith("Error") for code in keyword(call, "code")}
    return raised | assigned("code", "errors.py")


def problems() -> set[str]:
    seen = {code for name, call in calls() if name == "Problem" for code in keyword(call, "code")}
    return seen | set(get_args(ProblemCode))


def items() -> set[str]:
    return set(get_args(Status))


def answers() -> set[str]:
    modules = ("approval_gate", "meta_call", "pipeline", "resuming")
    files = ("core/state/call_plans.py", *(f"board/calls/{name}.py" for name in modules))
    found = AT_A_LOAD | assigned("status", *files)
    for name, call in calls(*files):
        found |= first(call) if name in ("answer", "_of_approval") else set()
        found |= keyword(call, "status") if name in ("CallAnswer", "Refuse") else set()
    for node in nodes("board/calls/pipeline.py"):
        if isinstance(node, ast.FunctionDef) and node.name == "failure_of":
            found |= {text for part in ast.walk(node) if isinstance(part, ast.Return) for text in constants(part.value)}
    return found


def toolkits() -> set[str]:
    """Return the statuses that the dialect adds to those of items."""
    file = "dialects/toolkits.py"
    found = assigned("status", file)
    for name, call in calls(file):
        found |= constants(call.args[2]) if name == "_payload" and len(call.args) > 2 else set()
    for node in nodes(file):
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            found |= {text for key, value in pairs if constants(key) == {"status"} for text in constants(value)}
    return found - items()


def reasons() -> set[str]:
    found = assigned("code", "board/views/explain.py") | {f"loaded_{because}" for because in LeaseReason}
    for name, call in calls():
        found |= keyword(call, "code") if name == "Reason" else set()
        found |= {f"granted_{code}" for code in first(call)} if name == "_grant" else set()
    return found


IN_SOURCE = {
    "Errors that are raised": errors,
    "Problems of a configuration": problems,
    "Statuses of items": items,
    "Statuses of calls": answers,
    "Statuses of the `toolkits` dialect": toolkits,
    "Reasons": reasons,
}


@cache
def sections() -> dict[str, str]:
    _, *parts = SECTION.split(DOCUMENT.read_text("utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def rows(section: str) -> list[list[str]]:
    """Return the cells of every row whose first cell is a code."""
    lines = [line for line in sections()[section].splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def codes(section: str) -> list[str]:
    return [row[0].strip("`") for row in rows(section)]


def texts() -> set[str]:
    """Return every text of the source, or its first line, with a hole where a value is put in."""
    found: set[str] = set()
    for node in nodes():
        match node:
            case ast.Constant(value=str(text)):
                found.add(PLACEHOLDER.sub(HOLE, text))
            case ast.JoinedStr(values=values):
                parts = [part.value if isinstance(part, ast.Constant) else HOLE for part in values]
                found.add(PLACEHOLDER.sub(HOLE, "".join(map(str, parts))))
            case _:
                pass
    return found | {text.partition("\n")[0] for text in found}


def spans(cell: str) -> list[str]:
    """Return what stands as code in a cell; a space on both sides sets a backtick apart."""
    return [text[1:-1] if text[0] == text[-1] == " " else text for _, text in SPAN.findall(cell)]


@pytest.mark.parametrize("section", IN_SOURCE)
def test_the_document_has_the_codes_of_the_source_and_no_others(section: str) -> None:
    documented = codes(section)
    assert sorted(documented) == sorted(set(documented))
    assert set(documented) == IN_SOURCE[section]()


def test_the_texts_in_the_document_are_those_of_the_source() -> None:
    known = texts()
    told = [(row[0], text) for section in IN_SOURCE for row in rows(section) for text in spans(row[1])]
    assert len(told) > 150
    paragraph = re.search(r"The `invokeother` dialect .+?\n\n", sections()["Statuses of items"], re.DOTALL)
    assert paragraph is not None
    told += [("`invokeother`", text) for text in spans(paragraph[0].replace("\n", " ")) if "{" in text]
    assert [(code, text) for code, text in told if PLACEHOLDER.sub(HOLE, text) not in known] == []


def test_each_code_says_what_it_means_and_what_to_do() -> None:
    assert [row[0] for section in IN_SOURCE for row in rows(section) if len(row) != 3 or not all(row)] == []


def test_each_code_is_in_some_test() -> None:
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    words = {
        word
        for path in tests
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in re.findall(r"\w+", node.value)
    }
    assert sorted({code for section in IN_SOURCE for code in codes(section)} - words) == []
