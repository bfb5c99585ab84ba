"""What to paste into a client so that it finds the gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from pegboard.core.model.naming import some_of
from pegboard.core.model.specs import any_reaches
from pegboard.support.installed import lasting_command
from pegboard.support.user_token import UserToken

if TYPE_CHECKING:
    from pegboard.gateway.protocol.board_port import BoardPort


def announce(
    board: BoardPort, url: str, *, agent: str | None = None, session: str | None = None, sub_app: str | None = None
) -> str:
    """Return the text that says where the gateway is and what a client needs of it; no secret is in it."""
    parts = [f"Pegboard serves MCP at {url}"]
    default = agent or board.world.default_agent()
    others = [name for name in board.world.agents if name != default]
    if others:
        parts.append("Agents: " + some_of([_address(url, name) for name in others]))
    remote: dict[str, Any] = {
        "type": "http",
        "url": url if default else f"{url}/{quote(next(iter(others), ''), safe='')}",
    }
    own = UserToken(urlsplit(url).port or 80)
    reached = any_reaches((spec.confine for spec in board.configuration.specs.values()), own.port)
    demanded = not board.configuration.tokens and own.needs_token(by_itself=reached)
    if board.configuration.tokens or demanded:
        remote["headers"] = {"Authorization": "Bearer <token>"}
    if demanded:
        why = "something confined of this user has network, and does not use the gateway itself"
        parts.append(f"Clients over HTTP need the token in {own.file}: {why}")
    parts += [
        "Configure a client with:",
        _paste(remote),
        "A client that starts its servers itself:",
        _paste(spawned(board, agent=agent, session=session, sub_app=sub_app)),
    ]
    return board.services.masker.text("\n".join(parts))


def spawned(
    board: BoardPort, *, agent: str | None = None, session: str | None = None, sub_app: str | None = None
) -> dict[str, Any]:
    """Return the entry of a client's configuration that starts the gateway over stdio in this folder, from any other.

    Without ``agent`` it names the first of several where none of them is the default.
    """
    command, *more = lasting_command() or ["pegboard"]
    args = [*more, "serve", "--stdio"]
    if not board.quickstart:
        args += ["--config", str(board.configuration.path.absolute())]
    agent = agent or (None if board.world.default_agent() else next(iter(board.world.agents), None))
    for option, value in (("--agent", agent), ("--session", session), ("--sub-app", sub_app)):
        if value is not None:
            args += [option, value]
    return {"command": command, "args": args, "cwd": str(Path.cwd())}


def _address(url: str, agent: str) -> str:
    return f"{url}/{quote(agent, safe='')}"


def _paste(entry: dict[str, Any]) -> str:
    return json.dumps({"mcpServers": {"pegboard": entry}}, indent=2, ensure_ascii=False)
