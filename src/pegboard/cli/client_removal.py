"""Give a client its servers back: what `pegboard init --uninstall` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.cli.client_answers import answer, heading_of, save_client_file
from pegboard.config.clients import installing
from pegboard.config.clients.installing import removal
from pegboard.config.clients.kept_copies import remove_for_client
from pegboard.config.location import Machine

if TYPE_CHECKING:
    from pegboard.cli.rendering import Printer
    from pegboard.config.client_files.client import ClientScope


def uninstall(printer: Printer, name: str, source: Path | None, scope: ClientScope | None, *, dry_run: bool) -> int:
    """Give a client its servers back; report it, and return the exit code."""
    machine = Machine()
    client = installing.client_named(name)
    file = installing.file_of(client, machine, source, scope=scope, holding=True)
    used = installing.configuration_in_use(file, machine)
    stays = [f"{used} was not changed."] if used is not None and used.exists() else []
    edit, how, backup = removal(file, machine)
    diff = edit.diff()
    if how == "restored":
        result = f"{file.label}: restored byte for byte."
    else:
        result = f"{file.label} was changed since: Pegboard was removed, the servers are back, the rest is kept."
        stays.insert(0, f"The file from before Pegboard is still kept as {backup}.")
    if not dry_run:
        save_client_file(edit)
        if how == "restored":
            remove_for_client(edit.path, file.part)
    document = {
        **heading_of(file),
        "status": {"restored": "would_restore", "put_back": "would_put_back"}[how] if dry_run else how,
        "config": str(used),
        "backup": str(backup) if how == "put_back" or dry_run else None,
        "diff": diff,
    }
    lines = [diff, "Nothing was changed. Without --dry-run:" if dry_run else "", result, *stays]
    return answer(printer, document, [line for line in lines if line])
