"""Look into CSV, JSON and YAML files of the current folder."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from typing import Any, Final, cast

from pegboard.marks import tool
from pegboard.quickstart._bounds import MAX_CHARACTERS, bounded, inside, read_text

__all__ = ["csv_columns", "csv_filter", "csv_rows", "query_data"]

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+|\*)\]")


@tool(read_only=True)
def csv_rows(path: str, first: int = 1, count: int = 20) -> list[dict[str, str]]:
    """Read rows of a CSV file as objects keyed by the names in its first line.

    Args:
        path: The file; the separator is found out.
        first: The first row to read, counted from 1 after the line of names.
        count: How many rows, at most 100.
    """
    start = max(first, 1) - 1
    return _fitting(_table(path)[start : start + max(1, min(count, 100))])


@tool(read_only=True)
def csv_columns(path: str) -> dict[str, dict[str, Any]]:
    """Describe each column of a CSV file: kind, how many values, how many different, range or examples."""
    rows = _table(path)
    return {name: _column([row[name] for row in rows]) for name in (rows[0] if rows else {})}


@tool(read_only=True)
def csv_filter(path: str, column: str, value: str, count: int = 20) -> list[dict[str, str]]:
    """Find the rows of a CSV file whose column contains a value.

    Args:
        path: The file.
        column: The name of the column.
        value: What the column must contain; upper and lower case are the same.
        count: How many rows, at most 100.
    """
    rows = _table(path)
    if rows and column not in rows[0]:
        raise ValueError(f"there is no column '{column}'; the columns are {', '.join(rows[0])}.")
    found = [row for row in rows if value.casefold() in row[column].casefold()]
    return _fitting(found[: max(1, min(count, 100))])


@tool(read_only=True)
def query_data(path: str, query: str = "") -> str:
    """Read a part of a JSON or YAML file, named by a path such as 'servers[0].name' or 'items[*].id'.

    Args:
        path: The file.
        query: Keys with dots, places in lists in brackets, '*' for all; nothing for the whole document.
    """
    found = _followed(_document(path), query)
    text = json.dumps(found, indent=2, ensure_ascii=False, default=str)
    return bounded(text.splitlines(), "ask for a part with 'query'")


def _table(path: str) -> list[dict[str, str]]:
    text = read_text(inside(path))
    try:
        dialect: Any = csv.Sniffer().sniff(text[:8192], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        reader = csv.DictReader(io.StringIO(text), dialect=dialect, restkey="(more)", restval="")
        return [{str(key): _cell(value) for key, value in row.items()} for row in reader]
    except csv.Error as error:
        raise ValueError(f"'{path}' is not a CSV file: {error}.") from None


def _cell(value: Any) -> str:
    return ", ".join(cast("list[str]", value)) if isinstance(value, list) else str(value)


def _fitting(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return as many rows as fit into one answer."""
    size = 0
    for number, row in enumerate(rows):
        size += sum(len(key) + len(value) + 8 for key, value in row.items())
        if size > MAX_CHARACTERS and number:
            return [*rows[:number], {"(cut)": f"{len(rows) - number} more rows; ask for fewer"}]
    return rows


def _column(values: list[str]) -> dict[str, Any]:
    filled = [value for value in values if value != ""]
    different = dict.fromkeys(filled)
    about: dict[str, Any] = {"values": len(filled), "empty": len(values) - len(filled), "different": len(different)}
    try:
        numbers = [float(value) for value in filled]
    except ValueError:
        return {"kind": "text", **about, "examples": list(different)[:5]}
    if not numbers:
        return {"kind": "empty", **about}
    return {
        "kind": "number",
        **about,
        "least": min(numbers),
        "greatest": max(numbers),
        "mean": statistics.fmean(numbers),
    }


def _document(path: str) -> Any:
    text = read_text(inside(path))
    if path.casefold().endswith((".yaml", ".yml")):
        import yaml

        try:
            return yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f"'{path}' is not valid YAML: {error}") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"'{path}' is not valid JSON: {error}.") from None


def _followed(value: Any, query: str) -> Any:
    position = 0
    rest = query.strip().removeprefix("$")
    while position < len(rest):
        step = _STEP.match(rest, position)
        if step is None:
            raise ValueError(f"'{query}' cannot be read at '{rest[position:]}'; write e.g. 'servers[0].name'.")
        key, place = step.groups()
        position = step.end()
        if place == "*":
            return [_followed(item, rest[position:]) for item in _items(value, query)]
        value = _entered(value, key if key is not None else int(place), query)
    return value


def _items(value: Any, query: str) -> list[Any]:
    if isinstance(value, list):
        return cast("list[Any]", value)
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).values())
    raise ValueError(f"'{query}': there is no list where '*' stands.")


def _entered(value: Any, key: str | int, query: str) -> Any:
    known = ""
    if isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        if key in mapping:
            return mapping[key]
        known = f"; it has {', '.join(map(str, list(mapping)[:20]))}"
    elif isinstance(value, list) and isinstance(key, int):
        items = cast("list[Any]", value)
        if -len(items) <= key < len(items):
            return items[key]
        known = f"; the list has {len(items)} items"
    raise ValueError(f"'{query}': there is no {key!r} here{known}.")
