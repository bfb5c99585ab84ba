"""What a run of LangChain injects into a tool: its runtime, state, store and settings, which no model writes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId

from pegboard.ports.framework_runs import FrameworkRun

_PREBUILT: Final = "langgraph.prebuilt.tool_node"
"""Where LangGraph has what a run injects; loaded wherever there is a run."""
_RUNTIMES: Final = ((_PREBUILT, "ToolRuntime"), ("langgraph.runtime", "Runtime"))
_STATE: Final = "InjectedState"
_STORE: Final = "InjectedStore"
_RUNTIME: Final = "ToolRuntime"
_CONFIG: Final = "RunnableConfig"
"""LangChain gives it to the tool itself, from what a call is made with."""
_OWN: Final = "InjectedToolArg"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedParameters:
    """The parameters of a tool that its run fills in, each with what it is.

    ``needed`` are those without a default. ``fields`` are, by parameter, the parts of the state that are meant.
    ``own`` are parameters without a default that only the program's own code fills in.
    """

    kinds: Mapping[str, str]
    fields: Mapping[str, str]
    needed: tuple[str, ...]
    own: tuple[str, ...]

    @property
    def of_run(self) -> bool:
        """Return whether a tool cannot run outside of a run of LangChain."""
        return bool(self.needed or self.own)

    def fault(self, runtime: Any | None, given: Collection[str] | None = None) -> str:
        """Return why a tool cannot run now, or nothing.

        Args:
            runtime: that of the run of LangChain under way, or None.
            given: names of what the program's own code has added to the call; None before there is one.
        """
        missing = [name for name in self.own if runtime is None or (given is not None and name not in given)]
        if missing:
            return (
                f"'{missing[0]}' is an InjectedToolArg, which only the program's own code gives: add it to the "
                "arguments of the call in a middleware's wrap_tool_call, or take it from a ToolRuntime."
            )
        if self.needed and runtime is None:
            return f"'{self.needed[0]}' is filled in by a run of LangChain, and this call is not made in one."
        if runtime is not None and runtime.store is None:
            for name in self.needed:
                if self.kinds.get(name) == _STORE:
                    return f"'{name}' is the store of the agent, which has none: create_agent(store=...)."
        return ""


def injected_into(tool: BaseTool) -> InjectedParameters:
    """Return what a run injects into a tool."""
    kinds: dict[str, str] = {}
    fields: dict[str, str] = {}
    needed: list[str] = []
    own: list[str] = []
    for name, annotation, required in _parameters(tool):
        kind, part = _kind_of(name, annotation)
        if kind == _OWN:
            own.extend([name] if required else [])
        elif kind:
            kinds[name] = kind
            fields.update({name: part} if part else {})
            needed.extend([name] if required else [])
    return InjectedParameters(kinds=kinds, fields=fields, needed=tuple(needed), own=tuple(own))


def runtime_of(run: FrameworkRun | None) -> Any | None:
    """Return the runtime of LangChain of a run that is under way: of the call, or of the request to the model."""
    kinds = (getattr(sys.modules.get(module), name, None) for module, name in _RUNTIMES)
    context = None if run is None else run.context
    return context if any(isinstance(context, kind) for kind in kinds if kind is not None) else None


def with_injected(call: Mapping[str, Any], injected: InjectedParameters, runtime: Any) -> dict[str, Any]:
    """Return a call with what its run injects; what the model wrote in its place is dropped.

    Raises:
        KeyError: the state has no such part, and the tool has no default for it.
    """
    state: Any = runtime.state
    if isinstance(state, list):
        state = {"messages": state}
    given = {name: value for name, value in call["args"].items() if name not in injected.kinds}
    for name, kind in injected.kinds.items():
        part = injected.fields.get(name)
        if kind == _RUNTIME:
            given[name] = runtime
        elif kind == _STORE and (runtime.store is not None or name in injected.needed):
            given[name] = runtime.store
        elif kind == _STATE and part is None:
            given[name] = state
        elif kind == _STATE and (name in injected.needed or _has_part(state, str(part))):
            given[name] = state[part] if isinstance(state, Mapping) else getattr(state, str(part))
    return {**call, "id": runtime.tool_call_id or call["id"], "args": given}


def _has_part(state: object, part: str) -> bool:
    return part in state if isinstance(state, Mapping) else hasattr(state, part)


def _parameters(tool: BaseTool) -> Iterator[tuple[str, Any, bool]]:
    """Yield the parameters of a tool, of its function and of its schema: name, annotation, whether it is required."""
    known: set[str] = set()
    schema: Any = tool.args_schema
    for name, field in (getattr(schema, "model_fields", None) or {}).items():
        annotation = field.annotation
        for one in field.metadata:
            annotation = Annotated[annotation, one]
        if _kind_of(name, annotation)[0]:
            known.add(name)
            yield name, annotation, field.is_required()
    function: Any = getattr(tool, "coroutine", None) or getattr(tool, "func", None) or getattr(tool, "_run", None)
    if function is None:
        return
    try:
        hints = get_type_hints(getattr(function, "func", function), include_extras=True)
        parameters = inspect.signature(function).parameters
    except Exception:  # LangChain cannot read it either, and injects nothing
        return
    for name, parameter in parameters.items():
        if name not in known:
            yield name, hints.get(name, parameter.annotation), parameter.default is inspect.Parameter.empty


def _kind_of(name: str, annotation: Any) -> tuple[str, str]:
    """Return what is injected into a parameter, and the part of the state that is meant; nothing for another one."""
    inner: tuple[Any, ...] = get_args(annotation)
    origin: Any = get_origin(annotation)
    for one in (annotation, origin, *inner):
        kind = one if isinstance(one, type) else type(one)
        if kind.__name__ == _RUNTIME and kind.__module__ == _PREBUILT:
            return _RUNTIME, ""
        if one is RunnableConfig:
            return _CONFIG, ""
        if not issubclass(kind, InjectedToolArg):
            continue
        if issubclass(kind, InjectedToolCallId):
            return "", ""
        names = {base.__name__ for base in kind.__mro__ if base.__module__ == _PREBUILT}
        if _STATE in names:
            return _STATE, str(getattr(one, "field", None) or "") if not isinstance(one, type) else ""
        return (_STORE if _STORE in names else _OWN), ""
    nested = [_kind_of(name, one) for one in inner if origin in (Union, UnionType, Annotated)]
    return next((found for found in nested if found[0]), ("", ""))
