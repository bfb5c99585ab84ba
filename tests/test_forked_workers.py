"""The workers of the test command: each test runs once, in one of several processes, and is reported."""

import os
import subprocess
import sys
from pathlib import Path

TOOLS = str(Path(__file__).parents[1] / "tools")
ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": TOOLS}
TESTS = """
import os
import warnings
from pathlib import Path
import pytest
COLLECTED = os.getpid()
@pytest.fixture(scope="session")
def kept():
    yield
    Path(f"ended-{os.getpid()}").touch()
@pytest.mark.parametrize("number", range(20))
def test_passes(number, kept):
    with Path("ran").open("a") as ran:
        ran.write(f"{number}\\n")
    assert os.getpid() != COLLECTED
def test_fails():
    print("what it printed")
    assert 1 == 2
def test_dies():
    os._exit(7)
def test_warns(kept):
    warnings.warn("careful")
@pytest.mark.skip(reason="not here")
def test_is_skipped():
    pass
"""


def ran(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "forked_workers", "--workers", "3", *options]
    return subprocess.run(command, cwd=folder, env=ALONE, capture_output=True, text=True, check=False)


def test_each_test_runs_once_and_what_came_of_it_is_reported(tmp_path: Path) -> None:
    done = ran(tmp_path)
    assert "2 failed, 21 passed, 1 skipped, 1 warning" in done.stdout
    assert "what it printed" in done.stdout
    assert "assert 1 == 2" in done.stdout
    assert "with the status 7" in done.stdout
    assert "careful" in done.stdout
    assert done.returncode == 1
    assert sorted(map(int, (tmp_path / "ran").read_text().split())) == list(range(20))
    assert list(tmp_path.glob("ended-*"))  # a worker ends what it has begun


def test_no_more_are_begun_after_the_first_failure_where_that_is_asked(tmp_path: Path) -> None:
    done = ran(tmp_path, "-x", "-k", "fails or passes")
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    assert "ended within" not in done.stdout
