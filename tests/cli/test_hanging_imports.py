"""A plugin whose import hangs: commands say which and where, give up by a limit, and show the others (P6, G8)."""

import itertools
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_support import Run

from pegboard.cli import common, rendering
from pegboard.sources.signatures import modules

HANGING = '''
"""A plugin that waits at its import."""
import threading

{how}


def never() -> str:
    """Never there."""
    return "never"
'''
HOWS = {
    "module": "threading.Event().wait(60)",
    "function": "def wait():\n    threading.Event().wait(60)\n\n\nwait()",
    "library": "import queue\nqueue.Queue().get(timeout=60)",
}
LINES = {"module": 5, "function": 6, "library": 6}


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits short."""
    monkeypatch.setattr(modules, "HANGS_AFTER", 0.5)
    monkeypatch.setattr(common, "LONGEST_WAIT", 8.0)
    monkeypatch.setattr(common, "LONGEST_SILENCE", 2.5)
    monkeypatch.setattr(rendering, "FIRST_SAID", 0.5)


_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hanging:
    """A folder with a plugin that hangs; no module of an earlier test, which still hangs, has its name."""

    folder: Path
    module: str

    def write(self, how: str) -> str:
        """Write how it hangs; return where that is."""
        (self.folder / f"{self.module}.py").write_text(HANGING.format(how=HOWS[how]))
        return f"{self.module}.py:{LINES[how]}"


@pytest.fixture
def hanging(folder: Path) -> Hanging:
    """Write a configuration in which the first and the third plugin hang."""
    module = f"hanging_{next(_NUMBERS)}"
    (folder / "well.py").write_text("def well() -> str:\n    'Be well.'\n    return 'well'\n")
    (folder / "pegboard.yaml").write_text(
        "store: 'memory:'\n"
        "plugins:\n"
        f"  first: {{python: {module}}}\n"
        "  fine: {python: well}\n"
        f"  third: {{python: {module}_too}}\n"
        "  last: {python: 'well:well'}\n"
        "agents:\n  a: {tools: [first, fine, third], discoverable: [last]}\n"
    )
    (folder / f"{module}_too.py").write_text(HANGING.format(how=HOWS["module"]))
    return Hanging(folder=folder, module=module)


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("how", HOWS)
def test_tools_shows_the_others_and_says_where_a_plugin_hangs(hanging: Hanging, run: Run, how: str) -> None:
    """P6: in its module, in a function of it, or in a library that it calls."""
    line = hanging.write(how)
    ran = run("tools", "--config", "pegboard.yaml", "--json")
    rows = {row["plugin"]: row for row in json.loads(ran.out)}
    assert ran.code == 0
    assert [rows[name]["available"] for name in ("fine", "last")] == [True, True]
    assert rows["first"]["available"] is None
    assert line in rows["first"]["reason"]
    said, note = ran.err.splitlines()[0], ran.err.splitlines()[-1]
    assert "first" in said
    assert f"first (it is at {line})" in note
    assert f"third (it is at {hanging.module}_too.py:5)" in note
    assert "fine" not in note


@pytest.mark.usefixtures("limits")
def test_where_only_a_hanging_plugin_is_asked_the_longest_wait_is_not_waited(
    hanging: Hanging, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: its import does nothing; one that works, however long, is waited for."""
    monkeypatch.setattr(common, "LONGEST_WAIT", 60.0)
    line = hanging.write("module")
    config = hanging.folder / "pegboard.yaml"
    config.write_text(
        f"store: 'memory:'\nplugins:\n  first: {{python: {hanging.module}}}\nagents:\n  a: {{tools: [first]}}\n"
    )
    ran = run("tools", "--config", "pegboard.yaml", "--json")
    (row,) = json.loads(ran.out)
    assert line in row["reason"]
    waited = re.search(r"did not answer within (\d+) s", ran.err)
    assert waited is not None
    assert int(waited[1]) < 60


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("command", [("check",), ("search", "well"), ("surface",)])
def test_other_commands_go_on_without_it(hanging: Hanging, run: Run, command: tuple[str, ...]) -> None:
    """P6: each names both plugins, with the line at which they are."""
    line = hanging.write("module")
    ran = run(*command, "--config", "pegboard.yaml")
    assert ran.code == 0
    assert f"first (it is at {line})" in ran.err
    assert f"third (it is at {hanging.module}_too.py:5)" in ran.err
    assert "well" in ran.out or command == ("check",)


@pytest.mark.usefixtures("limits")
def test_a_probe_says_what_it_waits_for_and_reports_where_it_was(hanging: Hanging, run: Run) -> None:
    """P6: the limit is the `timeout` of the plugin."""
    line = hanging.write("module")
    config = hanging.folder / "pegboard.yaml"
    config.write_text(re.sub(r"(hanging_\w+)}", r"\1, timeout: 3s}", config.read_text()))
    ran = run("check", "--probe", "--config", "pegboard.yaml")
    assert f"first (it is at {line})" in ran.err
    assert f"plugin 'first' was not constructed within 3 s: it is at {line}." in ran.out
