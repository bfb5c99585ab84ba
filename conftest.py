"""Run the examples in the documents: every ```python block, each document in an empty folder of its own.

A block that starts with a comment naming a file (`# pegboard.yaml`) is written to that file and not run.
`await` stands at the top level, as in `python -m asyncio`.
"""

import ast
import asyncio
import inspect
import os
import re
import tempfile
from contextlib import ExitStack, chdir
from pathlib import Path
from typing import Any

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, SkipParser

MEMORY = "/dev/shm"


def roomy_memory() -> str | None:
    """Return the folder in memory where programs may run and there is room for what tests write; None without one."""
    if not os.access(MEMORY, os.W_OK):
        return None
    found = os.statvfs(MEMORY)
    return MEMORY if not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > 2_000_000_000 else None


# Stores and kept files wait several times for the disk from their first opening to their closing; thousands are made.
_FOLDER = roomy_memory()
if _FOLDER is not None:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _FOLDER)

# What a run of the tests counts or keeps stays out of the user's own folders.
_CACHE = tempfile.TemporaryDirectory(prefix="pegboard-tests-", dir=_FOLDER)
os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = _CACHE.name

# What serves a client over stdio is the process that a test starts; tests of the daemon have one of their own.
os.environ["PEGBOARD_DAEMON"] = "0"


@pytest.fixture(autouse=True)
def no_token_of_another_test() -> None:
    """Remove what a test left that started something confined: it demands a token of every gateway of this user."""
    from pegboard.support.user_token import token_file

    token_file().unlink(missing_ok=True)


# Only src has examples in docstrings; importing these a second time, as doctest would, takes each for another.
collect_ignore_glob = ["tests/*conftest.py", "tests/fixtures/*"]

SOURCE = Path(__file__).parent / "src"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Look for examples in no module that has none: importing all of them takes seconds of each worker."""
    if collection_path.suffix != ".py" or SOURCE not in collection_path.parents:
        return None
    return None if b">>> " in collection_path.read_bytes() else True


NAMED_FILE = re.compile(r"# ([\w./-]+\.(?:py|yaml|json|md))\n")
FOLDER = "_folder"
RUNNER = "_runner"


def write_named_file(example: Example) -> None:
    if named := NAMED_FILE.match(example.parsed):
        path = Path(named[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example.parsed, encoding="utf-8")


def run_python(example: Example) -> None:
    if NAMED_FILE.match(example.parsed):
        write_named_file(example)
        return
    source = "\n" * (example.line + example.parsed.line_offset) + example.parsed
    code = compile(source, example.path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        example.namespace[RUNNER].run(eval(code, example.namespace))
    else:
        exec(code, example.namespace)


def enter_empty_folder(namespace: dict[str, Any]) -> None:
    stack = namespace[FOLDER] = ExitStack()
    folder = stack.enter_context(tempfile.TemporaryDirectory(dir=_FOLDER))
    stack.enter_context(chdir(folder))
    namespace[RUNNER] = stack.enter_context(asyncio.Runner())


def leave_folder(namespace: dict[str, Any]) -> None:
    namespace[FOLDER].close()


LONG = frozenset({"test_site.py", "test_login_suite.py", "test_distributions.py", "test_every_page.py", "test_soak.py"})
"""Files with single tests that take as long as some hundred others."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first: workers steal tests from the end of each other's, and a document is one program."""
    items.sort(key=lambda item: item.path.suffix != ".md" and item.path.name not in LONG)


pytest_collect_file = Sybil(
    parsers=[
        CodeBlockParser(language="python", evaluator=run_python),
        CodeBlockParser(language="yaml", evaluator=write_named_file),
        SkipParser(),
    ],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=enter_empty_folder,
    teardown=leave_folder,
).pytest()
