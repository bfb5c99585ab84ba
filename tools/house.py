"""Count what the house is made of: ``python tools/house.py [--against TREE] [--json]``.

Modules without `__init__.py`, their lines, names that several files define, imports inside functions, and for each verb
the files that it enters (``python -m benchmarks path``). With ``--against``, the same of another checkout beside it.
"""

import argparse
import ast
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules(tree: Path) -> Mapping[Path, ast.Module]:
    """Return the parsed modules of a checkout's package."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted((tree / "src" / "pegboard").rglob("*.py"))}


def defined(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines at its top level."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case _:
                pass


def late_imports(module: ast.Module) -> int:
    """Return how many imports of the package's own modules stand inside functions."""
    inside = {
        inner
        for node in ast.walk(module)
        if isinstance(node, FUNCTIONS)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").split(".")[0] == "pegboard"
    }
    return len(inside)


def counted(tree: Path) -> dict[str, int]:
    """Return the figures of one checkout, by their names."""
    parsed = modules(tree)
    named = {path: module for path, module in parsed.items() if not path.name.startswith("__")}
    places: dict[str, set[Path]] = defaultdict(set)
    for path, module in parsed.items():
        for name in defined(module):
            places[name].add(path)
    classes = {node.name for module in parsed.values() for node in module.body if isinstance(node, ast.ClassDef)}
    return {
        "modules": len(named),
        "files": len(parsed),
        "lines": sum(len(path.read_text("utf-8").splitlines()) for path in parsed),
        "class names in two files": sum(not name.startswith("_") and len(places[name]) >= 2 for name in classes),
        "private names in three files": sum(
            name.startswith("_") and not name.startswith("__") and len(paths) >= 3 for name, paths in places.items()
        ),
        "imports of our own inside functions": sum(map(late_imports, parsed.values())),
        **walks(tree),
    }


def walks(tree: Path) -> dict[str, int]:
    """Return how many files each verb enters in a checkout, how often it changes file, and its SQL statements."""
    command = [sys.executable, "-m", "benchmarks", "path", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    printed = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True).stdout
    keys = ("files entered", "changes of file", "SQL statements")
    return {f"{row['verb']}, {row['way']}: {key}": row[key] for row in json.loads(printed)["path"] for key in keys}


def main(arguments: list[str] | None = None) -> None:
    """Print the figures of this checkout, beside those of another one where it is named."""
    parser = argparse.ArgumentParser(prog="python tools/house.py", description=(__doc__ or "").split(":")[0])
    parser.add_argument("--against", type=Path, metavar="TREE", help="another checkout, counted beside this one")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    against: Path | None = options.against
    if against is not None and not (against / "src" / "pegboard").is_dir():
        parser.error(f"{against} is no checkout of Pegboard: it has no folder src/pegboard")
    now = counted(ROOT)
    before = counted(against.resolve()) if against is not None else {}
    if options.json:
        print(json.dumps({"now": now, **({"before": before} if before else {})}, indent=2))
        return
    width = max(map(len, now))
    for name, count in now.items():
        print(f"{name:{width}} {before[name]:>7,} {count:>7,}" if name in before else f"{name:{width}} {count:>7,}")


if __name__ == "__main__":
    main()
