"""What a session gives to a step of a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ToolAvailabilityDeltaPart,
    UserPromptPart,
)
from pydantic_ai.settings import ModelSettings, ToolOrOutput
from pydantic_ai.tools import ToolDefinition

from pegboard.board.session import Session
from pegboard.core.model.delivery import Host
from pegboard.core.model.leases import LEASED
from pegboard.core.model.tools import JsonObject, Tool
from pegboard.core.surface.definitions import all_defined_in, definitions_ahead, is_definition_of, not_defined
from pegboard.core.surface.surfaces import Surface
from pegboard.frameworks.pydantic_ai.messages import (
    AnyContext,
    ahead_before,
    arguments_in,
    texts_with_definitions,
)
from pegboard.frameworks.runs import (
    fit_list,
    load_chosen,
    loaded_outside_list,
    rejected_of,
    tool_to_choose,
    why_misnamed_call,
)
from pegboard.wire.acceptable_schemas import SchemaProvider
from pegboard.wire.passed_on import tool_called


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInputs:
    """What is known of a step before the session is asked: at the first one of a run message, host and providers.

    ``others`` is how many tools the agent has beside those of the session.
    """

    message: str | None
    host: Host | None
    revealed: frozenset[str]
    defined: Mapping[str, JsonObject]
    providers: tuple[SchemaProvider, ...]
    others: int

    async def inputs_for_model(self, session: Session) -> tuple[Surface, Sequence[Tool], bool, Sequence[Tool]]:
        """Return what goes to the model at this step, the tools of its list, and whether the history reveals them.

        Last stands what is loaded beside a list that stays unchanged.
        """
        host = session.host if self.host is None else session.adopt_host(self.host)
        if self.providers:
            await fit_list(session, self.providers, self.others)
        surface = await session.surface(message=self.message)
        if host.cache is None and not host.reveals:
            beside = await loaded_outside_list(session) if host.list_is_fixed else ()
            return surface, _tools_for_provider(session, [entry.tool for entry in surface.tools]), False, beside
        tools = _tools_for_provider(session, await session.wire(revealed=self.revealed))
        if surface.focus is not None:
            await session.surface(message=self.message)  # a wire list takes the focus away
        if not host.reveals or not self.defined:
            return surface, tools, host.reveals, ()
        leased = {one.tool.wire for one in surface.tools if one.because[0] in LEASED} - self.revealed
        beside = [tool for tool in tools if tool.wire in leased and is_definition_of(self.defined.get(tool.wire), tool)]
        names = {tool.wire for tool in beside}
        return surface, [tool for tool in tools if tool.wire not in names], True, beside


def _tools_for_provider(session: Session, tools: Sequence[Tool]) -> Sequence[Tool]:
    """Return the tools without those that the provider of the model did not take."""
    rejected = rejected_of(session, tools)
    return [tool for tool in tools if tool.wire not in rejected] if rejected else tools


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAdditions:
    """What is loaded at a step, of which the history says what no list does.

    Attributes:
        surface: what the session gives to the step.
        listed: the tools of which the history may reveal some.
        beside: what is loaded and is in no list.
        reveals: whether the history is to reveal those of ``listed`` that are loaded: at the first step of a run, since
            the framework reveals what joins later.
    """

    surface: Surface
    listed: Collection[str]
    beside: Sequence[Tool]
    reveals: bool

    def parts(self, ctx: AnyContext, messages: Sequence[ModelMessage]) -> list[ModelRequestPart]:
        """Return what a request adds to its history: what is defined nowhere in it, as after it was shortened."""
        if self.listed:
            return self._parts_revealed(ctx) if self.reveals else []
        anticipated = self.surface.anticipated if self.surface.ahead else ()
        if not anticipated and not self.beside:
            return []
        known = all_defined_in((*ahead_before(messages), *texts_with_definitions(messages)))
        calls = [call for one in messages if isinstance(one, ModelResponse) for call in one.tool_calls]
        called = {tool_called(call.tool_name, arguments_in(call)) for call in calls}
        new = {one.wire: one for one in not_defined(anticipated, known)}
        new |= {one.wire: one for one in not_defined(self.beside, known, called)}
        ahead = definitions_ahead(new.values())
        return [UserPromptPart(ahead)] if ahead else []

    def _parts_revealed(self, ctx: AnyContext) -> list[ModelRequestPart]:
        leased = {entry.tool.id for entry in self.surface.tools if entry.because[0] in LEASED}
        joined = (one.tool for one in self.surface.tools if one.tool.id in leased or leased.intersection(one.needed_by))
        new = [tool.wire for tool in joined if tool.wire in self.listed and tool.wire not in ctx.discovered_tool_names]
        return [ToolAvailabilityDeltaPart(tools_added=new)] if new else []


def definition_of(tool: Tool, toolset: str | None) -> ToolDefinition:
    """Return a tool of a session as the framework defines it."""
    return ToolDefinition(
        name=tool.wire,
        description=tool.description,
        parameters_json_schema=dict(tool.input_schema),
        return_schema=dict(tool.output_schema) if tool.output_schema else None,
        metadata={"plugin": tool.plugin, "annotations": dict(tool.annotations), "meta": tool.extra.get("_meta")},
        toolset_id=toolset,
    )


def names_chosen(settings: ModelSettings | None) -> Sequence[str]:
    """Return the tools that a choice of tools names."""
    choice = (settings or {}).get("tool_choice")
    if isinstance(choice, ToolOrOutput):
        return choice.function_tools
    return choice if isinstance(choice, list) else ()


async def tools_to_choose(names: Sequence[str], session: Session) -> list[Tool]:
    """Return the tools of a session that a choice of tools names and that no list has, loaded now."""
    for name in names:
        await load_chosen(session, (), name)
    found = (tool_to_choose(session, (), name) for name in names)
    return [tool for tool in found if tool is not None]


async def definitions(names: AbstractSet[str], toolset: str | None, session: Session) -> list[ToolDefinition]:
    """Return the definitions of tools that no list shows; of one that the session does not know, its name."""
    known = ((name, session.known_tool(name)) for name in sorted(names))
    return [
        ToolDefinition(name=name, toolset_id=toolset)
        if tool is None
        else replace(definition_of(tool, toolset), name=name)
        for name, tool in known
    ]


async def why_misnamed(name: str, arguments: dict[str, Any], session: Session) -> str:
    """Return why a call is not run that names its tool in another form, or nothing."""
    return why_misnamed_call(name, arguments, session)
