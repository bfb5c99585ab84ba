"""What a plugin runs and which secrets it is handed, which tells an edit that runs other code from others (P10).

Compared is what is written, not what a variable holds: another value of a variable is no edit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.parse import urlsplit

from pegboard.core.model.specs import PluginSpec, PythonSpec, RegisteredSpec, ServerSpec

OWN: Final = "pegboard.quickstart."
"""How the modules of Pegboard itself begin that a configuration may name."""
_REFERENCE: Final = re.compile(r"(?<!\$)\$\{[^}]*\}")
_LOADS_CODE: Final = re.compile(
    r"(LD|DYLD|PYTHON|NODE|NPM_CONFIG|UV|PIP|PERL5|GIT|DOTNET|DOCKER|YARN|BUN|DENO|XDG)_.*"
    r"|PATH|HOME|ENV|SHELL|BASH_ENV|CLASSPATH|NODE_OPTIONS|PYTHON\w+|PERL5\w+|RUBY(OPT|LIB)|\w*(JAVA|MAVEN|GRADLE)\w*_OPT(ION)?S",
    re.IGNORECASE,
)
"""Variables by which an unchanged program runs other code, or by which its runner fetches another one."""


def effect_of(spec: PluginSpec, digest: Callable[[str], str]) -> str:
    """Return digests of the code that a plugin runs and of each secret that it is handed.

    It is empty for a plugin that runs only Pegboard's own code, or none here, and gets no secret.
    """
    match spec:
        case PythonSpec():
            return "" if spec.target.startswith(OWN) else digest(_text([spec.target, spec.folder]))
        case RegisteredSpec():
            return ""
        case ServerSpec():
            raw: Mapping[str, Any] = json.loads(spec.written)[0] if spec.written else {}
            secrets = sorted({*_REFERENCE.findall(spec.written), *(repr(one.pieces) for one in spec.references)})
            code = _address(spec, raw, secrets=bool(secrets)) if spec.url is not None else _command(spec, raw)
            return " ".join(map(digest, [_text(code), *secrets])) if code is not None else ""


def goes_further(before: str, after: str) -> bool:
    """Return whether an edit runs other code or hands over a secret that was not handed over before."""
    if not after:
        return False
    code, *secrets = after.split()
    had, *known = before.split() or [""]
    return code != had or not {*secrets} <= {*known}


def _command(spec: ServerSpec, raw: Mapping[str, Any]) -> object:
    variables = {**spec.env, **cast("Mapping[str, Any]", raw.get("env") or {})}
    loading = {name: value for name, value in variables.items() if _LOADS_CODE.fullmatch(name)}
    parts = {"command": spec.command, "args": [*spec.args], "cwd": spec.cwd}
    return [*_as_written(parts, raw), loading]


def _address(spec: ServerSpec, raw: Mapping[str, Any], *, secrets: bool) -> object:
    """Return where secrets are sent; None where none is, or a plain one stays on this machine."""
    login = asdict(spec.auth) if spec.auth is not None else None
    if secrets or login is not None:
        return [*_as_written({"url": spec.url}, raw), login]
    host = urlsplit(spec.url or "").hostname or ""
    return None if not spec.headers or _is_here(host) else host


def _as_written(parts: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[Any]:
    """Yield parts of a server, as they are written where they refer to something."""
    for name, value in parts.items():
        stated = raw.get(name)
        yield stated if stated is not None and _REFERENCE.search(_text(stated)) else value


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)
