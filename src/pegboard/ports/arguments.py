"""The arguments of a call against the schema of its tool (X2)."""

from __future__ import annotations

from typing import Protocol

from pegboard.core.model.tools import JsonObject, Tool


class ArgumentValidator(Protocol):
    """Check the arguments of a call against the tool's schema (X2)."""

    def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:
        """Return one sentence per problem, naming the argument and what was expected."""
        ...
