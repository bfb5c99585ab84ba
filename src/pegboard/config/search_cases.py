"""Read a file of requests with the tools that do each, for `pegboard eval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import Field

from pegboard.config.documents import json_text, yaml_text
from pegboard.config.documents.document import Document, UnreadableError, display_path, read_text
from pegboard.config.schema.sections import Section
from pegboard.config.schema.validation import validate
from pegboard.config.schema.values import NameList, TextValue
from pegboard.errors import ConfigError
from pegboard.problems import Place, Problem

_HINT: Final = "Such a file says `cases: [{request: what is needed, tool: NAME}]`."


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCase:
    """A request, the tools of which each is right for it, and where it is written."""

    request: str
    tools: Sequence[str]
    place: Place


class _Case(Section):
    request: TextValue = Field(min_length=1)
    tool: TextValue | None = None
    tools: NameList = Field(default_factory=list[str])


class _Cases(Section):
    cases: list[_Case] = Field(default_factory=list[_Case])


def search_cases(path: Path) -> list[SearchCase]:
    """Return the cases of a YAML or JSON file: ``cases:``, each with ``request`` and ``tool`` or ``tools``.

    Raises:
        ConfigError: the file cannot be read, or a case is not complete; it has every problem with its place.
    """
    file = display_path(path)
    try:
        text = read_text(path, file=file)
        document = (json_text if path.suffix == ".json" else yaml_text).compose(text, file)
    except UnreadableError as error:
        raise _invalid([replace(error.problem, hint=_HINT)]) from None
    read = validate(_Cases, document, document.value)
    if problems := [*document.problems, *read.problems]:
        raise _invalid(problems)
    cases = [_read_case(case, document, number) for number, case in enumerate(read.section.cases)]
    if not cases:
        raise _invalid([_problem("there are no cases.", document.place(["cases"]))])
    if problems := [_problem("the case names no tool.", case.place) for case in cases if not case.tools]:
        raise _invalid(problems)
    return cases


def _read_case(case: _Case, document: Document, number: int) -> SearchCase:
    tools = [*([case.tool] if case.tool else []), *case.tools]
    return SearchCase(request=case.request, tools=tools, place=document.place(["cases", number]))


def _problem(message: str, place: Place) -> Problem:
    return Problem(severity="error", code="bad_value", message=message, hint=_HINT, place=place)


def _invalid(problems: Sequence[Problem]) -> ConfigError:
    return ConfigError("\n".join(map(str, problems)), problems=problems)
