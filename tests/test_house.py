"""Hold the house rules that no linter knows."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pegboard
import rules

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "pegboard"
MODULES = sorted(SOURCE.rglob("*.py"))

HEAVY = {
    "agno", "anyio", "jinja2", "mcp", "numpy", "onnxruntime", "pydantic", "pydantic_ai", "rich", "sqlite3", "starlette",
    "typer", "uvicorn", "yaml",
}  # fmt: skip
ADAPTERS = {
    f"pegboard.{name}" for name in ("cli", "config", "console", "frameworks", "gateway", "search", "sources", "stores")
}
OUTSIDE_WORLD = {
    "asyncio", "io", "logging", "os", "random", "secrets", "select", "shutil", "socket", "sqlite3", "subprocess",
    "tempfile", "threading", "time", "urllib.request",
}  # fmt: skip
MACHINE_PATH = re.compile(r"(?<![\w.~$})])/(?:work|root|farm)/")
REGISTRY_HOST = re.compile(r"(?:pypi|npmjs|pythonhosted|yarnpkg|debian|crates)[.](?:org|com|io)")


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def imported_by(path: Path) -> Iterator[str]:
    """Yield the absolute names of the modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.ImportFrom():
                yield "pegboard.relative"
            case _:
                pass


def files_of_the_project() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return [path for name in listing.split("\0") if name and (path := ROOT / name).is_file()]


def under(module: str, packages: set[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_importing_pegboard_imports_no_adapter_and_nothing_heavy() -> None:
    loaded = run_python("import sys; import pegboard; print(*sys.modules)").split()
    assert [name for name in loaded if under(name, HEAVY | ADAPTERS)] == []


def test_pegboard_has_at_most_31_public_names_and_each_resolves() -> None:
    assert len(pegboard.__all__) <= 31
    assert [name for name in pegboard.__all__ if not hasattr(pegboard, name)] == []


@pytest.mark.parametrize("package", ["core", "errors.py", "ports"])
def test_the_inner_layers_import_only_the_standard_library_and_each_other(package: str) -> None:
    path = SOURCE / package
    known = sys.stdlib_module_names | {"pegboard"}
    strangers = [
        f"{file.relative_to(ROOT)}: {module}"
        for file in ([path] if path.is_file() else path.rglob("*.py"))
        for module in imported_by(file)
        if module.split(".")[0] not in known
    ]
    assert strangers == []


def test_the_core_touches_nothing_outside_and_awaits_nothing() -> None:
    touching = [
        f"{file.relative_to(ROOT)}: {module}"
        for file in (SOURCE / "core").rglob("*.py")
        for module in imported_by(file)
        if under(module, OUTSIDE_WORLD)
    ]
    awaiting = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in (SOURCE / "core").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.AsyncFunctionDef | ast.Await)
    ]
    assert touching + awaiting == []


def test_every_rule_of_the_design_has_exactly_one_row() -> None:
    assert [row.rule for row in rules.read(rules.TABLE.read_text("utf-8"))] == list(rules.RULES)


def test_the_table_of_rules_and_the_tests_name_each_other() -> None:
    cited = rules.citations()
    rows = {row.rule: row for row in rules.read(rules.TABLE.read_text("utf-8"))}
    differing = {
        rule: (row.tests, cited.get(rule, ())) for rule, row in rows.items() if row.tests != cited.get(rule, ())
    }
    assert differing == {}, "run `make rules`"


def test_a_rule_is_built_only_where_a_test_holds_it() -> None:
    rows = rules.read(rules.TABLE.read_text("utf-8"))
    assert {row.status for row in rows} <= {"built", "next"}
    assert [row.rule for row in rows if row.status == "built" and not row.tests] == []
    assert [row.rule for row in rows if row.status == "next" and row.tests and not row.missing] == []


def test_no_file_names_a_path_of_a_machine_or_the_host_of_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in files_of_the_project()
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), start=1)
        if MACHINE_PATH.search(line) or REGISTRY_HOST.search(line)
    ]
    assert found == []


def test_no_function_is_longer_than_60_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {length} lines"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > 60
    ]
    assert long == []


def test_a_class_name_stands_once_in_the_sources() -> None:
    places: dict[str, set[Path]] = {}
    classes: set[str] = set()
    for path in MODULES:
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.ClassDef(name=name):
                    classes.add(name)
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    pass
                case _:
                    continue
            places.setdefault(name, set()).add(path.relative_to(SOURCE))
    twice = {name: found for name in classes if len(found := places[name]) > 1}
    twice.pop("SessionTools")  # the same part of two frameworks: users import it from their framework's module
    assert twice == {}


# -- the shape of the sources ----------------------------------------------------------------------

FOLDERS = sorted(path for path in (SOURCE, *SOURCE.rglob("*")) if path.is_dir() and (path / "__init__.py").is_file())


def test_every_folder_says_what_it_is_for() -> None:
    silent = [
        str(folder.relative_to(SOURCE))
        for folder in FOLDERS
        if len(ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or "") < 30
    ]
    assert silent == []


def test_nothing_writes_into_the_dict_of_another_object() -> None:
    writing = re.compile(r"__dict__(\[[^]]*\] *=[^=]|\.(setdefault|update|pop)\()|\bvars\([^)]*\)\[[^]]*\] *=[^=]")
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in MODULES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if writing.search(line) and "__signature__" not in line
    ]
    assert found == []
