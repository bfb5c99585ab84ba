"""Ask the predicates of tools whether they can run now, for a session (T12, P6)."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pegboard.board.catalog.loader import CONSTRUCT_WAIT, CatalogLoader
from pegboard.board.session_info import SessionInfo
from pegboard.core.access.instances import pool_scope
from pegboard.core.access.permissions import CompiledPermissions
from pegboard.core.access.settings.predicates import Condition, ConditionAsker, conditions, fault_of, fault_of_error
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import Frozen
from pegboard.ports import ConditionalSource, HookRunner
from pegboard.ports.framework_runs import FRAMEWORK_RUN

COUNTS: Final = 30.0
"""For how many seconds an answer counts."""
PATIENCE: Final = 1.0
"""How many seconds a predicate may take."""
LONGEST_REASON: Final = 300
_MOST: Final = 4096
_MOST_SHOWN: Final = 50
_UNASKED: Final = ("", 0.0)
_Key = tuple[Condition, ConditionAsker, str]
"""A predicate, on whose behalf it is asked, and whose object answers (G9)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionFault:
    """Why a predicate of a plugin last said that it cannot run for someone, without secrets."""

    condition: str
    principal: str
    agent: str
    fault: str


def _asker(info: SessionInfo) -> ConditionAsker:
    return ConditionAsker(principal=info.key.principal, agent=info.key.agent, sub_app=info.constraints.sub_app)


class Availability:
    """The newest answers of predicates; each is asked once at a time, however many wait for it."""

    def __init__(self, loader: CatalogLoader, hooks: HookRunner | None, changed: Callable[[str], None]) -> None:
        self.clock = time.monotonic
        self._loader = loader
        self._hooks = hooks
        self._changed = changed
        self._faults: dict[_Key, tuple[str, float]] = {}
        self._asking: dict[_Key, asyncio.Task[str]] = {}
        self._late: set[_Key] = set()
        self._applied: dict[tuple[CompiledPermissions, frozenset[tuple[str, str]]], CompiledPermissions] = {}

    async def apply(self, info: SessionInfo, permissions: CompiledPermissions) -> CompiledPermissions:
        """Return the permissions of a session with what cannot run now; the same object while that is the same."""
        found = conditions(permissions)
        if not found:
            return permissions
        keys = self._keys(info, permissions, found)
        await self._renew([key for key in dict.fromkeys(key for _, key in keys) if not self._counts(key)])
        return self._with_faults(permissions, self._faults_of(keys))

    def _with_faults(self, permissions: CompiledPermissions, faults: Mapping[str, str]) -> CompiledPermissions:
        if not faults:
            return permissions
        key = permissions, frozenset(faults.items())
        known = self._applied.get(key)
        if known is None:
            if len(self._applied) >= _MOST // 64:
                self._applied.clear()
            known = self._applied[key] = permissions.with_faults(Frozen(faults))
        return known

    def with_known_faults(self, info: SessionInfo, permissions: CompiledPermissions) -> CompiledPermissions:
        """Return the permissions of a session with what could not run by the newest answers; none is asked for."""
        return self._with_faults(permissions, self._faults_of(self._keys(info, permissions, conditions(permissions))))

    def _keys(
        self, info: SessionInfo, permissions: CompiledPermissions, found: Iterable[tuple[str, Condition]]
    ) -> list[tuple[str, _Key]]:
        who, specs = _asker(info), self._loader.specs
        scopes = {
            name: pool_scope(permissions, specs[name], info.pool_user)
            for name in {condition.plugin for _, condition in found if ":" not in condition.name}
        }
        run = FRAMEWORK_RUN.get()
        in_run = who if run is None else replace(who, moment=run.moment)
        return [
            (tool_id, (one, in_run if one.of_run else who, "" if ":" in one.name else scopes[one.plugin]))
            for tool_id, one in found
        ]

    def _faults_of(self, keys: Iterable[tuple[str, _Key]]) -> dict[str, str]:
        faults: dict[str, str] = {}
        for tool_id, key in keys:
            if fault := self._faults.get(key, _UNASKED)[0]:
                faults.setdefault(tool_id, fault)
        return faults

    def _counts(self, key: _Key) -> bool:
        known = self._faults.get(key)
        return known is not None and self.clock() - known[1] < COUNTS

    async def _renew(self, due: list[_Key]) -> None:
        """Ask what has no answer that counts; one that was late already and has not answered yet is not waited for."""
        if not due:
            return
        await self._prepare_functions(due)
        due = [key for key in due if not self._counts(key)]
        asked = {key: self._asking.get(key) or self._start_asking(key) for key in due}
        if waited := [task for key, task in asked.items() if key not in self._late]:
            await asyncio.wait(waited, timeout=PATIENCE)
        if len(self._faults) >= _MOST:
            self._faults.clear()
        for key, task in asked.items():
            self._keep_answer(
                key, task.result() if task.done() else f"Its condition did not answer in {PATIENCE:.0f} s."
            )
            if not task.done():
                self._late.add(key)

    def _keep_answer(self, key: _Key, fault: str) -> None:
        before = self._faults.get(key)
        self._faults[key] = fault, self.clock()
        if before is not None and before[0] != fault:
            self._changed(key[0].plugin)

    async def _prepare_functions(self, due: Iterable[_Key]) -> None:
        """Import the functions of the configuration: that takes longer than they may."""
        if self._hooks is not None:
            hooks = {condition.name for condition, _, _ in due if ":" in condition.name}
            imports = [asyncio.ensure_future(self._hooks.prepare(hook)) for hook in hooks]
            if imports:
                await asyncio.wait(imports, timeout=CONSTRUCT_WAIT)
                for task in imports:
                    _ = task.cancel() if not task.done() else task.exception()

    def _start_asking(self, key: _Key) -> asyncio.Task[str]:
        task = self._asking[key] = asyncio.create_task(self._fault(*key), name=f"condition of {key[0].plugin}")
        task.add_done_callback(partial(self._keep_task_answer, key))
        return task

    def _keep_task_answer(self, key: _Key, task: asyncio.Task[str]) -> None:
        """Keep an answer at once: whoever comes before those who wait for it does not ask again."""
        self._asking.pop(key, None)
        if key not in self._late and not task.cancelled() and task.exception() is None:
            self._keep_answer(key, task.result())
        self._late.discard(key)

    async def _fault(self, condition: Condition, who: ConditionAsker, scope: str) -> str:
        try:
            answer = await self._ask_condition(condition, who, scope)
        except (Exception, SystemExit) as error:  # a predicate's own code may raise anything
            fault = fault_of_error(error)
        else:
            fault = fault_of(answer)
        return self._loader.masker.text(one_line(fault, limit=LONGEST_REASON))

    async def _ask_condition(self, condition: Condition, who: ConditionAsker, scope: str) -> object:
        given = who.principal, who.agent, who.sub_app
        if ":" in condition.name and self._hooks is not None:
            return await self._hooks.ask(condition.name, *given)
        spec = self._loader.specs[condition.plugin]
        source = self._loader.source_of(spec)
        if not isinstance(source, ConditionalSource):
            return "No code can evaluate its condition."
        return await source.holds(spec, condition.overrides, condition.name, *given, scope=scope)

    def newest_faults(self, plugin: str) -> tuple[ConditionFault, ...]:
        """Return for whom the predicates of a plugin last said that it cannot run."""
        found = ((key, fault) for key, (fault, _) in self._faults.items() if fault and key[0].plugin == plugin)
        return tuple(
            ConditionFault(condition=condition.name, principal=who.principal, agent=who.agent, fault=fault)
            for (condition, who, _), fault in itertools.islice(found, _MOST_SHOWN)
        )

    async def aclose(self) -> None:
        """Wait for no answer any longer."""
        tasks = tuple(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
