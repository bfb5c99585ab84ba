"""Servers added in the console: pasted, imported or written, tried, granted, saved; no secret is shown (X5)."""

import json
import re
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.config.documents import json_text, yaml_text
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess

from .browser import broken_words, findings, opened, tab_to
from .programs import ORIGIN, Program, program, serving
from .running import running

SERVERS = Path(__file__).resolve().parents[1] / "servers"
PLAIN = {"command": sys.executable, "args": [str(SERVERS / "plain_server.py")]}
SECRET = "ghp_s3cr3tS3cr3tS3cr3t99"
PASTED = json.dumps({"mcpServers": {"plain": {**PLAIN, "env": {"PLAIN_TOKEN": SECRET}}}})
CONFIG = """\
# ours
store: "memory:"
tokens:
  eve: {token: eve-eve-eve-eve-eve-eve, agents: ["*"], console: [see, configure]}
  ada: {token: ada-ada-ada-ada-ada-ada, agents: [helper], console: [see, configure]}
servers:
  there: {command: absent-program, disabled: true}   # stays
agents:
  helper: {discoverable: [there]}   # who helps
  kits: {allowed_toolkits: [sums]}
toolkits: {sums: {tools: [calculator]}}
"""
EVE, ADA = ("-".join([name] * 6) for name in ("eve", "ada"))


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the configuration of a machine on which no client has servers."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    path = tmp_path / "pegboard.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
async def app(config: Path) -> AsyncIterator[ConsoleApp]:
    async with Pegboard.open(config) as board, serving(board) as (app, _):
        yield app


@pytest.fixture
async def eve(app: ConsoleApp) -> AsyncIterator[Program]:
    async with program(app, EVE) as eve:
        yield eve


def text_of(path: Path) -> str:
    return path.read_text()


def written(path: Path) -> Any:
    return yaml_text.compose(path.read_text(), "f").value


async def test_a_server_is_added_from_pasted_json_with_the_keyboard_alone(
    browser: Browser, config: Path, axe_core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read, tick an agent, try, look, save: five presses; the secret is on no page."""
    monkeypatch.setenv("PLAIN_TOKEN", "as-it-is-set")
    async with running(config) as console, opened(browser, console.origin) as page:
        await console.sign_in(page, EVE)
        await page.goto("/console/servers")
        await tab_to(page, page.get_by_role("link", name="Add a server"))
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("Configuration of the server")).to_be_focused()
        assert await findings(page, axe_core) == []
        await page.keyboard.insert_text(PASTED)
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Add this server")).to_be_visible()
        assert SECRET not in await page.content()
        await tab_to(page, page.get_by_label("helper"))
        await page.keyboard.press("Space")
        await tab_to(page, page.get_by_role("button", name="Test connection"))
        await page.keyboard.press("Enter")
        await expect(page.locator("#trial-0")).to_contain_text("tools,")
        await expect(page.get_by_label("helper")).to_be_checked()
        assert await findings(page, axe_core) == []
        assert await broken_words(page) == []
        await tab_to(page, page.get_by_role("button", name="Review changes").last)
        await page.keyboard.press("Enter")
        main = page.get_by_role("main")
        await expect(main).to_contain_text("agents.helper.discoverable.plain: absent → granted")
        await expect(main).to_contain_text("gains all of plain, whose tools are not known yet")
        assert SECRET not in await page.content()
        assert text_of(config) == CONFIG
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Saved: Add server plain.")
        assert written(config)["servers"]["plain"] == {**PLAIN, "env": {"PLAIN_TOKEN": "${PLAIN_TOKEN}"}}
        assert "helper: {discoverable: [there, plain]}   # who helps" in text_of(config)
        assert "there: {command: absent-program, disabled: true}   # stays" in text_of(config)
        await tab_to(page, page.get_by_role("button", name="Undo"))
        await page.keyboard.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("Taken back")
        assert text_of(config) == CONFIG


FORMS = [
    ('{"mcpServers": {"a": {"command": "x", "args": ["--api-key", "%s"]}}}', "${A_API_KEY}"),
    ('"a": {"command": "x", "args": ["--token=%s"]},', "--token=${A_TOKEN}"),
    ('{"servers": {"a": {"type": "http", "url": "https://x.example/mcp?key=%s"}}}', "key=${A_KEY}"),
    ('// VS Code\n{"servers": {"a": {"url": "https://u:%s@x.example/"}}, "inputs": []}', "${A_LOGIN}@x.example"),
    ('{"context_servers": {"a": {"source": "custom", "command": "x", "env": {"API_KEY": "%s"}}}}', "${API_KEY}"),
    (
        '[mcp_servers.a]\nurl = "https://x.example/mcp"\nhttp_headers = {Authorization = "Bearer %s"}',
        "Bearer ${A_TOKEN}",
    ),
    ('{"mcpServers": {"a": {"httpUrl": "https://x.example", "headers": {"X-Api-Key": "%s"}}}}', "${A_X_API_KEY}"),
    ("servers:\n  a: {command: x, env: {PASSWORD: %s}}\n", "${PASSWORD}"),
    ('{"command": "a", "env": {"ANY": "%s"}}', "${ANY}"),
]


@pytest.mark.parametrize(("text", "reference"), FORMS)
async def test_whatever_client_it_is_of_a_secret_becomes_a_reference(
    eve: Program, config: Path, text: str, reference: str
) -> None:
    """X5: it is in no answer and in no diff, and where the operator wants it plain it is masked in the diff."""
    draft = await eve.ask("POST", "/api/server-drafts", json={"text": text % SECRET})
    (server,) = draft["servers"]
    assert server["name"] == "a"
    propose = f"/api/server-drafts/{draft['id']}/propose"
    edit = await eve.ask("POST", propose, json={"servers": [{"server": "a"}]})
    assert SECRET not in json.dumps([draft, edit])
    saved = await eve.ask("POST", f"/api/configuration/edits/{edit['id']}/save")
    kept = reference.replace("${", "${secret:")
    assert kept in text_of(config)
    shown = any(kept in line["text"] for line in edit["diff"] if line["kind"] == "added")
    assert shown is ("@" not in kept)  # the userinfo of an address is a mark, whatever it is
    await eve.ask("POST", f"/api/configuration/edits/{saved['undo']}/save")
    plain = [one["name"] for one in server["variables"]]
    kept = await eve.ask("POST", propose, json={"servers": [{"server": "a", "name": "b", "plain": plain}]})
    assert SECRET not in json.dumps(kept)
    await eve.ask("POST", f"/api/configuration/edits/{kept['id']}/save")
    assert SECRET in text_of(config)
    for address in (
        "/console/edit/file",
        "/console/edit/form?section=servers&name=b",
        "/console/activity",
        "/api/audit",
    ):
        assert SECRET not in (await eve.client.get(address)).text


async def test_a_pasted_secret_is_sealed_and_the_server_runs_with_it(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G13: after a restart too; it is in no file, and references are shown as they are written."""
    monkeypatch.setattr("pegboard.kept_secrets.usable", lambda: False)
    make(config, CONFIG.replace('store: "memory:"', "store: sqlite:///state.db"))
    probe = {"command": sys.executable, "args": [str(SERVERS / "plain_server.py")], "env": {"PROBE_KEY": SECRET}}
    for number in range(2):
        async with Pegboard.open(config) as board, serving(board) as (app, _), program(app, EVE) as eve:
            if number == 0:
                text = json.dumps({"mcpServers": {"probe": probe}})
                draft = await eve.ask("POST", "/api/server-drafts", json={"text": text})
                chosen = {"servers": [{"server": "probe"}], "agents": ["helper"], "grant": "always"}
                edit = await eve.ask("POST", f"/api/server-drafts/{draft['id']}/propose", json=chosen)
                assert any("${secret:PROBE_KEY}" in line["text"] for line in edit["diff"])
                assert await board.services.store.sealed("secret", "PROBE_KEY") is None
                await eve.ask("POST", f"/api/configuration/edits/{edit['id']}/save")
            session = await board.session(agent="helper", session_id="s")
            answer = await session.call("probe__environment", {"name": "PROBE_KEY"})
            assert (answer.status, SECRET in str(answer)) == ("ok", True)
            whole = await eve.ask("GET", "/api/configuration/file")
            assert "${secret:PROBE_KEY}" in whole["text"]
    assert [file for file in files(tmp_path) if SECRET.encode() in file.read_bytes()] == []


async def test_what_is_named_by_reference_stays_as_it_is_written(eve: Program, config: Path) -> None:
    """G13: a reference is no secret in plain; nothing of it becomes a variable or a mark."""
    entry = {
        "command": "absent-program",
        "args": ["--token", "${cmd:pass show web0123456789abcdefghijkl}", "--api-key=${keyring:KEY}"],
        "env": {"GH_TOKEN": "${keyring:GITHUB}", "PASSWORD": "${file:/etc/key0123456789abcdefghijkl}"},
    }
    remote = {"url": "https://x.example/mcp?key=${keyring:API}", "headers": {"Authorization": "Bearer ${op:a/b/c}"}}
    text = json.dumps({"mcpServers": {"a": entry, "r": remote}})
    draft = await eve.ask("POST", "/api/server-drafts", json={"text": text})
    assert [server["variables"] for server in draft["servers"]] == [[], []]
    servers = [{"server": "a"}, {"server": "r"}]
    edit = await eve.ask("POST", f"/api/server-drafts/{draft['id']}/propose", json={"servers": servers})
    await eve.ask("POST", f"/api/configuration/edits/{edit['id']}/save")
    assert {name: written(config)["servers"][name] for name in ("a", "r")} == {"a": entry, "r": remote}
    whole = (await eve.ask("GET", "/api/configuration/file"))["text"]
    for line in text_of(config).splitlines():
        assert "${" not in line or line in whole


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_servers"),
        ("{", "syntax"),
        (f'{{"a": "{SECRET}"}}', "no_servers"),
        (f"{SECRET}: [", "syntax"),
        ('{"mcpServers": []}', "no_servers"),
        ('{"mcpServers": {}}', "no_servers"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {}}}', "duplicate_key"),
        ("[" * 5000, "too_deep"),
    ],
)
async def test_what_has_no_servers_is_refused_without_being_shown(eve: Program, text: str, code: str) -> None:
    error = (await eve.client.post("/api/server-drafts", json={"text": text})).json()["error"]
    assert error["code"] in {code, "not_mapping", "syntax"}
    assert SECRET not in json.dumps(error)
    response = await eve.client.post("/console/servers/add/read", data={"text": text})
    assert response.status_code == 422
    assert SECRET not in response.text


async def test_a_name_that_is_there_is_asked_about(eve: Program, config: Path) -> None:
    draft = await eve.ask("POST", "/api/server-drafts", json={"text": '{"mcpServers": {"there": {"command": "new"}}}'})
    assert draft["servers"][0]["taken"]
    propose = f"/api/server-drafts/{draft['id']}/propose"
    refused = await eve.refused("POST", propose, 409, json={"servers": [{"server": "there"}]})
    assert refused[0] == "server_exists"
    form = {"id": draft["id"], "add": "0", "name-0": "there", "grant": "needed"}
    page = await eve.client.post("/console/servers/add/propose", data=form)
    assert (page.status_code, "Replace the server of this name" in page.text) == (409, True)
    edit = await eve.ask("POST", propose, json={"servers": [{"server": "there", "replace": True}]})
    await eve.ask("POST", f"/api/configuration/edits/{edit['id']}/save")
    assert "  there: {command: new}   # stays\n" in text_of(config)


async def test_what_its_client_alone_can_start_is_not_added(eve: Program) -> None:
    draft = await eve.ask(
        "POST", "/api/server-drafts", json={"text": '{"context_servers": {"z": {"source": "extension"}}}'}
    )
    assert "only Zed knows how" in draft["servers"][0]["staying"]
    propose = f"/api/server-drafts/{draft['id']}/propose"
    code, message, _ = await eve.refused("POST", propose, 400, json={"servers": [{"server": "z"}]})
    assert (code, "cannot be added" in message) == ("edit_form", True)


async def test_an_agent_gets_a_server_in_the_way_that_it_loads_tools(eve: Program, config: Path) -> None:
    """An agent that loads toolkits only would speak another dialect with a discoverable plugin: it gets a toolkit."""
    text = '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y", "enabledTools": ["t"]}}}'
    draft = await eve.ask("POST", "/api/server-drafts", json={"text": text})
    body = {"servers": [{"server": "a"}, {"server": "b"}], "agents": ["helper", "kits"]}
    edit = await eve.ask("POST", f"/api/server-drafts/{draft['id']}/propose", json=body)
    await eve.ask("POST", f"/api/configuration/edits/{edit['id']}/save")
    found = written(config)
    assert found["agents"]["kits"] == {"allowed_toolkits": ["sums", "a", "b"]}
    assert found["agents"]["helper"] == {"discoverable": ["there", "a"], "allowed_toolkits": ["b"]}
    assert found["toolkits"]["b"]["tools"] == [{"b": {"include_tools": ["t"]}}]


MCP = """{
  // of all clients
  "mcpServers": {
    "there": {"command": "absent-program"} // stays
  }
}
"""


async def test_a_client_s_file_that_is_the_configuration_keeps_its_comments(config: Path) -> None:
    """In JSON there are servers alone: the one agent may load them all."""
    path = config.with_name(".mcp.json")
    make(path, MCP)
    async with Pegboard.open(path) as board, serving(board) as (app, access):
        eve = await local_operator(app, access)
        draft = await eve.post("/api/server-drafts", json={"text": PASTED})
        assert draft.json()["agents"] == []
        address = f"/api/server-drafts/{draft.json()['id']}/propose"
        edit = (await eve.post(address, json={"servers": [{"server": "plain"}]})).json()
        assert next(line["kind"] for line in edit["diff"] if line["kind"] in ("added", "removed")) == "removed"
        await eve.post(f"/api/configuration/edits/{edit['id']}/save")
        await eve.aclose()
        assert "plain" in board.world.catalog.plugins
    found = json_text.compose(text_of(path), "f").value["mcpServers"]
    assert found == {
        "there": {"command": "absent-program"},
        "plain": {**PLAIN, "env": {"PLAIN_TOKEN": "${secret:PLAIN_TOKEN}"}},
    }
    assert "  // of all clients\n" in text_of(path)
    assert "// stays\n" in text_of(path)


async def local_operator(app: ConsoleApp, access: OperatorAccess) -> httpx2.AsyncClient:
    """Sign in with a one-time code, where there are no tokens."""
    sign_in = access.signed_in(cookie := access.with_code(access.codes.new()))
    assert cookie is not None
    assert sign_in is not None
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=ORIGIN)
    client.cookies.set("pegboard_console_8321", cookie)
    client.headers["x-csrf-token"] = sign_in.csrf
    return client


async def test_a_trial_shows_tools_and_what_they_say_and_leaves_nothing_behind(eve: Program, config: Path) -> None:
    """The process has ended, nothing is stored or in the catalog, and its secret is masked."""
    draft = await eve.ask("POST", "/api/server-drafts", json={"text": PASTED})
    trial = await eve.ask("POST", f"/api/server-drafts/{draft['id']}/test", json={"server": "plain"})
    assert trial["ok"]
    assert trial["tokens"] == sum(tool["tokens"] for tool in trial["tools"]) > 0
    assert "plain" not in [one["name"] for one in await eve.ask("GET", "/api/servers")]
    assert text_of(config) == CONFIG
    assert (await eve.ask("GET", f"/api/server-drafts/{draft['id']}"))["servers"][0]["trial"]["ok"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "a-program-that-is-not-there"}, "a-program-that-is-not-there"),
        ({"command": sys.executable, "args": ["-c", "raise SystemExit('no ' + 'luck')"]}, "no luck"),
        ({"command": sys.executable, "args": ["-c", f"raise SystemExit('{SECRET}')"]}, ""),
        ({"command": 5}, "string"),
        ({"command": sys.executable, "cwd": "/absent"}, "/absent"),
    ],
)
async def test_a_trial_that_fails_says_why(eve: Program, entry: dict[str, Any], said: str) -> None:
    text = json.dumps({"mcpServers": {"x": {**entry, "env": {"TOKEN": SECRET}}}})
    draft = await eve.ask("POST", "/api/server-drafts", json={"text": text})
    trial = await eve.ask("POST", f"/api/server-drafts/{draft['id']}/test", json={"server": "x"})
    assert not trial["ok"]
    assert said in trial["message"]
    assert SECRET not in json.dumps(trial)


async def test_what_a_trial_reads_by_reference_is_masked_in_what_the_server_says(eve: Program, config: Path) -> None:
    """X5, G13: as it is where the server runs for good."""
    config.with_name("key").write_text(SECRET)
    program = "import os; raise SystemExit('it is ' + os.environ['KEPT'])"
    entry = {"command": sys.executable, "args": ["-c", program], "env": {"KEPT": "${file:key}"}}
    draft = await eve.ask("POST", "/api/server-drafts", json={"text": json.dumps({"mcpServers": {"x": entry}})})
    trial = await eve.ask("POST", f"/api/server-drafts/{draft['id']}/test", json={"server": "x"})
    assert "it is " in trial["message"]
    assert SECRET not in json.dumps(trial)


async def test_a_trial_that_hangs_ends_with_a_message(config: Path) -> None:
    async with Pegboard.open(config) as board:
        finder = replace(board.servers_to_add, start=0.5)
        trial = await finder.try_server(
            "x", {"command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]}, {}
        )
    assert not trial.ok
    assert re.search(r"0\.5 s", trial.message), trial.message


async def test_servers_of_this_machine_s_clients_are_imported(eve: Program, config: Path) -> None:
    """As `init --from` reads them."""
    make(config.parent / "home" / ".cursor" / "mcp.json", PASTED)
    (client,) = await eve.ask("GET", "/api/clients")
    assert (client["title"], client["servers"]) == ("Cursor", ["plain"])
    response = await eve.client.post("/console/servers/add/import", data={"file": client["file"]})
    assert response.status_code == 303
    assert "plain" in (await eve.client.get(response.headers["location"])).text
    assert (await eve.refused("POST", "/api/server-drafts/import", 404, json={"file": "/etc/passwd"}))[
        0
    ] == "unknown_name"


def files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def make(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def test_a_server_is_written_by_hand(eve: Program) -> None:
    form = {"name": "byhand", "url": "https://x.example/mcp", "headers": f"Authorization: Bearer {SECRET}"}
    response = await eve.client.post("/console/servers/add/form", data=form)
    found = (await eve.client.get(response.headers["location"])).text
    assert SECRET not in found
    assert "BYHAND_<wbr>TOKEN" in found or "BYHAND_TOKEN" in found
    for wrong in ({"name": ""}, {"url": ""}, {"headers": "none"}):
        response = await eve.client.post("/console/servers/add/form", data={**form, **wrong})
        assert response.status_code == 422


async def test_hostile_servers_are_texts(eve: Program) -> None:
    name = "<img src=x onerror=alert(1)>\u202e"
    text = json.dumps({"mcpServers": {name: {"command": "<b>", "args": ["</code><script>"], "env": {name: "x"}}}})
    response = await eve.client.post("/console/servers/add/read", data={"text": text})
    found = (await eve.client.get(response.headers["location"])).text
    for hostile in ("<img", "<b>", "</code><script>", "\u202e"):
        assert hostile not in found.partition("<main")[2]


async def test_servers_are_added_by_operators_of_every_agent_alone(app: ConsoleApp, eve: Program) -> None:
    """A5: a server starts programs, whoever may use it."""
    draft = (await eve.ask("POST", "/api/server-drafts", json={"text": PASTED}))["id"]
    async with program(app, ADA) as ada:
        for address in ("/console/servers/add", f"/console/servers/add/draft?id={draft}", "/api/clients"):
            assert (await ada.client.get(address)).status_code == 403
        for part in ("read", "import", "form", "test", "propose"):
            assert (await ada.client.post(f"/console/servers/add/{part}", data={"id": draft})).status_code == 403
        for address, body in (
            ("", {"text": PASTED}),
            ("/import", {"file": "x"}),
            (f"/{draft}/test", {"server": "plain"}),
        ):
            assert (await ada.client.post(f"/api/server-drafts{address}", json=body)).status_code == 403
