"""What a provider's refusal of a request is about: a tool, what reveals tools, or the choice of tools.

It is read from what the provider states apart (``param``, places, ``code``) before its words are read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal, cast

_REFUSED: Final = frozenset({400, 404, 422})
_FORM: Final = re.compile(
    r"tool_addition|tool_removal|tool_reference|additional_tools|defer_loading|anthropic-beta|"
    r"mid-conversation-tool-changes"
)
_PERHAPS_FORM: Final = re.compile(r"\bbetas?\b|\brole\b")
_CHOICE: Final = re.compile(r"tool_choice|allowed_tools|tool_config|function_calling_config")
_INCLUDE: Final = re.compile(r"(?i:encrypted content is not supported)|reasoning\.encrypted_content")
_PLACES: Final = (
    re.compile(r"function_declarations[.\[](\d+)"),  # Gemini has every function in the first of its tools
    re.compile(r"\b(?:tools|functions)[.\[](\d+)"),
    re.compile(r"\btools?(?: at index| #)\s?(\d+)", re.IGNORECASE),
)
_TOO_MANY: Final = re.compile(
    r"maximum length (?:of )?(\d+)|(?:at most|more than|maximum(?: of)?) (\d+) (?:tools|func)"
)
_HAD: Final = re.compile(r"with length (\d+)")
_CONTEXT: Final = re.compile(r"In context=\((?:[^()]|\([^()]*\))*\)")
"""Where in a schema OpenAI has found something: names of arguments."""
_ABOUT: Final = re.compile(r"""\\?['"](?:type|code|param|request_id|status)\\?['"]\s*:\s*\\?['"][^'"]*['"]""")
"""What the body of an answer says of itself: its words are those of tools by chance alone."""
_STATED_AS_TEXT: Final = re.compile(r"""\\?['"]param\\?['"]\s*:\s*\\?['"]([^'"\\]+)""")
_OF_THE_HISTORY: Final = frozenset({"context_length_exceeded", "rate_limit_exceeded", "model_not_found"})
_MOST: Final = 1000
_DEEPEST: Final = 5
_QUOTES: Final = r"\\?['\"`]"

Kind = Literal["tool", "many", "form", "choice", "include", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """What was not taken, in the provider's words; ``names`` are the wire names of the tools that it speaks of.

    ``many``: they are fine, and stand behind as many as a request has at most.
    """

    kind: Kind
    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stated:
    """What an error states.

    Attributes:
        message: the provider's sentence.
        paths: where in the request it is wrong, ``tools[3].function.parameters``.
        code: the provider's word for the kind of error.
    """

    message: str
    paths: tuple[str, ...] = ()
    code: str = ""


def rejection_of(error: object, sent: Sequence[str]) -> Rejection:
    """Return what a provider's error is about.

    Args:
        error: the client's exception, with its ``status_code``, ``param``, ``code`` and ``body`` where it has them, or
            a text. What a framework has raised from it is read by its cause.
        sent: the wire names of the tools of the request, in order.
    """
    text = f"{error}"[:_MOST]
    status = getattr(error, "status_code", None)
    if status is not None and status not in _REFUSED:
        return Rejection(kind="other", text=text)
    for one in _statements_of(error):
        kind, names = _find_rejection(one, sent)
        if kind != "other":
            return Rejection(kind=kind, text=text, names=tuple(dict.fromkeys(names)))
    return Rejection(kind="other", text=text)


def _find_rejection(stated: _Stated, sent: Sequence[str]) -> tuple[Kind, Sequence[str]]:
    """Return what is wrong and the tools that it is about, by the surest sign that there is."""
    message = stated.message
    if any(map(_FORM.search, stated.paths)) or _FORM.search(message):
        named = _tools_named_after("schema for ", message, sent)
        return ("tool", named) if named else ("form", ())
    if any(map(_CHOICE.match, stated.paths)):
        return "choice", ()
    if any(path.startswith("include") for path in stated.paths) or _INCLUDE.search(message):
        return "include", ()
    if places := _tools_at_paths(stated.paths, sent):
        return "tool", places
    if stated.code in _OF_THE_HISTORY:
        return "other", ()
    if excess := _tools_beyond_limit(stated, sent):
        return "many", excess
    begins = message.lstrip("{'\" ")
    if _CHOICE.match(begins):
        return "choice", ()
    named = _tools_named_after("", message, sent) or _tools_at_paths([message], sent)
    if named:
        return "tool", named
    if _CHOICE.search(message):
        return "choice", ()
    if _PERHAPS_FORM.search(message):
        return "form", ()
    said = _ABOUT.sub("", _CONTEXT.sub("", message))
    quoted = [name for name in sent if re.search(rf"{_QUOTES}{re.escape(name)}{_QUOTES}(?!\s*:\s*[\\'\"\[{{])", said)]
    return ("tool", quoted) if quoted else ("other", ())


def _tools_at_paths(paths: Sequence[str], sent: Sequence[str]) -> list[str]:
    """Return the tools at the places that paths or a text name."""
    for pattern in _PLACES:
        places = [int(place) for path in paths for place in pattern.findall(path)]
        if places:
            return [sent[place] for place in places if place < len(sent)]
    return []


def _tools_named_after(before: str, message: str, sent: Sequence[str]) -> list[str]:
    """Return the tools that stand behind the word for one: ``function 'tag'``, ``schema for tool tag``."""
    said = _CONTEXT.sub("", message)
    word = rf"(?i:{before}(?:function|tool)(?:[ _]name)?)(?: named| called)?:?\s"
    quoted = [name for name in sent if re.search(f"{word}{_QUOTES}{re.escape(name)}{_QUOTES}", said)]
    bare = r"(?i:schema|parameters|definition|declaration)s? (?:for|of) (?i:the )?(?i:function|tool):?\s"
    return quoted or [name for name in sent if re.search(rf"{bare}{re.escape(name)}(?![\w.-]*\w)", said)]


def _tools_beyond_limit(stated: _Stated, sent: Sequence[str]) -> Sequence[str]:
    """Return the tools beyond the number that a provider takes."""
    about = "tools" in stated.paths or stated.code == "array_above_max_length" or "Invalid 'tools'" in stated.message
    found = _TOO_MANY.search(stated.message) if about else None
    if found is None:
        return ()
    most, had = int(found.group(1) or found.group(2)), _HAD.search(stated.message)
    excess = int(had.group(1)) - most if had is not None else len(sent) - most  # the host may send others beside
    return sent[-excess:] if excess > 0 else ()


def _statements_of(error: object) -> Iterator[_Stated]:
    """Yield what an error states, and what those state that it was raised from."""
    seen = 0
    while error is not None and seen < _DEEPEST:
        seen += 1
        body = _body_of(error)
        found = [*_errors_in(body)] if body is not None else []
        param, code = getattr(error, "param", None), getattr(error, "code", None)
        raw = getattr(error, "body", None)
        text = (raw if isinstance(raw, str) and raw else str(error))[: 4 * _MOST]
        if isinstance(param, str) and param:
            yield _Stated(message=found[0].message if found else text, paths=(param,), code=str(code or ""))
        yield from found
        if not found:
            yield _Stated(message=text, paths=tuple(_STATED_AS_TEXT.findall(text)), code=str(code or ""))
        error = getattr(error, "__cause__", None)


def _body_of(error: object) -> object:
    """Return the body of the provider's answer, or None: the error has it, or its text ends in it."""
    body = getattr(error, "body", None)
    text = body if isinstance(body, str) else "" if body is not None else str(error)
    if not text:
        return body
    begins = min((place for place in (text.find("{"), text.find("[{")) if place >= 0), default=-1)
    if begins < 0 or len(text) > 100 * _MOST:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text[begins:])
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _errors_in(body: object) -> Iterator[_Stated]:
    """Yield the errors of a body: one, a list of them, or one for each place."""
    if isinstance(body, list | tuple):
        yield from chain.from_iterable(map(_errors_in, cast("Sequence[object]", body)[:_DEEPEST]))
        return
    if not isinstance(body, Mapping):
        return
    given = cast("Mapping[str, Any]", body)
    inner = given.get("error")
    if isinstance(inner, Mapping | list):
        yield from _errors_in(cast("object", inner))
        return
    details = given.get("detail")
    message = given.get("message") or inner or details or ""
    paths = [given["param"]] if isinstance(given.get("param"), str) else []
    for detail in cast("list[Any]", details) if isinstance(details, list) else ():
        place = cast("Any", detail).get("loc") if isinstance(detail, Mapping) else None
        if isinstance(place, list | tuple):
            paths.append(".".join(map(str, cast("Sequence[object]", place))))
    yield _Stated(message=str(message)[: 4 * _MOST], paths=tuple(paths), code=str(given.get("code") or ""))
