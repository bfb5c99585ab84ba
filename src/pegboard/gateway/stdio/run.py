"""Serve the gateway to the client that started this process (G1).

Standard output carries the protocol and nothing else: whatever else is written there goes to
standard error. A client which neither writes nor reads cannot keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path

from pegboard.board.session_info import open_sub_app
from pegboard.core.model.naming import label_problem
from pegboard.errors import UsageError, agent_required
from pegboard.gateway.clients.only_client import asking_sources
from pegboard.gateway.process.setup import quiet, stop_on_signals
from pegboard.gateway.protocol.board_port import ONLY_CLIENT, BoardPort, Caller, chosen_agent
from pegboard.gateway.protocol.early_answers import EarlyAnswers
from pegboard.gateway.stdio.line_io import LineChannel


async def run_stdio(
    board: BoardPort,
    *,
    agent: str | None = None,
    session: str | None = None,
    sub_app: str | None = None,
    settled: Callable[[], None] | None = None,
) -> None:
    """Serve until standard input closes or SIGINT or SIGTERM comes; stops nothing it did not start.

    ``settled`` is called once all that calls need is imported.
    """
    folder = "" if session is not None else folder_digest(Path.cwd())
    caller = caller_of(board, ONLY_CLIENT, agent=agent, session=session, sub_app=sub_app, folder=folder)
    quiet(board.services.masker)
    with standard_descriptors() as (wire_in, wire_out), stop_on_signals() as stop:
        await serve_client(board, LineChannel(wire_in, wire_out), caller, stop, settled)


def caller_of(
    board: BoardPort, client: str, *, agent: str | None, session: str | None, sub_app: str | None, folder: str
) -> Caller:
    """Return who calls over stdio; raises ``UnknownAgentError`` and ``UsageError``."""
    name = chosen_agent(board, agent)
    if name is None:
        raise agent_required(board.world.agents)
    if session is not None and (problem := label_problem(session)):
        raise UsageError(f"--session {problem}")
    opened = open_sub_app(board.world, name, sub_app)
    return Caller(agent=name, session=session, sub_app=opened, client=client, folder=folder)


async def serve_client(
    board: BoardPort,
    channel: LineChannel,
    caller: Caller,
    stop: asyncio.Event,
    settled: Callable[[], None] | None = None,
) -> None:
    """Serve one client until its input closes or ``stop`` is set, and close the channel to it."""
    early = EarlyAnswers()
    if caller.client == ONLY_CLIENT:
        for source in asking_sources(board):
            source.expect_client()
    try:
        if await _sdk_needed(board, caller, channel, early, stop):
            from pegboard.gateway.stdio.dispatcher import serve

            if settled is not None:
                settled()
            await serve(board, channel, caller, early, stop)
    finally:
        await channel.close()


def folder_digest(folder: Path) -> str:
    """Return what tells a folder from others, in the name of a session."""
    return hashlib.sha256(os.path.realpath(folder).encode(errors="surrogatepass")).hexdigest()[:12]


async def _sdk_needed(
    board: BoardPort, caller: Caller, channel: LineChannel, early: EarlyAnswers, stop: asyncio.Event
) -> bool:
    """Answer what can be answered before the SDK is imported; return whether it is to be imported."""
    if not board.fast_path:
        return True
    from pegboard.gateway.fast.first_responses import FirstResponses, serve_until_sdk

    return await serve_until_sdk(channel.lines, FirstResponses(board, caller, early), channel.write, stop)


@contextlib.contextmanager
def standard_descriptors() -> Generator[tuple[int, int]]:
    """Take standard input and output for the protocol, and give them back at the end."""
    sys.stdout.flush()
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield wire_in, wire_out
    finally:
        sys.stdout.flush()
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)
