"""Ten plugins that keep something in an object, and four agents that have them under the four scopes."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Call = Callable[[str, dict[str, Any]], Awaitable[str]]
"""Calls a tool on someone's behalf, and returns the text of the answer."""

PRINCIPALS = ("ada", "bob")
SCOPES: Mapping[str, Mapping[str, Any]] = {
    "shared": {},
    "user": {"worker_scope": "user"},
    "user_agent": {"worker_scope": "user_agent"},
    "private": {"private": {"per": "user"}},
}
MODULE = """
import asyncio

class Cart:
    def __init__(self):
        self.items = []

    def add(self, item: str) -> str:
        self.items.append(item)
        return "added"

    def show(self) -> list[str]:
        return sorted(set(self.items))


class Safe:
    def __init__(self, size: int = 3):
        self.kept = {}

    async def put(self, item: str) -> str:
        await asyncio.sleep(0)
        self.kept[item] = True
        return "put"

    async def look(self) -> dict[str, bool]:
        await asyncio.sleep(0)
        return self.kept


def drawer():
    items = set()

    def lay(item: str) -> str:
        items.add(item)
        return "laid"

    def open_drawer() -> list[str]:
        return sorted(items)

    return [lay, open_drawer]
"""


def secret(who: str) -> str:
    """Return what someone keeps, and no one else may read."""
    return f"secret-of-{who}"


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """How someone keeps a secret in a plugin, and looks for what is kept there; whether it stays there."""

    keep: Callable[[Call, str, int], Awaitable[str]]
    look: Callable[[Call], Awaitable[str]]
    holds: bool = True


async def _forged(call: Call) -> str:
    """Return whose files may be written over: those that have been read."""
    found: list[str] = []
    for name in PRINCIPALS:
        text = await call("workspace__write_file", {"path": f"{name}.txt", "content": "x"})
        assert any(part in text for part in ("require_read_before_write", "Wrote", "Error writing file")), text
        found += [] if "require_read_before_write" in text else [secret(name)]
    return " ".join(found)


def _simple(keep: str, keeps: Callable[[str, int], dict[str, Any]], look: str, looks: dict[str, Any]) -> Keeper:
    return Keeper(keep=lambda call, who, n: call(keep, keeps(who, n)), look=lambda call: call(look, looks))


async def _in_table(call: Call, who: str, _: int) -> str:
    await call("sql__run_sql_query", {"query": "CREATE TEMP TABLE IF NOT EXISTS kept (x)"})
    return await call("sql__run_sql_query", {"query": f"INSERT INTO kept VALUES ('{secret(who)}')"})


_FRAME = {"dataframe_name": "kept", "operation": "to_string", "operation_parameters": {}}
_KEPT = {"code": "found = sorted(globals().get('kept', set()))", "variable_to_return": "found"}
KEEPERS: Mapping[str, Keeper] = {
    "cart": _simple("add", lambda who, _: {"item": secret(who)}, "show", {}),
    "safe": _simple("put", lambda who, _: {"item": secret(who)}, "look", {}),
    "drawer": _simple("lay", lambda who, _: {"item": secret(who)}, "open_drawer", {}),
    "pandas": _simple(
        "pandas__create_pandas_dataframe",
        lambda who, _: {
            "dataframe_name": "kept",
            "create_using_function": "DataFrame",
            "function_parameters": {"data": {"x": [secret(who)]}},
        },
        "pandas__run_dataframe_operation",
        _FRAME,
    ),
    "csv": replace(
        _simple(
            "csv__query_csv_file",
            lambda who, _: {"csv_name": "rows", "sql_query": f"CREATE TABLE kept AS SELECT '{secret(who)}'"},
            "csv__query_csv_file",
            {"csv_name": "rows", "sql_query": "SELECT * FROM kept"},
        ),
        holds=False,  # each query has a database of its own
    ),
    "sql": Keeper(
        keep=_in_table,
        look=lambda call: call("sql__run_sql_query", {"query": "SELECT DISTINCT x FROM kept"}),
    ),
    "memory": _simple("memory__add_memory", lambda who, _: {"memory": secret(who)}, "memory__get_memories", {}),
    "scheduler": _simple(
        "scheduler__create_schedule",
        lambda who, n: {
            "name": f"{secret(who)}-{n}",
            "cron": "0 9 * * *",
            "endpoint": "/agents/a/runs",
            "payload": '{"message": "x"}',
        },
        "scheduler__list_schedules",
        {},
    ),
    "workspace": Keeper(keep=lambda call, who, _: call("workspace__read_file", {"path": f"{who}.txt"}), look=_forged),
    "python": _simple(
        "python__run_python_code",
        lambda who, _: {"code": f"globals().setdefault('kept', set()).add('{secret(who)}')"},
        "python__run_python_code",
        _KEPT,
    ),
}


def configure(folder: Path, **more: Any) -> Path:
    """Write the configuration with its module and files, and return its path."""
    (folder / "keepers.py").write_text(MODULE)
    (folder / "rows.csv").write_text("a\n1\n")
    desk = folder / "desk"
    desk.mkdir()
    for name in PRINCIPALS:
        (desk / f"{name}.txt").write_text(f"of {name}\n")
    read_first = {"require_read_before_write": True}
    tools = [
        "cart", "safe", "drawer", "pandas", "memory", "scheduler", "python",
        {"csv": {"csvs": [str(folder / "rows.csv")]}},
        {"sql": {"db_url": f"sqlite:///{folder / 'rows.db'}"}},
        {"workspace": {"root": str(desk), "allowed": ["read", "write"], "confirm": [], **read_first}},
    ]  # fmt: skip
    agno = ("pandas", "csv", "sql", "memory", "scheduler", "workspace", "python")
    path = folder / "pegboard.yaml"
    path.write_text(
        json.dumps(
            {
                "store": "memory:",
                "plugins": {
                    "cart": {"python": "keepers:Cart"},
                    "safe": {"python": "keepers:Safe"},
                    "drawer": {"python": "keepers:drawer"},
                    **{name: {"prefix": name} for name in agno},
                },
                "agents": {name: {"tools": tools, **scope} for name, scope in SCOPES.items()},
                **more,
            }
        )
    )
    return path
