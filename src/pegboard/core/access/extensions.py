"""Extensions of the protocol: what passes of them, which server has a method, names inside of answers (G7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from pegboard.core.model.tools import Frozen, JsonObject
from pegboard.support import mcp_constants
from pegboard.support.mcp_constants import RELATED_TASK_KEY, SKILLS_EXTENSION, TASKS_EXTENSION

TASK_STATUS: Final = "notifications/tasks/status"
TASK_METHODS: Final = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
"""The requests of the handshake era about a task, in either direction."""
DIRECTORY: Final = "resources/directory/read"

_HANDSHAKE_TASKS: Final = "tasks"
_CORE: Final = frozenset({"tools", "resources", "prompts", "completions", "logging"})
"""The capabilities of servers whose requests are aggregated, each in its own way."""
_OF_CONNECTIONS: Final = frozenset({"oauth-client-credentials", "enterprise-managed-authorization"})
"""Extensions about the login of one client at one server: each client of Pegboard logs in to Pegboard."""
_NOT_EXTENDED: Final = frozenset(
    {"completion", "elicitation", "logging", "notifications", "prompts", "resources", "roots", "sampling", "server",
     "subscriptions", "tools"}
)  # fmt: skip
"""How the methods of the protocol itself begin."""
_READS: Final = frozenset({"list", "get", "read", "result", "find", "search"})
"""How methods end that change nothing."""
_AS_WRITTEN: Final = frozenset({"_meta", "frontmatter"})
"""Members of an answer in which no address is one of its server."""


# -- what a server declares ------------------------------------------------------------------------


def declared_extensions(capabilities: Mapping[str, Any]) -> Frozen:
    """Return what of a server's capabilities is none of those that every server may have, as it stood on the wire."""
    return Frozen({name: value for name, value in capabilities.items() if name not in _CORE})


def merge_extensions(servers: Iterable[JsonObject], *, modern: bool) -> dict[str, Any]:
    """Return the capabilities that a client is told, of what its servers declare; ``modern`` is its era.

    >>> merge_extensions([{"extensions": {"ex/a": {"kinds": ["x"]}}}, {"extensions": {"ex/a": {}}}], modern=True)
    {'extensions': {'ex/a': {'kinds': ['x']}}}
    """
    extensions: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for server in servers:
        for name, settings in _extensions(server).items():
            if _passes(name) and (modern or name != TASKS_EXTENSION):
                extensions[name] = _join_values(extensions.get(name, {}), settings)
        if not modern and (tasks := server.get(_HANDSHAKE_TASKS)) is not None:
            found[_HANDSHAKE_TASKS] = _join_values(found.get(_HANDSHAKE_TASKS, {}), tasks)
    return {**({"extensions": extensions} if extensions else {}), **found}


def told_servers(capabilities: Mapping[str, Any], *, modern: bool) -> Frozen:
    """Return what of a client's capabilities a server may be told that has it for a client; ``modern`` is its era."""
    kept = {
        name: settings
        for name, settings in _extensions(capabilities).items()
        if _passes(name) and (modern or name != TASKS_EXTENSION)
    }
    tasks = None if modern else capabilities.get(_HANDSHAKE_TASKS)
    return Frozen({**({"extensions": kept} if kept else {}), **({} if tasks is None else {_HANDSHAKE_TASKS: tasks})})


def not_passed(server: JsonObject) -> list[str]:
    """Return what a server declares that no client is told.

    >>> not_passed({"experimental": {"x": {}}, "extensions": {"com.example/notes": {}}})
    ['experimental: x']
    """
    names = [name for name in _extensions(server) if not _passes(name)]
    others = (name for name in server if name not in {"extensions", "experimental", _HANDSHAKE_TASKS})
    experiments: object = server.get("experimental")
    tried = list(cast("JsonObject", experiments)) if isinstance(experiments, Mapping) else []
    return [*names, *(f"experimental: {name}" for name in tried), *others]


def not_passed_text(names: Iterable[str]) -> str:
    """Return what is said of that."""
    return f"these parts of the protocol that it declares do not pass to clients: {', '.join(names)}"


def _extensions(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    found: object = capabilities.get("extensions")
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _passes(name: str) -> bool:
    return name.rpartition("/")[2] not in _OF_CONNECTIONS


def _join_values(first: Any, second: Any) -> Any:
    """Return what two servers declare under one name: what either can do."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        one, other = cast("Mapping[str, Any]", first), cast("Mapping[str, Any]", second)
        return {key: _join_values(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
                for key in (*one, *(key for key in other if key not in one))}  # fmt: skip
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        both = [*cast("list[Any]", first), *cast("list[Any]", second)]
        return [value for at, value in enumerate(both) if value not in both[:at]]
    return first or second


# -- whose a method is -----------------------------------------------------------------------------


def is_extension(method: str) -> bool:
    """Return whether a request may be one of an extension: it is none of the protocol's own methods."""
    label, slash, _ = method.partition("/")
    return method == DIRECTORY or (bool(slash) and label not in _NOT_EXTENDED)


def has_method(server: JsonObject, method: str) -> bool:
    """Return whether a server that declares this has a method: its extension is called as the method begins.

    >>> has_method({"extensions": {"com.example/notes": {}}}, "notes/count")
    True
    """
    extensions = _extensions(server)
    if method == DIRECTORY:
        skills: object = extensions.get(SKILLS_EXTENSION)
        return isinstance(skills, Mapping) and cast("JsonObject", skills).get("directoryRead") is True
    label = method.partition("/")[0]
    if label == _HANDSHAKE_TASKS and _HANDSHAKE_TASKS in server:
        return True
    return is_extension(method) and any(name.rpartition("/")[2] == label and _passes(name) for name in extensions)


def changes_nothing(method: str) -> bool:
    """Return whether a request may be made twice, or of several servers, and changes nothing."""
    return method.rpartition("/")[2] in _READS or method == "tasks/cancel"


# -- names inside of answers -----------------------------------------------------------------------


def with_addresses(value: Any, shown: Callable[[str], str]) -> Any:
    """Return an answer with each address of its server as ``shown`` makes it."""
    match value:
        case Mapping():
            value = cast("Mapping[str, Any]", value)
            return {
                key: shown(one) if key == "uri" and isinstance(one, str)
                else one if key in _AS_WRITTEN else with_addresses(one, shown)
                for key, one in value.items()
            }  # fmt: skip
        case list() | tuple():
            return [with_addresses(one, shown) for one in cast("list[Any]", value)]
        case _:
            return value


def is_task(result: Mapping[str, Any]) -> bool:
    """Return whether the result of a call stands for a task, in either era."""
    if result.get("resultType") == "task":
        return isinstance(result.get("taskId"), str)
    if "content" in result:
        return False
    task = result.get("task")
    return isinstance(task, Mapping) and isinstance(task.get("taskId"), str)


def with_task_ids(result: JsonObject, shown: Callable[[str], str]) -> dict[str, Any]:
    """Return a result about tasks with each id as ``shown`` makes it."""
    found = with_related_task(result, shown)
    if isinstance(found.get("taskId"), str):
        found["taskId"] = shown(found["taskId"])
    if isinstance(found.get("task"), Mapping):
        found["task"] = with_task_ids(found["task"], shown)
    if isinstance(found.get("tasks"), list | tuple):
        found["tasks"] = [with_task_ids(one, shown) if isinstance(one, Mapping) else one for one in found["tasks"]]
    return found


def with_related_task(message: JsonObject, shown: Callable[[str], str]) -> dict[str, Any]:
    """Return parameters or a result whose ``_meta`` names the task that they belong to as ``shown`` makes it."""
    found = dict(message)
    if (related := related_task(message)) is not None:
        meta: JsonObject = found["_meta"]
        found["_meta"] = {**meta, RELATED_TASK_KEY: {**meta[RELATED_TASK_KEY], "taskId": shown(related)}}
    return found


def related_task(message: JsonObject) -> str | None:
    """Return the id of the task to which parameters or a result say that they belong."""
    match message.get("_meta"):
        case {mcp_constants.RELATED_TASK_KEY: {"taskId": str(found)}}:
            return found
        case _:
            return None
