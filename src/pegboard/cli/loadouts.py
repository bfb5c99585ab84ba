"""`pegboard loadouts [NAME]`: what each kind of agent has, over the plugins of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import Options, run_guarded
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.config.reading import loadouts_of
from pegboard.configuration_source import choose, registered_plugins
from pegboard.core.model.loadout_registry import PluginCategories, active_of, discoverable_of
from pegboard.core.model.loadouts import merge
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import did_you_mean
from pegboard.errors import UsageError

if TYPE_CHECKING:
    from pegboard.core.model.loadouts import Loadout

EXAMPLE = "pegboard loadouts developer"


def loadouts(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this one. [default: all]")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show what loadouts make active or discoverable."""

    async def print_loadouts(printer: Printer) -> int:
        path, _ = choose(config)
        read = loadouts_of(path, registered=registered_plugins())
        printer.masker = Masker(read.secrets)
        if read.fault is not None:
            printer.note(f"pegboard: {read.fault} Only the built-in loadouts are shown.")
        if name is None:
            rows = [_row(loadout.name, read.loadouts, read.plugins) for loadout in read.loadouts.values()]
            _list(rows, printer)
            return DONE
        if name.casefold() not in read.loadouts:
            names = [loadout.name for loadout in read.loadouts.values()]
            hint = did_you_mean(name, names) or f"There are: {', '.join(names)}."
            raise UsageError(f"There is no loadout '{name[:100]}'.", code="unknown_loadout", hint=hint)
        row = _row(name, read.loadouts, read.plugins)
        _print_one(row, len(read.plugins), printer)
        return DONE

    return run_guarded(Options(config=config, as_json=as_json), print_loadouts)


def _row(name: str, known: Mapping[str, Loadout], plugins: Mapping[str, str | None]) -> dict[str, Any]:
    loadout, merged = known[name.casefold()], merge(name, known)
    listed = PluginCategories(plugins.items())
    written = {n.casefold(): n for fold in merged.chain for n in known[fold.casefold()].disabled}
    spelled = {**written, **{plugin.casefold(): plugin for plugin in plugins}}
    return {
        "name": loadout.name,
        "parent": loadout.parent,
        "chain": list(merged.chain),
        "active": sorted(active_of(merged, listed)),
        "discoverable": sorted(discoverable_of(merged, listed)),
        "disabled": sorted(spelled[fold] for fold in merged.disabled),
    }


def _list(rows: list[dict[str, Any]], printer: Printer) -> None:
    if printer.as_json:
        printer.document(rows)
        return
    columns = (
        TableColumn("name"),
        TableColumn("extends"),
        TableColumn("active", flexible=True),
        TableColumn("discoverable", "right"),
        TableColumn("disabled"),
    )
    cells = [
        (r["name"], r["parent"] or "", ", ".join(r["active"]), len(r["discoverable"]), ", ".join(r["disabled"]))
        for r in rows
    ]
    printer.table(columns, cells)


def _print_one(row: dict[str, Any], plugins: int, printer: Printer) -> None:
    if printer.as_json:
        printer.document(row)
        return
    printer.heading(f"{' → '.join(row['chain'])}")
    for key in ("active", "discoverable", "disabled"):
        printer.say(f"  {key:<13} {', '.join(row[key]) or 'nothing'}")
    printer.say(f"\nOf {plural(plugins, 'plugin')} in the configuration, {len(row['active'])} active.")
