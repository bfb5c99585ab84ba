"""What a plugin runs and which secrets it is handed, which tells an edit that runs other code from others (P10).

Compared is what is written, not what a variable holds: another value of a variable is no edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, cast
from urllib.parse import urlsplit

from pegboard.config.documents.expansion import REFERENCE
from pegboard.core.model.specs import PluginSpec, PythonSpec, RegisteredSpec, ServerSpec
from pegboard.support.hosts import is_loopback

_OWN: Final = re.compile(r"pegboard\.quickstart\.\w+")
"""The modules of Pegboard itself that a configuration may name; what is behind a colon may be of another one."""
_PLAIN: Final = re.compile(
    r"DEBUG|TZ|LANG|LC_\w+|NO_COLOR|FORCE_COLOR|TERM|NODE_ENV"
    r"|(\w+_)?(PASSWORD|USER|USERNAME|TOKEN|KEY|SECRET|NAME|MODE|LEVEL|PORT|REGION|ENGINE)"
)
"""Variables that hold plain data: any other one may have an unchanged program run other code."""
_PATHS: Final = re.compile(r"\w*PATH|HOME|XDG_\w+", re.IGNORECASE)
"""Variables without which a program looks for its code somewhere else."""


def effect_of(spec: PluginSpec, digest: Callable[[str], str]) -> str:
    """Return digests of the code that a plugin runs, and of each variable for that and secret that it is handed.

    It is empty for a plugin that runs only Pegboard's own code, or none here, and gets no secret.
    """
    match spec:
        case PythonSpec():
            return "" if _OWN.fullmatch(spec.target) else digest(_text([spec.target, spec.folder]))
        case RegisteredSpec():
            return ""
        case ServerSpec():
            raw: Mapping[str, Any] = json.loads(spec.written)[0] if spec.written else {}
            secrets = sorted({*REFERENCE.findall(spec.written), *(repr(one.pieces) for one in spec.references)})
            if spec.url is not None:
                code, handed = _address(spec, raw, secrets=bool(secrets)), secrets
            else:
                loading = _loading_variables(spec, raw)
                code = [*_command(spec, raw), sorted(filter(_PATHS.fullmatch, loading))]
                handed = [*secrets, *(_text([name, str(value)]) for name, value in sorted(loading.items()))]
            return " ".join(map(digest, [_text(code), *handed])) if code is not None else ""


def goes_further_than(before: str, after: str) -> bool:
    """Return whether an edit runs other code, or hands over a variable or secret that was not handed over before."""
    if not after:
        return False
    code, *handed = after.split()
    had, *known = before.split() or [""]
    return code != had or not {*handed} <= {*known}


def may_run_code_by(variable: str) -> bool:
    """Return whether a program may run other code by a variable of its environment."""
    return _PLAIN.fullmatch(variable) is None


def _loading_variables(spec: ServerSpec, raw: Mapping[str, Any]) -> dict[str, Any]:
    variables = {**spec.env, **cast("Mapping[str, Any]", raw.get("env") or {})}
    return {name: value for name, value in variables.items() if may_run_code_by(name)}


def _command(spec: ServerSpec, raw: Mapping[str, Any]) -> Iterator[Any]:
    return _as_written({"command": spec.command, "args": [*spec.args], "cwd": spec.cwd}, raw)


def _address(spec: ServerSpec, raw: Mapping[str, Any], *, secrets: bool) -> object:
    """Return where secrets are sent; None where none is, or a plain one stays on this machine."""
    login = asdict(spec.auth) if spec.auth is not None else None
    if secrets or login is not None:
        return [*_as_written({"url": spec.url}, raw), login]
    host = urlsplit(spec.url or "").hostname or ""
    return None if not spec.headers or is_loopback(host) else host


def _as_written(parts: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[Any]:
    """Yield parts of a server, as they are written where they refer to something."""
    for name, value in parts.items():
        stated = raw.get(name)
        yield stated if stated is not None and REFERENCE.search(_text(stated)) else value


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
