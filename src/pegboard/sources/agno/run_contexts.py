"""What Agno's functions learn of a call without an agent of Agno: whose it is, and the state of its session."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from pegboard.errors import StoreError
from pegboard.ports import CallContext, SessionDataStore, SessionKey
from pegboard.ports.framework_runs import FRAMEWORK_RUN

log = logging.getLogger("pegboard")

_RUN_CONTEXT: Final = "_run_context"
"""Where a function of Agno looks for the run that it is part of; Agno's own agents set it on a copy for each run."""
_OF_RUN: Final = (_RUN_CONTEXT, "_agent", "_team", "_images", "_videos", "_audios", "_files")
"""What Agno sets on the copy of a function for a run."""
_MOST_SESSIONS: Final = 1024
_HERE_ALONE: Final = ""
"""The text of a value that is no JSON: it is in the memory of this process alone."""


@dataclass(slots=True)
class _State:
    """The state of a session, with the texts of what is stored of it, and how many calls work on it."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    calls: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def take(self, stored: dict[str, str]) -> None:
        """Take what is stored; values that another process has not changed stay as they are here."""
        for name in self.texts.keys() - stored.keys():
            del self.texts[name]
            self.values.pop(name, None)
        for name, text in stored.items():
            if text not in (self.texts.get(name), _HERE_ALONE):
                self.texts[name], self.values[name] = text, json.loads(text)

    def changes(self) -> dict[str, str | None]:
        """Return what is to be stored, by name; None is a name that is gone."""
        texts = {name: _text(name, value) for name, value in self.values.items()}
        changed: dict[str, str | None] = {name: text for name, text in texts.items() if self.texts.get(name) != text}
        changed.update(dict.fromkeys(self.texts.keys() - texts.keys()))
        self.texts = texts
        return changed


class SessionStates:
    """The states that Agno's functions keep for a session, in the store; without one, of the newest sessions here."""

    def __init__(self, store: SessionDataStore | None = None) -> None:
        self._store = store
        self._states: OrderedDict[SessionKey, _State] = OrderedDict()

    @asynccontextmanager
    async def prepare_function(self, function: Any, context: CallContext) -> AsyncGenerator[Any]:
        """Return a copy of a function for one call, with the agent, team and state of the run of Agno under way.

        Without one the principal is the user, and what the function keeps is stored at the end.
        Raises ``StoreError`` where the state of the session cannot be read.
        """
        if (calling := function_under_way()) is not None:
            copied = function.model_copy()
            for name in _OF_RUN:
                setattr(copied, name, getattr(calling, name, None))
            yield copied
            return
        key = SessionKey(principal=context.principal, agent=context.agent, session=context.session)
        store = self._store if key.session else None  # nothing is stored of a session without an id
        state = self._state_of(key)
        state.calls += 1
        try:
            async with state.lock:
                if state.calls == 1 and store is not None:
                    state.take(dict(await store.session_data(key)))
            run: Any = importlib.import_module("agno.run").RunContext
            run_id = f"{context.agent}/{context.session}"
            made = run(run_id=run_id, session_id=key.session, user_id=key.principal, session_state=state.values)
            copied = function.model_copy()
            setattr(copied, _RUN_CONTEXT, made)
            try:
                yield copied
            finally:
                left: Any = made.session_state
                state.values = left if isinstance(left, dict) else state.values
                if store is not None:
                    await _store_changes(store, key, state)
        finally:
            state.calls -= 1

    def _state_of(self, key: SessionKey) -> _State:
        state = self._states.setdefault(key, _State())
        self._states.move_to_end(key)
        if len(self._states) > _MOST_SESSIONS:
            unused = next((other for other, one in self._states.items() if not one.calls and one is not state), None)
            if unused is not None:
                del self._states[unused]
        return state


def function_under_way() -> Any | None:
    """Return the function with which a run of Agno calls something here; None outside of one."""
    run, base = FRAMEWORK_RUN.get(), getattr(sys.modules.get("agno.tools.function"), "Function", None)
    return run.context if run is not None and base is not None and isinstance(run.context, base) else None


async def _store_changes(store: SessionDataStore, key: SessionKey, state: _State) -> None:
    async with state.lock:
        changes = state.changes()
        try:
            if changes:
                await store.keep_session_data(key, changes)
        except StoreError as error:  # the call has run
            log.warning("the state of session %r is not stored: %s", key.session, error)


def _text(name: str, value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        log.debug("%r in the state of a session is not JSON: it is lost when this process ends", name)
        return _HERE_ALONE
