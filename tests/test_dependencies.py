"""What is imported is declared: a package may drop what it happens to bring."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from pegboard.mcp_extra import AT_LEAST, BELOW, PACKAGES

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRA = PROJECT["optional-dependencies"]["mcp"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]
    return {normal(found[0]) for line in wanted if (found := re.match(r"[\w.-]+", line))}


@cache
def imported() -> tuple[tuple[str, str], ...]:
    """Return every file with each package that it imports anywhere in it."""
    return tuple(imports())


def imports() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "src" / "pegboard").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Import(names=names):
                    yield from ((path.name, alias.name.partition(".")[0]) for alias in names)
                case ast.ImportFrom(module=str(module), level=0):
                    yield path.name, module.partition(".")[0]
                case _:
                    pass


def test_every_package_that_is_imported_is_declared() -> None:
    distributions = packages_distributions()
    known = sys.stdlib_module_names | {"pegboard"}
    undeclared = {
        (file, package)
        for file, package in imported()
        if package not in known and not declared() & set(map(normal, distributions.get(package, [])))
    }
    assert undeclared == set()


def names(lines: list[str]) -> set[str]:
    return {normal(found[0]) for line in lines if (found := re.match(r"[\w.-]+", line))}


def test_every_package_that_is_declared_is_imported() -> None:
    packages = {package for _, package in imported()}
    provided = {
        normal(name) for package, found in packages_distributions().items() if package in packages for name in found
    }
    assert names([*PROJECT["dependencies"], *EXTRA]) <= provided


def test_what_the_extra_mcp_brings_is_what_is_looked_for() -> None:
    distributions = packages_distributions()
    looked_for = {normal(name) for package in PACKAGES for name in distributions[package]}
    assert names(EXTRA) <= looked_for
    assert all(names(EXTRA) & {normal(name) for name in distributions[package]} for package in PACKAGES)
    assert f"mcp>={'.'.join(map(str, AT_LEAST))},<{'.'.join(map(str, BELOW))}" in EXTRA
