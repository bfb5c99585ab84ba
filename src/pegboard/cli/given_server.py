"""A server that the arguments of a command describe, and its one start before it is written into a configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.common import warnings_to
from pegboard.cli.server_starts import Start, StartPair, compare_starts
from pegboard.config.check.text_checks import name_fault
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from pegboard.cli.edited_configuration import EditedConfiguration
    from pegboard.cli.rendering import Printer

_WEB: Final = ("http://", "https://")
_OF_COMMAND: Final = frozenset({"command", "args", "env", "env_file", "envFile", "cwd", "start", "confine"})
_OF_ADDRESS: Final = frozenset({"url", "headers", "auth"})


def require_name(name: str) -> None:
    """Raise ``UsageError`` for what cannot be the name of a server."""
    if fault := name_fault(name, "server"):
        raise UsageError(f"{fault[0].upper()}{fault[1:]}", hint="Give it another name.")


def entry_of(target: Sequence[str], env: Sequence[str], headers: Sequence[str]) -> dict[str, Any]:
    """Return the server that the arguments describe; raises ``UsageError`` where they describe none."""
    if target[0].lower().startswith(_WEB):
        if len(target) > 1:
            hint = "Give the address alone, or the command alone behind `--`."
            raise UsageError("A server is either an address or a command, and both were given.", hint=hint)
        if env:
            raise UsageError("--env is for a command; an address has --header.")
        pairs = dict(_split_pair(text, ":", "--header 'NAME: VALUE'") for text in headers)
        return {"url": target[0], **({"headers": pairs} if pairs else {})}
    if headers:
        raise UsageError("--header is for an address; a command has --env.")
    command, *args = target
    pairs = dict(_split_pair(text, "=", "--env NAME=VALUE") for text in env)
    return {"command": command, **({"args": args} if args else {}), **({"env": pairs} if pairs else {})}


def changed_entry(
    old: Mapping[str, Any], target: Sequence[str], env: Sequence[str], headers: Sequence[str], description: str | None
) -> dict[str, Any]:
    """Return a server with what the arguments change; what is given an empty value is taken out.

    Raises ``UsageError`` where they change nothing, or what it does not have.
    """
    if not (target or env or headers) and description is None:
        hint = "Name a URL or `-- COMMAND…`, --env, --header or --description."
        raise UsageError("There is nothing to change.", hint=hint)
    entry = dict(old)
    if target:
        new = entry_of(target, (), ())
        others = _OF_COMMAND if "url" in new else _OF_ADDRESS
        gone = {"command", "args", "url", "type", "transport"} | others
        entry = {**new, **{key: value for key, value in old.items() if key not in gone}}
    kind = "address" if "url" in entry else "command"
    for part, given, sign, form in (
        ("env", env, "=", "--env NAME=VALUE"),
        ("headers", headers, ":", "--header 'NAME: VALUE'"),
    ):
        if given and (part == "env") != (kind == "command"):
            other = "--env is for a command" if part == "env" else "--header is for an address"
            raise UsageError(f"{other}, and this server has an {kind}." if kind == "address" else f"{other}.")
        pairs = {**(entry.get(part) or {}), **dict(_split_pair(text, sign, form) for text in given)}
        entry[part] = {name: value for name, value in pairs.items() if value != ""}
    if description is not None:
        entry["description"] = description
    return {key: value for key, value in entry.items() if value not in ("", {}) or (key in old and old[key] == value)}


def _split_pair(text: str, sign: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise UsageError(f"Write {form}.")
    return name.strip(), value.strip() if sign == ":" else value


async def started_once(printer: Printer, file: EditedConfiguration, text: str, name: str, *, fails: str) -> Start:
    """Start a server once and ask it for its tools.

    Raises ``ConfigError`` where it does not come up; ``fails`` is what is then not done.
    """
    configuration = file.usable(text)
    spec = configuration.specs[name]
    assert isinstance(spec, ServerSpec)
    with warnings_to(printer):
        pair = StartPair(name=name, as_client=None, through=spec)
        (start,) = await compare_starts([pair], configuration, None, printer, "")
    if start.fault:
        raise ConfigError(
            f"{name} is not {fails}, because it does not start: {start.fault}",
            code="server_not_started",
            hint="Correct that and try again, or skip this check with --no-check.",
        )
    return start


def runs_line(entry: Any) -> str:
    """Return what a person reads of what a server runs, or where it is; of variables and headers the names alone."""
    env, headers = (", ".join(entry.get(part) or ()) for part in ("env", "headers"))
    if isinstance(url := entry.get("url"), str):
        return f"It is at {url}{f', with the headers {headers}' if headers else ''}"
    command = " ".join(map(str, (entry.get("command", ""), *entry.get("args", ()))))
    return f"It runs: {command}{f', with the variables {env}' if env else ''}"


def tools_of(start: Start | None) -> int | None:
    """Return how many tools a server has; None where that is not known."""
    return None if start is None or start.wants_login else start.tools
