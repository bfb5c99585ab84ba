"""The arguments of a call against the schema of its tool (X2)."""

from __future__ import annotations

from typing import Protocol

from pegboard.core.model.tools import JsonObject, Tool


class ArgumentValidator(Protocol):
    """A check of a call's arguments against the tool's schema (X2)."""

    def problems(self, tool: Tool, arguments: JsonObject) -> list[str]:
        """Return what is wrong with the arguments.

        Args:
            tool: The tool, with its input schema.
            arguments: As the model gave them.

        Returns:
            One sentence per problem, naming the argument and what was expected; none where they are valid.
        """
        ...
