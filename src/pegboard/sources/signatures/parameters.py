"""The overrides that a class or factory takes, and what it makes of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from pegboard.core.model.naming import did_you_mean
from pegboard.core.model.tools import EMPTY, Frozen, JsonObject
from pegboard.errors import OverrideError, ToolUnavailableError
from pegboard.sources.signatures.annotations import adapter_for

_SECRET = re.compile(
    r"(?i)(^|_)(password|passwd|secret|token|key|dsn|credentials?|authorization|db_url|database_url|"
    r"connection_string)s?$"
)
_NOT_SECRET = re.compile(r"(?i)(^|_)(max|min|num|limit|count|enable)_")
_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The parameters that may be given from YAML, as adapters by name, and those that cannot be.

    ``required`` must be given; ``unfit`` names required parameters that only Python code can give.
    """

    adapters: Mapping[str, Any] = field(default=EMPTY)
    types: Mapping[str, str] = field(default=EMPTY)
    secrets: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()


def parameters_of(
    target: Callable[..., Any], *, base: type | None = None, of_base: frozenset[str] = frozenset()
) -> Parameters:
    """Return the parameters of a class or factory, following ``**kwargs`` to the parent classes.

    Of ``base``, the class that ends the search, only the parameters ``of_base`` count.
    """
    adapters: dict[str, Any] = {}
    types: dict[str, str] = {}
    secrets: set[str] = set()
    required: list[str] = []
    unfit: list[str] = []
    for name, parameter, annotation in _find_parameters(target, base, of_base):
        needed = parameter.default is parameter.empty
        try:
            adapters[name] = adapter_for(annotation)
        except Exception:  # a type without a JSON form: an engine, a client
            if needed:
                unfit.append(name)
            continue
        schema = adapters[name].json_schema()
        types[name] = _json_type(schema)
        if _is_secret(name, annotation, schema):
            secrets.add(name)
        if needed:
            required.append(name)
    return Parameters(
        adapters=Frozen(adapters),
        types=Frozen(types),
        secrets=frozenset(secrets),
        required=tuple(required),
        unfit=tuple(unfit),
    )


def construct(
    target: Callable[..., Any],
    parameters: Parameters,
    overrides: JsonObject,
    *,
    plugin: str,
    given: Mapping[str, Any] = EMPTY,
) -> Any:
    """Call a class or factory with overrides converted to its annotations, and with what is ``given`` as it is.

    Raises ``ToolUnavailableError`` for what it does not take, lacks, or cannot convert.
    """
    known = parameters.adapters
    for name in overrides:
        if name not in known:
            raise refused_override(plugin, name, tuple(known))
    missing = [name for name in parameters.required if name not in overrides]
    if parameters.unfit:
        raise ToolUnavailableError(
            f"plugin '{plugin}' needs {_parameters_text(parameters.unfit)}, which only Python code can give.",
            hint="Write a factory that constructs it and name that under 'plugins:' with 'python:'.",
        )
    if missing:
        raise ToolUnavailableError(
            f"plugin '{plugin}' needs {_parameters_text(missing)}.",
            hint=f"Give it inline: '- {plugin}: {{{missing[0]}: …}}'.",
        )
    converted = {name: _convert_value(plugin, name, known[name], value) for name, value in overrides.items()}
    return target(**converted, **given)


_ON_DEMAND: Final = "defer"
_HOW_ON_DEMAND: Final = (
    "MindRoom writes it for what is loaded on demand: here that is a tool in a toolkit of `allowed_toolkits`"
    " that is not among `initial_toolkits`."
)
"""What is said of MindRoom's newer key, which stands among a tool's settings."""


def refused_override(plugin: str, name: str, known: tuple[str, ...]) -> OverrideError:
    """Return the error for an override that a plugin does not take."""
    if not known:
        return OverrideError(
            f"plugin '{plugin}' takes no overrides, so '{name}' cannot be set.",
            override=name,
            hint=_HOW_ON_DEMAND
            if name == _ON_DEMAND
            else "Overrides are the parameters of a class or factory: 'python: module:Class'.",
        )
    guess = did_you_mean(name, known)
    hint = f"It takes {', '.join(sorted(known))}." if name != _ON_DEMAND else _HOW_ON_DEMAND
    return OverrideError(
        f"plugin '{plugin}' has no parameter '{name}'.", override=name, hint=f"{guess} {hint}" if guess else hint
    )


def _convert_value(plugin: str, name: str, adapter: Any, value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise OverrideError(
            f"plugin '{plugin}': parameter '{name}' is not valid: {first['msg']}.",
            override=name,
            hint=f"It takes: {_json_type(adapter.json_schema())}.",
        ) from None


def _find_parameters(
    target: Callable[..., Any], base: type | None, of_base: frozenset[str]
) -> list[tuple[str, inspect.Parameter, Any]]:
    """Return name, parameter and annotation of each, the nearest class's first."""
    found: dict[str, tuple[str, inspect.Parameter, Any]] = {}
    for step in _constructors(target, base):
        owner, function = step
        try:
            hints = get_type_hints(function, include_extras=True)
        except (NameError, TypeError, AttributeError):
            hints = {}
        passes_on = False
        for index, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
            if owner is not None and index == 0:
                continue
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                passes_on = passes_on or parameter.kind is parameter.VAR_KEYWORD
                continue
            if owner is base and base is not None and name not in of_base:
                continue
            annotation = hints.get(name, Any if parameter.annotation is parameter.empty else parameter.annotation)
            found.setdefault(name, (name, parameter, annotation))
        if not passes_on:
            break
    return list(found.values())


def _constructors(target: Callable[..., Any], base: type | None) -> list[tuple[type | None, Callable[..., Any]]]:
    """Return the ``__init__`` of a class and of its parents down to ``base``, or the factory itself."""
    if not inspect.isclass(target):
        return [(None, target)]
    steps: list[tuple[type | None, Callable[..., Any]]] = []
    for owner in target.__mro__:
        init = owner.__dict__.get("__init__")
        if inspect.isfunction(init):
            steps.append((owner, init))
        if owner is base:
            break
    return steps


def _json_type(schema: JsonObject) -> str:
    """Return the one JSON type of a value that is not null, or ``any``."""
    branches: list[Any] = list(schema.get("anyOf", (schema,)))
    kinds = {_resolve_reference(branch, schema).get("type") for branch in branches} - {"null"}
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind if kind in _JSON_TYPES else "any"


def _resolve_reference(branch: JsonObject, schema: JsonObject) -> JsonObject:
    reference = branch.get("$ref")
    return schema.get("$defs", {}).get(reference.rpartition("/")[2], {}) if reference else branch


def _is_secret(name: str, annotation: Any, schema: JsonObject) -> bool:
    if get_origin(annotation) is Annotated and "secret" in get_args(annotation)[1:]:
        return True
    if "password" in [branch.get("format") for branch in schema.get("anyOf", (schema,))]:
        return True
    return bool(_SECRET.search(name)) and not _NOT_SECRET.search(name) and _json_type(schema) in ("string", "any")


def _parameters_text(names: tuple[str, ...] | list[str]) -> str:
    plural = "s" if len(names) > 1 else ""
    return f"the parameter{plural} {' and '.join(repr(n) for n in names)}"
