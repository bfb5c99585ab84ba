"""Forms over one entry of the configuration: what each field shows of it, and what it means when it comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from pegboard.core.model.naming import one_line
from pegboard.errors import UsageError
from pegboard.operators.editable import ConfigurationChange

Kind = Literal["text", "long", "choice", "scalar", "names", "texts", "pairs", "numbers", "value"]
"""``scalar``: a number, true, false or a text; ``names``: an entry a line; ``texts`` and ``pairs``: a name and what it
has a line; ``numbers``: a field for each part; ``value``: text, or JSON."""
_PAIR: Final = re.compile(r"([^:=\s][^:=]*?)\s*[:=]\s*(.*)", re.DOTALL)
_QUOTED: Final = re.compile(r'("(?:[^"\\]|\\.)*")\s*[:=]\s*(.*)', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a form; ``name`` is the key of the entry, ``more`` whether the field is folded while it is empty."""

    name: str
    label: str
    kind: Kind = "text"
    help: str = ""
    choices: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form over an entry of one section."""

    section: str
    noun: str
    fields: tuple[FormField, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledField:
    """A field with its text, and what is wrong with it."""

    field: FormField
    text: str
    wrong: str = ""

    @property
    def numbers(self) -> Mapping[str, str]:
        """Return the text of each part of a field of numbers."""
        value = entry_of(_parse_or_text(self.text))
        return {part: _plain_text(value[part]) if part in value else "" for part in self.field.parts}

    @property
    def rest(self) -> str:
        """Return what a field of numbers has besides its parts, as JSON."""
        return _json(
            {name: one for name, one in entry_of(_parse_or_text(self.text)).items() if name not in self.field.parts}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _FormOf:
    """What a form shows of a section: the keys that are in sight, those that it leaves out, or the only ones."""

    noun: str
    keys: tuple[str, ...]
    without: tuple[str, ...] = ()
    alone: bool = False


_AGENT: Final = (
    *("display_name", "role", "tools", "allowed_toolkits", "initial_toolkits", "discoverable", "loadout", "model"),
    *("budget", "permissions", "dialect", "worker_scope", "may_delegate"),
)
_SERVER: Final = ("command", "args", "url", "env", "headers", "confine", "timeout", "category", "approve")
SECTIONS: Final[Mapping[str, _FormOf]] = {
    "agents": _FormOf(noun="agent", keys=_AGENT),
    "toolkits": _FormOf(noun="toolkit", keys=("description", "tools", "policy", "label", "icon")),
    "loadouts": _FormOf(
        noun="loadout", keys=("extends", "plugins", "categories", "discoverable", "disabled"), alone=True
    ),
    "servers": _FormOf(noun="server", keys=_SERVER, without=("transport", "autoApprove", "alwaysAllow")),
    "plugins": _FormOf(noun="plugin", keys=("approve",), alone=True),
}
"""The forms, by the section of the configuration."""
_LONG: Final = ("policy",)
_EXAMPLES: Final = {
    "approve": "delete_page: always",
    "confine": '{"write": ["."], "network": "none"}',
    "env": "NAME: ${NAME}",
    "headers": "Authorization: Bearer ${TOKEN}",
    "permissions": "git/git_commit: false",
    "tools": '{"shell": {"include_tools": ["run_shell_command"]}}',
}
_HOW: Final[Mapping[Kind, str]] = {
    "names": "One per line.",
    "texts": "One per line.",
    "pairs": "One per line.",
    "value": "As JSON.",
}


def form_of(section: str, schema: Mapping[str, Any]) -> Form:
    """Return the form over an entry of a section, as the schema of the configuration describes it."""
    about = SECTIONS[section]
    entry = _resolved(schema, _resolved(schema, schema["properties"][section])["additionalProperties"])
    keys = entry["properties"]
    others = () if about.alone else tuple(key for key in keys if key not in (*about.keys, *about.without))
    fields = (_field(key, _resolved(schema, keys[key]), schema, more=key in others) for key in (*about.keys, *others))
    return Form(section=section, noun=about.noun, fields=tuple(fields))


def _resolved(schema: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a part of a schema says, without a reference, and without that it may be null."""
    if "$ref" in part:
        return _resolved(schema, {**schema["$defs"][part["$ref"].rpartition("/")[2]], **_but(part, "$ref")})
    kinds = [one for one in part.get("anyOf", ()) if one.get("type") != "null"]
    return _resolved(schema, {**kinds[0], **_but(part, "anyOf")}) if len(kinds) == 1 else part


def _but(part: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != key}


def _field(key: str, part: Mapping[str, Any], schema: Mapping[str, Any], *, more: bool) -> FormField:
    inner = {name: _resolved(schema, one) for name, one in part.get("properties", {}).items()}
    numbers = tuple(name for name, one in inner.items() if one.get("type") == "integer")
    kind = "numbers" if numbers else _kind(key, part)
    example = _EXAMPLES.get(key, "")
    help_texts = (part.get("description", ""), _HOW.get(kind, ""), f"Example: {example}" if example else "")
    return FormField(
        name=key,
        label=re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", key).capitalize() if key != "url" else "URL",
        kind=kind,
        help=" ".join(filter(None, help_texts)),
        choices=tuple(part.get("enum", ())) if kind == "choice" else ("true", "false") if _is_flag(part) else (),
        parts=numbers,
        more=more,
    )


def _is_flag(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "boolean"


def _kind(key: str, part: Mapping[str, Any]) -> Kind:
    """Return how a value is filled in that a schema describes so."""
    match part:
        case _ if key in _LONG and part.get("type") != "object":
            return "long"
        case {"enum": [*_]}:
            return "choice"
        case {"type": "string"}:
            return "text"
        case {"type": "boolean" | "integer" | "number"}:
            return "scalar"
        case {"type": "array", "items": {"type": "string"} | {"anyOf": [*_]}}:
            return "names"
        case {"type": "object", "additionalProperties": {"type": "string"}}:
            return "texts"
        case {"type": "object", "additionalProperties": {"type": "boolean"} | {"anyOf": [*_]}} if (
            "properties" not in part
        ):
            return "pairs"
        case {"anyOf": [*kinds]} if all(one.get("type") in ("string", "boolean", "number", "integer") for one in kinds):
            return "scalar"
        case _:
            return "value"


def entry_of(value: Any) -> Mapping[str, Any]:
    """Return an entry of the configuration, empty where nothing is written in it."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def filled_fields(form: Form, entry: Mapping[str, Any]) -> tuple[FilledField, ...]:
    """Return the fields of a form with what an entry says."""
    return tuple(FilledField(field=field, text=field_text(field.kind, entry.get(field.name))) for field in form.fields)


def field_text(kind: Kind, value: Any) -> str:
    r"""Return a value as it is in a field.

    >>> field_text("names", ["a", {"b": {"c": 1}}]), field_text("pairs", {"x": "always", "y": True, "z": "true"})
    ('a\n{"b": {"c": 1}}', 'x: always\ny: true\nz: "true"')
    """
    match kind, value:
        case _, None:
            return ""
        case "names", list() | tuple():
            return "\n".join(_plain_text(item) for item in cast("Sequence[Any]", value))
        case "texts" | "pairs", dict():
            items = cast("dict[str, Any]", value).items()
            of = _plain_text if kind == "pairs" else _text
            return "\n".join(f"{_name(name)}: {of(inner)}" for name, inner in items)
        case "text" | "long" | "choice", str():
            return value
        case _:
            return _plain_text(value)


def text_of_field(form: Form, sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts of the fields that a form sends."""
    texts = ((field.name, _typed(field, sent)) for field in form.fields)
    return {name: text for name, text in texts if text is not None}


def _typed(field: FormField, sent: Mapping[str, Any]) -> str | None:
    """Return the text of a field as a form sends it, None where it does not; that of numbers is made of its parts."""
    if isinstance(whole := sent.get(field.name), str):
        return whole
    if not any(f"{field.name}.{part}" in sent for part in field.parts):
        return None
    given = {part: str(sent.get(f"{field.name}.{part}", "")).strip() for part in field.parts}
    rest = entry_of(_parse_or_text(str(sent.get(f"{field.name}.rest", "{}"))))
    value = {**{part: _parse_or_text(text) for part, text in given.items() if text}, **rest}
    return _json(value) if value else ""


def value_of_field(field: FormField, text: str) -> Any:
    """Return what a field means, None where nothing is in it.

    Raises:
        UsageError: a line of it cannot be read; it says which.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    match field.kind:
        case "names":
            return [_parse_or_text(line) if line.startswith(("{", '"')) else line for line in lines] or None
        case "texts" | "pairs":
            pairs = [_parse_pair(field, line) for line in lines]
            if len(dict(pairs)) < len(pairs):
                raise UsageError(f"{field.label}: a name is given twice.", code="edit_form", hint=field.help)
            return {name: value if field.kind == "texts" else _value(value) for name, value in pairs} or None
        case "value" | "numbers" | "scalar":
            return _value(text.strip()) if text.strip() else None
        case "long":
            return text if text.strip() else None
        case _:
            return text.strip() or None


def changes(
    form: Form, path: tuple[str, ...], before: Mapping[str, Any] | None, given: Mapping[str, str]
) -> list[ConfigurationChange]:
    """Return what a form that comes back changes of an entry; all of a new one.

    Args:
        before: what the entry said, None for a new one.

    Raises:
        UsageError: a field cannot be read.
    """
    sent = [field for field in form.fields if field.name in given]
    found = {field.name: value_of_field(field, given[field.name]) for field in sent}
    if before is None:
        return [
            ConfigurationChange(path=path, value={name: value for name, value in found.items() if value is not None})
        ]
    was = {field.name: value_of_field(field, field_text(field.kind, before.get(field.name))) for field in sent}
    return [
        ConfigurationChange(path=(*path, name), value=value, remove=value is None)
        for name, value in found.items()
        if value != was[name] or type(value) is not type(was[name])
    ]


def _parse_pair(field: FormField, line: str) -> tuple[str, str]:
    found = _QUOTED.fullmatch(line) or _PAIR.fullmatch(line)
    if found is None:
        shown = one_line(line, limit=60)
        raise UsageError(f"{field.label}: '{shown}' is not a name with a value.", code="edit_form", hint=field.help)
    name = str(_parse_or_text(found[1])) if found[1].startswith('"') else found[1]
    return name, found[2]


def _name(name: str) -> str:
    return name if _PAIR.fullmatch(f"{name}: x") and ":" not in name and "=" not in name else _json(name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and "\n" not in value else _plain_text(value)


def _plain_text(value: Any) -> str:
    """Return a value in one line: a text as it is, where it means nothing else."""
    if not isinstance(value, str):
        return _json(value)
    return value if _value(value) == value and value == value.strip() and "\n" not in value and value else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _value(text: str) -> Any:
    found = _parse_or_text(text)
    return found if not isinstance(found, float) or text == repr(found) else text


def _parse_or_text(text: str) -> Any:
    """Return what JSON says, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
