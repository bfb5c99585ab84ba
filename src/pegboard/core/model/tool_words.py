"""The commonest words of the names of tools: what a plugin is for where no one described it (F2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from pegboard.core.model.naming import words_of

VERBS: Final = frozenset(
    {
        "activate", "add", "analyze", "append", "apply", "approve", "archive", "assign", "attach", "authorize",
        "build", "calculate", "call", "cancel", "check", "checkout", "clean", "cleanup", "clear", "click",
        "clone", "close", "commit", "compare", "complete", "configure", "connect", "convert", "copy", "count",
        "create", "delete", "deploy", "describe", "detach", "diff", "disable", "disconnect", "download", "drag",
        "drop", "edit", "emulate", "enable", "evaluate", "exec", "execute", "explain", "export", "extract",
        "fetch", "fill", "filter", "find", "fork", "forward", "generate", "get", "give", "handle", "hover",
        "import", "insert", "inspect", "install", "invite", "invoke", "kill", "launch", "list", "load", "login",
        "lookup", "make", "manage", "mark", "merge", "modify", "move", "navigate", "open", "parse", "patch",
        "pause", "perform", "ping", "play", "poll", "post", "press", "preview", "process", "publish", "pull",
        "push", "put", "read", "rebase", "reconnect", "register", "reject", "remove", "rename", "render",
        "reopen", "reorder", "replace", "reply", "reset", "resize", "resolve", "restart", "restore", "resume",
        "retrieve", "retry", "revert", "rollback", "run", "save", "scale", "search", "select", "send", "set",
        "show", "simulate", "sort", "start", "stop", "store", "submit", "subscribe", "summarize", "sync",
        "take", "toggle", "train", "transcribe", "transfer", "transform", "translate", "type", "undo",
        "uninstall", "unlock", "unsubscribe", "update", "upgrade", "upload", "upsert", "validate", "verify",
        "wait", "write", "zip",
    }
)  # fmt: skip
"""Words that say what a tool does; the other words of its name say to what."""
_NEITHER: Final = frozenset(
    {
        "a", "all", "api", "an", "and", "as", "at", "back", "by", "for", "from", "in", "into", "is", "it", "mcp",
        "multiple", "my", "new", "of", "on", "or", "self", "the", "this", "to", "tool", "up", "with",
    }
)  # fmt: skip
_NUMBERS: Final = ((3, 3), (3, 2), (2, 2), (2, 1), (1, 1))
"""How many verbs, and how many nouns, stand for a plugin: the most that there is room for."""


def tool_words(plugin: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the words of the names of a plugin's tools, the commonest first, without those of its own name.

    A noun stands for its plural too.

    >>> tool_words("fs", ["read_file", "write_file", "read_files", "list_directory"])
    ('file', 'read', 'write', 'list', 'directory')
    """
    own = {plugin.casefold(), *words_of(plugin)}
    times: Counter[str] = Counter()
    for name in names:
        times.update(dict.fromkeys(_words(name), 1))
    return tuple(word for word, _ in times.most_common() if word not in own)


def words_text(words: Iterable[str], limit: int) -> str:
    """Return verbs and nouns as a phrase of at most so many characters, but at least one of each.

    >>> words_text(("file", "read", "write", "list", "directory"), 40)
    'read, write, list file, directory'
    >>> words_text(("file", "read", "write", "list", "directory"), 18)
    'read, write file'
    """
    found = tuple(words)
    verbs = [word for word in found if word in VERBS]
    nouns = [word for word in found if word not in VERBS]
    phrase = ""
    for number_of_verbs, number_of_nouns in _NUMBERS:
        parts = ", ".join(verbs[:number_of_verbs]), ", ".join(nouns[:number_of_nouns])
        phrase = " ".join(filter(None, parts))
        if len(phrase) <= limit:
            break
    return phrase


def _words(name: str) -> Iterable[str]:
    for word in words_of(name):
        if word.isdigit() or word in _NEITHER or len(word) == 1:
            continue
        yield word if word in VERBS else _singular(word)


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "sui" else word
