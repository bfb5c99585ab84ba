"""How a server is reached is learnt once: its era and its transport are known to later starts and processes."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import httpx2
import pytest
from mcp_helpers import SERVERS

from pegboard import Pegboard
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp import McpSource
from sdk_servers import sdk_command


class Changing:
    """A server whose era and version may be another at each start, and a store that all processes share."""

    def __init__(self, folder: Path) -> None:
        self._state, self._log = folder / "state", folder / "log"
        command = {
            "command": sys.executable,
            "args": [str(SERVERS / "era_server.py"), str(self._state), str(self._log)],
        }
        self.configuration = configuration(folder, {"changing": command})

    def becomes(self, era: str, version: str = "1") -> None:
        self._state.write_text(f"{era} {version}")

    def asked(self) -> list[str]:
        """Return by what the server was asked since the last time to begin, in order."""
        found = self._log.read_text().split() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [method for method in found if method in ("server/discover", "initialize")]


def configuration(folder: Path, servers: dict[str, Any]) -> dict[str, Any]:
    store = f"sqlite:///{folder / 'store.db'}"
    return {"store": store, "servers": servers, "agents": {"default": {"tools": [*servers]}}}


async def answer(board: Pegboard, tool: str, **arguments: Any) -> str:
    session = await board.session(agent="default", session_id="s")
    answered = await session.call(tool, arguments)
    if answered.result is None:
        return answered.message
    return "".join(block["text"] for block in answered.result.content)


@pytest.fixture
def changing(tmp_path: Path) -> Changing:
    return Changing(tmp_path)


@pytest.mark.parametrize("era", ["silent", "strict"])
async def test_a_question_that_costs_is_asked_once(changing: Changing, era: str) -> None:
    """G8: of a server that leaves it unanswered or ends by it, also after a restart and in another process."""
    changing.becomes(era)
    async with Pegboard.open(changing.configuration) as board:
        pid = int((await answer(board, "changing__echo")).split()[1])
        assert changing.asked() == ["server/discover", "initialize"]
        os.kill(pid, signal.SIGKILL)
        assert await answer(board, "changing__echo") != f"{era} {pid}"
        assert changing.asked() == ["initialize"]
    async with Pegboard.open(changing.configuration) as board:
        await answer(board, "changing__echo")
        assert changing.asked() == ["initialize"]


async def test_a_question_that_takes_all_the_time_for_a_start_is_not_asked_again(changing: Changing) -> None:
    """G8: a server that may take less time to start than the question takes starts the next time."""
    changing.becomes("silent")
    servers = changing.configuration["servers"]
    servers["changing"]["start"] = "1s"
    async with Pegboard.open(changing.configuration) as board:
        assert "did not answer within 1 s" in await answer(board, "changing__echo")
        assert (await answer(board, "changing__echo")).startswith("silent")
        assert changing.asked() == ["server/discover", "initialize"]


async def test_a_question_that_costs_nothing_is_asked_at_each_start(changing: Changing) -> None:
    """G8: a server that refuses it at once may know the newer era at any later start."""
    changing.becomes("polite")
    async with Pegboard.open(changing.configuration) as board:
        assert (await answer(board, "changing__echo")).startswith("polite")
    changing.becomes("modern")
    async with Pegboard.open(changing.configuration) as board:
        assert (await answer(board, "changing__echo")).startswith("modern")
    changing.becomes("polite")
    async with Pegboard.open(changing.configuration) as board:
        assert (await answer(board, "changing__echo")).startswith("polite")


async def test_a_server_that_knows_another_era_than_was_learnt_is_asked_again(changing: Changing) -> None:
    """G8: nothing fails because of what was learnt, and what has become wrong is forgotten."""
    changing.becomes("strict")
    async with Pegboard.open(changing.configuration) as board:
        await answer(board, "changing__echo")
    changing.becomes("modern")
    changing.asked()
    async with Pegboard.open(changing.configuration) as board:
        assert (await answer(board, "changing__echo")).startswith("modern")
        assert changing.asked() == ["initialize", "server/discover"]
    async with Pegboard.open(changing.configuration) as board:
        assert (await answer(board, "changing__echo")).startswith("modern")
        assert changing.asked() == ["server/discover"]


async def test_another_version_of_a_server_is_asked_for_its_era_again(changing: Changing) -> None:
    """G8: at the start after the one at which it said that it is another."""
    changing.becomes("strict")
    async with Pegboard.open(changing.configuration) as board:
        await answer(board, "changing__echo")
    changing.becomes("polite", "2")
    for questions in (["initialize"], ["server/discover", "initialize"]):
        changing.asked()
        async with Pegboard.open(changing.configuration) as board:
            await answer(board, "changing__echo")
        assert changing.asked() == questions


class OlderTransport:
    """A server of the older SSE transport, or of the newer one, at the same address at each start."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._process: Popen[str] | None = None
        self.port = 0

    def start(self, kind: str, *options: str) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        command = sdk_command("sdk_server.py", kind, *options, "--port", str(self.port))
        self._process = self._stack.enter_context(Popen(command, stdout=PIPE, text=True))
        self._stack.callback(self._process.kill)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    @property
    def asked(self) -> list[list[str]]:
        """Return method and path of each request, in order."""
        with httpx2.Client(trust_env=False) as http:
            return http.get(f"http://127.0.0.1:{self.port}/asked").json()


@pytest.fixture
def older() -> Iterator[OlderTransport]:
    with ExitStack() as stack:
        yield OlderTransport(stack)


@pytest.mark.parametrize("named", [{}, {"type": "http"}], ids=["by its address alone", "as one of the newer transport"])
async def test_the_older_transport_is_found_once(tmp_path: Path, older: OlderTransport, named: dict[str, str]) -> None:
    """G8: by a GET at the same address, as the protocol advises; a later process does not look for it again."""
    older.start("sse")
    settings = configuration(tmp_path, {"web": {"url": f"http://127.0.0.1:{older.port}/sse", **named}})
    async with Pegboard.open(settings) as board:
        assert await answer(board, "web__echo", text="old") == "old"
        assert ["POST", "/sse"] in older.asked
    before = older.asked.count(["POST", "/sse"])
    async with Pegboard.open(settings) as board:
        assert await answer(board, "web__echo", text="again") == "again"
        assert older.asked.count(["POST", "/sse"]) == before


async def test_a_server_that_has_moved_to_the_newer_transport_is_found_there(
    tmp_path: Path, older: OlderTransport
) -> None:
    """G8: what was learnt is forgotten where it is wrong; nothing fails because of it."""
    older.start("sse")
    web = {"url": f"http://127.0.0.1:{older.port}/sse", "pins": "trust"}
    settings = configuration(tmp_path, {"web": web})
    async with Pegboard.open(settings) as board:
        await answer(board, "web__echo", text="old")
    older.start("http", "--path", "/sse")
    async with Pegboard.open(settings) as board:
        assert await answer(board, "web__echo", text="new") == "new"


async def test_an_address_without_a_server_of_either_transport_says_so(
    source: McpSource, older: OlderTransport
) -> None:
    """P6: what the newer transport answered, which is what the address is asked in first."""
    older.start("http")
    with pytest.raises(ToolUnavailableError, match="HTTP 404"):
        await source.describe(ServerSpec(name="web", url=f"http://127.0.0.1:{older.port}/other", transport="http"), {})
    assert ["GET", "/other"] in older.asked
