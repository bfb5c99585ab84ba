"""The blocks of a result as parts that every provider takes: texts within a limit, pictures, files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pegboard.core.model.tools import JsonObject
from pegboard.wire.provider_forms import ToolResult

RESULT_LIMIT: Final = 200_000
"""How many characters of a result's text reach the model, unless a host says otherwise."""
PICTURES: Final = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
"""The types of pictures that models read."""
FILES: Final = frozenset({"application/pdf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPart:
    """A text, or a picture or file in base64."""

    kind: Literal["text", "picture", "file"]
    text: str = ""
    data: str = ""
    mime_type: str = ""

    @property
    def url(self) -> str:
        """Return a picture or file as an address that has all of it."""
        return f"data:{self.mime_type};base64,{self.data}"


def parts_of(result: ToolResult) -> tuple[ResultPart, ...]:
    """Return the parts of a result; what is too large, or of a type that no model reads, is named in a text."""
    found: list[ResultPart] = []
    left = result.limit
    for block in result.result.content:
        part = _part(block, result.limit)
        if part.kind == "text" and len(part.text) > left:
            part = ResultPart(kind="text", text=cut_text(part.text, left))
            left = 0
        elif part.kind == "text":
            left -= len(part.text)
        found.append(part)
    if not found and result.result.structured is not None:
        text = json.dumps(result.result.structured, ensure_ascii=False, default=str)
        found.append(ResultPart(kind="text", text=cut_text(text, left) if len(text) > left else text))
    return tuple(found)


def text_of(result: ToolResult) -> str:
    """Return the texts of a result; of one that failed with a word in front, where the form has no field for that."""
    text = "\n".join(_texts(parts_of(result)))
    return f"Error: {text}" if result.result.is_error and not text.startswith("Error") else text


def _texts(parts: tuple[ResultPart, ...]) -> Iterator[str]:
    return (part.text for part in parts if part.kind == "text")


def cut_text(text: str, length: int) -> str:
    """Return the beginning of a text that is too long, and how much of it is not shown."""
    return f"{text[:length]}\n[{len(text) - length:,} more characters are not shown: the result is too long.]"


def _part(block: JsonObject, limit: int) -> ResultPart:
    match block:
        case {"type": "text", "text": text} | {"type": "resource", "resource": {"text": text}}:
            return ResultPart(kind="text", text=str(text))
        case {"type": "image", "data": str(data), "mimeType": str(kind)} if kind in PICTURES:
            return _part_within(ResultPart(kind="picture", data=data, mime_type=kind), limit)
        case {"type": "resource", "resource": {"blob": str(data), "mimeType": str(kind)}} if kind in PICTURES | FILES:
            return _part_within(
                ResultPart(kind="picture" if kind in PICTURES else "file", data=data, mime_type=kind), limit
            )
        case {"data": str(data)} | {"resource": {"blob": str(data)}}:
            return _file_name_part(str(block.get("mimeType") or block.get("type")), data)
        case _:
            about = block.get("resource", block)
            return ResultPart(kind="text", text=json.dumps(about, ensure_ascii=False, default=str))


def _part_within(part: ResultPart, limit: int) -> ResultPart:
    """Return a picture or file; one of more bytes than a text may have characters, fourfold, is only named."""
    return part if len(part.data) <= max(4 * limit, 1_000_000) else _file_name_part(part.mime_type, part.data)


def name_of_file(kind: str, data: str) -> str:
    """Return what is in place of a picture or file that no model is sent."""
    return f"[{kind}, {len(data) * 3 // 4:,} bytes: not shown]"


def _file_name_part(kind: str, data: str) -> ResultPart:
    return ResultPart(kind="text", text=name_of_file(kind, data))
