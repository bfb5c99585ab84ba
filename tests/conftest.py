"""What several tests need: the other installations that `make pytest` puts beside `.venv`, and the path of calls.

Calls go by the fast path, as users have them. A test marked `both_paths` runs through the SDK as well: a case of each
kind in `tests/gateway` and `tests/sources`. Whole answers of both are compared by `tests/gateway/test_differential.py`
and `tests/sources/test_mcp_fast_path.py`, which have both paths within one test.
"""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import httpx2
import pytest
from hypothesis import settings

from chromium import can_run
from covering import covering_items
from pegboard import tokens
from pegboard.cli import person
from postgres_server import PostgresServer
from terminals import Terminal

# How long an example takes depends on what else the machine does. Each run has other examples.
settings.register_profile("pegboard", deadline=None, max_examples=25)
settings.load_profile("pegboard")

# A shell starts what it runs in the background with interrupts ignored, and every child inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asks the keyring of the user who runs it, nor does what a test starts.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

ROOT = Path(__file__).resolve().parent.parent


def installed(variable: str, usual: str) -> Path:
    path = Path(os.environ.get(variable) or ROOT / usual)
    if not path.exists():
        pytest.fail(f"{path} is missing: run `make pytest` once, or set {variable}", pytrace=False)
    return path


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in no docstring of a test: there are none, and each worker would look for seconds."""
    return [found for found in (yield) if type(found).__name__ != "DoctestModule"]


def pytest_collection_finish() -> None:
    """Leave what the tests themselves are out of every collection of garbage; a tenth of the time went there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("both_paths"):
        metafunc.parametrize("fast_path", [True, False], ids=["fast", "sdk"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out cells that need not run, and mark what uses PostgreSQL: by the fixture, or a parameter of its name."""
    items[:] = covering_items(items)
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "id", "").split("-")
        if "postgres" in (*getattr(item, "fixturenames", ()), *parameters):
            item.add_marker("postgres")


@pytest.fixture
def fast_path() -> bool:
    """Return whether calls go by the fast path; a test marked `both_paths` runs with both answers."""
    return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """Return the terminal of this process, at which someone says yes to every question."""
    with Terminal("y") as terminal:
        monkeypatch.setattr(person, "TERMINAL", terminal.name)
        yield terminal


@pytest.fixture(scope="session", autouse=True)
def trusted() -> Iterator[None]:
    """Read once which certificates are trusted: each client of HTTP would, and it takes longer than most requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("httpx2._transports.default.create_ssl_context", cache(httpx2.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def vocabulary() -> object:
    """Hold what tokens are counted by: reading it takes longer than most tests, and each board would read it again."""
    return tokens.vocabulary()


@pytest.fixture(scope="session")
def plain_python() -> Path:
    """Return the interpreter that has nothing but the built wheel and what it needs: no extra, so no MCP."""
    return installed("PEGBOARD_PLAIN_PYTHON", ".venv-plain/bin/python")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Return a PostgreSQL server; every address that is asked for has a schema of its own."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def inspector() -> list[str]:
    """Return the command of the MCP Inspector's command line, to be followed by its options."""
    script = ".node/node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js"
    return [str(installed("PEGBOARD_NODE", ".node/node")), str(installed("PEGBOARD_INSPECTOR", script))]


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Return the unpacked browser; skip where there is none for the machine."""
    if not can_run():
        pytest.skip("the browser of the tests is for x86-64 Linux")
    return installed("PEGBOARD_BROWSER", ".browser/chromium")


@pytest.fixture(scope="session")
def axe_core() -> str:
    """Return the source of axe-core."""
    return installed("PEGBOARD_AXE", ".node/node_modules/axe-core/axe.min.js").read_text("utf-8")
