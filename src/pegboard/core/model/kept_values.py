"""JSON values as they are kept: masked first, then cut; the work is bounded by what is kept, however large they are."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.core.model.masking import MASK, Masker, is_secret

DEEPEST: Final = 32
"""How many levels of a value are kept."""
MOST_BLOCKS: Final = 100
"""How many blocks of a result are kept."""
_LONGEST_KIND: Final = 40
_LONGEST_NAME: Final = 2_000
"""How many bytes are kept of what a block is: its address, its name, its kind of content."""
_MORE: Final = "…"
_LEAST: Final = 2
"""What any item takes: a million empty lists are not gone through."""
_SHORT: Final = 1_000
"""Up to how many characters a text is looked up among the secrets: to hash a long one takes as long as it is."""
_PLAIN_NUMBERS: Final = 2**64
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptValue:
    """A value as JSON text; ``cut`` is whether some of it is missing, ``exact`` whether it is all there, unmasked."""

    text: str
    cut: bool = False
    exact: bool = False


def kept_text(masker: Masker, text: str, most: int) -> tuple[str, bool]:
    """Return the beginning of a text without secrets, at most so many bytes, and whether it was cut."""
    found = masker.beginning(text, most)
    cut = len(text) > most
    if not found.isascii():
        encoded = found.encode(errors="surrogatepass")
        if len(encoded) > most:
            found, cut = encoded[:most].decode(errors="ignore"), True
    return found, cut


def kept_json(masker: Masker, value: object, most: int) -> KeptValue:
    """Return a JSON value as text without secrets, cut to about so many bytes; what is cut has ``…`` in its place."""
    copying = _BoundedCopy(masker, most)
    text = _ENCODER.encode(copying.value(value, 0))
    return KeptValue(text=text, cut=copying.cut, exact=not (copying.cut or copying.masked))


def kept_blocks(masker: Masker, content: Sequence[Mapping[str, Any]], structured: object, most: int) -> KeptValue:
    """Return what a tool answered as a JSON list of blocks: texts are kept, what is no text is named.

    Structured content is a last block where no text says the same.

    >>> kept_blocks(Masker(), [{"type": "image", "mimeType": "image/png", "data": "AAAA"}], None, 100).text
    '[{"type": "image", "mimeType": "image/png", "bytes": 3}]'
    """
    copying = _BoundedCopy(masker, most)
    blocks = [copying.block(block) for block in content[:MOST_BLOCKS] if copying.left > 0]
    copying.cut = copying.cut or len(blocks) < len(content)
    if structured is not None and not any("text" in block for block in blocks):
        blocks.append({"type": "structured", "value": copying.value(structured, 0)})
    return KeptValue(text=_ENCODER.encode(blocks), cut=copying.cut)


class _BoundedCopy:
    """One copy of a value: what may still be kept, and whether it differs from the value."""

    __slots__ = ("_masker", "cut", "left", "masked")

    def __init__(self, masker: Masker, most: int) -> None:
        self._masker = masker
        self.left = most
        self.cut = False
        self.masked = False

    def block(self, block: Mapping[str, Any]) -> dict[str, Any]:
        """Return a block of a result: its text, or what it is."""
        kind = self._masker.beginning(str(block.get("type", "")), _LONGEST_KIND)
        self.left -= _LEAST
        resource = block.get("resource")
        inner = cast("Mapping[str, Any]", resource) if isinstance(resource, Mapping) else block
        named: dict[str, Any] = {"type": kind}
        for key in ("uri", "name", "mimeType"):
            if isinstance(inner.get(key), str):
                named[key] = self.text(inner[key], _LONGEST_NAME)
        if isinstance(inner.get("text"), str):
            return {**named, "text": self.text(inner["text"])}
        data = inner.get("data", inner.get("blob"))
        if isinstance(data, str):
            named["bytes"] = len(data) * 3 // 4 - data[-2:].count("=")
        return named

    def text(self, text: str, most: int = sys.maxsize) -> str:
        """Return a text as it is kept, at most so many bytes of it."""
        if len(text) <= _SHORT and text in self._masker.values:
            self.masked = True
            return MASK
        found, cut = kept_text(self._masker, text, max(min(self.left, most), 0))
        self.left -= _LEAST + (len(found) if found.isascii() else len(found.encode(errors="surrogatepass")))
        if cut:
            self.cut = True
            return f"{found}{_MORE}"
        self.masked = self.masked or found != text
        return found

    def value(self, value: object, depth: int) -> Any:
        """Return a value as it is kept."""
        match value:
            case str():
                return self.text(value)
            case None | bool():
                self.left -= _LEAST
                return value
            case int() | float():
                return self._number(value)
            case Mapping():
                return self._copy_mapping(cast("Mapping[Any, Any]", value), depth)
            case list() | tuple():
                return self._list(cast("Sequence[Any]", value), depth)
            case _:
                self.cut = True
                return _MORE

    def _number(self, value: float) -> Any:
        self.left -= _LEAST
        if isinstance(value, int) and abs(value) > _PLAIN_NUMBERS:
            self.cut = True
            return _MORE
        if str(value) in self._masker.values:
            self.masked = True
            return MASK
        return value

    def _copy_mapping(self, value: Mapping[Any, Any], depth: int) -> Any:
        self.left -= _LEAST
        found: dict[str, Any] = {}
        for key, item in self._items(value.items(), depth):
            name = shown = self.text(str(key))
            number = 1
            while name in found:
                number += 1
                name = f"{shown} ({number})"
            if is_secret(key, item):
                self.masked, found[name] = True, MASK
            else:
                found[name] = self.value(item, depth + 1)
        if len(found) < len(value):
            self.cut, found[_MORE] = True, f"{len(value) - len(found):,} more"
        return found

    def _list(self, value: Sequence[Any], depth: int) -> Any:
        self.left -= _LEAST
        found = [self.value(item, depth + 1) for item in self._items(value, depth)]
        if len(found) < len(value):
            self.cut = True
            found.append(f"{_MORE} {len(value) - len(found):,} more")
        return found

    def _items(self, items: Iterable[Any], depth: int) -> Iterable[Any]:
        """Yield items as long as there is room and they are not too deep."""
        if depth >= DEEPEST:
            return
        for item in items:
            if self.left <= 0:
                return
            yield item
