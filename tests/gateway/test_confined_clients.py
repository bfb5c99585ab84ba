"""What is confined does not use a gateway of its user as a client (A7, G2)."""

import asyncio
import base64
import json
import stat
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from pegboard.assembly import Pegboard
from pegboard.errors import UsageError
from pegboard.gateway import serving
from pegboard.support.user_token import make_token, token_file
from sdk_servers import SERVERS

from .clients import MODERN, connected, edit, gateway, modern_request

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's"),
    pytest.mark.cover(1),
]

KEYS = """
from pegboard.marks import tool


@tool(read_only=True)
def read_key() -> str:
    "Return the key of the user."
    return "hunter22-key"


def delete_all() -> str:
    "Remove everything."
    return "removed"
"""
CONFIG = """
reload: all
store: sqlite:///state.db
servers:
  reaching: {{command: {python}, args: [{server}], confine: {{write: [inside]{network}}}}}
plugins:
  keys: {{python: key_tools, approve: {{delete_all: always}}}}
agents:
  default: {{tools: [reaching, keys]}}
"""
OTHER = "plugins: {keys: {python: key_tools}}\nagents: {default: {tools: [keys]}}\n"
ASK = """
import json, urllib.error, urllib.request

def ask(path, body=None, headers={{}}):
    request = urllib.request.Request({base!r} + path, json.dumps(body).encode() if body else None, headers)
    try:
        return str(urllib.request.urlopen(request, timeout=30).status)
    except urllib.error.HTTPError as error:
        return str(error.code)
"""
PATHS = ("/metrics", "/api/approvals", "/api/audit", "/api/codes", "/console/codes")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return written(tmp_path)


def written(folder: Path, network: str = "") -> Path:
    (folder / "inside").mkdir(exist_ok=True)
    (folder / "key_tools.py").write_text(KEYS)
    server = SERVERS / "reaching_server.py"
    (folder / "pegboard.yaml").write_text(CONFIG.format(python=sys.executable, server=server, network=network))
    return folder / "pegboard.yaml"


def encoded(base: str, code: str) -> str:
    """Return code that asks a gateway, in a form that no guard on arguments reads."""
    return base64.b64encode((textwrap.dedent(ASK.format(base=base)) + textwrap.dedent(code)).encode()).decode()


def asking(**more: str) -> str:
    """Return the code of one call of a tool."""
    body, headers = modern_request("tools/call", name="read_key", arguments={})
    return f"answer = ask('/mcp', {body!r}, {headers | more!r})"


async def until(condition: Callable[[], object]) -> None:
    """Wait until something holds that happens in another process."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def from_inside(board: Pegboard, base: str, attempts: dict[str, str], depth: int = 0) -> dict[str, str]:
    """Return what became of what the confined server tries."""
    session = await board.session(session_id="first", principal="local")
    coded = {name: encoded(base, code) for name, code in attempts.items()}
    answer = await session.call("reaching__reach", {"attempts": coded, "depth": depth})
    assert answer.result is not None, answer.message
    return json.loads(answer.result.content[0]["text"])


@pytest.mark.both_paths
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.7", "::1"])
@pytest.mark.parametrize("depth", [0, 2])
async def test_what_is_confined_and_its_children_use_no_gateway_of_their_user(
    config: Path, host: str, depth: int
) -> None:
    """A7: neither a tool nor an approval nor a page is theirs, at whichever address of this machine."""
    async with Pegboard.open(config) as board, serving(board, host=host, port=0) as url:
        base = url.removesuffix("/mcp")
        attempts = {
            "a tool": asking(),
            "a made-up token": asking(Authorization="Bearer local"),
            **{path: f"answer = ask({path!r})" for path in PATHS},
            "the turn": "answer = ask('/sessions/default/end-turn', {'x': 1})",
        }
        found = await from_inside(board, base, attempts, depth)
        assert {name: how for name, how in found.items() if how not in ("done: 401", "done: 404")} == {}
        assert found["a tool"] == found["a made-up token"] == found["/metrics"] == "done: 401"
        token = await from_inside(board, base, {"it": f"answer = open({str(token_file())!r}).read()"}, depth)
        assert token["it"].startswith("refused")


async def test_a_process_that_outlives_its_parent_and_a_socket_that_is_handed_on_come_in_no_more(
    config: Path, tmp_path: Path
) -> None:
    """A7: who has opened a connection, and whose child it is, does not matter."""
    told = tmp_path / "inside" / "told"
    body, headers = modern_request("tools/call", name="read_key", arguments={})
    sent = json.dumps(body)
    async with gateway(config) as running, Pegboard.open(config) as board:
        host, port = running.base.removeprefix("http://").split(":")
        raw = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        request = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\n{raw}Content-Length: {len(sent)}\r\n\r\n{sent}"
        handed = f"""
            import os, socket
            opened = socket.create_connection(({host!r}, {port}))
            middle = os.fork()
            if middle == 0:
                os.setsid()
                parent = os.getpid()
                if os.fork():
                    os._exit(0)
                while os.getppid() == parent:
                    pass
                opened.sendall({request!r}.encode())
                first = opened.recv(100).split(b' ')[1].decode()
                anew = ask('/mcp', {body!r}, {headers!r})
                with open({str(told)!r} + '.part', 'w') as file:
                    file.write(first + ' ' + anew)
                os.rename({str(told)!r} + '.part', {str(told)!r})
                os._exit(0)
            os.waitpid(middle, 0)
        """
        await from_inside(board, running.base, {"handed": handed})
        await until(told.exists)
        assert told.read_text() == "401 401"


@pytest.mark.both_paths
async def test_a_client_with_the_token_of_the_user_works_as_before(config: Path) -> None:
    """G2: it is `local`, and one token is for every gateway of the user; the file is for this user alone."""
    async with gateway(config) as running:
        assert stat.S_IMODE(token_file().stat().st_mode) == 0o600
        token = token_file().read_text().strip()
        async with connected(running.url, MODERN, token=token) as pegboard:
            assert await pegboard.text("read_key") == "hunter22-key"
        body, headers = modern_request("tools/list")
        async with httpx2.AsyncClient() as http:
            answer = await http.post(running.url, json=body, headers=headers)
        assert answer.status_code == 401
        assert f"The token is in {token_file()}" in answer.json()["error"]["message"]


async def test_a_gateway_of_another_configuration_that_runs_already_demands_the_token_too(
    tmp_path: Path, config: Path
) -> None:
    """A7: from before the first process starts that is confined and has network."""
    (other := tmp_path / "other").mkdir()
    (other / "key_tools.py").write_text(KEYS)
    (other / "pegboard.yaml").write_text(OTHER)
    async with gateway(other / "pegboard.yaml") as running, Pegboard.open(config) as board:
        async with connected(running.url, MODERN) as pegboard:
            assert await pegboard.text("read_key") == "hunter22-key"
        assert (await from_inside(board, running.base, {"a tool": asking()}))["a tool"] == "done: 401"


LIVES_ON = """
    import os, socket, time
    if os.fork() == 0:
        os.setsid()
        for name in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), name)
        while not os.path.exists({end!r}):
            time.sleep(0.02)
        os._exit(0)
"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Write a configuration of which nothing is confined."""
    (folder := tmp_path / "other").mkdir()
    (folder / "key_tools.py").write_text(KEYS)
    (folder / "pegboard.yaml").write_text(OTHER)
    return folder / "pegboard.yaml"


async def answered(url: str, **more: str) -> int:
    """Return the status of a request without a token."""
    body, headers = modern_request("tools/list")
    async with httpx2.AsyncClient() as http:
        return (await http.post(url, json=body, headers=headers | more)).status_code


async def lets_in(url: str) -> None:
    """Wait until a gateway demands no token, which it also does for what other tests of this machine have confined."""
    async with asyncio.timeout(240):
        while (status := await answered(url)) == 401:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert status == 200


async def test_another_gateway_demands_the_token_for_as_long_as_something_confined_runs(
    config: Path, other: Path, tmp_path: Path
) -> None:
    """A7, G2: a child that lives on counts, and once it has ended a gateway without tokens is what it was."""
    end = tmp_path / "inside" / "end"
    async with gateway(other) as running:
        async with Pegboard.open(config) as board:
            assert await answered(running.url) == 200
            await from_inside(board, running.base, {"lives on": LIVES_ON.format(end=str(end))})
            assert await answered(running.url) == 401
        assert await answered(running.url) == 401
        async with gateway(other) as later:
            assert await answered(later.url) == 401
            end.write_text("")
            await lets_in(running.url)
            await lets_in(later.url)
        assert token_file().exists()
        async with Pegboard.open(config) as board:  # what is started later counts again, by the same token
            assert (await from_inside(board, running.base, {"a tool": asking()}))["a tool"] == "done: 401"
            assert await answered(running.url) == 401
            assert await answered(running.url, Authorization=f"Bearer {token_file().read_text().strip()}") == 200


async def test_no_confined_process_makes_itself_unseen(config: Path, other: Path) -> None:
    """A7: not by times of the token, limits, another user, a name or a namespace, nor as one that no one looks into."""
    hides = f"""
        import ctypes, os, resource
        libc = ctypes.CDLL(None)
        status = os.stat({str(token_file())!r})
        os.utime({str(token_file())!r}, ns=(1, 1))
        libc.prctl(4, 0, 0, 0, 0)
        libc.prctl(15, b"[kworker]", 0, 0, 0)
        for code in (lambda: resource.setrlimit(10, (1 << 40, 1 << 40)), lambda: os.setuid(65534), os.setsid):
            try:
                code()
            except (OSError, ValueError):
                pass
        libc.unshare(0x10000000)
        try:
            resource.setrlimit(10, (1 << 40, 1 << 40))
        except (OSError, ValueError):
            pass
    """
    async with gateway(other) as running, Pegboard.open(config) as board:
        assert await answered(running.url) == 200
        attempts = {
            "first": asking(),
            "hides": hides,
            "in a child": f"import os\nif os.fork() == 0:\n    os._exit(0)\n{asking()}",
        }
        found = await from_inside(board, running.base, attempts)  # the first one has imported all that a request needs
        assert found["hides"].startswith("done")
        assert found["in a child"] == "done: 401"
        assert (await from_inside(board, running.base, {"later": asking()}))["later"] == "done: 401"


async def test_what_reaches_other_ports_alone_makes_no_gateway_demand_a_token(tmp_path: Path, other: Path) -> None:
    """A7, G2: the kernel keeps it from this one; one whose ports have that of the gateway is kept out by the token."""
    config = written(tmp_path, ", network: [9]")
    async with gateway(config) as own, gateway(other) as running, Pegboard.open(config) as board:
        tried = await from_inside(board, running.base, {"a tool": asking(), "own": asking()})
        assert all("refused" in how for how in tried.values()), tried
        await lets_in(own.url)
        await lets_in(running.url)
        config = written(tmp_path, f", network: [{running.base.rpartition(':')[2]}]")
        async with Pegboard.open(config) as reaching:
            assert (await from_inside(reaching, running.base, {"a tool": asking()}))["a tool"] == "done: 401"
            assert await answered(running.url) == 401


async def test_an_edit_that_confines_something_demands_the_token_before_that_starts(tmp_path: Path) -> None:
    """A7: what is confined by an edit reaches the gateway that runs no more than any other."""
    config = written(tmp_path, ", network: none")
    async with Pegboard.open(config, watch=True) as board, serving(board, port=0) as url:
        base = url.removesuffix("/mcp")
        async with connected(url, MODERN) as pegboard:
            assert await pegboard.text("read_key") == "hunter22-key"
        edit(config, ", network: none", "")
        await until(lambda: (confine := board.configuration.specs["reaching"].confine) and confine.network is None)
        assert (await from_inside(board, base, {"a tool": asking()}))["a tool"] == "done: 401"


async def test_without_network_nothing_confined_demands_a_token(tmp_path: Path) -> None:
    """G2: a gateway on loopback without `tokens:` needs none where nothing confined could reach it."""
    config = written(tmp_path, ", network: none")
    async with gateway(config) as running, connected(running.url, MODERN) as pegboard:
        await pegboard.call("reaching__reach", attempts={})
        assert await pegboard.text("read_key") == "hunter22-key"
    assert not token_file().exists()


@pytest.mark.parametrize("spoil", ["others read it", "empty", "a folder"])
async def test_a_token_that_cannot_be_relied_on_lets_nobody_in(config: Path, spoil: str) -> None:
    """G2: neither its old text, nor none, nor any other."""
    file = make_token()
    token = file.read_text().strip()
    if spoil == "others read it":
        file.chmod(0o644)
    elif spoil == "empty":
        file.write_text("")
    else:
        file.unlink()
        file.mkdir()
    body, headers = modern_request("tools/list")
    try:
        async with gateway(config) as running, httpx2.AsyncClient() as http:
            for given in (None, f"Bearer {token}", "Bearer"):
                sent = headers if given is None else {**headers, "Authorization": given}
                assert (await http.post(running.url, json=body, headers=sent)).status_code == 401
    finally:
        if file.is_dir():
            file.rmdir()


async def test_where_the_token_cannot_be_made_nothing_confined_with_network_is_served(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7: the gateway does not start, and what is confined is unavailable; the error says what to do."""
    (tmp_path / "file").write_text("")
    async with Pegboard.open(config) as board:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        with pytest.raises(UsageError, match="the token that keeps it out of the gateway cannot be made") as raised:
            async with serving(board, port=0):
                pass
        assert raised.value.code == "tokens_required"
        session = await board.session(session_id="s")
        outcome = await session.load("reaching")
        assert "the token that keeps it out of the gateway cannot be made" in outcome.message
