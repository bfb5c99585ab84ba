"""The tools of an agent with those of a session behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import (
    InstructionPart,
)
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from pegboard.frameworks.pydantic_ai.messages import (
    AnyContext,
)
from pegboard.frameworks.pydantic_ai.toolset import SessionToolset, SessionToolsetTool


@dataclass
class _ToolsetWithSession(WrapperToolset[Any]):
    """The tools of an agent with those of a session behind them; neither is copied."""

    session: SessionToolset

    @property
    def id(self) -> str | None:
        """Return the name of the capability, under which its instructions stand."""
        return self.session.id

    async def get_tools(self, ctx: AnyContext) -> dict[str, ToolsetTool[Any]]:
        own = await self.wrapped.get_tools(ctx)
        taken = own.keys() | self.session.outputs
        self.session.others = len(taken)
        ours = await self.session.get_tools(ctx)
        return {**own, **{name: tool for name, tool in ours.items() if name not in taken}}

    async def get_instructions(self, ctx: AnyContext) -> list[str | InstructionPart]:
        own: Any = await super().get_instructions(ctx)
        return [*(own or ()), *await self.session.get_instructions(ctx)]

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: AnyContext, tool: ToolsetTool[Any]) -> Any:
        ours = isinstance(tool, SessionToolsetTool) and tool.session is self.session
        called = self.session if ours else self.wrapped
        return await called.call_tool(name, tool_args, ctx, tool)

    def apply(self, visitor: Callable[[AbstractToolset[Any]], None]) -> None:
        super().apply(visitor)
        self.session.apply(visitor)


def with_session_behind(toolset: AbstractToolset[Any], session: SessionToolset) -> AbstractToolset[Any]:
    """Return what an agent's tools are wrapped in, around them and those of a session."""
    if isinstance(toolset, WrapperToolset):
        return replace(toolset, wrapped=with_session_behind(toolset.wrapped, session))
    return _ToolsetWithSession(toolset, session)
