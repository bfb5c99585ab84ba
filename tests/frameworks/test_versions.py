"""One warning where a framework is installed in another version than its adapter is tested with."""

import logging
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pegboard import frameworks
from pegboard.frameworks.versions import declared_range, is_in

ADAPTERS = "\n".join(path.read_text("utf-8") for path in Path(frameworks.__file__).parent.rglob("*.py"))
FRAMEWORKS = sorted(re.findall(r'^warn_if_untested\("(.+)"\)', ADAPTERS, re.MULTILINE))
PROGRAM = """
import logging, sys
sys.path.insert(0, sys.argv[1])
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
import pegboard.frameworks.openai_agents
from pegboard.frameworks.versions import warn_if_untested
warn_if_untested("openai-agents")
"""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_what_is_installed_here_is_tested(name: str) -> None:
    tested = declared_range(name)

    assert ">=" in tested
    assert "<" in tested
    assert is_in(version(name), tested)


def test_another_version_is_warned_of_once_and_works(tmp_path: Path) -> None:
    """The adapter is imported all the same."""
    about = tmp_path / "openai_agents-7.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: openai-agents\nVersion: 7.1\n")

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )

    tested = declared_range("openai-agents")
    assert done.stderr == (
        f"pegboard.frameworks WARNING openai-agents 7.1 is installed, and Pegboard's adapter is tested with {tested}: "
        "what it rests on may be different.\n"
    )


def test_what_is_not_installed_is_not_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """Its import says that it is missing."""
    from pegboard.frameworks.versions import warn_if_untested

    with caplog.at_level(logging.WARNING):
        warn_if_untested("no-such-framework")

    assert caplog.records == []
