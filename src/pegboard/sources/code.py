"""What the code of a plugin looks like now, without importing it: its files, and the version of its package (X1).

A manifest counts as long as this is the same. What has been imported looks as it did then, however its files have
changed since.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from pegboard.core.model.specs import NAME_ONLY, PluginSpec, PythonSpec, RegisteredSpec
from pegboard.core.model.tools import JsonObject, variant_key
from pegboard.ports import Fingerprint
from pegboard.support.version import __version__

_FORM: Final = 2
"""Counted up when the same code comes to another manifest, or what is in one changes its meaning."""
_MOST: Final = 500
"""Of how many files of a package the sizes and times count."""
_METADATA: Final = (".dist-info", ".egg-info")

_imported: dict[str, str] = {}  # how the code of a module looked when it was first imported here, by its place


def fingerprint(spec: PluginSpec, overrides: JsonObject) -> Fingerprint | None:
    """Return under which fingerprint the manifest of a plugin is stored; None for what no code brings.

    Secrets among the overrides do not show in it (X5).
    """
    target = _module_target(spec)
    if target is None:
        return None
    module, folder, package = target
    subject = (type(spec).__name__, _target_of(spec), folder, variant_key(overrides))
    place = place_of(module, folder)
    beside = place is not None and folder is not None and place.is_relative_to(folder)
    version = package or ("" if beside else _version(place))
    look = _imported.get(str(place)) or _digest_of_module(place)
    return Fingerprint(subject=_digest(*subject), code=_digest(_FORM, __version__, version, look))


def import_path_of(spec: PluginSpec) -> Path | None:
    """Return the file or folder that a plugin is brought in by; None for what no code brings, or is not there."""
    target = _module_target(spec)
    return None if target is None else place_of(target[0].partition(".")[0], target[1])


def note_import(spec: PluginSpec) -> None:
    """Keep how the code of a plugin looks, right before it is imported for the first time."""
    target = _module_target(spec)
    if target is not None:
        place = place_of(target[0], target[1])
        _imported.setdefault(str(place), _digest_of_module(place))


def forget_imports(folder: str) -> None:
    """Forget how modules in a folder looked that are no longer imported."""
    for place in [place for place in _imported.copy() if Path(place).is_relative_to(folder)]:
        del _imported[place]


def _module_target(spec: PluginSpec) -> tuple[str, str | None, str] | None:
    """Return the module that a plugin is brought in by, the folder that it may lie in, and its package's version."""
    match spec:
        case PythonSpec():
            return spec.target.partition(":")[0], spec.folder, ""
        case RegisteredSpec() if spec.module:
            return spec.module, None, spec.package
        case RegisteredSpec() if not spec.loader.startswith(NAME_ONLY):
            module = spec.loader.split(":")[1]
            if spec.counterpart and place_of(module, None) is None:
                module = spec.counterpart.partition(":")[0]
            return module, None, ""
        case _:
            return None


def _target_of(spec: PluginSpec) -> str:
    return spec.target if isinstance(spec, PythonSpec) else spec.loader if isinstance(spec, RegisteredSpec) else ""


def place_of(module: str, folder: str | None) -> Path | None:
    """Return the file of a module, or the folder of a package; None where there is no such module."""
    first, *rest = module.split(".")
    if folder is not None and (found := _module_file(Path(folder), (first, *rest))) is not None:
        return found
    try:
        spec = importlib.util.find_spec(first)  # of a module at the top: imports nothing
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return None
    tops = [Path(top) for top in spec.submodule_search_locations or ()]
    if rest:
        return next((found for top in tops if (found := _module_file(top, rest)) is not None), None)
    return tops[0] if tops else Path(spec.origin) if spec.has_location and spec.origin else None


def _module_file(folder: Path, names: Sequence[str]) -> Path | None:
    place = folder.joinpath(*names)
    package, file = place / "__init__.py", place.with_name(f"{place.name}.py")
    return place if package.is_file() else file if file.is_file() else place if place.is_dir() else None


def _digest_of_module(place: Path | None) -> str:
    """Return a digest of the sizes and times of a module's file, or of those of its package."""
    if place is None:
        return ""
    files = [place] if place.suffix else sorted(_files_of_package(place))[:_MOST]
    return _digest(*(_file_stamp(file) for file in files))


def _files_of_package(folder: Path) -> Iterator[Path]:
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(top, name) for name in names if name.endswith(".py"))


def _file_stamp(file: Path) -> tuple[str, int, int]:
    try:
        status = file.stat()
    except OSError:
        return file.name, 0, -1
    return file.name, status.st_mtime_ns, status.st_size


def _version(place: Path | None) -> str:
    """Return what stands beside a package for its version: ``importlib.metadata`` takes longer than all of this."""
    for top in sys.path:
        if top and place is not None and place.is_relative_to(top):
            name = place.relative_to(top).parts[0].removesuffix(".py").casefold()
            return " ".join(
                one for one in _metadata(top, _file_stamp(Path(top))[1]) if one.casefold().startswith(f"{name}-")
            )
    return ""


@lru_cache
def _metadata(folder: str, changed: int) -> tuple[str, ...]:  # noqa: ARG001 - what it returns is as of then
    """Return what is in a folder for the packages that are installed there, in their versions."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return ()
    return tuple(sorted(name for name in names if name.endswith(_METADATA)))


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]
