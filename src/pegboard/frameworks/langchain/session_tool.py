"""A tool of a session as LangChain runs one, so that every middleware around calls of tools sees it."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from pegboard.frameworks import runs

_ToolInvocationError: type[Exception] | None
try:
    from langgraph.prebuilt.tool_node import ToolInvocationError as _ToolInvocationError
except ImportError:  # it is in no list of what LangGraph promises
    _ToolInvocationError = None
_MESSAGE: Final = "pegboard_message"
"""Where the failure of a call has the message that the model reads."""


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


def failure(message: ToolMessage, error: BaseException | None) -> Exception:
    """Return what middleware behind `SessionTools` sees of a call that failed.

    Args:
        message: what the model reads of it.
        error: what the tool's code raised, where that is known.
    """
    shown = _exception_for_model(error, message.text, ())
    setattr(shown, _MESSAGE, message)
    return shown


def is_failure(error: BaseException) -> bool:
    """Return whether an exception is one that `failure` has made."""
    return hasattr(error, _MESSAGE)


def failure_message(error: BaseException) -> ToolMessage:
    """Return what the model reads of a call whose tool failed, by what `failure` has made.

    Raises:
        Exception: the failure itself, for middleware before `SessionTools`: LangChain makes the message of it that the
            model reads, unless one of these answers or calls again.
    """
    message: ToolMessage = vars(error)[_MESSAGE]
    if _ToolInvocationError is None:
        runs.warn_once(
            "This version of LangGraph has no `ToolInvocationError`, so a middleware before `SessionTools` is given "
            "the message of a call that failed, and no exception: put what tries calls again behind it."
        )
        return message
    shown = _exception_for_model(error, message.text, (_ToolInvocationError,))
    shown.message = message.content  # type: ignore[attr-defined]
    raise shown from error


def _exception_for_model(error: BaseException | None, text: str, also: tuple[type[Exception], ...]) -> Exception:
    """Return an exception of the kind of another one, with the text that the model reads, which has no secret."""
    kind = type(error) if isinstance(error, Exception) else ToolException
    kind = ToolException if issubclass(kind, StopIteration | StopAsyncIteration) else kind
    try:
        return _make_exception(_shown_kind(kind, also), text, vars(error))
    except Exception:  # a kind that is made in its own way alone
        return _make_exception(_shown_kind(ToolException, also), text, {})


def _make_exception(kind: Any, text: str, attributes: dict[str, Any]) -> Exception:
    made = kind.__new__(kind)
    made.args = (text,)
    vars(made).update(attributes)
    return made


@cache
def _shown_kind(kind: type[Exception], also: tuple[type[Exception], ...]) -> type[Exception]:
    named: dict[str, Any] = {"__module__": kind.__module__, "__str__": Exception.__str__}
    return type(kind.__name__, (*also, kind), {**named, "message": None} if also else named)
