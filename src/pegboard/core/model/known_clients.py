"""What the MCP clients that are known send to their models of the tools of servers: the one place that says it (F4).

Clients change by the month: each entry says when it was read, and where. What a client sends counts as of the start of
a conversation: a definition that a model has read since, because it searched for it, counts on no side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.core.model.tools import Tool

Sends = Literal["definitions", "names", "servers"]
"""What goes into each request: the definitions of all tools; their names, and a definition once the model has searched
for it; or a line on each server, and names and definitions once the model has searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedServer:
    """A server as a client knows it: its tools, what it says of their use, and whether its entry keeps them in view."""

    name: str
    tools: Sequence[Tool]
    instructions: str = ""
    in_view: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClient:
    """A client, and what it sends.

    Attributes:
        name: its name in commands, as in the list of clients whose files are known.
        declared: the names that it gives itself when it connects (as npm's mcp-client-capabilities 0.0.14 has them).
        sends: what of the tools goes into each request.
        from_tools: with fewer tools of all servers than that it sends their definitions.
        keeps: whether an entry of a server, or a mark of a tool, keeps definitions in view.
        most_tools: how many tools it takes at most, where that is known.
        instructions: how many characters of a server's instructions it reads at most, where that is known.
        condition: when that is so, as the end of a sentence; nothing where it always is.
        read_on: the day on which that was read.
        read_at: where it was read.
    """

    name: str
    declared: tuple[str, ...] = ()
    sends: Sends = "definitions"
    from_tools: int = 0
    keeps: bool = False
    most_tools: int | None = None
    instructions: int | None = None
    condition: str = ""
    read_on: str = ""
    read_at: tuple[str, ...] = ()

    def request(self, servers: Iterable[ListedServer]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
        """Return what a request of this client has of servers: the tools whose definitions it sends, and the texts."""
        listed = tuple(servers)
        number = sum(len(server.tools) for server in listed)
        sends = "definitions" if number < self.from_tools else self.sends
        tools: list[Tool] = []
        texts: list[str] = []
        for server in listed:
            instructions = server.instructions[: self.instructions]
            if sends == "definitions" or (self.keeps and server.in_view):
                tools += server.tools
            elif sends == "names":
                texts += ("\n".join(f"{server.name}__{tool.name}" for tool in server.tools),)
            else:
                instructions = f"- {server.name}: {instructions}" if instructions else f"- {server.name}"
            texts += (instructions,)
        return tuple(tools), tuple(filter(None, texts))

    def defers(self, number: int) -> bool:
        """Return whether it sends no definition of so many tools before its model has searched for one."""
        return self.sends != "definitions" and number >= self.from_tools


ANY_CLIENT: Final = KnownClient(name="mcp")
"""What is not known sends everything."""
KNOWN_CLIENTS: Final = (
    KnownClient(
        name="claude-code",
        declared=("claude-code",),
        sends="names",
        keeps=True,
        instructions=2048,
        condition="unless ENABLE_TOOL_SEARCH is off or ANTHROPIC_BASE_URL is another address: then it sends everything",
        read_on="2026-11-28",
        read_at=("code.claude.com/docs/en/mcp", "github.com/anthropics/claude-code/issues/38930"),
    ),
    KnownClient(
        name="claude-desktop",
        declared=("claude-ai",),
        condition="also where it is set to load tools when needed, as its users report",
        read_on="2026-11-28",
        read_at=("github.com/anthropics/claude-code/issues/49073",),
    ),
    KnownClient(
        name="cursor",
        declared=("cursor-vscode", "cursor"),
        sends="names",
        read_on="2026-11-28",
        read_at=("cursor.com/blog/dynamic-context-discovery",),
    ),
    KnownClient(
        name="vscode",
        declared=("Visual Studio Code", "Visual-Studio-Code", "Visual Studio Code - Insiders"),
        sends="names",
        condition="with models that can search for tools (Claude Sonnet and Opus from 4.5, GPT from 5.4): with others "
        "it sends every definition of up to 64 tools, and groups more",
        read_on="2026-11-28",
        read_at=("github.com/microsoft/vscode-docs/pull/9695", "github.com/microsoft/vscode/issues/299749"),
    ),
    KnownClient(
        name="copilot-cli",
        declared=("github-copilot-developer",),
        sends="names",
        from_tools=30,
        keeps=True,
        condition="with models of Anthropic: with others it sends everything",
        read_on="2026-11-28",
        read_at=(
            "docs.github.com/en/copilot/concepts/agents/copilot-cli/tool-search",
            "github.com/github/copilot-cli/issues/4588",
        ),
    ),
    KnownClient(
        name="codex",
        declared=("codex-mcp-client", "Codex"),
        sends="servers",
        condition="with models that can search for tools: with others it sends everything",
        read_on="2026-11-28",
        read_at=("github.com/openai/codex/pull/29486",),
    ),
    KnownClient(
        name="gemini",
        declared=("gemini-cli-mcp-client",),
        read_on="2026-11-28",
        read_at=("github.com/google-gemini/gemini-cli/issues/17322",),
    ),
    KnownClient(
        name="zed", declared=("Zed",), read_on="2026-11-28", read_at=("github.com/zed-industries/zed/pull/29414",)
    ),
    KnownClient(
        name="windsurf",
        declared=("windsurf-client", "Windsurf"),
        most_tools=100,
        read_on="2026-11-28",
        read_at=("docs.windsurf.com/windsurf/cascade/mcp",),
    ),
    KnownClient(name="junie", condition="because nothing else was found", read_on="2026-11-28"),
    KnownClient(
        name="opencode",
        declared=("opencode",),
        read_on="2026-11-28",
        read_at=("github.com/anomalyco/opencode/pull/34368",),
    ),
    KnownClient(
        name="goose",
        declared=("goose",),
        condition="unless its extension Code Mode is on",
        read_on="2026-11-28",
        read_at=("github.com/aaif-goose/goose/issues/6581",),
    ),
)


def known_client(name: str) -> KnownClient:
    """Return what is known of the client of this name in commands; one that is not known sends everything."""
    return next((client for client in KNOWN_CLIENTS if client.name == name), ANY_CLIENT)


def declared_client(declared: str) -> KnownClient:
    """Return what is known of the client that gives itself this name; one that is not known sends everything.

    >>> declared_client("cursor-vscode").name, declared_client("my own").name
    ('cursor', 'mcp')
    """
    return next((client for client in KNOWN_CLIENTS if declared in client.declared), ANY_CLIENT)
