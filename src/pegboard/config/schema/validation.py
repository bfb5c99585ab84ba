"""Check a file against the schema: every problem at once, and what is left without the wrong parts."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Generic, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pegboard.config.documents.document import Document, PathKey, is_list, is_mapping
from pegboard.config.problem_codes import ProblemCode, error
from pegboard.config.schema.sections import known_keys
from pegboard.config.schema.values import kind_found
from pegboard.core.model.naming import did_you_mean, one_line
from pegboard.problems import Place, Problem

S = TypeVar("S", bound=BaseModel)
_ROUNDS: Final = 12
_ELSEWHERE: Final = {
    "mcpServers": "servers",
    "members": "tools",
    "parent": "extends",
    "includeCategories": "categories",
    "includePlugins": "plugins",
    "excludePlugins": "disabled",
    "discoverablePatterns": "discoverable",
    "tools_config": "permissions",
    "sub_app": "sub_apps",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedDocument(Generic[S]):
    """One validated file; ``indexes`` gives the entries of a list that remain."""

    document: Document
    section: S
    raw: Mapping[str, Any]
    problems: tuple[Problem, ...] = ()
    indexes: Mapping[tuple[PathKey, ...], list[int]] = field(default_factory=dict[tuple[PathKey, ...], list[int]])

    def place(self, *path: PathKey, key: bool = False) -> Place:
        """Return where something of the section, or its key, is in the file."""
        return self.document.place(_path_in_file(path, self.indexes), key=key)

    def wrote(self, section: str, name: str) -> AbstractSet[str]:
        """Return the keys that were written for a name, the wrong ones included."""
        part = self.raw.get(section)
        keys = part.get(name) if is_mapping(part) else None
        return keys.keys() if is_mapping(keys) else frozenset[str]()

    def declared_names(self, section: str) -> frozenset[str]:
        """Return the names that a section defines, those with a wrong definition included."""
        names = self.raw.get(section)
        return frozenset(names) if is_mapping(names) else frozenset()


def validate(
    model: type[S], document: Document, value: dict[str, Any], *, gone: Sequence[tuple[PathKey, ...]] = ()
) -> ValidatedDocument[S]:
    """Return the file as a section.

    ``value`` is the document's own with its references filled in; it is changed. ``gone`` are paths
    that are wrong for another reason: they are dropped, and not missed.
    """
    raw = {name: _outline(part) for name, part in value.items()}
    indexes: dict[tuple[PathKey, ...], list[int]] = {}
    problems: list[Problem] = []
    missed = set(gone)
    _drop(value, list(gone), indexes)
    for _ in range(_ROUNDS):
        try:
            section = model.model_validate(value)
        except ValidationError as error:
            wrong: list[tuple[PathKey, ...]] = []
            for detail in error.errors(include_url=False):
                path = _path(detail, value)
                written = _path_in_file(path, indexes)
                if not _follows_from_missed(detail["type"], written, missed):
                    problems.append(_problem(detail, path, written, model, document))
                missed.add(written)
                wrong.append(path[:-1] if detail["type"] == "missing" else path)
            _drop(value, wrong, indexes)
        else:
            return ValidatedDocument(
                document=document, section=section, raw=raw, problems=tuple(problems), indexes=indexes
            )
    return ValidatedDocument(document=document, section=model.model_validate({}), raw=raw, problems=tuple(problems))


def _outline(part: Any) -> Any:
    """Return which keys were written, two levels deep."""
    return {name: dict(one) if is_mapping(one) else one for name, one in part.items()} if is_mapping(part) else part


def _follows_from_missed(code: str, written: tuple[PathKey, ...], missed: AbstractSet[tuple[PathKey, ...]]) -> bool:
    """Return whether a problem only stands because something that was wrong has been dropped."""
    if code == "missing":
        return written in missed
    return code == "bad_value" and any(path[:-1] == written for path in missed)


def _path(detail: ErrorDetails, value: Any) -> tuple[PathKey, ...]:
    """Return where a problem stands; what was written as one thing is no list of one."""
    path: tuple[PathKey, ...] = ()
    for part in detail["loc"][:-1] if detail["loc"][-1:] == ("[key]",) else detail["loc"]:
        unnamed = part == "" and not (is_mapping(value) and part in value)
        if unnamed or (isinstance(part, int) and not is_list(value)):  # what a validator has put in between
            continue
        path, value = (*path, part), _inner(value, part)
    return path


def _path_in_file(path: Sequence[PathKey], indexes: Mapping[tuple[PathKey, ...], list[int]]) -> tuple[PathKey, ...]:
    """Return the path in the file of something in what is left of it."""
    if not indexes:
        return tuple(path)
    written: tuple[PathKey, ...] = ()
    for part in path:
        remaining = indexes.get(written) if isinstance(part, int) else None
        written = (
            *written,
            remaining[part] if remaining is not None and isinstance(part, int) and part < len(remaining) else part,
        )
    return written


def _drop(value: Any, paths: list[tuple[PathKey, ...]], indexes: dict[tuple[PathKey, ...], list[int]]) -> None:
    """Take what is at these paths out, deepest and last first."""
    for path in sorted(set(paths), key=_sort_key, reverse=True):
        owner: Any = value
        depth = 0
        while depth < len(path) - 1:
            inner = _inner(owner, path[depth])
            if not is_mapping(inner) and not is_list(inner):
                break
            owner, depth = inner, depth + 1
        last = path[depth] if path else None
        if is_list(owner) and isinstance(last, int) and last < len(owner):
            remaining = indexes.setdefault(_path_in_file(path[:depth], indexes), list(range(len(owner))))
            del owner[last], remaining[last]
        elif is_mapping(owner) and last is not None:
            owner.pop(str(last), None)


def _sort_key(path: tuple[PathKey, ...]) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (-1, part) for part in path]


def _inner(owner: Any, part: PathKey) -> Any:
    if is_mapping(owner):
        return owner.get(str(part))
    return owner[part] if is_list(owner) and isinstance(part, int) and part < len(owner) else None


def _problem(
    detail: ErrorDetails,
    path: tuple[PathKey, ...],
    written: tuple[PathKey, ...],
    model: type[BaseModel],
    document: Document,
) -> Problem:
    code, message, hint = _words(detail, path, model)
    named = code == "unknown_key" or detail["loc"][-1:] == ("[key]",)
    at = written[:-1] if code in ("missing_key", "unknown_key") else written
    place = document.place(written, key=named)
    if at != written:
        shown = document.place(at)
        place = Place(file=place.file, line=place.line, column=place.column, path=shown.path)
    return error(code, message, place, hint)


def _words(detail: ErrorDetails, path: tuple[PathKey, ...], model: type[BaseModel]) -> tuple[ProblemCode, str, str]:
    """Return code, message and hint for what pydantic found."""
    value, context = detail.get("input"), detail.get("ctx", {})
    match detail["type"]:
        case "wrong_type" | "bad_value" | "bad_duration":
            return detail["type"], str(context["message"]), str(context.get("hint", ""))
        case "missing":
            return "missing_key", f"'{path[-1]}' is missing.", ""
        case "extra_forbidden":
            return "unknown_key", f"the key '{path[-1]}' is not known here.", _keys_hint(path, value, model)
        case "list_type":
            return "wrong_type", f"expected {_name_of_list(path)}, found {kind_found(value)}.", _list_hint(value)
        case "dict_type" | "model_type" | "model_attributes_type":
            return "wrong_type", f"expected a mapping, found {kind_found(value)}.", "Write it as `key: value`."
        case "literal_error":
            return _choice(value, str(context["expected"]))
        case "string_unicode":
            return "bad_value", "contains text that is not valid Unicode.", ""
        case _:
            return "bad_value", f"{one_line(detail['msg'], limit=200)}.", ""


def _choice(value: Any, expected: str) -> tuple[ProblemCode, str, str]:
    known = re.findall(r"'([^']*)'", expected)
    one = "" if len(known) == 1 else "one of "
    if isinstance(value, str):
        message = f"expected {one}{expected}, found '{one_line(value, limit=40)}'."
        return "bad_value", message, did_you_mean(value, known)
    return "wrong_type", f"expected {one}{expected}, found {kind_found(value)}.", ""


def _name_of_list(path: tuple[PathKey, ...]) -> str:
    return "a list" if path[-1:] in (("args",), ("focus",), ("allow",), ("deny",)) else "a list of names"


def _list_hint(value: Any) -> str:
    if isinstance(value, str) and re.fullmatch(r"[\w*./:-]{1,40}", value):
        return f"Write [{value}]."
    return "Write each name as an entry `- name`." if is_mapping(value) else ""


def _keys_hint(path: tuple[PathKey, ...], value: Any, model: type[BaseModel]) -> str:
    section = section_at(model, path[:-1])
    keys = known_keys(section) if section is not None else ()
    wrong = str(path[-1])
    if value is None and " " in wrong:
        return 'If it belongs to the text before it: quote a text with a comma inside braces, "like, this".'
    other = _ELSEWHERE.get(wrong)
    if other in keys:
        return f"Write '{other}'."
    return did_you_mean(wrong, keys) or (f"Known keys: {', '.join(keys)}." if keys else "")


def section_at(model: type[BaseModel], path: Sequence[PathKey]) -> type[BaseModel] | None:
    """Return the section that is at a path."""
    kind: Any = model
    for part in path:
        kind = _bare_type(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            by_key = {f.alias or name: f.annotation for name, f in kind.model_fields.items()}
            kind = by_key.get(str(part))
        elif get_origin(kind) in (dict, list):
            kind = get_args(kind)[-1]
        else:
            return None
    kind = _bare_type(kind)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _bare_type(kind: Any) -> Any:
    """Return a type without annotations and without None."""
    while get_origin(kind) in (Annotated, Union, types.UnionType):
        kind = next(arg for arg in get_args(kind) if arg is not type(None))
    return kind
