"""The test command: what failed beside others gets one second look alone, and no more than that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ALONE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
COMMAND = str(Path(__file__).parents[1] / "tools/second_look.py")


def looked(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a folder of their own, then the second look at them."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_it.py").write_text(tests)
    first = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=folder, env=ALONE, capture_output=True, check=False
    )
    return subprocess.run(
        [sys.executable, COMMAND, str(first.returncode)],
        cwd=folder,
        env=ALONE,
        capture_output=True,
        text=True,
        check=False,
    )


FAILS_ONCE = """
from pathlib import Path
def test_once():
    first = not Path("been").exists()
    Path("been").touch()
    assert not first
"""


def test_what_passes_alone_passes_and_is_named(tmp_path: Path) -> None:
    again = looked(tmp_path, FAILS_ONCE)
    assert again.returncode == 0
    assert again.stdout.endswith("Passed alone, and should be mended:\n  test_it.py::test_once\n")


def test_what_fails_alone_too_fails_the_run(tmp_path: Path) -> None:
    assert looked(tmp_path, "def test_it(): assert False").returncode == 1


@pytest.mark.parametrize(
    "tests",
    [
        "\n".join(f"def test_{n}(): assert False" for n in range(6)),
        "import no_such_module",
        "def test_it(: pass",
    ],
    ids=["many", "an import", "a syntax error"],
)
def test_many_failures_and_runs_that_did_not_end_get_none(tmp_path: Path, tests: str) -> None:
    again = looked(tmp_path, tests)
    assert again.returncode != 0
    assert not again.stdout
