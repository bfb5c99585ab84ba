"""A tool of a session as LangChain runs one, so that every middleware around calls of tools sees it."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool
from pydantic import Field


def _any_object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


class SessionTool(BaseTool):
    """A tool for one call, which the session answers; it takes the call as the model made it."""

    description: str = ""
    args_schema: Any = Field(default_factory=_any_object)
    answered: Any = Field(exclude=True, repr=False)

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002, ARG002
        """Return the message that answers a call."""
        return self.answered(input)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002, ARG002
        """Return the message that answers a call."""
        return await self.answered(input)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("A call of it goes through invoke.")
