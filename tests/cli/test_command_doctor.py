"""`pegboard doctor SERVER`: one start, and what was refused (A7)."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_support import Run, misfits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

SERVER = Path(__file__).resolve().parent.parent / "servers" / "needing_server.py"
REFUSED = {"kind": str, "what": str, "line": (str, type(None)), "why": (str, type(None))}
DIAGNOSIS = {
    "name": str, "kind": str, "target": str, "where": str, "confined": bool, "unconfined_because": type(None),
    "write": [str], "read": [str], "network": [int], "caches": str, "came_up": bool, "tools": int, "errors": [str],
    "lines": [str], "refused": [REFUSED],
}  # fmt: skip
CONNECTS = """
import socket, sys
try:
    socket.socket().connect(("127.0.0.1", 9))
except OSError as error:
    sys.exit(f"connect to 127.0.0.1:9 failed: {error}")
"""


@pytest.fixture
def outside() -> Iterator[Path]:
    """Return a folder below the user's that no default grants, with a file."""
    with tempfile.TemporaryDirectory(prefix=".pegboard-outside-", dir=Path.home()) as folder:
        (Path(folder) / "below").mkdir()
        (Path(folder) / "below" / "there").write_text("x")
        yield Path(folder)


def server(code: str, confine: Any = True) -> dict[str, Any]:
    given: dict[str, Any] = {"command": sys.executable, "args": [str(SERVER), code]}
    return {**given, "confine": confine} if confine else given


def configured(folder: Path, **servers: Any) -> None:
    (folder / "own").mkdir(exist_ok=True)
    document = {"servers": servers, "agents": {"default": {"tools": list(servers)}}}
    (folder / "pegboard.yaml").write_text(json.dumps(document))


def test_a_refused_path_and_port_are_said_with_their_lines(run: Run, folder: Path, outside: Path) -> None:
    """A7: exit code 1 although it came up, in text and JSON."""
    there = outside / "below" / "there"
    code = f"import sys\ntry: open({str(there)!r})\nexcept OSError as error: print(error, file=sys.stderr, flush=True)"
    configured(
        folder,
        reads=server(code, {"write": ["own"]}),
        connects=server(CONNECTS, {"write": ["own"], "network": [80]}),
    )
    own = folder / "own"
    ran = run("doctor", "reads")
    line = f"`confine: {{write: [{own}], read: [{there}]}}`"
    assert (ran.code, ran.out.splitlines()[-2:]) == (
        1,
        [
            f"  [Errno 13] Permission denied: '{there}'",
            f"It says that it could not read '{there}': {line} would allow it.",
        ],
    )
    assert "It started and has 1 tool." in ran.out
    assert f"  writes   {own}" in ran.out
    found = run("doctor", "connects", "--json")
    assert (found.code, misfits(found.json, DIAGNOSIS)) == (6, [])
    assert not found.json["came_up"]
    assert found.json["refused"] == [
        {"kind": "port", "what": "9", "line": f"`confine: {{write: [{own}], network: [80, 9]}}`", "why": None}
    ]


def test_what_is_sound_and_what_is_not_there_are_told_apart(run: Run, folder: Path) -> None:
    """A7, X5: nothing refused is 0; a command that is not there, and a name that nothing has, are 1."""
    configured(folder, fine=server("pass", {"write": ["own"]}), gone={"command": "no-such-command"})
    fine = run("doctor", "fine")
    assert (fine.code, fine.out.splitlines()[-1]) == (0, "It reports no refused access.")
    gone = run("doctor", "gone")
    assert gone.code == 6
    assert "not confined: the file has no `confine` for it" in gone.out
    assert "the command 'no-such-command' was not found" in gone.out
    unknown = run("doctor", "goen", "--json")
    assert (unknown.code, unknown.json["error"]["code"]) == (3, "unknown_name")
    assert unknown.json["error"]["hint"] == "Did you mean 'gone'?"
