"""The descriptions of a function and its parameters, from its docstring."""

from __future__ import annotations

import inspect
import re


def read(target: object) -> tuple[str, dict[str, str]]:
    """Return the description and the parameters' descriptions; Google, NumPy and Sphinx styles.

    Sections about parameters, results and errors are no part of the description.
    """
    from docstring_parser import ParseError, parse

    text = own_doc(target)
    if not text:
        return "", {}
    try:
        parsed = parse(text)
    except ParseError:
        return text, {}
    description = "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
    params = {p.arg_name.lstrip("*"): _flat(p.description) for p in parsed.params if p.description}
    return description.strip(), params


def own_doc(target: object) -> str:
    """Return the docstring of a function, class, module or object; not the one that its type lends it."""
    text = inspect.getdoc(target) or ""
    if inspect.isroutine(target) or inspect.isclass(target) or inspect.ismodule(target):
        return text
    return "" if text == (inspect.getdoc(type(target)) or "") and type(target).__module__ == "builtins" else text


def summary(target: object) -> str:
    """Return the first paragraph of a docstring as one line."""
    return _flat(own_doc(target).split("\n\n", 1)[0])


def _flat(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "").strip()
