"""What is said of a store that was looked over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from pegboard.cli.rendering import plural

if TYPE_CHECKING:
    from pegboard.ports.store_copies import Rekeyed, SealedState, StoreCheck

_KEYS: Final = {
    "variable": "the key in PEGBOARD_KEY",
    "second": "the key in PEGBOARD_SECOND_KEY",
    "file": "the key in the file beside the store",
    "keyring": "the key in the keyring",
}


def check_lines(found: StoreCheck) -> Iterator[str]:
    """Yield what was found, for people."""
    yield f"{found.place} ({found.engine})"
    yield f"  schema   version {found.schema} of {found.understood}"
    yield f"  writable {f'no: {found.read_only}' if found.read_only else 'yes'}"
    if found.faults is not None:
        yield f"  damage   {'; '.join(found.faults) or 'none'}"
    yield f"  size     {size_text(found.bytes)}"
    held = ", ".join(f"{kind} {count:,}" for kind, count in found.counts.items() if count)
    yield f"  records  {held or 'none'}"
    yield f"  sealed   {sealed_line(found.sealed)}"


def sealed_line(sealed: SealedState) -> str:
    """Return how what is sealed stands to the key, in one sentence."""
    there = plural(sealed.there, "secret")
    if sealed.problem:
        return f"{there}; {sealed.problem}"
    key = _KEYS.get(sealed.place)
    if not sealed.there:
        return f"no secret yet; {key} is there." if key else "no secret yet, and no key: the first login creates one."
    if key is None:
        return f"{there}, and no key: set PEGBOARD_KEY to the key of the store that sealed them."
    if len(sealed.opened) > 1:
        each = ", ".join(f"{count} opened by {_KEYS[place]}" for place, count in sealed.opened.items())
        return f"{there}: {each}{f', {sealed.unopened} by none of them' if sealed.unopened else ''}."
    if not sealed.unopened:
        return f"{there}, opened by {key} only."
    return (
        f"{there}, {sealed.unopened} of them not opened by {key}: set PEGBOARD_KEY to that of the store that they "
        "were sealed in."
    )


def rekeyed_line(found: Rekeyed) -> str:
    """Return what became of what was sealed again, for people."""
    said = f"{plural(found.there, 'secret')}, {found.resealed} sealed again with {_KEYS.get(found.place, 'no key')}."
    if found.unopened:
        said += (
            f" {found.unopened} cannot be opened with any key here: set PEGBOARD_SECOND_KEY to their key and repeat."
        )
    return said


def check_json(found: StoreCheck) -> dict[str, Any]:
    """Return what was found, for scripts."""
    return {"sound": found.sound, **asdict(found), "replicas": [one._asdict() for one in found.replicas]}


def size_text(count: int) -> str:
    """Return a number of bytes for people.

    >>> size_text(512), size_text(40_960), size_text(5 * 1024 * 1024)
    ('512 bytes', '40 KiB', '5.0 MiB')
    """
    if count < 1024:
        return plural(count, "byte")
    return f"{count / 1024:,.0f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:,.1f} MiB"
