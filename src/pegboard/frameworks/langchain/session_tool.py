"""A tool of a session as LangChain runs one, so that every middleware around calls of tools sees it."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
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


class FailedCall:
    """How a call failed: raised for every middleware behind, and read by the model where none of them takes it."""

    def __init__(self) -> None:
        self._error: Exception | None = None
        self._message: ToolMessage | None = None

    def raised(self, message: ToolMessage, error: BaseException | None) -> Exception:
        """Return what middleware is to see of a call that failed.

        Args:
            message: what the model reads of it.
            error: what the tool's code raised, where that is known.
        """
        self._message, self._error = message, _shown(error, message.text)
        return self._error

    def read(self, error: Exception) -> ToolMessage:
        """Return what the model reads of a call; raises an ``error`` that is of something else."""
        if error is not self._error or self._message is None:
            raise error
        return self._message


def _shown(error: BaseException | None, text: str) -> Exception:
    """Return an exception of the kind of another one, with the text that the model reads, which has no secret."""
    kind = type(error)
    if not isinstance(error, Exception) or isinstance(error, StopIteration | StopAsyncIteration):
        return ToolException(text)
    try:
        subclass: Any = _shown_kind(kind)
        made = subclass.__new__(subclass)
        made.args = (text,)
        vars(made).update(vars(error))
    except Exception:  # a kind that is made in its own way alone
        return ToolException(text)
    return made


@cache
def _shown_kind(kind: type[Exception]) -> type[Exception]:
    return type(kind.__name__, (kind,), {"__module__": kind.__module__, "__str__": Exception.__str__})
