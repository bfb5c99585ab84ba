"""What a server says of itself when a connection opens: a field that cannot be used costs itself, never the server.

The SDK refuses the whole answer for one field that it does not take. Imports the SDK: import late.
"""

from __future__ import annotations

from typing import Any, Final, cast

from mcp_types import DiscoverResult, InitializeResult
from pydantic import ValidationError

from pegboard.core.model.naming import one_line
from pegboard.sources.mcp.wire.open_connection import OpenConnection

_NAMED: Final = {"name": "unnamed", "version": ""}
"""What a server of the handshake era has to say of itself; it costs it nothing not to."""
_DISPENSABLE: Final = frozenset({"serverInfo", "instructions", "capabilities", "_meta"})
_TRIES: Final = 20


def make_usable(answer: dict[str, Any], live: OpenConnection) -> None:
    """Leave in the answer to `initialize` or `server/discover` what the SDK takes, and report the rest."""
    if "protocolVersion" in answer:
        _name(answer)
    elif "supportedVersions" not in answer:
        return
    model = InitializeResult if "protocolVersion" in answer else DiscoverResult
    for _ in range(_TRIES):
        fault = _fault(model, answer)
        if fault is None or not _remove_member(answer, fault[0]):
            return
        live.exclude(f"`{'.'.join(fault[0])}` of its own description", fault[1])


def _name(answer: dict[str, Any]) -> None:
    """Let a server have a name and a version, as texts; neither decides anything."""
    info: object = answer.get("serverInfo")
    info = dict(cast("dict[str, Any]", info)) if isinstance(info, dict) else {}
    for field, otherwise in _NAMED.items():
        value = info.get(field)
        if not isinstance(value, str):
            info[field] = str(value) if isinstance(value, int | float) else otherwise
    answer["serverInfo"] = info


def _fault(model: type[InitializeResult | DiscoverResult], answer: dict[str, Any]) -> tuple[list[str], str] | None:
    """Return where the first fault is, and what it is."""
    try:
        model.model_validate(answer, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return [str(part) for part in first["loc"]], one_line(first["msg"], limit=300)
    return None


def _remove_member(answer: dict[str, Any], path: list[str]) -> bool:
    """Return whether the innermost member on a path was removed, where the server can do without it."""
    if not path or path[0] not in _DISPENSABLE:
        return False
    holder, key = answer, path[0]
    for part in path[1:]:
        inner: object = holder.get(key)
        if not isinstance(inner, dict) or part not in inner:
            break
        holder, key = cast("dict[str, Any]", inner), part
    if holder is answer and key == "capabilities":
        if holder.get(key) not in ([], None):
            return False
        holder[key] = {}  # as some languages write an object without members
        return len(path) == 1
    return holder.pop(key, None) is not None
