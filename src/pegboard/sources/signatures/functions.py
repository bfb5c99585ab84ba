"""Functions as tools: name, description from the docstring, JSON Schema, and arguments back into Python values."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, cast, get_args, get_type_hints

from pegboard.core.model.array_schemas import items_beside
from pegboard.core.model.tools import Confirmation, Frozen, JsonObject, Tool
from pegboard.errors import ToolUnavailableError
from pegboard.marks import Mark, mark_of
from pegboard.sources.signatures.annotations import acceptable_annotation, adapter_for, plain_schema

_GUESSED = (bool, int, float, str, list, dict)
_NESTED = ("properties", "$defs", "patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_UNSORTED = frozenset({"properties", "default"})
"""Below keys of these names pydantic leaves the order of a schema as it is, parameters of these names included."""
_TITLE = re.compile(r":[ \t\r\f\v]*$", re.MULTILINE)
_OTHER_STYLES = re.compile(r"^(?:[:@]|\.\.|---)", re.MULTILINE)
_SINGLE = ("items", "additionalProperties", "not", "propertyNames", "contains")


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedFunction:
    """A function with its description for models, and what turns arguments into its parameters."""

    function: Callable[..., Any]
    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None
    mark: Mark
    confirmation: Confirmation | None
    positional: tuple[str, ...]
    adapter: Any
    runs: Literal["coroutine", "generator", "thread"]
    """What a call of the function is: a coroutine, an asynchronous generator, or something that runs in a thread."""

    def bind_arguments(self, arguments: JsonObject) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments as the annotations want them.

        Raises pydantic's ``ValidationError``, a ``ValueError``.
        """
        values: dict[str, Any] = self.adapter.validate_arguments(arguments)
        first: list[Any] = []
        for name in self.positional:
            if name not in values:
                break
            first.append(values.pop(name))
        return first, values

    def tool(self, plugin: str, siblings: Collection[str] = ()) -> Tool:
        """Return the tool as the catalog knows it; a requirement that names a sibling becomes its id."""
        return Tool(
            plugin=plugin,
            name=self.name,
            description=self.description,
            input_schema=self.input_schema,
            output_schema=self.output_schema,
            annotations=Frozen(self.mark.annotations()),
            requires=tuple(f"{plugin}/{r}" if r in siblings else r for r in self.mark.requires),
            needs=tuple(self.mark.needs),
            default_on=self.mark.default_on,
            policy=self.mark.policy,
            confirmation=self.confirmation,
        )


def describe_function(function: Callable[..., Any], *, name: str = "", mark: Mark | None = None) -> DescribedFunction:
    """Return the description that signature, annotations, docstring and mark of a function give.

    ``*args`` is excluded; ``**kwargs`` lets further arguments through. A parameter that JSON cannot
    express is excluded where it has a default, else ``ToolUnavailableError`` names it.
    """
    mark = mark_of(function) if mark is None else mark
    called = mark.name or name or getattr(function, "__name__", type(function).__name__)
    text, notes = _read_docstring(function)
    hints, given = _signature(function, called)
    if mark.schema is not None:
        given, whole = _parameters_of_schema(mark.schema, given, called)
        hints = {name: hints[name] if name == "return" else Any for name in {*given, *hints}}
    else:
        whole = None
    parameters = _parameters(given, hints, called)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in given.values())
    adapter = _Arguments(partial(_arguments_adapter, function, parameters, open_ended=open_ended))
    if whole is None:
        written = _plain_schema(parameters, open_ended=open_ended) or adapter.make_adapter().json_schema()
        whole = _input_schema(written, parameters, notes)
    schema, confirmation = _split_confirmation(mark, whole, called)
    return DescribedFunction(
        function=function,
        name=called,
        description=mark.description or text,
        input_schema=schema,
        output_schema=_output_schema(hints.get("return")),
        mark=mark,
        confirmation=confirmation,
        positional=_positional(function, parameters),
        adapter=adapter,
        runs=_how_it_runs(function),
    )


def _positional(function: object, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters that are given by their place; a function chosen by the type of the first needs that so."""
    dispatches = callable(getattr(function, "dispatch", None)) and hasattr(function, "registry")
    first = next(iter(parameters), None) if dispatches else None
    return tuple(name for name, one in parameters.items() if one.kind is one.POSITIONAL_ONLY or name == first)


def _how_it_runs(function: Callable[..., Any]) -> Literal["coroutine", "generator", "thread"]:
    """Return how the outermost wrapper runs, which need not be asynchronous where what it wraps is."""
    is_called = inspect.isroutine(function) or isinstance(function, partial)
    target = function if is_called else getattr(function, "__call__", function)  # noqa: B004
    if inspect.iscoroutinefunction(target):
        return "coroutine"
    return "generator" if inspect.isasyncgenfunction(target) else "thread"


def _parameters_of_schema(
    schema: Mapping[str, Any], given: Mapping[str, inspect.Parameter], called: str
) -> tuple[Mapping[str, inspect.Parameter], JsonObject]:
    """Return the parameters that take what a ready schema names, as it is, and the schema.

    Raises ``ToolUnavailableError`` where it is no schema of an object, or names what the function does not take.
    """
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or schema.get("type", "object") != "object":
        raise _unfit_error(called, "its `schema` is not the JSON Schema of an object")
    plain = {name: one.replace(annotation=Any) for name, one in given.items()}
    if any(one.kind is one.VAR_KEYWORD for one in given.values()):
        return plain, Frozen({**schema, "type": "object"})
    unknown = [name for name in properties if name not in given]
    if unknown:
        raise _unfit_error(called, f"its `schema` names '{unknown[0]}', which is not one of its parameters")
    needed = [name for name, one in given.items() if one.default is one.empty and one.kind is not one.VAR_POSITIONAL]
    demanded = schema.get("required", ())
    if missing := [name for name in needed if name not in demanded]:
        raise _unfit_error(called, f"it needs '{missing[0]}', which its `schema` does not require")
    return plain, Frozen({**schema, "type": "object"})


def _split_confirmation(mark: Mark, schema: JsonObject, called: str) -> tuple[JsonObject, Confirmation | None]:
    """Return what the model gives, and what a person does before the tool runs (T13)."""
    if mark.user_input_fields:
        try:
            return without_fields(schema, mark.user_input_fields)
        except KeyError as error:
            raise _unfit_error(called, f"a person is to fill in {error}, which is not one of its parameters") from error
    if mark.requires_confirmation or mark.external_execution:
        kind = "external" if mark.external_execution else "confirm"
        return schema, Confirmation(kind=kind, hook=callable(mark.requires_confirmation))
    return schema, None


def without_fields(schema: JsonObject, names: Sequence[str]) -> tuple[JsonObject, Confirmation]:
    """Return the schema without the parameters that a person fills in, and what demands them.

    Raises ``KeyError`` with a name that the schema does not have.
    """
    properties: dict[str, Any] = dict(schema.get("properties") or {})
    asked = {name: properties.pop(name) for name in names}
    required: list[str] = list(schema.get("required") or ())
    given = {**schema, "properties": properties, "required": [name for name in required if name not in asked]}
    form: dict[str, Any] = {"type": "object", "properties": asked}
    if wanted := [name for name in required if name in asked]:
        form["required"] = wanted
    if "$defs" in schema:
        form["$defs"] = schema["$defs"]
    if not given["required"]:
        del given["required"]
    return Frozen(given), Confirmation(kind="user_input", fields=tuple(asked), schema=Frozen(form))


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function or of an object's ``__call__``; raises ``NameError``."""
    target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    target = inspect.unwrap(target)
    try:
        return get_type_hints(target, include_extras=True)
    except NameError:
        given = dict(getattr(target, "__annotations__", {}))
        if given.pop("return", None) is None:
            raise
        # The type of a result may be one that only a type checker imports; a tool does not need it.
        module = sys.modules.get(getattr(target, "__module__", ""), None)
        stand_in = types.SimpleNamespace(__annotations__=given, __module__=getattr(module, "__name__", ""))
        return get_type_hints(stand_in, vars(module) if module is not None else None, include_extras=True)


def _signature(function: Callable[..., Any], called: str) -> tuple[Mapping[str, Any], Mapping[str, inspect.Parameter]]:
    """Return the annotations of a function and its parameters; raises ``ToolUnavailableError``."""
    try:
        return hints_of(function), inspect.signature(function).parameters
    except (NameError, TypeError) as error:
        raise _unfit_error(called, f"its annotations cannot be read ({error})") from error


def _parameters(
    given: Mapping[str, inspect.Parameter], hints: Mapping[str, Any], called: str
) -> dict[str, inspect.Parameter]:
    """Return the parameters that a model may give, with annotations resolved or guessed."""
    kept: dict[str, inspect.Parameter] = {}
    for name, parameter in given.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        annotation = hints.get(name, _guess_type(parameter))
        if parameter.default is None and not _takes_none(annotation):
            annotation = annotation | None
        if plain_schema(annotation) is None:
            annotation = acceptable_annotation(annotation)
            try:
                adapter_for(annotation)
            except Exception as error:  # pydantic has several errors for a type without a schema
                if parameter.default is parameter.empty:
                    kind = getattr(annotation, "__name__", str(annotation))
                    raise _unfit_error(called, f"JSON cannot express its parameter '{name}' ({kind})") from error
                continue
        kept[name] = parameter.replace(annotation=annotation)
    return kept


def _takes_none(annotation: Any) -> bool:
    return annotation in (Any, object, None, types.NoneType) or types.NoneType in get_args(annotation)


def _guess_type(parameter: inspect.Parameter) -> Any:
    return next((kind for kind in _GUESSED if type(parameter.default) is kind), Any)


def _unfit_error(called: str, problem: str) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"function '{called}' cannot be a tool: {problem}.",
        hint="Annotate it with types that JSON has, give the parameter a default, "
        "or exclude the function with a leading underscore or '__all__'.",
    )


class _Arguments:
    """The adapter of an object with the parameters of a function, made when the first call asks for it."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def make_adapter(self) -> Any:
        """Return pydantic's adapter."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def validate_arguments(self, arguments: JsonObject) -> dict[str, Any]:
        """Return arguments as the annotations want them; raises pydantic's ``ValidationError``.

        Where an annotation is strict, dates, ids and tuples are taken in the forms that JSON has for them.
        """
        try:
            return self.make_adapter().validate_python(dict(arguments))
        except ValueError as error:
            from pydantic import ValidationError

            if not isinstance(error, ValidationError):
                raise
            try:
                return self.make_adapter().validate_json(json.dumps(dict(arguments), default=dict))
            except (ValidationError, TypeError):
                raise error from None


def _arguments_adapter(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], *, open_ended: bool
) -> Any:
    """Return the adapter of an object with these parameters; those with defaults may be missing."""
    from typing import NotRequired

    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import TypedDict

    fields: dict[str, Any] = {
        name: p.annotation if p.default is p.empty else NotRequired[p.annotation] for name, p in parameters.items()
    }
    shape: Any = TypedDict("Arguments", fields)  # type: ignore[misc, operator]
    shape.__module__ = getattr(function, "__module__", None) or __name__
    shape.__pydantic_config__ = ConfigDict(extra="allow" if open_ended else "forbid")
    return TypeAdapter(shape)


def _plain_schema(parameters: Mapping[str, inspect.Parameter], *, open_ended: bool) -> dict[str, Any] | None:
    """Return the schema that pydantic has for an object of these parameters, where all are of JSON's own types."""
    found = {name: plain_schema(parameter.annotation) for name, parameter in parameters.items()}
    if None in found.values() or not _UNSORTED.isdisjoint(found):
        return None
    required = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    demanded: dict[str, Any] = {"required": required} if required else {}
    return {"additionalProperties": open_ended, "properties": found, **demanded, "type": "object"}


def _input_schema(
    whole: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter], notes: Mapping[str, str]
) -> JsonObject:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    schema = without_titles(whole)
    schema.pop("description", None)
    properties: dict[str, Any] = schema.setdefault("properties", {})
    for name, parameter in parameters.items():
        if name in notes:
            properties[name].setdefault("description", notes[name])
        if parameter.default is not parameter.empty and "default" not in properties[name]:
            try:
                properties[name]["default"] = to_jsonable_python(parameter.default)
            except (PydanticSerializationError, ValueError):
                continue  # a default without a JSON form is still the default
    return Frozen(schema)


def without_titles(schema: Any) -> Any:
    """Return a JSON Schema without the titles that pydantic derives from names, which only cost tokens.

    An array has ``items``, a tuple too: some providers take none without.
    """
    if not isinstance(schema, dict):
        return schema
    clean: dict[str, Any] = {}
    value: Any
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "title" and isinstance(value, str):
            continue
        if key in _NESTED and isinstance(value, dict):
            clean[key] = {name: without_titles(inner) for name, inner in cast("dict[str, Any]", value).items()}
        elif key in _LISTED and isinstance(value, list):
            clean[key] = [without_titles(inner) for inner in cast("list[Any]", value)]
        else:
            clean[key] = without_titles(value) if key in _SINGLE else value
    if clean.get("type") == "array" and "items" not in clean:
        clean["items"] = items_beside(clean.get("prefixItems", ()))
    return clean


def _output_schema(annotation: Any) -> JsonObject | None:
    """Return the schema of a result that is always an object of known shape, else None."""
    if not is_record(annotation):
        return None
    try:
        return Frozen(without_titles(adapter_for(annotation).json_schema(mode="serialization")))
    except Exception:  # a shape without a JSON Schema is returned as text
        return None


def is_record(annotation: Any) -> bool:
    """Return whether the annotation is a dataclass, a TypedDict or a pydantic model."""
    if not isinstance(annotation, type):
        return False
    return dataclasses.is_dataclass(annotation) or any(
        hasattr(cast("Any", annotation), name) for name in ("__pydantic_core_schema__", "__required_keys__")
    )


def _read_docstring(target: object) -> tuple[str, dict[str, str]]:
    """Return the description and the parameters' descriptions; Google, NumPy and Sphinx styles.

    Sections about parameters, results and errors are no part of the description.
    """
    text = own_doc(target)
    style = _style_of(text)
    if style is None:
        return _without_sections(text), {}
    from docstring_parser import DocstringStyle, ParseError, parse

    try:
        parsed = parse(text, DocstringStyle[style])
    except ParseError:
        return text if style == "AUTO" else _without_sections(text), {}
    if not parsed.meta and style != "AUTO":
        return _without_sections(text), {}
    description = "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
    params = {p.arg_name.lstrip("*"): _on_one_line(p.description) for p in parsed.params if p.description}
    return description.strip(), params


def _style_of(text: str) -> str | None:
    """Return which style's parser is asked; None where no line looks like a section in any of them.

    Asking every parser takes four times as long as the one that most docstrings need.
    """
    if _OTHER_STYLES.search(text):
        return "AUTO"
    return "GOOGLE" if _TITLE.search(text) else None


def _without_sections(text: str) -> str:
    """Return the description that a docstring without sections is."""
    first, _, more = text.partition("\n")
    return "\n\n".join(part for part in (first, more.strip()) if part).strip()


def own_doc(target: object) -> str:
    """Return the docstring of a function, class, module or object; not the one that its type lends it."""
    text = inspect.getdoc(target) or ""
    if inspect.isroutine(target) or inspect.isclass(target) or inspect.ismodule(target):
        return text
    return "" if text == (inspect.getdoc(type(target)) or "") and type(target).__module__ == "builtins" else text


def summary(target: object) -> str:
    """Return the first paragraph of a docstring as one line."""
    return _on_one_line(own_doc(target).split("\n\n", 1)[0])


def _on_one_line(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()
