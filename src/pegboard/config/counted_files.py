"""Which files of a project count as they were accepted, and a configuration that is run from their copies (A7)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from pegboard.config.accepted_files import (
    AcceptedFiles,
    FileKind,
    accepted_files,
    files_below,
    new_accepted_files,
    path_of,
    read_counted,
)
from pegboard.config.in_force import make_unavailable
from pegboard.config.reading import listed_loadouts
from pegboard.config.schema.configuration import Configuration
from pegboard.config.started_code import NO_FILE, is_interpreter, runner_files, runner_of, value_of
from pegboard.core.access.named_paths import is_script
from pegboard.core.model.specs import OWN_FOLDER, PluginSpec, PythonSpec, ServerSpec
from pegboard.core.model.tools import Frozen
from pegboard.support.imported_modules import with_imports

WAITS: Final = "a file that it runs was changed or created and waits for a person: `pegboard accept` shows it."
_MOST_FILES: Final = 2_000
"""How many files of one module or package count."""
_JS: Final = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx")
_IMPORTED: Final = re.compile(r"""(?:\bfrom|\bimport|\brequire)\s*\(?\s*['"](\.{1,2}/[^'"\n]{1,500})['"]""")
_NODE_MODULES: Final = "node_modules"
_BEGINNING: Final = 1024
"""Bytes in which a program that is no text has a zero."""


def writable_roots(configuration: Configuration) -> list[str]:
    """Return the folders and files that something confined may write, as they are named and as they lie now."""
    found: dict[str, None] = {}
    for spec in configuration.specs.values():
        if spec.confine is None:
            continue
        folder = os.path.abspath(spec.confine.folder or os.getcwd())  # noqa: PTH100, PTH109
        roots = [folder if each == OWN_FOLDER else os.path.join(folder, each) for each in spec.confine.write]  # noqa: PTH118
        if OWN_FOLDER in spec.confine.write and isinstance(spec, ServerSpec):
            words = (each for text in spec.args for each in (text, text.partition("=")[2]))
            base = spec.cwd or folder
            roots += [os.path.join(base, os.path.expanduser(word)) for word in words if os.sep in word]  # noqa: PTH111, PTH118
        for root in roots:
            if "\0" not in root:
                found.update(dict.fromkeys((os.path.abspath(root), os.path.realpath(root))))  # noqa: PTH100
    return list(found)


def counted_files(
    configuration: Configuration, accepted: AcceptedFiles, start: Path | None = None
) -> dict[Path, FileKind]:
    """Return the files that a configuration is read from and runs, and that something confined may write.

    ``start`` is where servers without a ``cwd`` start; None is the current folder.
    """
    folder = configuration.path.absolute().parent
    beside = (path for top in configuration.folders for path in listed_loadouts(top))
    found: dict[Path, FileKind] = {path.absolute(): "text" for path in (*configuration.files, *beside)}
    code: list[Path] = []
    if accepted.covers_file(folder / "any.py"):
        code += _files_of_modules(str(folder), named_modules(configuration))
    for spec in configuration.specs.values():
        if isinstance(spec, ServerSpec) and spec.command is not None:
            code += [
                each
                for _, _, path in _scripts(spec, start=start)
                if accepted.covers_file(path)
                for each in _files_of_script(path)
            ]
    found.update((path, "code") for path in code if not path.is_dir())
    return {path: kind for path, kind in found.items() if accepted.covers_file(path)}


def named_modules(configuration: Configuration) -> list[str]:
    """Return the first names of the modules that a configuration names."""
    targets = [spec.target for spec in configuration.specs.values() if isinstance(spec, PythonSpec)]
    targets += [when for spec in configuration.specs.values() for when in spec.when.values() if when]
    targets += [kit.policy_hook for kit in configuration.toolkits.values() if kit.policy_hook]
    focus = [rule for kit in configuration.toolkits.values() for rule in kit.focus]
    targets += [str(rule["python"]) for rule in focus if "python" in rule]
    return [target.partition(":")[0].partition(".")[0] for target in targets]


def bind(configuration: Configuration, start: Path | None = None) -> AcceptedFiles | None:
    """Let what something confined may write of a project count as it is accepted; None where it may write nothing.

    It is called before anything confined is started.

    Raises:
        StoreError: it cannot be kept.
    """
    roots, name = writable_roots(configuration), path_of(configuration)
    known = accepted_files(name)
    if not roots:
        return known
    if known is not None and set(roots) <= set(known.roots):
        return known
    known = known or new_accepted_files(name)
    wider = replace(known, roots=tuple(dict.fromkeys((*known.roots, *roots))))
    return known.bind_files(counted_files(configuration, wider, start), wider.roots)


def release(configuration: Configuration, known: AcceptedFiles) -> bool:
    """Let files count as they are where nothing confined may write them any more and none waits; return whether so."""
    if writable_roots(configuration) or known.changes(counted_files(configuration, known)):
        return False
    known.end()
    return True


def with_accepted_code(
    configuration: Configuration, accepted: AcceptedFiles | None, start: Path | None = None
) -> Configuration:
    """Return a configuration that runs the code which was accepted; a plugin whose code was not is unavailable."""
    if accepted is None or not accepted.roots:
        return configuration
    specs = {name: _with_accepted_code(spec, accepted, start) for name, spec in configuration.specs.items()}
    return replace(configuration, specs=Frozen(specs))


def _with_accepted_code(spec: PluginSpec, accepted: AcceptedFiles, start: Path | None) -> PluginSpec:
    if isinstance(spec, PythonSpec) and spec.folder is not None and accepted.covers_file(Path(spec.folder, "any.py")):
        place = spec.target.partition(":")[0].partition(".")[0]
        copies = accepted.copied_folder(spec.folder)
        if _has_module(Path(spec.folder), place) and not _has_module(copies, place):
            return make_unavailable(spec, WAITS)
        return replace(spec, folder=str(copies))
    if isinstance(spec, ServerSpec) and spec.command is not None:
        return _server_from_copies(spec, accepted, start)
    return spec


def _has_module(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def _server_from_copies(spec: ServerSpec, accepted: AcceptedFiles, start: Path | None) -> ServerSpec:
    words = [spec.command or "", *spec.args]
    for index, option, path in _scripts(spec, accepted, start=start):
        copy = accepted.in_force(path, "code")
        if copy is None:
            return make_unavailable(spec, WAITS)
        if copy != path:
            _link_packages(path, copy, accepted)
            words[index] = f"{option}{copy}"
    command, *args = words
    return replace(spec, command=command, args=tuple(_arguments_outside_project(spec, command, args, accepted, start)))


def _arguments_outside_project(
    spec: ServerSpec, command: str, args: list[str], accepted: AcceptedFiles, start: Path | None
) -> list[str]:
    """Return the arguments of npx so that it takes neither programs nor settings from a folder that others write."""
    base = spec.cwd or str(start or Path.cwd())
    if spec.confine is not None or runner_of(command) != "npx" or not accepted.covers_file(os.path.join(base, "any")):  # noqa: PTH118
        return args
    if any(each.startswith("--prefix") for each in args) or next(runner_files("npx", base), None) is not None:
        return args
    top = accepted.folder / "npx"
    top.mkdir(mode=0o700, exist_ok=True)
    return [f"--prefix={top}", *args]


def _scripts(
    spec: ServerSpec, accepted: AcceptedFiles | None = None, *, start: Path | None = None
) -> Iterator[tuple[int, str, Path]]:
    """Yield the files that a server runs by its words: the place of each word, the option before it, the file.

    That are a program by its path, what is named like a script, and the first file behind an interpreter.
    """
    base, words = Path(spec.cwd or start or Path.cwd()), [spec.command or "", *spec.args]
    behind = False
    for index, word in enumerate(words):
        value = value_of(word) if index else word
        path = base / os.path.expanduser(value)  # noqa: PTH111
        runs = behind and not word.startswith("-")
        if "\0" in value or not value:
            continue
        named = os.sep in value if index == 0 else is_script(value) or runs
        if named and (_was_accepted(path, accepted) or _is_own_script(path)):
            yield index, word.removesuffix(value), path.absolute()
        behind = word not in NO_FILE and (word.startswith("-") if behind else is_interpreter(word))


def _was_accepted(path: Path, accepted: AcceptedFiles | None) -> bool:
    return accepted is not None and accepted.key(path) in accepted.files


def _is_own_script(path: Path) -> bool:
    """Return whether a file is a script of the project: no program, and nothing of an environment or of packages."""
    if _NODE_MODULES in path.parts or not path.is_file():
        return False
    if any((above / "pyvenv.cfg").is_file() for above in path.parents):
        return False
    data = read_counted(path)
    return data is not None and b"\0" not in data[:_BEGINNING]


def _files_of_modules(folder: str, names: Iterable[str]) -> Iterator[Path]:
    """Yield the files of modules in a folder, and of what these import there; of a package all that is in it."""
    for name in with_imports(folder, names):
        place = Path(folder, name)
        if name and place.is_dir() and next(place.rglob("*.py"), None) is not None:
            yield from files_below(place, _MOST_FILES)
        if name and (file := place.with_name(f"{name}.py")).is_file():
            yield file


def _files_of_script(path: Path) -> Iterator[Path]:
    """Yield a script, and what it imports beside it."""
    yield path
    if path.suffix == ".py":
        yield from _files_of_modules(str(path.parent), [path.stem])
    elif path.suffix in _JS:
        yield from _files_of_javascript(path)


def _files_of_javascript(script: Path) -> Iterator[Path]:
    waiting, found = [script], dict[Path, None]()
    while waiting and len(found) < _MOST_FILES:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = None
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for name in _IMPORTED.findall(text):
            waiting += _module_files_at(Path(os.path.normpath(path.parent / name)))
    yield from found
    for folder in (script.parent, *script.parent.parents):
        if (manifest := folder / "package.json").is_file():
            yield manifest
            return


def _module_files_at(place: Path) -> Sequence[Path]:
    """Return the files that a name in an import may be, of which the first is there."""
    tried = (
        place,
        *(place.with_name(place.name + end) for end in (*_JS, ".json")),
        *(place / f"index{e}" for e in _JS),
    )
    sources = (place.with_suffix(end) for end in (".ts", ".tsx") if place.suffix == ".js")
    return next(([path] for path in (*tried, *sources) if path.is_file()), [])


def _link_packages(script: Path, copy: Path, accepted: AcceptedFiles) -> None:
    """Let the copy of a script of JavaScript find the packages that the script finds."""
    if script.suffix not in _JS:
        return
    for folder in (script.parent, *script.parent.parents):
        if (packages := folder / _NODE_MODULES).is_dir():
            if accepted.covers_file(packages):
                link = accepted.copied_folder(folder) / _NODE_MODULES
                if not os.path.lexists(link) and copy.is_relative_to(link.parent):
                    link.symlink_to(packages)
            return
