"""A configuration that was read, checked and compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pegboard.core.model.addresses import STORE_GRACE
from pegboard.core.model.agents import Agent, World
from pegboard.core.model.catalog import Catalog
from pegboard.core.model.hooks import Hook
from pegboard.core.model.loadouts import Loadout
from pegboard.core.model.selectors import Member
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.toolkits import Toolkit
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.core.principals.bearer_tokens import Token
from pegboard.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Everything that a configuration says, as core values.

    ``loadouts`` are keyed by their case-folded names and contain the built-in ones too (L4, L6).
    ``specs`` are the plugins that join the catalog. ``store`` is a URL with an absolute path; where its server cannot
    be reached, calls go on for ``store_grace`` seconds on what was read last.
    ``secrets`` must never be written anywhere (X5). ``problems`` are warnings only. ``files`` were
    read and ``folders`` were looked into: a change in either makes a new configuration. ``reload`` is whether an edit
    that widens counts at once, or when a person accepts it (P10). ``notify`` are told what waits for a person, with
    links to ``console_url`` where that is not nothing.
    """

    path: Path
    toolkits: Mapping[str, Toolkit] = field(default=EMPTY)
    loadouts: Mapping[str, Loadout] = field(default=EMPTY)
    agents: Mapping[str, Agent] = field(default=EMPTY)
    sub_apps: Mapping[str, tuple[Member, ...]] = field(default=EMPTY)
    specs: Mapping[str, PluginSpec] = field(default=EMPTY)
    models: Mapping[str, JsonObject] = field(default=EMPTY)
    tokens: tuple[Token, ...] = ()
    store: str = ""
    store_grace: float = STORE_GRACE
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    problems: tuple[Problem, ...] = ()
    reload: Literal["live", "ask", "all"] = "live"
    notify: tuple[Hook, ...] = ()
    console_url: str = ""
    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()

    def world(self, catalog: Catalog) -> World:
        """Return the configured world over this catalog."""
        return World(
            catalog=catalog,
            toolkits=self.toolkits,
            loadouts=self.loadouts,
            agents=self.agents,
            sub_apps=self.sub_apps,
        )
