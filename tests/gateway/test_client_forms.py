"""What clients that defer tools show their models, each installed by `init` and in a whole conversation."""

import asyncio
import json
import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pegboard.cli import main

from .client_forms import FORMS, LONGEST, Conversation, Form, conversation, text_of
from .clients import HERE, MODERN, connected, edit, gateway, until

SERVER = str(HERE.parent / "servers" / "listed_server.py")
META = ["search_tools", "load_tools", "unload_tools", "call_tool", "call_read_only_tool"]
PAGE = "ui://charts/line.html"
TOOLS: dict[str, Any] = {"chart": {"_meta": {"ui": {"resourceUri": PAGE}}}, "count": {"description": "Count the rows."}}
OPENING = ["initialize", "notifications/initialized", "tools/list"]
MANY = 200


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which is the home folder too, with the list of a server in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return tmp_path


async def installed(home: Path, form: Form) -> dict[str, Any]:
    """Put one server into a client, then Pegboard in its place; return the entry that the client starts."""
    command, *args = [sys.executable, SERVER, str(home / "tools.json"), "--pages"]
    path = home / form.file
    path.parent.mkdir(exist_ok=True)
    root = "servers" if form.name == "vscode" else "mcpServers"
    text = json.dumps({root: {"charts": {"command": command, "args": args}}})
    if path.suffix == ".toml":
        text = f"[mcp_servers.charts]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}\n"
    path.write_text(text)
    assert await asyncio.to_thread(main, ["init", "--install", form.name, "--from", str(path)]) == 0
    written = path.read_text()
    servers = tomllib.loads(written)["mcp_servers"] if path.suffix == ".toml" else json.loads(written)[root]
    entry = json.loads(json.dumps(servers["pegboard"]).replace("${workspaceFolder}", str(home)))
    installed = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**entry, "command": shutil.which(entry["command"], path=installed)}


async def found(client: Conversation) -> None:
    """Let the model search until the server behind Pegboard has listed its tools."""

    async def known() -> bool:
        return "charts__count" in text_of(await client.model_calls("search_tools", queries=["count rows"]))

    await until(known)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_a_model_reaches_a_tool_behind_pegboard_in_every_client(home: Path, form: Form) -> None:
    """G1, G5: everything that the model needs for it is in view from the start, and nothing is cut.

    Where Pegboard is started as a user starts it, by the first client here, it is in view as soon.
    """
    async with conversation(form, await installed(home, form), cold=form is next(iter(FORMS.values()))) as client:
        assert [name for name in client.known if name in META] == META
        assert client.deferred == []
        assert "search_tools" in client.instructions
        texts = [client.instructions, *(tool["description"] for tool in client.known.values() if tool["name"] in META)]
        assert max(map(len, texts)) <= LONGEST
        await found(client)
        client.steps, client.sent = 0, []
        await client.model_calls("search_tools", queries=["count rows"])
        await client.model_calls("load_tools", names=["charts__count"])
        result = await client.model_calls("call_tool", name="charts__count", arguments={})
        assert text_of(result) == "ran count"
        assert client.sent == ["tools/call search_tools", "tools/call load_tools", "tools/call call_tool"]
        assert client.steps == 3


@pytest.mark.parametrize(
    ("name", "in_view"),
    [("claude-code", True), ("copilot-cli", True), ("cursor", True), ("vscode", False), ("codex", False)],
)
async def test_beside_many_other_tools_they_stay_in_view_where_the_client_has_a_mark_for_it(
    home: Path, name: str, in_view: bool
) -> None:
    """G1: VS Code and Codex have none; there it counts that Pegboard is the only server."""
    form = FORMS[name]
    async with conversation(form, await installed(home, form), others=MANY) as client:
        assert client.sent == OPENING
        meta = [tool for tool in client.view if tool in META]
        assert meta == (META if in_view else [])


@pytest.mark.parametrize("dialect", ["pegboard", "toolkits", "invokeother", "discovery"])
async def test_every_meta_tool_carries_the_mark_and_no_other_tool(config: Path, dialect: str) -> None:
    """G4, G5: in both eras, the person who answers, for a client that says nothing of itself."""
    edit(config, "agents:", "toolkits: {all: {tools: [up]}}\nagents:")
    edit(config, "default: {", f"default: {{dialect: {dialect}, allowed_toolkits: [all], ")
    async with gateway(config) as running, connected(running.url, MODERN) as client:
        listed = (await client.client.list_tools(cache_mode="refresh")).tools
        marked = [tool.name for tool in listed if tool.meta == {"anthropic/alwaysLoad": True}]
        assert [tool.name for tool in listed if tool.meta is None] == ["echo"]
        assert marked == [tool.name for tool in listed if tool.name != "echo"]
        assert {"call_tool", "call_read_only_tool"} < set(marked)


@pytest.mark.parametrize("marked", [True, False])
async def test_in_claude_code_the_mark_of_a_tool_is_enough_where_the_entry_has_none(home: Path, marked: bool) -> None:
    """G1: an entry that was written by hand, or comes with a plugin; a tool of a server keeps its own mark."""
    (home / "tools.json").write_text(json.dumps({**TOOLS, "count": {"_meta": {"anthropic/alwaysLoad": marked}}}))
    form = FORMS["claude-code"]
    entry = await installed(home, form)
    config = home / "pegboard.yaml"
    config.write_text(config.read_text().replace('discoverable: ["*"]', "tools: [charts]\n    discoverable: [text]"))
    config.write_text(config.read_text() + "plugins: {text: {python: pegboard.quickstart.text}}\n")
    del entry["alwaysLoad"]
    async with conversation(form, entry) as client:

        async def listed() -> bool:
            await client.list()
            return "charts__count" in client.known

        await until(listed)
        assert [name for name in client.view if name in META] == META
        assert ("charts__count" in client.view, "charts__chart" in client.view) == (marked, False)
        client.steps = 0
        await client.model_calls("charts__chart")
        assert client.steps == 2  # the client's search, and the call


async def test_a_client_that_draws_interfaces_draws_that_of_a_tool_behind_pegboard(home: Path) -> None:
    """G4, G5, G7: its model has the tool from the start, and the page comes from the server."""
    form = FORMS["vscode"]
    async with conversation(form, await installed(home, form)) as client:
        await found(client)
        await client.list()
        assert "charts__chart" in client.view
        assert "charts__count" not in client.known
        assert client.known["charts__chart"]["_meta"] == {"ui": {"resourceUri": PAGE}}
        client.sent = []
        assert text_of(await client.model_calls("charts__chart")) == "ran chart"
        (page,) = (await client.ask("resources/read", uri=PAGE))["result"]["contents"]
        assert (page["mimeType"], page["text"]) == ("text/html;profile=mcp-app", "<canvas></canvas>")
        assert client.sent == ["tools/call charts__chart", f"resources/read {PAGE}"]


@pytest.mark.parametrize("name", ["claude-code", "copilot-cli", "codex", "cursor"])
async def test_other_clients_have_no_tool_more_for_it(home: Path, name: str) -> None:
    """G4: what they are listed is what they were listed before."""
    form = FORMS[name]
    async with conversation(form, await installed(home, form)) as client:
        await found(client)
        await client.list()
        assert list(client.known) == META
