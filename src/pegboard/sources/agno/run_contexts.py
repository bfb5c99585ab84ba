"""What Agno's functions learn of a call without an agent of Agno: whose it is, and the state of its session."""

from __future__ import annotations

import importlib
from collections import OrderedDict
from typing import Any, Final

from pegboard.ports import CallContext

_RUN_CONTEXT: Final = "_run_context"
"""Where a function of Agno looks for the run that it is part of; Agno's own agents set it on a copy for each run."""
_MOST_SESSIONS: Final = 1024


class SessionStates:
    """The states that Agno's functions keep for a session: in memory, the newest sessions of this process."""

    def __init__(self) -> None:
        self._states: OrderedDict[tuple[str, str, str], dict[str, Any]] = OrderedDict()

    def prepared(self, function: Any, context: CallContext) -> Any:
        """Return a copy of a function for one call: the principal is the user."""
        run: Any = importlib.import_module("agno.run").RunContext
        copied = function.model_copy()
        state = self._of(context)
        run_id = f"{context.agent}/{context.session}"
        made = run(run_id=run_id, session_id=context.session, user_id=context.principal, session_state=state)
        setattr(copied, _RUN_CONTEXT, made)
        return copied

    def _of(self, context: CallContext) -> dict[str, Any]:
        key = (context.principal, context.agent, context.session)
        state = self._states.setdefault(key, {})
        self._states.move_to_end(key)
        if len(self._states) > _MOST_SESSIONS:
            self._states.popitem(last=False)
        return state
