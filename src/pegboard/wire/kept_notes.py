"""What stood behind the messages of a history that keeps only what people and models wrote (D4)."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pegboard.core.model.tools import Tool
from pegboard.core.surface.definitions import all_defined_in, definitions_ahead, not_defined
from pegboard.core.surface.surfaces import Surface

Message = TypeVar("Message")
_MOST_CONVERSATIONS: Final = 1_000
"""Of how many conversations notes are known; the one that asked nothing for longest goes first."""
_MOST_CHARACTERS: Final = 200_000
"""How many characters the notes of one conversation have; the oldest go first, and do not stand there again."""
ENDED: Final = "What was said here before of what is loaded and of loadouts holds no more."
"""Stands where nothing is to be said of that any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMessage:
    """A message of a history.

    Attributes:
        text: all that it is, by which it is known together with what stands before it.
        own: its id, by which it is known wherever it stands, where it has one.
        defining: what it defines, where it answers a load or a search.
        called: the tools that it calls.
    """

    text: str = ""
    own: str = ""
    defining: str = ""
    called: tuple[str, ...] = ()


class HistoryReader(Generic[Message]):
    """What is said in the histories of one run: each message is read once, as requests have those of the one before.

    Args:
        said: reads a message, which it has not read before or whose history begins differently.
    """

    def __init__(self, said: Callable[[Message], HistoryMessage]) -> None:
        self._said = said
        self._messages: list[Message] = []
        self._read = ReadHistory()

    def read(self, messages: Sequence[Message]) -> ReadHistory:
        """Return what is said in a history, with no more read of it than is new."""
        known = len(self._messages)
        if known > len(messages) or self._messages != messages[:known]:
            known, self._read = 0, ReadHistory()
        for message in messages[known:]:
            self._read.add(self._said(message))
        self._messages = list(messages)
        return self._read


class ReadHistory:
    """What is said in a history: the place behind each message, and the texts that define tools.

    A place is that of the message's id, or of all that stands up to it.
    """

    def __init__(self, said: Iterable[HistoryMessage] = ()) -> None:
        self.places: list[bytes] = []
        self.defining: list[str] = []
        self.called: set[str] = set()
        self._so_far = hashlib.sha256()
        for one in said:
            self.add(one)

    def add(self, one: HistoryMessage) -> None:
        """Take the next message."""
        text = (one.own or one.text).encode(errors="surrogatepass")
        place = hashlib.sha256(b"id ") if one.own else self._so_far
        place.update(b"%d:%b" % (len(text), text))
        self.places.append(place.digest())
        if one.defining:
            self.defining.append(one.defining)
        self.called.update(one.called)


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptNote:
    text: str
    suffix: str


class KeptNotes:
    """The notes that requests carried, each at its place.

    So a request has at its beginning what the one before it had, and what was defined once stays defined. They are
    known in this process: in another one the model reads of what is loaded where it loads it again.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[str, OrderedDict[bytes, _KeptNote]] = OrderedDict()

    def behind(
        self, conversation: str, history: ReadHistory, surface: Surface, change: str, beside: Sequence[Tool] = ()
    ) -> list[str]:
        """Return what is behind each message of a history; what a request has to say now is behind the last.

        Args:
            conversation: what the history is one of.
            history: its messages, system texts apart.
            surface: what the session gives to the request.
            change: what the model is to know of the newest change.
            beside: what is loaded and is in no list; what the history defines nowhere, as one that was shortened,
                is defined again.
        """
        places = history.places
        if not places:
            return []
        notes = self._notes(conversation)
        before = [notes.get(place) for place in places[:-1]]
        newest = _news_to_tell([note for note in before if note is not None], history, surface, change, beside)
        notes.pop(places[-1], None)  # of a request that was given up: nothing is kept of what is behind it
        if newest.text:
            notes[places[-1]] = newest
            while sum(len(note.text) for note in notes.values()) > _MOST_CHARACTERS and len(notes) > 1:
                notes.popitem(last=False)
        return [note.text if note is not None else "" for note in (*before, newest)]

    def _notes(self, conversation: str) -> OrderedDict[bytes, _KeptNote]:
        notes = self._of.setdefault(conversation, OrderedDict())
        self._of.move_to_end(conversation)
        if len(self._of) > _MOST_CONVERSATIONS:
            self._of.popitem(last=False)
        return notes


def _news_to_tell(
    notes: Sequence[_KeptNote], history: ReadHistory, surface: Surface, change: str, beside: Sequence[Tool]
) -> _KeptNote:
    """Return what a request has to say that no note and no answer says."""
    suffix, before = surface.suffix, notes[-1].suffix if notes else ""
    anticipated = surface.anticipated if surface.ahead else ()
    ahead = ""
    if anticipated or beside:
        known = all_defined_in((*(note.text for note in notes), *history.defining))
        new = {tool.wire: tool for tool in not_defined(anticipated, known)}
        new |= {tool.wire: tool for tool in not_defined(beside, known, history.called)}
        ahead = definitions_ahead(new.values())
    parts = ((suffix or ENDED) if suffix != before else "", ahead, change)
    return _KeptNote(text=" ".join(part for part in parts if part), suffix=suffix)
