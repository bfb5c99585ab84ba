"""Named, granted and switched as one: toolkits (seeds 000, 001, 004)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pegboard.core.model.catalog import Catalog
from pegboard.core.model.selectors import Entry, Member, entries, find
from pegboard.core.model.tools import Frozen, JsonObject
from pegboard.problems import Place

HOST_TOOLS = frozenset({"delegate", "self_config"})
"""Tools that Pegboard itself carries out, for agents that list them among their tools."""

RESERVED = HOST_TOOLS | {"dynamic_tools"}
"""Names that may not stand in a toolkit (T3, seed 001)."""

META_TOOLS = frozenset(
    {
        *("dynamic_tools", "invokeother_tool", "search_tools", "load_tools", "unload_tools", "list_toolkits"),
        *("capability_list", "discover_tools", "activate_tool", "list_tool_categories", "list_toolbelts"),
        *("call_tool", "call_read_only_tool"),
    }
)
"""Names of meta-tools, and what seed 001 calls them together: no one lists them, and listing them does no harm (T4)."""

SHARED_ONLY = frozenset({"spotify", "homeassistant"})
"""Plugins that work only where they are shared (P5, seed 001)."""

_CODE = "runs code"
_COMMANDS = "runs commands"
_NAMES = "builds file names from parts"
_SQL = "writes files by SQL"
UNCONFINED: Mapping[str, tuple[str, tuple[str, ...]]] = Frozen(
    {
        "coding": (_COMMANDS, ("run_shell",)),
        "csv": (_SQL, ("query_csv_file",)),
        "docker": ("can give containers any folder", ("run_container", "exec_in_container", "build_image")),
        "duckdb": (_SQL, ("run_query", "inspect_query", "export_table_to_path")),
        "file_generation": (_NAMES, ("generate_json_file", "generate_text_file", "generate_code_file")),
        "local_file_system": (_NAMES, ("write_file",)),
        "pandas": (_CODE, ("create_pandas_dataframe", "run_dataframe_operation")),
        "python": (_CODE, ("save_to_file_and_run", "run_python_file_return_variable", "run_python_code")),
        "shell": (_COMMANDS, ("run_shell_command",)),
        "sql": (_SQL, ("run_sql_query",)),
        "workspace": (_COMMANDS, ("run_command",)),
    }
)
"""Plugins that write or run in ways that no guard on named paths sees (P10): how, and which of their tools."""

ISOLATING_SCOPES = frozenset({"user", "user_agent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """A selector with a name, and what models and people are shown of it (T1, T6).

    ``policy_hook`` names what writes the policy text in place of ``policy``: ``module:function``.
    ``share_with`` are agents for which its loads and unloads count together (S1).
    """

    name: str
    description: str = ""
    members: tuple[Member, ...] = ()
    policy: str = ""
    policy_hook: str = ""
    focus: tuple[JsonObject, ...] = ()
    label: str = ""
    icon: str = ""
    share_with: tuple[str, ...] = ()
    place: Place | None = None

    def sharing(self, agent: str) -> tuple[str, ...]:
        """Return the other agents for which a load by this one counts too: none where it is not named itself (S1)."""
        return tuple(name for name in self.share_with if name != agent) if agent in self.share_with else ()

    def entries(self, catalog: Catalog) -> tuple[Entry, ...]:
        """Return what the members stand for, in their order."""
        return tuple(entries(self.members, catalog))

    def complete(self, catalog: Catalog) -> bool:
        """Return whether every member means something known: else it may be a tool of a plugin that was not asked."""
        return all(find(member.name, catalog) is not None for member in self.members)
