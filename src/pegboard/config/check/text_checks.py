"""Texts that cannot stand where they are written: names, headers, tokens, paths, the address of the store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pegboard.config.check.member_names import MemberNames
from pegboard.config.compile import UncheckedConfig
from pegboard.config.documents.document import PathKey, is_mapping
from pegboard.config.documents.expansion import ENV_FILE
from pegboard.config.location import SQLITE
from pegboard.config.problem_codes import error
from pegboard.core.model.addresses import STORE_RIGHT, store_fault
from pegboard.core.model.catalog import split_kind
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import HTTP_SPACE, ServerSpec
from pegboard.problems import Place, Problem

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def check_texts(config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield every text that cannot be used where it stands; secrets are never repeated (X5)."""
    for section in ("servers", "plugins"):
        for name in getattr(config.validated.section, section):
            yield from _name(name, section, "plugin", config, names)
    if not config.generated:
        for name in config.toolkits:
            yield from _name(name, "toolkits", "toolkit", config, names)
    for name, spec in config.written.items():
        if not isinstance(spec, ServerSpec):
            continue
        if not spec.unavailable:
            yield from _server(name, config)
        elif spec.unavailable.startswith(ENV_FILE):
            message = f"{spec.unavailable.removesuffix('.')}; the server is unavailable until then."
            place = config.validated.place("servers", name, "envFile")
            hint = "Correct the path or remove it."
            yield Problem(severity="warning", code="env_missing", message=message, hint=hint, place=place)
    for token in config.tokens:
        if token.value.strip() and (fault := _why_not_in_header(token.value)):
            hint = "Use ASCII letters, digits and signs."
            yield error("bad_value", f"the token {fault}; clients send it in a header.", token.place, hint)
    yield from _store(config)


def _name(name: str, section: str, what: str, config: UncheckedConfig, names: MemberNames) -> Iterator[Problem]:
    """Yield why references to a plugin or toolkit of this name would mean something else."""
    place = config.validated.place(section, name, key=True)
    if fault := name_fault(name, what):
        yield error("bad_value", fault, place, "Give it another name.")
    elif section != "toolkits":
        yield from _slash_problems(name, place, names)


def name_fault(name: str, what: str = "plugin") -> str:
    """Return why nothing of this kind can have a name, in a sentence; nothing where it can."""
    shown = one_line(name, limit=80)
    kind, bare = split_kind(name)
    if not name.strip():
        return f"the name of a {what} cannot be empty."
    if sign := next((sign for sign in "*?" if sign in name), ""):
        return f"the name of a {what} cannot contain '{sign}', which is a wildcard."
    if kind is not None:
        return f"'{shown}' means the {kind} '{one_line(bare, limit=80)}', and cannot be the name of a {what}."
    if what != "toolkit" and not all(name.split("/")):
        return f"'{shown}' cannot be the name of a {what}: a slash separates a plugin from its tool."
    return ""


def _slash_problems(name: str, place: Place, names: MemberNames) -> Iterator[Problem]:
    """Yield why a slash in the name of a plugin would be taken for that between a plugin and its tool."""
    shown = one_line(name, limit=80)
    for cut in re.finditer("/", name):
        owner, tool = name[: cut.start()], one_line(name[cut.end() :], limit=80)
        if owner in names.joined:
            message = f"'{shown}' means the tool '{tool}' of plugin '{one_line(owner, limit=80)}' too."
            yield error("bad_value", message, place, "Rename one of them.")
            return


def _server(name: str, config: UncheckedConfig) -> Iterator[Problem]:
    part = config.validated.section.servers[name]
    path: tuple[PathKey, ...] = ("servers", name)
    for header, value in part.headers.items():
        place = config.validated.place(*path, "headers", header)
        if not _HEADER.fullmatch(header):
            message = f"'{one_line(header, limit=80)}' cannot be the name of a header."
            yield error("bad_value", message, place, "Write letters, digits and '-'.")
        elif fault := _why_not_in_header(value.strip(HTTP_SPACE)):
            message = f"the value of the header '{header}' {fault}."
            yield error("bad_value", message, place, "Headers carry ASCII text of one line.")
    for variable in part.env:
        if not variable or "=" in variable or "\0" in variable:
            message = f"'{one_line(variable, limit=80)}' cannot be the name of an environment variable."
            yield error(
                "bad_value", message, config.validated.place(*path, "env", variable), "Write a name without '='."
            )
    if part.cwd and (user := _user_without_home(part.cwd)):
        message = f"there is no home folder of '{one_line(user, limit=80)}'."
        yield error("bad_value", message, config.validated.place(*path, "cwd"), "Write the path without '~'.")


def _why_not_in_header(value: str) -> str:
    """Return why a header cannot carry a text, or nothing; where it is, but not what."""
    at = next((n for n, c in enumerate(value) if not " " <= c <= "~"), None)
    return f"holds a character that a header cannot carry, at position {at + 1}" if at is not None else ""


def _user_without_home(path: str) -> str:
    """Return the user at the beginning of a path whose home folder is not known, or nothing."""
    try:
        Path(path).expanduser()
    except RuntimeError:
        return Path(path).parts[0]
    return ""


def _store(config: UncheckedConfig) -> Iterator[Problem]:
    store = config.validated.section.store
    if store is None:
        return
    url, where = store.url, ("store", "url") if is_mapping(config.validated.raw.get("store")) else ("store",)
    fault = store_fault(url)
    if not fault and (user := _user_without_home(url.strip().removeprefix(SQLITE))):
        fault = f"there is no home folder of '{one_line(user, limit=80)}'."
    if fault:
        yield error("bad_store", fault, config.validated.place(*where), STORE_RIGHT)
