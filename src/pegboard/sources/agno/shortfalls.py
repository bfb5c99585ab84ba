"""Why a toolkit of Agno cannot be constructed, and what to install, set or give (P6)."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from pegboard.errors import ToolUnavailableError
from pegboard.sources.signatures import Parameters, distribution_of, is_installed
from pegboard.support.installed import install_hint

_PIP_LINE: Final = re.compile(r"pip install (?:-U )?([^`\n]*[\w\]'])")
_LACKS_CREDENTIAL: Final = re.compile(
    r"(?i)(?=.*(key|token|credential|password|secret|account_sid|_url|_id\b))"
    r".*(not set|not provided|no .* provided|missing|is required|are required|must be set)"
)
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


def lacks_package(plugin: str, error: ImportError, packages: Sequence[str]) -> ToolUnavailableError:
    """Return the error for a package that is not installed, with the line that installs it."""
    module = _absent_module(error)
    lack = f"needs '{module}', which is not installed." if module else f"lacks a package: {_end_sentence(_line(error))}"
    return ToolUnavailableError(f"plugin '{plugin}' {lack}", hint=_install_hint(str(error), packages, module))


def could_not_construct(
    plugin: str,
    error: BaseException,
    parameters: Parameters,
    target: object,
    logged: Sequence[str],
    packages: Sequence[str],
) -> ToolUnavailableError:
    """Return the error for a toolkit whose constructor failed; what it logged counts where it says more."""
    reason = _line(error)
    lacking = next((text for text in logged if "pip install" in text), "")
    hint = _install_hint(lacking or reason, packages) if "pip install" in (lacking or reason) else ""
    return ToolUnavailableError(
        f"plugin '{plugin}' could not be constructed: {_end_sentence(lacking or reason)}",
        hint=hint or _credential_hint(plugin, reason, parameters, target),
    )


def lacks_credential(
    plugin: str, logged: Sequence[str], parameters: Parameters, target: object
) -> ToolUnavailableError | None:
    """Return the error for what a toolkit only logged that it lacks, or None."""
    lacking = next((text for text in logged if _LACKS_CREDENTIAL.match(text) and "disabled" not in text), "")
    if not lacking:
        return None
    hint = _credential_hint(plugin, lacking, parameters, target)
    return ToolUnavailableError(f"plugin '{plugin}' lacks a credential: {_end_sentence(lacking)}", hint=hint)


def _absent_module(error: BaseException | None) -> str:
    """Return the module that an import failed for, which Agno's own errors stand in front of."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            return error.name
        error = error.__cause__ or error.__context__
    return ""


def _install_hint(text: str, packages: Sequence[str], module: str = "") -> str:
    """Return the one line that installs all that is missing: what Agno's own error names, and what is known besides."""
    found = _PIP_LINE.search(text)
    named = shlex.split(found[1] if found[1].count("'") % 2 == 0 else found[1].strip("'")) if found else []
    if any(one.startswith("agno[") for one in named):  # an extra brings all that it needs
        return install_hint(*named)
    known = {_canonical_name(one) for one in named}
    missing = [*named, *(one for one in absent_packages(packages) if _canonical_name(one) not in known)]
    return install_hint(*(missing or [distribution_of(module or "agno")]))


def _canonical_name(requirement: str) -> str:
    """Return the name of a package as an index compares it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def tools_without(
    target: type, functions: Collection[str], packages: Sequence[str], logged: Sequence[str]
) -> Mapping[str, str]:
    """Return the tools that a toolkit was constructed without for want of a package, each with the reason.

    It has logged which package it does without; they are the methods of its class that import it.
    """
    found: dict[str, str] = {}
    for package in absent_packages(packages):
        names = re.compile(rf"\b{re.escape(_canonical_name(package).replace('-', '_'))}\b")
        if any("not installed" in text and names.search(text) for text in logged):
            for name, method in inspect.getmembers(target, inspect.isfunction):
                if not name.startswith("_") and name not in functions and names.search(_source(method)):
                    found[name] = f"it needs '{package}', which is not installed. {install_hint(package)}".rstrip(".")
    return found


def _source(function: object) -> str:
    try:
        return inspect.getsource(function)  # type: ignore[arg-type]
    except (OSError, TypeError):
        return ""


def absent_packages(packages: Sequence[str]) -> list[str]:
    """Return those of some packages that are not installed."""
    return [package for package in packages if not is_installed(package)]


def _credential_hint(plugin: str, message: str, parameters: Parameters, target: object) -> str:
    """Return where a missing credential can be given, if that is what the message is about."""
    if not _LACKS_CREDENTIAL.match(message):
        return ""
    secrets = sorted(parameters.secrets)
    names = tuple(dict.fromkeys(_VARIABLE.findall(message))) or tuple(_variables(target, secrets))[:1]
    ways = [f"set {' and '.join(names)} in the environment"] if names else []
    ways += [f"give '{name}' inline: '- {plugin}: {{{name}: …}}'" for name in secrets[:1]]
    text = " or ".join(ways)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _variables(target: object, secrets: Sequence[str]) -> Iterator[str]:
    """Yield the variables from which a constructor takes secrets, read in its source."""
    source = _source(getattr(target, "__init__", target))
    for name in secrets:
        yield from re.findall(rf"\b{name}\b[^\n]*(?:getenv|environ\.get)\(\s*[\"']([A-Z][A-Z0-9_]+)", source)


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _line(error: Any) -> str:
    text = str(error).strip().partition("\n")[0]
    return text or type(error).__name__
