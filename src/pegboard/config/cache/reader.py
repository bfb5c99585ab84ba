"""Read a configuration that an earlier start compiled.

What this imports stays free of the schema: importing that takes longer than compiling most configurations.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.config.cache.cache_file import cache_file, load
from pegboard.config.cache.configuration_json import decoded
from pegboard.config.cache.origin import Origin
from pegboard.config.cache.variables import beginning_of
from pegboard.config.schema.configuration import Configuration


def read(path: Path, env: Mapping[str, str]) -> Configuration | None:
    """Return the configuration that was compiled from exactly what is there now, or None."""
    try:
        return restored(load(cache_file(path)), env)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def restored(content: Any, env: Mapping[str, str]) -> Configuration | None:
    """Return the configuration of what is kept, or None where something that it was made from has changed."""
    origin = Origin(**{name: tuple(values) for name, values in content["origin"].items()})
    if origin.digest(env, bytes.fromhex(content["salt"])) != content["digest"]:
        return None
    texts = {marker: env[name][len(beginning_of(env[name])) :] for name, marker in content["markers"].items()}
    found = decoded(content["configuration"], texts)
    return found if isinstance(found, Configuration) else None
