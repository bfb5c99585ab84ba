"""Results of tools as text and media for a model."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping
from typing import Any, Final

from pegboard.core.model.tools import CallResult
from pegboard.wire.result_blocks import RESULT_LIMIT, cut_text, name_of_file

FILE_LIMIT: Final = 20_000_000
"""How many characters a picture or file has in base64 that reaches the model."""


def text_and_media(result: CallResult, files: Collection[str]) -> tuple[str, dict[str, list[dict[str, Any]]]]:
    """Return a result's text, and its images, audios and files with their ``content`` and ``mime_type``.

    Files of other types than ``files``, and what is too large, are named in the text, the end of which is cut where it
    is too long for a model.
    """
    texts: list[str] = []
    media: dict[str, list[dict[str, Any]]] = {}
    for block in result.content:
        match block:
            case {"type": "text", "text": text} | {"type": "resource", "resource": {"text": text}}:
                texts.append(str(text))
            case {"data": str(data), "mimeType": str(kind)} | {
                "resource": {"blob": str(data), "mimeType": str(kind)}
            } if len(data) > FILE_LIMIT:
                texts.append(name_of_file(kind, data))
            case {"type": "image" | "audio" as kind, "data": data, "mimeType": mime_type}:
                media.setdefault(f"{kind}s", []).append({"content": b64decode(data), "mime_type": mime_type})
            case {"type": "resource", "resource": {"blob": data, "mimeType": mime_type}} if mime_type in files:
                media.setdefault("files", []).append({"content": b64decode(data), "mime_type": mime_type})
            case {"resource": about} | about:
                texts.append(json.dumps({key: value for key, value in about.items() if key != "blob"}))
    text = "\n".join(texts)
    return text if len(text) <= RESULT_LIMIT else cut_text(text, RESULT_LIMIT), media


def data_url(blob: Mapping[str, Any]) -> str:
    """Return an image or a file of :func:`text_and_media` as a URL that has its content."""
    return f"data:{blob['mime_type']};base64,{b64encode(blob['content']).decode()}"
