"""Read the everyday requests, the small talk, the catalogs and the effects of the tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).resolve().parent

Half = Literal["develop", "kept"]
Effect = Literal["read", "write"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EverydayRequest:
    """What a person typed, with the tools (``server/tool``) of which each does the job or a main step of it."""

    server: str
    intent: Effect
    language: str
    tools: frozenset[str]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolEffect:
    """Whether a tool reads or writes, and whether its annotations say so or its description was judged."""

    effect: Effect
    by: Literal["annotation", "judgement"]


def catalogs() -> Mapping[str, Mapping[str, Any]]:
    """Return the document of each server by its name: package, version, licence, serverInfo, instructions, tools."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((FOLDER / "catalogs").glob("*.json"))}


def effects() -> Mapping[str, ToolEffect]:
    """Return the effect of each tool by ``server/tool``."""
    return {tool: ToolEffect(effect=effect, by=by) for tool, effect, by in _rows(FOLDER / "effects.txt")}


def requests(half: Half) -> list[EverydayRequest]:
    """Return the requests of a half."""
    return [
        EverydayRequest(server=server, intent=intent, language=language, tools=frozenset(tools.split()), text=text)
        for server, intent, language, tools, text in _rows(FOLDER / half / "requests.txt")
    ]


def small_talk(half: Half) -> list[str]:
    """Return the messages of a half that need no tool."""
    return [text for _, text in _rows(FOLDER / half / "small_talk.txt")]


def _rows(path: Path) -> Iterator[list[Any]]:
    """Yield the fields of each line that is no comment."""
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t")
