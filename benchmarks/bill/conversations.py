"""Two conversations: ten turns, each with another toolkit, and a hundred of which three quarters need no other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.bill.toolkits import Made, Toolkit

TEN = ("mail", "tickets", "billing", "calendar", "shop", "crm", "files", "travel", "servers", "mail")
SMALL_TALK = (
    "Thanks!",
    "Good, that is all for the moment.",
    "Hm, let me think about it.",
    "You are quick today.",
    "Yes, exactly.",
    "What do you think of that yourself?",
    "Sorry, I was on the phone.",
)
SEED = 7
SENTENCE = (
    "Rule {n}: answer in the language of the user, name what you did and what you did not do, and ask before number "
    "{n} of anything that cannot be taken back. "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a user says, and the tool that answering it takes, or None."""

    message: str
    tool: Made | None


def ten(toolkits: Sequence[Toolkit]) -> tuple[Turn, ...]:
    """Return ten turns over nine toolkits, another one each turn."""
    by_name = {toolkit.name: [tool for tool in toolkit.tools if tool.message] for toolkit in toolkits}
    chosen = random.Random(SEED)
    return tuple(_turn(by_name[name].pop(chosen.randrange(len(by_name[name])))) for name in TEN)


def hundred(toolkits: Sequence[Toolkit]) -> tuple[Turn, ...]:
    """Return a hundred turns: a quarter needs another toolkit, half stay with it, a quarter needs no tool."""
    kinds = ["other"] * 24 + ["same"] * 50 + ["talk"] * 25
    chosen = random.Random(SEED)
    chosen.shuffle(kinds)
    now, turns = toolkits[0], list[Turn]()
    for kind in ["other", *kinds]:
        if kind == "talk":
            turns.append(Turn(message=chosen.choice(SMALL_TALK), tool=None))
            continue
        if kind == "other":
            now = chosen.choice([toolkit for toolkit in toolkits if toolkit is not now])
        turns.append(_turn(chosen.choice([tool for tool in now.tools if tool.message])))
    return tuple(turns)


def _turn(tool: Made) -> Turn:
    return Turn(message=tool.message, tool=tool)


def system_text(sentences: int) -> str:
    """Return a system text of so many rules, none like another."""
    return "".join(SENTENCE.format(n=n) for n in range(sentences)) or "You are an assistant."
