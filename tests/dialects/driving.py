"""Play a dialect against the pure transitions, as a board does without its store."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pegboard.core.access.permissions import CompiledPermissions, SessionConstraints
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.selectors import Member, member
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import Manifest, Plugin, Tool
from pegboard.core.state.commands import CommandContext
from pegboard.core.state.sessions import DEFAULT, State
from pegboard.core.surface.policy import apply_with_policy
from pegboard.dialects.names import Dialect, Found, FoundTool, MetaToolAnswer, Search, StepAnswer, View

Written = str | tuple[str, dict[str, Any]]


def plugin(name: str, *tools: str, requires: str = "", **changes: Any) -> Plugin:
    """Return a plugin whose tools are known; each of them requires the tool of that id."""
    held = (
        Tool(plugin=name, name=own, description=f"Does {own}. At once.", requires=(requires,) if requires else ())
        for own in tools
    )
    return Plugin(name=name, **changes).with_manifest("", Manifest(tools=tuple(held)))


def tool_named(name: str, **changes: Any) -> Tool:
    given: dict[str, Any] = {"description": f"Does {name}. At once.", **changes}
    return Tool(plugin="p", name=name, wire=name, **given)


def members(written: Iterable[Written]) -> tuple[Member, ...]:
    return tuple(member(item) if isinstance(item, str) else member(*item) for item in written)


def toolkit(name: str, *written: Written, description: str = "") -> Toolkit:
    return Toolkit(name=name, description=description, members=members(written))


def access_of(
    *plugins: Plugin,
    toolkits: Iterable[Toolkit] = (),
    static: Iterable[Written] = (),
    circumstances: SessionConstraints | None = None,
    **profile: Any,
) -> CompiledPermissions:
    agent = Agent(name="assistant", static=members(static), **profile)
    world = World(catalog=Catalog(plugins), toolkits={kit.name: kit for kit in toolkits})
    return CompiledPermissions(world, agent, circumstances)


@dataclass
class Conversation:
    """Carry calls of meta-tools through, one after the other; a search finds everything permitted."""

    dialect: Dialect
    permissions: CompiledPermissions
    terms: CommandContext
    state: State = DEFAULT

    def view(self) -> View:
        return View(permissions=self.permissions, state=self.state, stable=self.terms.stable)

    def call(self, name: str, **arguments: Any) -> MetaToolAnswer:
        talk = self.dialect.run(self.view(), name, arguments)
        try:
            step = next(talk)
            while True:
                if isinstance(step, Search):
                    step = talk.send(StepAnswer(view=self.view(), found=self._found(step)))
                else:
                    self.state, outcome = apply_with_policy(self.permissions, self.state, step, self.terms)
                    step = talk.send(StepAnswer(view=self.view(), outcome=outcome))
        except StopIteration as stop:
            return stop.value

    def _found(self, search: Search) -> Found:
        results = tuple(
            FoundTool(name=tool.wire, plugin=tool.plugin, description=tool.description, score=1.0, loaded=False)
            for tool in self.permissions.permitted[: search.limit]
        )
        return Found(query=search.queries, results=results, hint="" if results else "Nothing fits.")
