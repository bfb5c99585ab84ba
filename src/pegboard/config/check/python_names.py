"""The names that a Python module may offer as tools, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path


def offered(target: str, folder: Path) -> frozenset[str] | None:
    """Return every name that a plugin's functions can have, or None where only running it would show.

    ``target`` is a module or ``module:object``; only modules beside the configuration are read. A
    class without bases offers its methods, a function and a factory look the same,
    so that both give None.
    """
    module, _, wanted = target.partition(":")
    base = folder.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        try:
            if path.is_file() and path.stat().st_size < 1_000_000:
                body = ast.parse(path.read_text("utf-8")).body
                return _methods(body, wanted) if wanted else _bound(body)
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    return None


def _methods(body: list[ast.stmt], wanted: str) -> frozenset[str] | None:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == wanted:
            return _bound(node.body) if not node.bases and not node.keywords and not node.decorator_list else None
    return None


def _bound(body: list[ast.stmt]) -> frozenset[str] | None:
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
