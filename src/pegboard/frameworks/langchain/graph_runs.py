"""The runs of graphs of LangGraph that one middleware is in."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

from langchain.tools import ToolRuntime
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.runtime import Runtime

from pegboard.board.session import Session
from pegboard.frameworks.langchain.approvals import has_checkpointer
from pegboard.frameworks.langchain.models import host_of_model, provider_of_model
from pegboard.frameworks.owned_run import OwnedRun
from pegboard.frameworks.runs import AnySession

AnyRuntime = Runtime[Any] | ToolRuntime[Any, Any]
OpenSession = Callable[[AnyRuntime], AnySession | Awaitable[Session]]
_MOST: Final = 1_000
"""How many runs are known that wait for a person, or were given up."""


class GraphRuns:
    """The runs of a middleware by the thread that they are in, or by their invocation where nothing keeps them.

    Args:
        session: the session, or what opens one for a run.
        limit: how often in a row the tools of a run change without one being used.
    """

    def __init__(self, session: AnySession | OpenSession, limit: int) -> None:
        self._session, self._limit = session, limit
        self._runs: OrderedDict[tuple[str, str], OwnedRun] = OrderedDict()
        self._invocations: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._numbers = count()

    def run_of(
        self, runtime: AnyRuntime, messages: Sequence[AnyMessage], model: BaseChatModel | None = None
    ) -> OwnedRun:
        """Return the run that a conversation is in: it is named by the user's newest message.

        Args:
            runtime: that of the node.
            messages: the conversation.
            model: the model that is asked; none where a call is made.
        """
        own = next((str(one.id) for one in reversed(messages) if isinstance(one, HumanMessage)), "")
        conversation, kept = self._conversation(runtime)
        name = (conversation, f"{conversation}|{own}")  # two runs at once may begin with one message
        run = self._runs.get(name)
        return self._begin_run(runtime, name, kept, model) if run is None else run

    def forget(self, run: OwnedRun) -> None:
        """Know a run no longer that is over."""
        self._runs.pop(run.name, None)

    def _conversation(self, runtime: AnyRuntime) -> tuple[str, bool]:
        """Return the name of a conversation, and whether it is kept: then its newest run is the one that goes on."""
        info = runtime.execution_info
        if info is None:  # no graph runs
            return "", False
        graph = info.checkpoint_ns.rpartition("|")[0]
        if info.thread_id is not None and has_checkpointer():
            return f"{info.thread_id}|{graph}", True
        invocation = self._invocations.get(runtime.stream_writer)
        if invocation is None:
            invocation = self._invocations[runtime.stream_writer] = f"#{next(self._numbers)}"
        return f"{invocation}|{graph}", False

    def _begin_run(
        self, runtime: AnyRuntime, name: tuple[str, str], kept: bool, model: BaseChatModel | None
    ) -> OwnedRun:
        """Return a new run; what is over is known no longer."""
        for key, run in [*self._runs.items()]:
            if kept and key[0] == name[0]:
                run.give_up()
            if run.is_over() and (key[0] == name[0] or key[0].startswith("#")):
                self._runs.pop(key, None)
        while len(self._runs) >= _MOST:
            self._runs.popitem(last=False)
        about = {"limit": self._limit, "host": host_of_model(model), "provider": provider_of_model(model)}
        run = OwnedRun(partial(self._open_session, runtime), name, owner_of(runtime), **about)
        self._runs[name] = run
        return run

    def _open_session(self, runtime: AnyRuntime) -> AnySession | Awaitable[Session]:
        return self._session if isinstance(self._session, AnySession) else self._session(runtime)


def owner_of(runtime: AnyRuntime) -> object | None:
    """Return what LangGraph makes again for each invocation of a graph; None where no graph runs."""
    return None if runtime.execution_info is None else runtime.stream_writer
