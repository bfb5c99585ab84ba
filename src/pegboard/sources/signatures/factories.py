"""Functions that return tools rather than being one, found by their marks, annotations and source; none is called."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Mapping
from typing import Any, Final, get_args, get_origin

from pegboard.marks import mark_of
from pegboard.sources.signatures.functions import hints_of, is_record

_COLLECTED_BY: Final = frozenset({"list", "tuple", "set", "sorted", "reversed"})
_WRAPPED_BY: Final = frozenset({"partial", "tool", "cache", "lru_cache", "wraps"})
_ADDED_BY: Final = frozenset({"append", "extend", "add", "insert"})


def is_factory(function: Callable[..., Any], overrides: Mapping[str, Any]) -> bool:
    """Return whether a function returns tools rather than being one; it is not called to find out.

    So it is where it is marked, where overrides are given, where its return annotation is a
    callable, a list of callables or a class of its own, or where its source returns functions.
    """
    if mark_of(function).factory or overrides:
        return True
    try:
        annotation = hints_of(function).get("return", inspect.Parameter.empty)
    except (NameError, TypeError):
        annotation = inspect.Parameter.empty
    return _returns_functions(function) if annotation is inspect.Parameter.empty else _callables(annotation, function)


def _callables(annotation: Any, function: Callable[..., Any]) -> bool:
    origin = get_origin(annotation)
    if annotation is Callable or origin in (Callable, types.FunctionType) or annotation is types.FunctionType:
        return True
    if origin is not None:
        args = [arg for arg in get_args(annotation) if arg is not Ellipsis]
        return bool(args) and _callables(args[-1], function)
    if annotation in (list, tuple, set, dict, object, Any):
        return _returns_functions(function)
    return (
        isinstance(annotation, type)
        and annotation.__module__ != "builtins"
        and not is_record(annotation)
        and any(inspect.isfunction(v) and not k.startswith("_") for k, v in vars(annotation).items())
        and annotation.__module__ == function.__module__
    )


def _returns_functions(function: Callable[..., Any]) -> bool:
    """Return whether the source returns, or yields, functions: one, or a collection of them, however it is built."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return False
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return _FunctionBody(tree, getattr(inspect.unwrap(function), "__globals__", {})).gives_functions()


class _FunctionBody:
    """What the names in the source of one function stand for; ``known`` are those of its module."""

    def __init__(self, tree: ast.FunctionDef | ast.AsyncFunctionDef, known: Mapping[str, Any]) -> None:
        self._known = known
        self._own = list(_own_nodes(tree))
        self._inner = {
            node.name: node for node in self._own if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        self._looked_at: set[str] = set()

    def gives_functions(self) -> bool:
        """Return whether one of its own ``return`` or ``yield`` has nothing but functions."""
        given = (node.value for node in self._own if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom))
        return any(value is not None and self._is_functions(value) for value in given)

    def _is_functions(self, value: ast.expr) -> bool:
        match value:
            case ast.Name(id=name):
                return self._is_named(name)
            case ast.Lambda():
                return True
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts) | ast.Dict(values=parts):
                return bool(parts) and all(map(self._is_functions, parts))
            case ast.Starred(value=part) | ast.DictComp(value=part) | ast.Await(value=part):
                return self._is_functions(part)
            case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part):
                return self._is_functions(part)
            case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, op=ast.Add(), right=second):
                return self._is_functions(first) and self._is_functions(second)
            case ast.Call(func=called, args=given):
                return self._is_made(called, given)
            case _:
                return False

    def _is_made(self, called: ast.expr, given: list[ast.expr]) -> bool:
        """Return whether a call gives functions: one that collects or wraps them, or a factory in turn."""
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        if isinstance(called, ast.Call):  # of a decorator with arguments
            return bool(given) and self._is_made(called.func, given)
        if name in _COLLECTED_BY | _WRAPPED_BY:
            return bool(given) and self._is_functions(given[0])
        if name in self._looked_at:
            return False
        self._looked_at.add(name)
        inner = self._inner.get(name)
        if inner is not None:
            return _FunctionBody(inner, self._known).gives_functions()
        factory = self._known.get(name)
        return inspect.isfunction(factory) and is_factory(factory, {})

    def _is_named(self, name: str) -> bool:
        """Return whether a name stands for functions, by everything that is put into it."""
        if name in self._inner:
            return True
        if name in self._looked_at:
            return False
        self._looked_at.add(name)
        values = [value for node in self._own for value in _put_into(name, node)]
        filled = [value for value in values if not _is_empty(value)]
        if values:
            return bool(filled) and all(map(self._is_functions, filled))
        return inspect.isfunction(self._known.get(name))


def _own_nodes(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes of a function, without what is in the functions and classes within."""
    found: list[ast.AST] = []
    pending = list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop(0)
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))
    return found


def _put_into(name: str, node: ast.AST) -> list[ast.expr]:
    """Return what a node puts into a name: by assignment, by a key, or by a method of a collection."""
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            return [value]
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
            return [value]
        case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
            return [value]
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=target))], value=value) if target == name:
            return [value]
        case ast.Call(func=ast.Attribute(value=ast.Name(id=target), attr=method), args=[*_, value]) if (
            target == name and method in _ADDED_BY
        ):
            return [value]
        case (
            ast.For(target=ast.Name(id=target), iter=value) | ast.comprehension(target=ast.Name(id=target), iter=value)
        ) if target == name:
            return [value]
        case _:
            return []


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Call(func=ast.Name(id="list" | "dict" | "set"), args=[], keywords=[]):
            return True
        case _:
            return False
