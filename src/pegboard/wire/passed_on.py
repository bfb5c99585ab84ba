"""Calls through ``call_tool`` as calls of the tool that they name, so that controls by a tool's name see that tool.

An adapter shows the framework the named tool as soon as a model has answered; the session gets what the model wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.core.model.tools import JsonObject
from pegboard.core.model.written_arguments import parsed_arguments
from pegboard.dialects.names import CALL, CALL_READ_ONLY

THROUGH: Final = (CALL, CALL_READ_ONLY)
"""The meta-tools whose call is one of another tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallThrough:
    """A call through ``call_tool``, as the framework is shown it and as the model wrote it.

    Attributes:
        name: the tool that it names.
        arguments: what that tool gets.
        via: the meta-tool that the model called.
        written: what the model gave to that.
    """

    name: str
    arguments: dict[str, Any]
    via: str
    written: dict[str, Any]

    def of_session(self, name: str, arguments: JsonObject) -> tuple[str, dict[str, Any]]:
        """Return name and arguments of the call for the session: as written, unless they were changed meanwhile.

        Args:
            name: what the framework calls now.
            arguments: what it gives.
        """
        if (name, dict(arguments)) == (self.name, self.arguments):
            return self.via, self.written
        return self.via, {"name": name, "arguments": dict(arguments)}


def tool_called(name: object, arguments: object) -> str:
    """Return the name of the tool that a call is of, also one through ``call_tool``."""
    inner = cast("JsonObject", arguments).get("name") if name in THROUGH and isinstance(arguments, Mapping) else name
    return str(inner)


def passed_on(name: object, arguments: object, own: Collection[str] = ()) -> CallThrough | None:
    """Return what a call passes on; None for one that is the call of a tool itself.

    What does not fit is passed on too: the session answers what is wrong with it.

    Args:
        name: what the model called.
        arguments: what it gave.
        own: names of tools that the framework runs itself, which no call reaches through the session.
    """
    if name not in THROUGH or name in own or not isinstance(arguments, Mapping):
        return None
    written = dict(cast("JsonObject", arguments))
    named, given = written.get("name"), written.get("arguments")
    if not isinstance(named, str) or named in own or named in THROUGH:
        return None
    inner = deepcopy(dict(parsed_arguments(given) or {}))
    return CallThrough(name=named, arguments=inner, via=str(name), written=written)
