"""Clients that decide for themselves which tools their model sees, each as a small model of what is known of it.

None of them was run here. Each form says where its behaviour is known from, as of November 2026; it speaks to the real
gateway, started as the entry in its file says.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sdk_servers import pegboard_command

from .resource_helpers import Message, Wire
from .test_differential import ready

DRAWS_UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
LONGEST = 2048
"""After so many characters Claude Code cuts descriptions and instructions (``MAX_MCP_DESCRIPTION_LENGTH``)."""


@dataclass(frozen=True, kw_only=True)
class Form:
    """A client: how it introduces itself, and which definitions its model gets unasked.

    ``shows`` gets a tool as it was listed, the entry of its server, and how many tools all servers list.
    """

    name: str
    shows: Callable[[Message, Mapping[str, Any], int], bool]
    file: str = ".mcp.json"
    version: str = "2025-11-25"
    capabilities: Message = field(default_factory=dict)

    def hello(self) -> Message:
        params = {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": self.name, "version": "1"},
        }
        return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def _claude_code(tool: Message, entry: Mapping[str, Any], _: int) -> bool:
    marked = tool.get("_meta", {}).get("anthropic/alwaysLoad") is True
    return marked or entry.get("alwaysLoad") is True


def _copilot_cli(_tool: Message, entry: Mapping[str, Any], total: int) -> bool:
    return total < 30 or entry.get("deferTools") == "never"


FORMS = {
    form.name: form
    for form in (
        # It defers every MCP tool but those that are marked, by the entry of their server or by themselves
        # (claude-code#54158, #56551, codegraph#1696 and #1697; its own documentation names both marks).
        Form(name="claude-code", shows=_claude_code, capabilities={"roots": {}}),
        # From some 30 tools on it defers those of MCP servers, but for `deferTools: never` (the page "Tool search" of
        # its documentation, release 1.0.63, copilot-cli#3787).
        Form(name="copilot-cli", shows=_copilot_cli, file=".github/mcp.json"),
        # It folds tools into groups from 64 on, and knows no mark against it (vscode#294055); one that declares that
        # it draws interfaces (1.109 drew them and did not declare it, vscode#291432).
        Form(
            name="vscode",
            shows=lambda _tool, _entry, total: total <= 64,
            file=".vscode/mcp.json",
            capabilities={"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}, **DRAWS_UI},
        ),
        # It defers MCP tools where there are a hundred (`DIRECT_MCP_TOOL_EXPOSURE_THRESHOLD`, codex#18097), knows no
        # mark against it, and never lists again (codex#10105).
        Form(
            name="codex",
            shows=lambda _tool, _entry, total: total < 100,
            file=".codex/config.toml",
            version="2025-06-18",
            capabilities={"elicitation": {}},
        ),
        # It shows all that it is listed.
        Form(name="cursor", shows=lambda _tool, _entry, _total: True, file=".cursor/mcp.json"),
    )
}


class Conversation(Wire):
    """The conversation of one client with its server, and what its model has of it.

    ``sent`` is what the client sent, in order. A model calls what it has the definition of; for another tool its client
    searches first, which is a step of its own.
    """

    def __init__(self, process: asyncio.subprocess.Process, form: Form, entry: Mapping[str, Any], others: int) -> None:
        super().__init__(process, form.version)
        self.sent: list[str] = []
        self.steps = 0
        self.instructions = ""
        self.known: dict[str, Message] = {}
        self.view: list[str] = []
        self.deferred: list[str] = []
        self._form = form
        self._mark = entry
        self._others = others

    def send(self, message: Message) -> None:
        params = message.get("params", {})
        what = params.get("name") or params.get("uri")
        self.sent.append(" ".join(part for part in (message["method"], what) if isinstance(part, str)))
        super().send(message)

    async def open(self) -> None:
        answered = self._waiting[0] = asyncio.get_running_loop().create_future()
        self.send(self._form.hello())
        self.instructions = (await asyncio.wait_for(answered, 30))["result"].get("instructions", "")
        self.send(ready())
        await self.list()

    async def list(self) -> None:
        """List the tools, and decide what the model sees."""
        tools = (await self.ask("tools/list"))["result"]["tools"]
        total = len(tools) + self._others
        self.known = {tool["name"]: tool for tool in tools}
        self.view = [tool["name"] for tool in tools if self._form.shows(tool, self._mark, total)]
        self.deferred = [name for name in self.known if name not in self.view]

    async def model_calls(self, name: str, /, **arguments: Any) -> Message:
        """Let the model call a tool; returns the result."""
        if name in self.deferred:
            self.steps += 1
            self.deferred.remove(name)
            self.view.append(name)
        assert name in self.view, f"the model has never seen {name}"
        self.steps += 1
        return (await self.ask("tools/call", name=name, arguments=arguments))["result"]


@asynccontextmanager
async def conversation(
    form: Form, entry: Mapping[str, Any], *, others: int = 0, cold: bool = False
) -> AsyncIterator[Conversation]:
    """Start what a client's entry says, and begin to speak; ``others`` tools are of other servers.

    ``cold`` starts it as the client does; else it is forked off what has imported the command.
    """
    pipe = asyncio.subprocess.PIPE
    command = [entry["command"], *entry["args"]]
    if not cold:
        command = pegboard_command(*entry["args"][entry["args"].index("serve") :])
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, limit=2**24)
    speaker = Conversation(process, form, entry, others)
    try:
        await speaker.open()
        yield speaker
    finally:
        await speaker.close()


def text_of(result: Message) -> str:
    """Return the first text of a result."""
    return result["content"][0]["text"]
