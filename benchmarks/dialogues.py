"""What a conversation adds to searches: recall of the needed tools among five, turn by turn, through a board.

Every turn of a user that needs tools is searched for in the user's words. A set without turns is one conversation per
request in all columns but ``always`` and ``gateway``, in which all of them follow each other in one session, as a
client would search for things that have nothing to do with each other.

- ``alone``: the words of the turn, and nothing else;
- ``messages``: in the library, with the messages before (``surface(message=…)``);
- ``always``: with the searches before as context of each search, whatever its own words find;
- ``gateway``: in a gateway, which knows the searches before;
- ``used``: as ``messages``, and the needed tools are called in every turn, so that what follows knows what was used;
  the second half of the conversations is reported, ``messages, 2nd half`` being the same without calls.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.answers import SEED, DataSource, configuration, data, lines, tools_of
from pegboard import Host, Pegboard, Session
from pegboard.core.model.tools import CallResult, text_result
from pegboard.ports import Adapters
from pegboard.stores.sql import MemoryStore
from pegboard.testing import FakeValidator

DIALOGUES = ("api_bank", "tooltalk", "bfcl_multi_turn")
REQUESTS = ("bfcl_v4", "seal_tools")
GATEWAY = Host(delivery=("result",), calls_through=True)
LIBRARY = Host()
FOUND = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the user writes, and the tools that it needs, each with those that would do as well."""

    text: str
    needed: tuple[frozenset[str], ...]


Conversation = tuple[Turn, ...]


class CallableSource(DataSource):
    """A source whose tools can be called, and answer nothing."""

    async def call(self, *_: object) -> CallResult:
        return text_result("")


def conversations_of(folder: Path) -> list[Conversation]:
    found: list[Conversation] = []
    for row in lines(folder / "queries.jsonl"):
        same: Mapping[str, list[str]] = row.get("gold_alts", {})
        asked = [(t["user"], t["gold"]) for t in row["turns"]] if "turns" in row else [(row["query"], row["gold"])]
        found.append(
            tuple(
                Turn(text=text, needed=tuple(frozenset(same.get(name, [name])) for name in dict.fromkeys(gold)))
                for text, gold in asked
                if text.strip()
            )
        )
    return found


async def recall(session: Session, turn: Turn, context: Sequence[str] | None) -> float | None:
    """Return the share of the needed tools among the first five; None where none is needed."""
    found = {result.name for result in (await session.search(turn.text, limit=FOUND, context=context)).results}
    if not turn.needed:
        return None
    return sum(bool(alternatives & found) for alternatives in turn.needed) / len(turn.needed)


async def recalls(
    board: Pegboard,
    conversations: Sequence[Conversation],
    host: Host = LIBRARY,
    *,
    heard: bool = False,
    used: bool = False,
    given: bool = False,
) -> list[list[float]]:
    """Return the recall of every turn that needs something, conversation by conversation."""
    found: list[list[float]] = []
    for number, turns in enumerate(conversations):
        session = await board.session(session_id=str(number), host=host)
        rows: list[float] = []
        for place, turn in enumerate(turns):
            if heard:
                await session.surface(message=turn.text)
            before = [other.text for other in turns[max(0, place - 3) : place]] if given else None
            value = await recall(session, turn, before)
            rows += [] if value is None else [value]
            for alternatives in turn.needed if used else ():
                await session.call(min(alternatives), {})
            await session.end_turn()
        found.append(rows)
    return found


def mean(rows: Sequence[Sequence[float]]) -> float:
    return round(100 * statistics.mean([value for row in rows for value in row]), 1)


async def measure_set(folder: Path, sample: int | None) -> dict[str, Any]:
    servers, conversations = tools_of(folder), conversations_of(folder)
    dialogues = any(len(turns) > 1 for turns in conversations)
    random.Random(SEED).shuffle(conversations)
    conversations = conversations[:sample]
    half = len(conversations) // 2
    alone = [(turn,) for turns in conversations for turn in turns]
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (home / "pegboard.yaml").write_text(json.dumps(unguarded(configuration(servers))))

        async def opened() -> Pegboard:
            adapters = Adapters(store=MemoryStore(), sources=[CallableSource(servers)], validator=FakeValidator())
            board = await stack.enter_async_context(Pegboard.open(home / "pegboard.yaml", adapters=adapters))
            await (await board.session(session_id="first")).search("anything")
            return board

        messages = await recalls(await opened(), conversations, heard=True)
        used = await recalls(await opened(), conversations, heard=True, used=True)
        stitched = conversations if dialogues else [tuple(turn for turns in conversations for turn in turns)]
        return {
            "set": folder.name,
            "conversations": len(conversations),
            "turns": sum(map(len, messages)),
            "alone": mean(await recalls(await opened(), alone)),
            "messages": mean(messages),
            "always": mean(await recalls(await opened(), stitched, given=True)),
            "gateway": mean(await recalls(await opened(), stitched, GATEWAY)),
            "messages, 2nd half": mean(messages[half:]),
            "used, 2nd half": mean(used[half:]),
        }


def unguarded(configured: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration under which a call of a tool runs, loaded or not."""
    (agent,) = configured["agents"].values()
    return {**configured, "agents": {"default": {**agent, "unloaded_call": "run"}}}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks dialogues", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", default=[*DIALOGUES, *REQUESTS], metavar="SET")
    parser.add_argument("--sample", type=int, default=300, help="conversations of each set; 0 for all")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    options = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    for name in options.sets:
        print(f"dialogues: {name} …", file=sys.stderr)
        rows.append(asyncio.run(measure_set(data() / name, options.sample or None)))
        if not options.json:
            print(json.dumps(rows[-1]), flush=True)
    if options.json:
        print(json.dumps({"dialogues": rows}, indent=2))
    return 0
