"""The names that a Python module may offer as tools, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

TOOL_OBJECT: Final = frozenset({"name", "simple_description", "run"})
"""What a class has whose objects are one tool each."""


def names_offered(target: str, folder: Path) -> frozenset[str] | None:
    """Return every name that a plugin's functions can have, or None where only running it would show.

    ``target`` is a module or ``module:object``; only modules beside the configuration are read. A
    class without bases offers its methods, or is one tool with a name of its own; a function and a factory look the
    same, so that both give None.
    """
    module, _, wanted = target.partition(":")
    tree = source_of(module, folder)
    if tree is None:
        return None
    return _methods(tree.body, wanted) if wanted else _names_bound(tree.body)


def source_of(module: str, folder: Path) -> ast.Module | None:
    """Return a module beside the configuration as it is written; None where there is none that can be read."""
    base = folder.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        try:
            if path.is_file() and path.stat().st_size < 1_000_000:
                return ast.parse(path.read_text("utf-8"))
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return None


def names_mentioned(target: str) -> frozenset[str] | None:
    """Return every name that is in the source of an installed toolkit of Agno: its tools are among them.

    ``target`` is ``module:class``; nothing is imported. None where the class has tools of another class, or is not
    installed.
    """
    module, _, wanted = target.partition(":")
    top, *rest = module.split(".")
    try:
        package = find_spec(top)
    except (ImportError, ValueError):
        return None
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        base = Path(folder).joinpath(*rest)
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            try:
                if path.is_file():
                    return _class_names(ast.parse(path.read_text("utf-8")), wanted)
            except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
                return None
    return None


def _class_names(tree: ast.Module, wanted: str) -> frozenset[str] | None:
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == wanted)
    toolkit = next(classes, None)
    if toolkit is None or not all(isinstance(base, ast.Name) and base.id == "Toolkit" for base in toolkit.bases):
        return None
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=str(name)) | ast.AsyncFunctionDef(name=str(name)):
                names.add(name)
            case ast.Constant(value=str(text)) if text.isidentifier():
                names.add(text)
            case _:
                continue
    return frozenset(names)


def _methods(body: list[ast.stmt], wanted: str) -> frozenset[str] | None:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == wanted:
            plain = not node.bases and not node.keywords and not node.decorator_list
            found = _names_bound(node.body) if plain else None
            return found if found is None or not found >= TOOL_OBJECT else _own_name(node.body)
    return None


def _own_name(body: list[ast.stmt]) -> frozenset[str] | None:
    """Return the name of the one tool that the objects of a class are, as it is written in the class."""
    for node in body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="name")], value=ast.Constant(value=str(name)))
                | ast.AnnAssign(target=ast.Name(id="name"), value=ast.Constant(value=str(name)))
            ):
                return frozenset({name})
            case _:
                continue
    return None


def _names_bound(body: list[ast.stmt]) -> frozenset[str] | None:
    names: set[str] = set()
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not node.decorator_list:
                names.add(node.name)
            case ast.ClassDef() | ast.Import():
                names.update(_aliases(node))
            case ast.ImportFrom() if all(alias.name != "*" for alias in node.names):
                names.update(alias.asname or alias.name for alias in node.names)
            case ast.Assign(targets=targets) if all(isinstance(t, ast.Name) for t in targets):
                names.update(t.id for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                continue
            case _:
                return None
    return None if "__getattr__" in names else frozenset(n for n in names if not n.startswith("_"))


def _aliases(node: ast.ClassDef | ast.Import) -> Iterable[str]:
    if isinstance(node, ast.ClassDef):
        return (node.name,)
    return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
