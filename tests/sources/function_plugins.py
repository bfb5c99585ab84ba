"""Functions of a test as a plugin of a board."""

from __future__ import annotations

import sys
import types
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from pegboard import Pegboard, Session

MODULE = "shapes_under_test"


@asynccontextmanager
async def session_with(plugin: object) -> AsyncIterator[Session]:
    """Open a session of an agent that has one plugin, as a module or as what a module has."""
    module, place = types.ModuleType(MODULE), f"{MODULE}:plugin"
    if isinstance(plugin, types.ModuleType):
        module, place = plugin, plugin.__name__
    else:
        vars(module)["plugin"] = plugin
    config = {"store": "memory:", "plugins": {"p": {"python": place}}, "agents": {"a": {"tools": ["p"]}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        async with Pegboard.open(config) as board:
            await board.ready()
            yield await board.session(agent="a", session_id="s")


@dataclass(frozen=True)
class Answered:
    status: str
    text: str
    is_error: bool


async def called(plugin: object, tool: str, arguments: dict[str, Any]) -> Answered:
    async with session_with(plugin) as session:
        answer = await session.call(tool, arguments)
        text = answer.result.content[0]["text"] if answer.result is not None else answer.message
        return Answered(answer.status, text, answer.is_error)
