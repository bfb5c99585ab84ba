"""Toolkits of Agno, constructed: their functions, or what they lack."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from pegboard.core.model.tools import EMPTY, CallResult, Frozen, JsonObject, Manifest
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext, SessionDataStore
from pegboard.ports.framework_runs import FRAMEWORK_RUN, FrameworkResult
from pegboard.sources.agno.agno_functions import AgnoFunction, functions_of
from pegboard.sources.agno.databases import SharedDatabase
from pegboard.sources.agno.execution import run_function
from pegboard.sources.agno.loggers import collected_warnings
from pegboard.sources.agno.run_contexts import SessionStates, function_under_way
from pegboard.sources.agno.schedules import CREATE, MODULE, AgnoSchedules
from pegboard.sources.agno.shortfalls import (
    absent_packages,
    could_not_construct,
    lacks_credential,
    lacks_package,
    tools_without,
)
from pegboard.sources.signatures import (
    Parameters,
    WithoutHooks,
    construct,
    find_tool,
    parameters_of,
    refused_override,
    run_in_thread,
    summary,
)
from pegboard.sources.stdout import plugin_output
from pegboard.support.installed import install_hint

_BASE: Final = "agno.tools.toolkit"
_OF_BASE: Final = frozenset(
    {
        *("cache_results", "cache_ttl", "cache_dir", "timeout"),
        *("requires_confirmation_tools", "external_execution_required_tools"),
        *("stop_after_tool_call_tools", "show_result_tools"),
    }
)
_DATABASE: Final = "db"
"""The parameter with which toolkits take a database, an object that no configuration can write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgnoPlugin(WithoutHooks):
    """A toolkit of Agno that is ready to be called; ``owned`` where it was constructed here.

    ``lacking`` are the tools that it does without because a package is not installed, each with the reason.
    """

    toolkit: Any
    functions: Mapping[str, AgnoFunction]
    parameters: Parameters
    description: str
    states: SessionStates
    schedules: AgnoSchedules | None = None
    owned: bool = True
    lacking: Mapping[str, str] = EMPTY

    def manifest(self, plugin: str) -> Manifest:
        """Return the manifest of the toolkit."""
        return Manifest(
            tools=tuple(function.tool(plugin) for function in self.functions.values()),
            parameters=self.parameters.types,
            secrets=self.parameters.secrets,
            description=self.description,
            instructions=str(getattr(self.toolkit, "instructions", None) or ""),
            excluded=Frozen(self.lacking),
        )

    async def call(self, plugin: str, name: str, arguments: JsonObject, context: CallContext) -> CallResult:
        """Run a function as Agno would, without an agent; a failure is an error result."""
        function = find_tool(self.functions, plugin, name)
        beside = FrameworkResult(ends=function.runs.stop_after_tool_call, shown=function.runs.show_result)
        under_way = FRAMEWORK_RUN.get()
        if under_way is not None and function_under_way() is not None:
            under_way.returned[f"{plugin}/{name}"] = beside
        async with self.states.prepare_function(function.runs, context) as prepared:
            result = await run_function(prepared, arguments, beside)
        if self.schedules is not None and name == CREATE and not result.is_error:
            await run_in_thread(self.schedules.note_schedule, plugin, result, context)
        return result

    def predicate(self, name: str) -> None:
        """Return nothing: functions of Agno have no predicates."""

    async def aclose(self) -> None:
        """Close the connections of a toolkit that was constructed here."""
        if self.owned:
            with plugin_output(), suppress(Exception):  # a service that is gone is closed enough
                outcome = await run_in_thread(self.toolkit.close)
                if inspect.isawaitable(outcome):
                    await outcome


class AgnoToolkits:
    """What constructs toolkits of Agno, and what they share: a database and the states of sessions."""

    def __init__(
        self, database: Path | None = None, store: SessionDataStore | None = None, *, apart: bool = False
    ) -> None:
        """Prepare; ``database`` is the file for schedules and memories, ``store`` has the states of sessions.

        None of either keeps them in memory. ``apart``: this is the process of one plugin, where no file is shared.
        """
        self._apart = apart
        self._database = SharedDatabase(database)
        self._states = SessionStates(store)
        self.schedules = AgnoSchedules(self._database)

    def construct_toolkit(
        self, loader: str, overrides: JsonObject, *, plugin: str, packages: Sequence[str]
    ) -> AgnoPlugin:
        """Return the toolkit that ``module:Class`` names; blocks, and may contact its service.

        Raises ``ToolUnavailableError`` with what to install, set or give.
        """
        module, _, name = loader.rpartition(":")
        with collected_warnings() as logged:
            try:
                target: type = getattr(importlib.import_module(module), name)
            except ImportError as error:
                raise lacks_package(plugin, error, packages) from error
            except BaseException as error:  # whatever a module raises when it is imported
                raise could_not_construct(plugin, error, Parameters(), None, logged, packages) from error
            return self._make_plugin(target, overrides, plugin, packages, logged)

    def adopt(
        self, target: object, overrides: JsonObject, *, plugin: str, parameters: Parameters | None = None
    ) -> AgnoPlugin | None:
        """Return the plugin that a toolkit of Agno, or its class, stands for; None for what is neither."""
        base: Any = getattr(sys.modules.get(_BASE), "Toolkit", None)
        if base is None:
            return None
        if isinstance(target, type) and issubclass(target, base):
            with collected_warnings() as logged:
                return self._make_plugin(target, overrides, plugin, (), logged)
        if not isinstance(target, base):
            return None
        for name in overrides:
            raise refused_override(plugin, name, ())
        owned = parameters is not None
        return self._ready(target, type(target), parameters or Parameters(), owned=owned)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _make_plugin(
        self, target: type, overrides: JsonObject, plugin: str, packages: Sequence[str], logged: list[str]
    ) -> AgnoPlugin:
        parameters = Parameters()
        try:
            parameters, given = self._parameters(target, plugin, packages)
            toolkit = _with_own_globals(construct(target, parameters, overrides, plugin=plugin, given=given))
            made = self._ready(toolkit, target, parameters)
        except ToolUnavailableError:
            raise
        except ImportError as error:
            raise lacks_package(plugin, error, packages) from error
        except BaseException as error:  # whatever a toolkit raises: it cannot run
            raise could_not_construct(plugin, error, parameters, target, logged, packages) from error
        if lacking := lacks_credential(plugin, logged, parameters, target):
            raise lacking
        return replace(made, lacking=tools_without(target, made.functions, packages, logged))

    def _ready(self, toolkit: Any, target: type, parameters: Parameters, *, owned: bool = True) -> AgnoPlugin:
        return AgnoPlugin(
            toolkit=toolkit,
            functions=functions_of(toolkit),
            parameters=parameters,
            description=_description(target),
            states=self._states,
            schedules=self.schedules if target.__module__ == MODULE else None,
            owned=owned,
        )

    def _parameters(self, target: type, plugin: str, packages: Sequence[str]) -> tuple[Parameters, Mapping[str, Any]]:
        """Return what the toolkit takes from a configuration, and the database where it needs one."""
        base: Any = importlib.import_module(_BASE).Toolkit
        found = parameters_of(target, base=base, of_base=_OF_BASE)
        if _DATABASE not in (*found.required, *found.unfit):
            return found, EMPTY
        if self._apart:
            raise ToolUnavailableError(
                f"plugin '{plugin}' stores its data in a file of Pegboard, which no confined plugin can reach.",
                hint="Remove its `confine`.",
            )
        if absent := absent_packages(packages):
            raise ToolUnavailableError(
                f"plugin '{plugin}' needs {' and '.join(map(repr, absent))}, not installed.",
                hint=install_hint(*absent),
            )
        return _without_parameter(found, _DATABASE), {_DATABASE: self._database.get()}


def _with_own_globals(toolkit: Any) -> Any:
    """Return a toolkit that keeps nothing of one object in its module's globals, as ``python`` does (G9)."""
    attributes = cast("dict[str, Any]", vars(toolkit))
    own = [vars(sys.modules[owner.__module__]) for owner in type(toolkit).__mro__]
    for name, value in list(attributes.items()):
        if any(value is one for one in own):
            setattr(toolkit, name, dict(value))
    return toolkit


def _without_parameter(parameters: Parameters, name: str) -> Parameters:
    return replace(
        parameters,
        adapters=Frozen({key: value for key, value in parameters.adapters.items() if key != name}),
        types=Frozen({key: value for key, value in parameters.types.items() if key != name}),
        required=tuple(key for key in parameters.required if key != name),
        unfit=tuple(key for key in parameters.unfit if key != name),
    )


def _description(target: type) -> str:
    """Return the first line of the class's own docstring, or of its module's."""
    own = target.__dict__.get("__doc__")
    return summary(target if own else sys.modules[target.__module__])
