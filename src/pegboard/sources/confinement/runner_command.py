"""What a command of a package runner names: packages, the program of them that is started, and its arguments (A7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, Literal

from pegboard.errors import ToolUnavailableError

Installer = Literal["npm", "uv"]
_NODE: Final = (
    *(("npx",), ("npm", "exec"), ("npm", "x"), ("pnpx",), ("pnpm", "dlx"), ("yarn", "dlx"), ("bunx",), ("bun", "x")),
)
_PYTHON: Final = (("uvx",), ("uv", "tool", "run"), ("pipx", "run"))
_WITHOUT_EFFECT: Final = frozenset(
    (
        *("-y", "--yes", "-q", "--quiet", "--silent", "-s", "--verbose", "-v", "--no-install", "--no", "--isolated"),
        *("--prefer-online", "--prefer-offline", "--offline", "--no-cache", "-n", "--refresh", "--no-progress"),
        *("--no-env-file", "--upgrade", "-U", "--no-color"),
    )
)
"""Options of runners about how they ask and fetch: what is installed once needs none of them."""
_PACKAGE: Final = frozenset({"-p", "--package"})
_FROM: Final = frozenset({"--from", "--spec"})
_OF_NPM: Final = re.compile(r"--registry|--@[\w.-]+:registry")
_OF_UV: Final = frozenset(
    (
        *("--python", "--index", "--default-index", "--index-url", "--extra-index-url", "--find-links"),
        *("--prerelease", "--index-strategy", "--exclude-newer", "--keyring-provider"),
    )
)
_SHORT: Final = {"-p": "--python", "-i": "--index-url", "-f": "--find-links", "-w": "--with"}
_EXACT_NODE: Final = re.compile(r"(?:@[^/@\s]+/)?[^/@\s:]+@\d+\.\d+\.\d+(?:[-+][\w.+-]+)?")
_EXACT_PYTHON: Final = re.compile(r"[\w.-]+(?:\[[\w.,\s-]*\])?\s*={2,3}\s*[\w.!+-]+|.*@[0-9a-f]{40}(?:#.*)?")
_NAME: Final = re.compile(r"((?:@[^/@\s]+/)?[\w.-]+)")
_WITH_VERSION: Final = re.compile(r"([\w.-]+(?:\[[\w.,\s-]*\])?)@([\w.!+-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerCommand:
    """A command of a package runner.

    ``packages`` are those to install, in the words of ``installer``; the first is the one whose program is started
    where ``program`` names none. ``args`` are the program's, ``options`` are for the installer: where it looks.
    """

    runner: str
    installer: Installer
    packages: tuple[str, ...]
    program: str
    args: tuple[str, ...]
    options: tuple[str, ...] = ()

    @property
    def has_exact_versions(self) -> bool:
        """Return whether all that it names has one version only."""
        exact = _EXACT_NODE if self.installer == "npm" else _EXACT_PYTHON
        return all(exact.fullmatch(each) for each in self.packages)

    @property
    def name(self) -> str:
        """Return the name of the package whose program is started, or nothing where an address is in its place."""
        found = _NAME.match(self.packages[0])
        return "" if found is None or _is_address(self.packages[0]) else found[1]


def runner_command(command: str, args: Sequence[str]) -> RunnerCommand | None:
    """Return what a command of a package runner names, None for any other command.

    Raises:
        ToolUnavailableError: it cannot be told what it would start.
    """
    words = (PurePath(command).name.casefold().removesuffix(".exe").removesuffix(".cmd"), *args)
    for starts, read in ((_NODE, _command_of_node), (_PYTHON, _command_of_python)):
        for start in starts:
            if words[: len(start)] == start:
                return read(start[0], list(words[len(start) :]))
    return None


def _command_of_node(runner: str, words: list[str]) -> RunnerCommand:
    packages: list[str] = []
    options: list[str] = []
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in _PACKAGE:
            packages.append(value if equals else _next_value(rest, runner, option))
        elif _OF_NPM.fullmatch(option):
            options.append(f"{option}={value if equals else _next_value(rest, runner, option)}")
        elif word.startswith("-") and word != "--":
            _require_known_option(runner, word)
        else:
            first = next(rest, "") if word == "--" else word
            if not first:
                break
            program = first if packages else ""
            return _command_of_packages(runner, "npm", packages or [first], program, rest, options)
    raise _unknown(runner, "it names no program")


def _command_of_python(runner: str, words: list[str]) -> RunnerCommand:
    source: list[str] = []
    others: list[str] = []
    options: list[str] = []
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        option = _SHORT.get(option, option)
        if option in _FROM:
            source = [value if equals else _next_value(rest, runner, option)]
        elif option == "--with":
            others += (value if equals else _next_value(rest, runner, option)).split(",")
        elif option in _OF_UV:
            options += (option, value if equals else _next_value(rest, runner, option))
        elif word.startswith("-") and word != "--":
            _require_known_option(runner, word)
        else:
            first = next(rest, "") if word == "--" else word
            if not first:
                break
            found = _NAME.match(first)
            program = first if source else found[1] if found else first
            return _command_of_packages(
                runner, "uv", [*(map(_as_requirement, source or [first])), *others], program, rest, options
            )
    raise _unknown(runner, "it names no program")


def _as_requirement(package: str) -> str:
    """Return a package of uvx as a requirement: its `name@1.2` is `name==1.2`."""
    found = _WITH_VERSION.fullmatch(package)
    if found is None:
        return package
    return found[1] if found[2] == "latest" else f"{found[1]}=={found[2]}"


def _command_of_packages(
    runner: str, installer: Installer, packages: list[str], program: str, rest: Iterator[str], options: list[str]
) -> RunnerCommand:
    for package in packages:
        local = package.startswith((".", "/", "~", "file:", "link:", "-")) or package.endswith((".whl", ".tar.gz"))
        if not package.strip() or (local and not package.startswith("-e")):
            raise _unknown(runner, f"{package!r} is neither a package of a registry nor an address of one")
    if installer == "uv" and packages[0].partition("==")[0] in ("python", "python3"):
        raise _unknown(runner, "it starts an interpreter and no package")
    return RunnerCommand(
        runner=runner,
        installer=installer,
        packages=tuple(packages),
        program=program,
        args=tuple(rest),
        options=tuple(options),
    )


def _is_address(package: str) -> bool:
    name = package.partition("@")[0] if not package.startswith("@") else ""
    return ":" in package.partition("==")[0] or "/" in name


def _next_value(rest: Iterator[str], runner: str, option: str) -> str:
    value = next(rest, "")
    if not value:
        raise _unknown(runner, f"`{option}` has no value")
    return value


def _require_known_option(runner: str, word: str) -> None:
    if word not in _WITHOUT_EFFECT:
        raise _unknown(runner, f"`{word}` of {runner} is not supported")


def _unknown(runner: str, why: str) -> ToolUnavailableError:
    return ToolUnavailableError(
        f"a confined server is installed before it starts, and its package cannot be read from its command: {why}",
        hint=f"Write `{runner} PACKAGE@VERSION`, or install it yourself and name its program.",
    )
