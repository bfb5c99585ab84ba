"""Read what a program gives as a mapping: the same values as in a file, with paths for places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from pegboard.config.documents.document import (
    DEEPEST,
    MOST_VALUES,
    Document,
    Node,
    UnreadableError,
    mapping_node,
    sequence,
)
from pegboard.config.problem_codes import ProblemCode
from pegboard.problems import Place, Problem

_NOWHERE: Final = (0, 0)


def compose(value: Mapping[str, Any], file: str) -> Document:
    """Return what a mapping says; ``file`` is how messages name it.

    Raises :class:`UnreadableError` where it holds something that no file can hold.
    """
    return Document(file=file, root=_MappingReader(file).node(value, "", 0), placed=False)


class _MappingReader:
    """The reader of one mapping; it counts the values, so that what holds itself ends."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0

    def node(self, value: object, path: str, depth: int) -> Node:
        """Return the node of a value."""
        self._count += 1
        if depth > DEEPEST:
            raise self._fault("too_deep", f"is nested more than {DEEPEST} levels deep.", path)
        if self._count > MOST_VALUES:
            raise self._fault("too_large", f"contains more than {MOST_VALUES} values.", path)
        if isinstance(value, Mapping):
            children = {
                self._key(key, path): self.node(inner, f"{path}.{key}", depth + 1)
                for key, inner in cast("Mapping[object, object]", value).items()
            }
            return mapping_node(children, dict.fromkeys(children, _NOWHERE), _NOWHERE)
        if isinstance(value, list | tuple):
            items = enumerate(cast("list[object]", value))
            return sequence([self.node(item, f"{path}[{index}]", depth + 1) for index, item in items], _NOWHERE)
        if value is None or isinstance(value, str | bool | int | float):
            return Node(value, *_NOWHERE)
        hint = "Give text, numbers, true, false, None, lists and mappings."
        raise self._fault("wrong_type", f"cannot contain a value of the type {type(value).__name__}.", path, hint)

    def _key(self, key: object, path: str) -> str:
        if not isinstance(key, str):
            raise self._fault("bad_key", f"the key {key!r:.40} is not text.", path, "Write it in quotes.")
        return key

    def _fault(self, code: ProblemCode, message: str, path: str, hint: str = "") -> UnreadableError:
        place = Place(file=self._file, path=path.removeprefix("."))
        return UnreadableError(Problem(severity="error", code=code, message=message, hint=hint, place=place))
