"""Which predicates decide whether the tools of an agent can run now, and what their answers mean (T12, P6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pegboard.core.access.permissions import CompiledPermissions, once_per_permissions
from pegboard.core.model.tools import EMPTY, JsonObject

_RAISED: Final = "Its condition raised "
OF_RUN: Final = "run "
"""What the name of a predicate begins with whose answer counts for one moment of a framework's run alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A predicate of a plugin as it is in ``Tool.when``; ``variant`` is the key of the overrides."""

    plugin: str
    name: str
    variant: str = ""
    overrides: JsonObject = field(default=EMPTY, compare=False)

    @property
    def of_run(self) -> bool:
        """Return whether its answer counts for one moment of a framework's run alone."""
        return self.name.startswith(OF_RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionAsker:
    """On whose behalf a predicate is asked; ``moment`` is that of a framework's run for a predicate of one."""

    principal: str
    agent: str
    sub_app: str | None = None
    moment: object = None


@once_per_permissions
def conditions(permissions: CompiledPermissions) -> tuple[tuple[str, Condition], ...]:
    """Return the predicates of the permitted tools, each with the tool's id; nothing where no tool has one."""
    found: list[tuple[str, Condition]] = []
    for plugin in permissions.world.catalog.plugins.values():
        if not any(tool.when for tool in plugin.tools):
            continue
        for tool in permissions.plugin_permissions.tools_of(plugin):
            entry = permissions.entries.of_tool(tool)
            for name in tool.when:
                one = Condition(plugin=plugin.name, name=name, variant=entry.key, overrides=entry.overrides)
                found.append((tool.id, one))
    return tuple(found)


def fault_of_error(error: BaseException) -> str:
    """Return why a tool cannot run now whose predicate raised this, or could not be imported.

    >>> fault_of_error(ModuleNotFoundError("No module named 'rules'"))
    "Its condition raised ModuleNotFoundError: No module named 'rules'"
    """
    return f"{_RAISED}{type(error).__name__}: {error}"


def is_error(fault: str) -> bool:
    """Return whether a fault is that of a predicate which raised, or could not be imported.

    >>> is_error(fault_of_error(ValueError("x"))), is_error("No seat is free.")
    (True, False)
    """
    return fault.startswith(_RAISED)


def fault_of(answer: object) -> str:
    """Return why a tool cannot run now after its predicate answered this, or nothing.

    >>> fault_of(True), fault_of("No seat is free.")
    ('', 'No seat is free.')
    >>> fault_of(1)
    'Its condition answered with int, neither a boolean nor a reason.'
    """
    if answer is True:
        return ""
    if answer is False or answer == "":
        return "Its condition is not met now."
    if isinstance(answer, str):
        return answer
    return f"Its condition answered with {type(answer).__name__}, neither a boolean nor a reason."
