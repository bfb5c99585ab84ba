"""A configuration with one value in it that a person proposes: checked as it would be, shown as a diff, and saved."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegboard.config.documents.value_edits import not_rewritable, with_value
from pegboard.config.inspection import inspect, refusal
from pegboard.config.proposed import ProposedConfiguration, configuration_of
from pegboard.config.saving import write_whole
from pegboard.core.model.specs import RegisteredSpec
from pegboard.errors import ConfigError


def with_proposed(
    path: Path,
    keys: Sequence[str],
    value: Any,
    *,
    registered: Mapping[str, RegisteredSpec],
    tools: Mapping[str, Collection[str]],
    packaged: bool,
) -> ProposedConfiguration:
    """Return the configuration of a file with another value in one place of it.

    Args:
        path: the file.
        keys: the keys that lead to the value.
        value: texts, and lists and mappings of texts.
        registered: the plugins that may be named without being written.
        tools: the own names of the tools of plugins, by plugin.
        packaged: whether it is the packaged configuration, which is nobody's.

    Raises:
        ConfigError: it is no file of ours to change, it would be refused, or more than this would change.
    """
    found = configuration_of(path, registered=registered, tools=tools, packaged=packaged)
    if not found.there:
        raise not_rewritable(found.file)
    text = with_value(found.text, keys, value, file=found.file)
    _, problems = inspect(path, registered=registered, tools=tools, text=text)
    fresh = [one for one in problems if (one.code, one.message) not in found.problems and one.severity == "error"]
    if fresh:
        raise refusal(found.file, fresh)
    return replace(found, text=text)


def digest_of(proposed: ProposedConfiguration) -> str:
    """Return what tells one change of one text from any other."""
    return hashlib.sha256(f"{proposed.before}\0{proposed.text}".encode(errors="surrogatepass")).hexdigest()


def save(proposed: ProposedConfiguration) -> None:
    """Put the changed text in the place of the file.

    Raises:
        ConfigError: somebody else changed it meanwhile, or it cannot be written.
    """
    path = proposed.path.resolve()
    try:
        data = path.read_bytes()
        mark = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
        if data.removeprefix(mark) != proposed.before.encode():
            message = f"{proposed.file} was changed meanwhile, and is left as it is."
            raise ConfigError(message, code="file_changed", hint="Try again.")
        write_whole(path, mark + proposed.text.encode(), like=path.stat())
    except OSError as error:
        raise ConfigError(
            f"{proposed.file} cannot be written: {error.strerror}.",
            code="file_unwritable",
            hint="Let Pegboard write it, or change it by hand.",
        ) from error
