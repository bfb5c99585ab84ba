"""What a confined plugin reads where its code lies in the project: the code, and not what lies beside it (A7)."""

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pegboard import Pegboard

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")

TOOLS = '''
import secrets

import beside_narrow
from package_narrow.inner import TEXT


def look(path: str) -> str:
    """Return what stands in a file, or why it cannot be read."""
    try:
        return open("/".join(path.split("|"))).read()
    except OSError as error:
        return type(error).__name__


def parts() -> str:
    """Return what other modules have."""
    return f"{beside_narrow.VALUE} {TEXT} {len(secrets.token_hex(2))}"
'''
SERVER = f"""#!{sys.executable}
import json, sys
import beside_narrow
from package_narrow.inner import TEXT

def said(request):
    if request["method"] == "initialize":
        about = {{"name": "narrow", "version": "1"}}
        return {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": about}}
    if request["method"] == "tools/list":
        names = ("look", "parts")
        return {{"tools": [{{"name": name, "inputSchema": {{"type": "object"}}}} for name in names]}}
    if request["params"]["name"] == "parts":
        text = f"{{beside_narrow.VALUE}} {{TEXT}} 4"
    else:
        try:
            text = open("/".join(request["params"]["arguments"]["path"].split("|"))).read()
        except OSError as error:
            text = type(error).__name__
    return {{"content": [{{"type": "text", "text": text}}]}}

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": said(request)}}), flush=True)
"""
PRIVATE = (".env", ".git/config", "notes.md", "secrets/key", "keys/id", "other_narrow.py", "pegboard.yaml")
KINDS = {
    "module": {"plugins": {"it": {"python": "tools_narrow", "instance": "all"}}},
    "class": {"plugins": {"it": {"python": "tools_narrow:Kit", "instance": "all"}}},
    "script": {"servers": {"it": {"command": sys.executable, "args": ["server_narrow.py"], "prefix": ""}}},
    "program": {"servers": {"it": {"command": "./server_narrow.py", "prefix": ""}}},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a project with code, data and what is no one's."""
    kit = "\n\nclass Kit:\n    look = staticmethod(look)\n    parts = staticmethod(parts)\n"
    texts = {
        **dict.fromkeys(PRIVATE, "hunter22"),
        "tools_narrow.py": TOOLS + kit,
        "server_narrow.py": SERVER,
        "beside_narrow.py": "VALUE = 'beside'\n",
        "package_narrow/__init__.py": "",
        "package_narrow/inner.py": "from pathlib import Path\nTEXT = Path(__file__).with_name('its.txt').read_text()\n",
        "package_narrow/its.txt": "inner",
        "data/table.csv": "1,2",
        "work/made.txt": "made",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "server_narrow.py").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@asynccontextmanager
async def opened(project: Path, kind: str) -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Yield what calls a tool of a plugin that may write a folder and read one, and returns what it says."""
    confine = {"write": ["work"], "read": ["data"]}
    ((part, plugins),) = KINDS[kind].items()
    document = {
        "store": "memory:",
        "reload": "all",
        part: {"it": {**plugins["it"], "confine": confine}},
        "agents": {"a": {"tools": ["it"]}},
    }
    (project / "pegboard.yaml").write_text(json.dumps(document))
    async with Pegboard.open(project / "pegboard.yaml") as board:
        session = await board.session(session_id="s")

        async def call(tool: str, **arguments: str) -> str:
            answer = await session.call(tool, arguments)
            assert answer.result is not None, answer.message
            return str(answer.result.content[0]["text"])

        yield call


@pytest.mark.parametrize("kind", KINDS)
async def test_code_in_a_project_is_read_with_what_it_imports_and_nothing_beside_it(project: Path, kind: str) -> None:
    """A7: neither the env file nor the notes, nor a folder without code that is named like a module it imports."""
    async with opened(project, kind) as call:
        assert await call("parts") == "beside inner 4"
        found = {name: await call("look", path=f"{project}/{name}".replace("/", "|")) for name in PRIVATE}
        assert found == dict.fromkeys(PRIVATE, "PermissionError")
        granted = {name: await call("look", path=f"{project}|{name}") for name in ("data|table.csv", "work|made.txt")}
        assert granted == {"data|table.csv": "1,2", "work|made.txt": "made"}
