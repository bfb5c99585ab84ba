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

Kind = Literal["text", "long", "choice", "names", "texts", "pairs", "numbers", "value"]
"""``names``: an entry a line; ``texts`` and ``pairs``: a name and what it has a line; ``numbers``: a field for each
part; ``value``: text, or JSON."""
_PAIR: Final = re.compile(r"([^:=\s][^:=]*?)\s*[:=]\s*(.*)", re.DOTALL)
_QUOTED: Final = re.compile(r'("(?:[^"\\]|\\.)*")\s*[:=]\s*(.*)', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field of a form; ``name`` is the key of the entry that it stands for."""

    name: str
    label: str
    kind: Kind = "text"
    help: str = ""
    choices: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


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
        value = entry_of(_read(self.text))
        return {part: _plain(value[part]) if part in value else "" for part in self.field.parts}

    @property
    def rest(self) -> str:
        """Return what a field of numbers has besides its parts, as JSON."""
        return _json({name: one for name, one in entry_of(_read(self.text)).items() if name not in self.field.parts})


_LINES: Final = "One a line."
_APPROVE: Final = FormField(
    name="approve",
    label="Approval rules",
    kind="pairs",
    help="A tool, or a pattern of tools, and when a person approves its calls: delete_page: always, or destructive, or "
    'arguments as JSON: send: {"to": ["*@example.org"]}.',
)
FORMS: Final[Mapping[str, Form]] = {
    form.section: form
    for form in (
        Form(
            section="agents",
            noun="agent",
            fields=(
                FormField(name="display_name", label="Displayed name"),
                FormField(name="role", label="Role"),
                FormField(
                    name="tools",
                    label="Tools",
                    kind="names",
                    help=f"Always loaded: plugins and tools. {_LINES} With settings as JSON: "
                    '{"shell": {"include_tools": ["run_shell_command"]}}.',
                ),
                FormField(
                    name="allowed_toolkits", label="Toolkits", kind="names", help=f"Loaded when it needs them. {_LINES}"
                ),
                FormField(
                    name="initial_toolkits",
                    label="Toolkits loaded from the start",
                    kind="names",
                    help=f"Some of its toolkits. {_LINES}",
                ),
                FormField(
                    name="discoverable",
                    label="Discoverable plugins",
                    kind="names",
                    help=f"Plugins that it may load by name; * stands for any. {_LINES}",
                ),
                FormField(name="loadout", label="Loadout"),
                FormField(
                    name="permissions",
                    label="Switches in the file",
                    kind="pairs",
                    help="A toolkit, plugin or tool, and true or false. One a line: git/git_commit: false. A switch "
                    "that is set at run time counts instead.",
                ),
                FormField(
                    name="dialect",
                    label="Dialect",
                    kind="choice",
                    choices=("pegboard", "toolkits", "invokeother", "discovery"),
                ),
                FormField(
                    name="worker_scope",
                    label="Who shares what its plugins keep",
                    kind="choice",
                    choices=("shared", "user", "user_agent"),
                ),
                FormField(
                    name="approvals", label="Approvals", kind="value", help='Who may give one: {"by": "operator"}.'
                ),
                FormField(
                    name="budget",
                    label="Budget",
                    kind="numbers",
                    parts=("tools", "tokens"),
                    help="How many tools, and how many tokens of tools and texts, may be loaded at once.",
                ),
                FormField(name="model", label="Model"),
                FormField(name="may_delegate", label="Agents that it may hand work to", kind="names", help=_LINES),
            ),
        ),
        Form(
            section="toolkits",
            noun="toolkit",
            fields=(
                FormField(name="description", label="Description", help="What models and people read of it."),
                FormField(
                    name="tools",
                    label="Members",
                    kind="names",
                    help=f'Plugins and tools. {_LINES} With settings as JSON: {{"sql": {{"db_url": "…"}}}}.',
                ),
                FormField(name="policy", label="Policy text", kind="long"),
                FormField(name="label", label="Label"),
                FormField(name="icon", label="Icon"),
            ),
        ),
        Form(
            section="loadouts",
            noun="loadout",
            fields=(
                FormField(name="extends", label="Extends"),
                FormField(name="plugins", label="Plugins", kind="names", help=_LINES),
                FormField(name="categories", label="Categories", kind="names", help=_LINES),
                FormField(name="discoverable", label="Discoverable plugins", kind="names", help=_LINES),
                FormField(name="disabled", label="Disabled plugins", kind="names", help=_LINES),
            ),
        ),
        Form(
            section="servers",
            noun="server",
            fields=(
                FormField(name="command", label="Command"),
                FormField(name="args", label="Arguments", kind="names", help=_LINES),
                FormField(name="url", label="Address (URL)"),
                FormField(name="env", label="Environment", kind="texts", help="One a line: NAME=${NAME}."),
                FormField(
                    name="headers", label="Headers", kind="texts", help="One a line: Authorization: Bearer ${TOKEN}."
                ),
                FormField(
                    name="confine",
                    label="Confinement",
                    kind="value",
                    help='true, or as JSON: {"write": ["."], "network": "none"}. Empty: it may what you may.',
                ),
                FormField(name="category", label="Category"),
                FormField(name="timeout", label="Time limit of a call", help="Such as 60s."),
                _APPROVE,
            ),
        ),
        Form(section="plugins", noun="plugin", fields=(_APPROVE,)),
    )
}
"""The forms, by the section of the configuration."""


def entry_of(value: Any) -> Mapping[str, Any]:
    """Return an entry of the configuration, empty where nothing is written in it."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def filled(form: Form, entry: Mapping[str, Any]) -> tuple[FilledField, ...]:
    """Return the fields of a form with what an entry says."""
    return tuple(FilledField(field=field, text=shown(field.kind, entry.get(field.name))) for field in form.fields)


def shown(kind: Kind, value: Any) -> str:
    r"""Return a value as it stands in a field.

    >>> shown("names", ["a", {"b": {"c": 1}}]), shown("pairs", {"x": "always", "y": True, "z": "true"})
    ('a\n{"b": {"c": 1}}', 'x: always\ny: true\nz: "true"')
    """
    match kind, value:
        case _, None:
            return ""
        case "names", list() | tuple():
            return "\n".join(_plain(item) for item in cast("Sequence[Any]", value))
        case "texts" | "pairs", dict():
            items = cast("dict[str, Any]", value).items()
            of = _plain if kind == "pairs" else _text
            return "\n".join(f"{_name(name)}: {of(inner)}" for name, inner in items)
        case "text" | "long" | "choice", str():
            return value
        case _:
            return _plain(value)


def typed(field: FormField, sent: Mapping[str, Any]) -> str:
    """Return the text of a field as a form sends it; that of numbers is made of its parts."""
    if isinstance(whole := sent.get(field.name), str):
        return whole
    if not field.parts:
        return ""
    given = {part: str(sent.get(f"{field.name}.{part}", "")).strip() for part in field.parts}
    rest = entry_of(_read(str(sent.get(f"{field.name}.rest", "{}"))))
    value = {**{part: _read(text) for part, text in given.items() if text}, **rest}
    return _json(value) if value else ""


def meant(field: FormField, text: str) -> Any:
    """Return what a field means, None where nothing stands in it.

    Raises:
        UsageError: a line of it cannot be read; it says which.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    match field.kind:
        case "names":
            return [_read(line) if line.startswith(("{", '"')) else line for line in lines] or None
        case "texts" | "pairs":
            pairs = [_pair(field, line) for line in lines]
            if len(dict(pairs)) < len(pairs):
                raise UsageError(f"{field.label}: a name stands there twice.", code="edit_form", hint=field.help)
            return {name: value if field.kind == "texts" else _value(value) for name, value in pairs} or None
        case "value" | "numbers":
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
    found = {field.name: meant(field, given.get(field.name, "")) for field in form.fields}
    if before is None:
        return [
            ConfigurationChange(path=path, value={name: value for name, value in found.items() if value is not None})
        ]
    was = {field.name: meant(field, shown(field.kind, before.get(field.name))) for field in form.fields}
    return [
        ConfigurationChange(path=(*path, name), value=value, remove=value is None)
        for name, value in found.items()
        if value != was[name] or type(value) is not type(was[name])
    ]


def _pair(field: FormField, line: str) -> tuple[str, str]:
    found = _QUOTED.fullmatch(line) or _PAIR.fullmatch(line)
    if found is None:
        shown = one_line(line, limit=60)
        raise UsageError(f"{field.label}: '{shown}' is no name with a value.", code="edit_form", hint=field.help)
    name = str(_read(found[1])) if found[1].startswith('"') else found[1]
    return name, found[2]


def _name(name: str) -> str:
    return name if _PAIR.fullmatch(f"{name}: x") and ":" not in name and "=" not in name else _json(name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and "\n" not in value else _plain(value)


def _plain(value: Any) -> str:
    """Return a value in one line: a text as it is, where it means nothing else."""
    if not isinstance(value, str):
        return _json(value)
    return value if _value(value) == value and value == value.strip() and "\n" not in value and value else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _value(text: str) -> Any:
    found = _read(text)
    return found if not isinstance(found, float) or text == repr(found) else text


def _read(text: str) -> Any:
    """Return what JSON says, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
