"""Keep a compiled configuration for the next start, without the secrets in it (X5)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pegboard.config.accepted_files import accepted_files
from pegboard.config.cache.configuration_json import NotCacheableError, encode_value
from pegboard.config.cache.origin import origin_of
from pegboard.config.cache.reader import Lookups, MarkedEnvironment, cache_file, restore_configuration, save
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.schema.configuration import Configuration
from pegboard.core.model.specs import ServerSpec
from pegboard.errors import PegboardError

Compile = Callable[[Path, Mapping[str, str]], Configuration]
"""Compile the configuration of a path under these variables; raises ``ConfigError``."""
_IN_MEMORY = "memory:"


def write(path: Path, env: Mapping[str, str], compiled: Compile) -> bool:
    """Keep the configuration of a path for the next start; return whether it is kept.

    Values of variables are never written: it is compiled once more with markers for values, and kept where
    filling them in gives the same. One that has a literal secret, takes variables from files, or says
    ``store: memory:`` is not kept; then what was kept before is removed.
    """
    kept = False
    try:
        if accepted_files(path) is not None:  # what counts is not what lies there
            raise NotCacheableError("files")
        content = _content(path, env, compiled)
        if content is not None:
            save(cache_file(path), content)
            kept = True
    except (OSError, ValueError, NotCacheableError, PegboardError, RecursionError):
        pass
    if not kept:
        with suppress(OSError):
            cache_file(path).unlink()
    return kept


def _content(path: Path, env: Mapping[str, str], compiled: Compile) -> dict[str, Any] | None:
    """Return what to keep, or None where that is not what compiling gives."""
    lookups, marked, salt = Lookups(env), MarkedEnvironment(env, os.urandom(8).hex()), os.urandom(16)
    real = compiled(path, lookups)
    origin = origin_of(real, lookups.names)
    digest = origin.digest(env, salt)
    template = compiled(path, marked)
    markers = tuple(marked.markers.values())
    _refuse_secrets(template, markers)
    content = {
        "salt": salt.hex(),
        "digest": digest,
        "origin": asdict(origin),
        "markers": marked.markers,
        "configuration": encode_value(template, markers),
    }
    read_back = restore_configuration(json.loads(json.dumps(content)), env)  # None where something changed meanwhile
    same = marked.names == lookups.names and _text(read_back) == _text(real)
    return content if same else None


def _text(configuration: Configuration | None) -> str:
    """Return a configuration with the types of all its values, to be compared."""
    return json.dumps(encode_value(configuration, None))


def _refuse_secrets(template: Configuration, markers: Sequence[str]) -> None:
    read = [file for file in template.files if file != template.path and file.parent not in template.folders]
    if template.store == _IN_MEMORY or read:  # the other files are files of variables
        raise NotCacheableError("store")
    servers = [spec for spec in template.specs.values() if isinstance(spec, ServerSpec)]
    texts = (*template.secrets, *(text for spec in servers for text in _secrets_of(spec)))
    for text in texts:
        if not any(marker in text for marker in markers):
            raise NotCacheableError("secret")


def _secrets_of(spec: ServerSpec) -> Iterator[str]:
    """Yield what looks like a secret in how a server is started; a path looks random and is not."""
    plain = [text for text in spec.args if not text.startswith(("/", "./", "../", "~"))]
    yield from secrets_in(plain)
    yield from secrets_in([spec.url or "", spec.command or "", *spec.env.values(), *spec.headers.values()])
