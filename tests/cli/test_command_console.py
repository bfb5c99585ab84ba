"""`pegboard console`, and what `pegboard serve` says of the console that it serves."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest
from command_serving import DEADLINE, Serving, serving
from command_support import Run, misfits, put

from sdk_servers import pegboard_command

CODE = re.compile(r"^Console: (http://127\.0\.0\.1:\d+/console)\?code=([\w-]{20,})$", re.MULTILINE)
TOKENS = "tokens:\n  ada: {{token: ada-s3cret, agents: [assistant], console: {console}}}\n"
WITH_A_TOKEN = "(sign in with a token that has `console: true`)"


@contextmanager
def console_of(*arguments: str, cold: bool = False) -> Iterator[tuple[Serving, str]]:
    """Serve on a free port; yields the address of the console too."""
    with serving("--port", "0", *arguments, cold=cold) as running:
        line = running.until("Console: ").partition("Console: ")[2]
        yield running, line.partition("\n")[0].partition(" ")[0].partition("?")[0]


def signs_in(url: str) -> bool:
    """Return whether the code in an address is good; it is not afterwards."""
    answer = httpx2.get(url, follow_redirects=False, timeout=DEADLINE)
    assert answer.status_code == 303
    assert "set-cookie" not in answer.headers
    page = httpx2.URL(url).join(answer.headers["location"])
    assert "set-cookie" not in httpx2.get(page, timeout=DEADLINE).headers
    answer = httpx2.post(page, data={"secret": page.params["code"]}, timeout=DEADLINE)
    return "set-cookie" in answer.headers


@pytest.fixture
def browser(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that an address is written to where the browser is started."""
    opened = folder / "opened.txt"
    script = put("browser.sh", f'#!/bin/sh\nprintf %s "$1" > "{opened}"\n', mode=0o755)
    monkeypatch.setenv("BROWSER", f"{script.resolve()} %s")
    return opened


def files(folder: Path) -> list[Path]:
    return sorted((folder / "user-state" / "pegboard" / "serving").glob("*"))


def test_serve_prints_an_address_with_a_code_that_is_good_once(project: Path) -> None:
    """G2: on this machine, without tokens."""
    with serving("--port", "0", "--agent", "assistant") as running:
        url, code = CODE.findall(running.until("Console: "))[0]
        assert signs_in(f"{url}?code={code}")
        assert not signs_in(f"{url}?code={code}")


@pytest.mark.parametrize(
    ("console", "said"), [("true", WITH_A_TOKEN), ("false", "(sign-in is not possible: no token has `console: true`)")]
)
def test_serve_says_who_signs_in_where_tokens_are_in_use(run: Run, project: Path, console: str, said: str) -> None:
    """G2: no code is printed, nor given to anyone."""
    config = project / "pegboard.yaml"
    config.write_text(config.read_text() + TOKENS.format(console=console))
    with console_of() as (running, url):
        assert f"Console: {url} {said}\n" in running.seen
        assert "ada-s3cret" not in running.seen
        ran = run("console", "--no-browser")
        assert (ran.code, ran.out) == (0, f"{url}\n")
        assert "token" in ran.err
        secret = json.loads(files(project)[0].read_text())["secret"]
        refused = httpx2.post(f"{url}/codes", headers={"Authorization": f"Bearer {secret}"})
        assert (refused.status_code, "code=" in refused.text) == (401, False)


def test_where_something_confined_has_network_neither_the_token_nor_a_code_is_where_that_reads(
    run: Run, project: Path, browser: Path
) -> None:
    """A7: neither in the output of `serve`, which may go to a file, nor in the command line of a browser."""
    config = project / "pegboard.yaml"
    config.write_text(f"{config.read_text()}\nservers:\n  weather: {{command: weather-server, confine: true}}\n")
    token = project / "user-state" / "pegboard" / "gateway-token"
    with console_of() as (running, url):
        assert f"Clients over HTTP need the token in {token}" in running.seen
        assert '"Authorization": "Bearer <token>"' in running.seen
        assert token.read_text().strip() not in running.seen
        assert f"Console: {url} (`pegboard console` opens it)\n" in running.seen
        ran = run("console")
        assert "open this address yourself" in ran.err
        assert not browser.exists()
        assert signs_in(ran.out.strip())


def test_without_a_console_none_is_served_and_none_is_found(run: Run, project: Path) -> None:
    with serving("--port", "0", "--agent", "assistant", "--no-console") as running:
        base = running.until('"--config"').partition("Pegboard serves MCP at ")[2].split()[0].removesuffix("/mcp")
        assert httpx2.get(f"{base}/console").status_code == httpx2.get(f"{base}/api").status_code == 404
        assert "No console runs for pegboard.yaml." in run("console", "--no-browser").err
        assert "Console:" not in running.seen
    assert files(project) == []


def test_the_address_is_printed_and_opened(run: Run, project: Path, browser: Path) -> None:
    """G2: each time with a code of its own, which signs in."""
    with console_of() as (_, url):
        ran = run("console")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"{url}?code=")
        assert browser.read_text() == ran.out.strip()
        assert signs_in(browser.read_text())
        browser.unlink()
        codes = {run("console", option).out for option in ("--no-browser", "--print")}
        assert len(codes) == 2
        assert not browser.exists()


def test_where_no_browser_starts_the_address_is_enough(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with console_of() as (_, url):
        monkeypatch.setenv("BROWSER", "/nowhere/browser %s")
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.delenv("DISPLAY", raising=False)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        ran = subprocess.run(pegboard_command("console"), capture_output=True, text=True, timeout=DEADLINE)
        assert (ran.returncode, ran.stdout.startswith(url)) == (0, True)
        assert "open this address yourself" in ran.stderr


def test_a_script_gets_one_document_and_nothing_is_opened(run: Run, project: Path, browser: Path) -> None:
    with console_of(cold=True) as (running, url):
        found = run("console", "--json").json
        assert misfits(found, {"url": str, "configuration": str, "pid": int, "started_at": str}) == []
        assert found["url"].startswith(f"{url}?code=")
        assert (found["pid"], found["configuration"]) == (running.process.pid, str(project / "pegboard.yaml"))
        assert not browser.exists()


def test_where_none_runs_it_is_said_which_command_starts_one(run: Run, project: Path) -> None:
    ran = run("console")
    assert (ran.code, ran.out) == (6, "")
    assert ran.err == (
        "pegboard: No console runs for pegboard.yaml. Start it with 'pegboard serve --config pegboard.yaml'.\n"
    )
    assert run("console", "--port", "9", "--json").json["error"]["code"] == "no_console"


def test_of_several_one_is_named_by_its_port(run: Run, project: Path) -> None:
    other = put("elsewhere/pegboard.yaml", "agents: {default: {}}\n")
    with console_of() as (_, first), console_of() as (_, second), console_of("--config", str(other)) as (_, third):
        ran = run("console", "--no-browser")
        assert ran.code == 2
        assert all(url in ran.err for url in (first, second))
        assert third not in ran.err
        assert run("console", "--json").json["error"]["code"] == "several_consoles"
        assert run("console", "--print", "--config", str(other)).out.startswith(third)
        for url in (first, second, third):
            assert run("console", "--print", "--port", str(httpx2.URL(url).port)).out.startswith(url)
    assert files(project) == []


def test_what_a_killed_gateway_leaves_behind_is_removed(run: Run, project: Path) -> None:
    with console_of(cold=True) as (running, _):
        running.process.send_signal(signal.SIGKILL)
        running.process.wait(timeout=DEADLINE)
        assert len(files(project)) == 1
        assert run("console", "--no-browser").code == 6
        assert files(project) == []


def test_a_port_that_nobody_listens_on_has_no_console(run: Run, project: Path) -> None:
    """Its process has ended, and another one has its number."""
    with console_of():
        (file,) = files(project)
        stale = json.loads(file.read_text())
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        stale |= {"pid": os.getpid(), "url": f"http://127.0.0.1:{taken.getsockname()[1]}/console"}
    put(str(file), json.dumps(stale), mode=0o600)
    assert run("console", "--no-browser").code == 6
    assert files(project) == []


def test_only_this_user_can_read_how_to_get_a_code(run: Run, project: Path) -> None:
    """G2: and a file that others may have written, or that is damaged, counts for nothing."""
    with console_of():
        (file,) = files(project)
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)]
        assert modes == [0o600, 0o700]
        file.chmod(0o644)
        assert run("console", "--no-browser").code == 6
        file.chmod(0o600)
        assert run("console", "--no-browser").code == 0
        for text in ("", "[]", '{"url": 5}', "\xff"):
            put(str(file.with_name("1-1.json")), text, mode=0o600)
            assert run("console", "--no-browser").code == 0


def test_something_else_at_the_address_is_one_clear_error(run: Run, project: Path) -> None:
    with console_of():
        (file,) = files(project)
        known = json.loads(file.read_text())
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        threading.Thread(target=garbage, args=(other,), daemon=True).start()
        known |= {"pid": os.getpid(), "url": f"http://127.0.0.1:{other.getsockname()[1]}/console"}
        put(str(file), json.dumps(known), mode=0o600)
        ran = run("console", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (6, "console_failed")
    assert known["secret"] not in ran.out


def garbage(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.sendall(b"SSH-2.0-x\r\n")
        connection.close()


SPARED = ("jinja2", "pegboard.config.compile", "pegboard.console", "pydantic", "starlette", "yaml")


def test_stdio_has_no_console_and_imports_nothing_of_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G1: from the second start on nothing either that reads a configuration, for that is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    code = "import sys; from pegboard.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, "serve", "--stdio", "--agent", "assistant"]
    for kept in (False, True):
        ran = subprocess.run(command, input="", capture_output=True, text=True, timeout=DEADLINE, check=True)
        assert "Console" not in ran.stderr
        assert files(project) == []
        loaded = ran.stderr.split()
        assert "pegboard.gateway" in loaded
        unwanted = SPARED if kept else ("jinja2", "starlette", "pegboard.console")
        assert [name for name in loaded if name.startswith(unwanted)] == []


WHEN_IT_IS_OPENED = """
import asyncio, sys
import httpx2
from pegboard import Pegboard
from pegboard.console.served_console import PREFIXES, ServedConsole
from pegboard.gateway import Mount, serving

def there():
    return [name for name in ("jinja2", "pegboard.console.app") if name in sys.modules]

async def main():
    async with Pegboard.open("pegboard.yaml") as board:
        console = ServedConsole(board)
        mount = Mount(prefixes=PREFIXES, build=console.app)
        async with serving(board, port=0, mounts=[mount]) as url, httpx2.AsyncClient() as http:
            await http.get(url.removesuffix("/mcp") + "/healthz")
            print(there())
            answer = await http.get(url.removesuffix("/mcp") + "/console/sign-in")
            print(answer.status_code, there())

asyncio.run(main())
"""


def test_a_gateway_over_http_imports_its_pages_when_somebody_opens_one(project: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WHEN_IT_IS_OPENED], capture_output=True, text=True, timeout=DEADLINE, check=True
    )
    assert ran.stdout == "[]\n200 ['jinja2', 'pegboard.console.app']\n"
