"""What a configuration grants, entry by entry, and what an edit of it changes (P10)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pegboard.core.model.catalog import split_kind
from pegboard.core.model.loadouts import BUILT_IN, category_of, matches_pattern
from pegboard.core.model.specs import OWN_FOLDER

GrantKey = tuple[str, ...]
"""Where something is granted or denied: ``("agents", "assistant", "tools", "shell")``."""
RELOAD: Final[GrantKey] = ("reload",)
"""Where it stands what becomes of an edit."""
FILES: Final = "files"
"""The first part of the name of a change of a file that something confined may write (A7)."""
_LONGEST: Final = 200
_BASES: Final = frozenset({"agents", "toolkits", "plugins", "tokens"})
"""What has an entry of its own as long as it is there."""
REGISTERED: Final = "registered"
"""What runs where a plugin is known by its name: what is installed."""
_EITHER_WAY: Final = frozenset({"category", "extends", "hooks", "instance", "loadout", "prefix", "shadows", "when"})
"""Entries that may widen whether they come, go or change: they run code, decide what others mean, or grant and deny."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What one entry says; ``denies`` is whether it takes something away, so that to lose it widens.

    ``value`` is plain JSON without secrets: a digest stands for them.
    """

    value: Any = True
    denies: bool = False


Grants = Mapping[GrantKey, Grant]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantChange:
    """What an edit changes of one entry; None is an entry that is not there. ``widens``: someone has more rights."""

    key: GrantKey
    before: Grant | None
    after: Grant | None
    widens: bool

    @property
    def name(self) -> str:
        """Return where it stands, dotted; of a file its path."""
        if self.key[0] == FILES:
            return self.key[-1]
        return ".".join(part.replace(".", "․") for part in self.key)

    @property
    def agent(self) -> str:
        """Return the agent whose entry it is, or nothing."""
        return self.key[1] if self.key[0] == "agents" else ""

    def __str__(self) -> str:
        if self.key[0] == FILES:
            return f"{self.key[-1]}: {'new' if self.before is None else 'gone' if self.after is None else 'changed'}"
        return f"{self.name}: {_grant_text(self.before)} → {_grant_text(self.after)}"


def changes(before: Grants, after: Grants, *, off: Iterable[str] = ()) -> tuple[GrantChange, ...]:
    """Return what differs, in the order of the names; ``off`` is what is switched off at run time.

    >>> before = {("agents", "a", "tools", "file"): Grant()}
    >>> after = {**before, ("agents", "a", "tools", "shell"): Grant()}
    >>> [(str(change), change.widens) for change in changes(before, after)]
    [('agents.a.tools.shell: absent → granted', True)]
    """
    found: list[GrantChange] = []
    denying = _switched_off(before, off)
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old != new and not _registered_plugin_came_or_went(key, old, new, before):
            widens = (
                _gives_more_rights(key, old, new)
                and not _is_removed(key, after)
                and not (old is None and _is_covered(key, before))
            )
            widens = widens or (new is None and _is_covered(key, after))  # a pattern takes its place
            widens = widens or (old is not None and key[:2] in denying and key[2:3] in ((), ("tools",)))
            found.append(GrantChange(key=key, before=old, after=new, widens=widens))
    return tuple(found)


def _gives_more_rights(key: GrantKey, before: Grant | None, after: Grant | None) -> bool:
    """Return whether a change of one entry gives someone more rights; what cannot be compared counts as if it did."""
    if key[2:3] and key[2] in _EITHER_WAY:
        return True
    if before is None:
        return after is not None and not after.denies
    if after is None:
        return before.denies
    if before.denies != after.denies:
        return before.denies
    return not narrower(key, before.value, after.value)


def _switched_off(granted: Grants, names: Iterable[str]) -> frozenset[GrantKey]:
    """Return the keys of the toolkits that are switched off: what they hold is denied."""
    off = (
        key[3] for key, grant in granted.items() if key[0] == "agents" and key[2:3] == ("permissions",) and grant.denies
    )
    return frozenset(("toolkits", split_kind(name)[1]) for name in (*names, *off))


def _registered_plugin_came_or_went(key: GrantKey, old: Grant | None, new: Grant | None, before: Grants) -> bool:
    """Return whether a plugin that is known by name comes or goes with the entries that name it, and with no more."""
    values = [grant.value for grant in (old, new) if grant is not None]
    if key[0] != "plugins" or len(key) != 2 or any(value != REGISTERED for value in values):
        return False
    return old is not None or not _is_awaited(key[1], before)


def _is_awaited(plugin: str, granted: Grants) -> bool:
    """Return whether a pattern, a category or a loadout of Pegboard's own may reach a plugin once it is there."""
    category = (category_of(plugin) or "").casefold()
    for key, grant in granted.items():
        match key:
            case (_, _, "discoverable", pattern) if matches_pattern(pattern, plugin):
                return True
            case ("loadouts", _, "categories", name) if name.casefold() == category:
                return True
            case (_, _, "loadout" | "extends") if str(grant.value).casefold() in BUILT_IN:
                return True
            case _:
                continue
    return False


def _is_removed(key: GrantKey, after: Grants) -> bool:
    """Return whether what the entry speaks of is no longer there: to be there again, it is granted again."""
    return len(key) > 2 and key[0] in _BASES and key not in after and key[:2] not in after


def _is_covered(key: GrantKey, granted: Grants) -> bool:
    """Return whether another pattern that is granted reaches as far as an entry."""
    if key[2:3] not in (("discoverable",), ("agents",)):
        return False
    patterns = (known[-1] for known in granted if known[:-1] == key[:-1] and known != key)
    return any(pattern.endswith("*") and key[-1].startswith(pattern[:-1]) for pattern in patterns)


def narrower(key: GrantKey, before: Any, after: Any) -> bool:
    """Return whether an entry that was changed grants no more than it did."""
    if key[0] == "notify":
        return before == {**after, "arguments": True}
    if key[-2] in ("tools", "essential", "tool_names"):
        return _filter_narrower(cast("dict[str, Any]", before), cast("dict[str, Any]", after))
    if key[2:3] == ("guards",):
        return _rule_narrower(before, after)
    if key[2:3] == ("approve",):
        by_anybody = not (isinstance(before, dict) and "by" in before)
        return after == {"by": "operator", "when": "always"} or (after == "always" and by_anybody)
    if key[2:] == ("confine",):
        return _confined_narrower(before, after)
    if key[2:] == ("worker_scope",):
        return bool(after == "user_agent")
    return False


def _filter_narrower(before: dict[str, Any], after: dict[str, Any]) -> bool:
    if before.get("settings") != after.get("settings"):
        return False
    had, has = before.get("include"), after.get("include")
    fits = had is None or (has is not None and set(has) <= set(had))
    return fits and set(before.get("exclude") or ()) <= set(after.get("exclude") or ())


def _rule_narrower(before: Any, after: Any) -> bool:
    had, has = before.get("allow"), after.get("allow")
    fits = had is None or (has is not None and set(has) <= set(had))
    return fits and set(before.get("deny") or ()) <= set(after.get("deny") or ())


def _confined_narrower(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Return whether a process that is confined may no more than it might.

    A path that lies in a folder which is not to be written any longer may be a link that the process has set there, to
    anywhere: it counts as a new one.
    """
    wrote, writes = _paths(before, "write"), _paths(after, "write")
    reads = _paths(after, "read")
    if not writes <= wrote or not reads <= wrote | _paths(before, "read"):
        return False
    dropped = tuple(f"{path.removesuffix('/.').rstrip('/')}/" for path in wrote - writes)
    if any(path.startswith(dropped) for path in writes | reads):
        return False
    had, has = before.get("network"), after.get("network")
    fits = had is None or (has is not None and set(has) <= set(had))
    return fits and all(before.get(flag, False) or not after.get(flag, False) for flag in ("if_possible", "scripts"))


def _paths(confined: dict[str, Any], part: str) -> set[str]:
    """Return paths; its own folder is another one than the same by name, since `true` gives away no home folder."""
    return {f"{confined['folder']}/." if path == OWN_FOLDER else path for path in confined.get(part, ())}


def grants_to_text(grants: Grants) -> str:
    """Return grants as JSON, in one form for equal ones."""
    rows = [[list(key), grant.value, grant.denies] for key, grant in sorted(grants.items(), key=lambda item: item[0])]
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


def grants_from_text(text: str) -> dict[GrantKey, Grant]:
    """Return grants of their JSON; raises ``ValueError`` for anything else."""
    try:
        return dict(_read_rows(json.loads(text)))
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _read_rows(rows: Any) -> Iterator[tuple[GrantKey, Grant]]:
    for key, value, denies in rows:
        yield tuple(str(part) for part in key), Grant(value=value, denies=denies is True)


def _grant_text(grant: Grant | None) -> str:
    if grant is None:
        return "absent"
    if grant.value in (True, {}) and not grant.denies:
        return "granted"
    text = json.dumps(grant.value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
