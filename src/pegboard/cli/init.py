"""`pegboard init`: write a configuration to begin with, or put Pegboard into a client."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pegboard.cli.client_installation import InstallOptions
from pegboard.cli.common import Options, problem_json, run_guarded
from pegboard.cli.exit_codes import DONE
from pegboard.cli.options import JsonOption
from pegboard.cli.plain_in_files import SecretsMove, moved_secrets
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.written_servers import confined_lines, held_servers, install_packages, may_read
from pegboard.config.acceptance import accept_text, require_accepted
from pegboard.config.client_files.client import ClientScope
from pegboard.config.client_files.known import CLIENTS
from pegboard.config.clients.generated import client_text, read_client, require_free, starter_text, write
from pegboard.config.clients.literal_secrets import secrets_in
from pegboard.config.inspection import inspect
from pegboard.configuration_source import registered_plugins
from pegboard.core.model.masking import Masker
from pegboard.core.model.tools import EMPTY
from pegboard.errors import UsageError
from pegboard.mcp_extra import require

if TYPE_CHECKING:
    pass

EXAMPLE = "pegboard init --from ~/.cursor/mcp.json"
TARGET: Final = Path("pegboard.yaml")
SHELL: Final = "cli"
BESIDE: Final = Path(".mcp.json")
_INSTALLS: Final = (
    f"Put Pegboard into this client in place of its servers: {', '.join(CLIENTS)}; or {SHELL}: "
    "tell coding agents with a shell of the command."
)
_ScopeOption = Annotated[
    ClientScope | None,
    typer.Option(
        "--scope",
        metavar="local|user|project",
        help="Whose servers: yours in this folder (Claude Code), yours, the project's. [default: the first found]",
    ),
]


def init(
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="A client's file with MCP servers. [default: ./.mcp.json]"),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="PATH", help=f"What to write. [default: {TARGET}]")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing file, which is kept as a backup.")
    ] = False,
    install: Annotated[
        str | None,
        typer.Option(
            "--install",
            metavar="CLIENT",
            help=_INSTALLS,
        ),
    ] = None,
    uninstall: Annotated[
        str | None, typer.Option("--uninstall", metavar="CLIENT", help="Give this client its servers back.")
    ] = None,
    confine: Annotated[
        bool,
        typer.Option("--confine", help="Confine servers that are fetched when they start (npx, uvx and the like)."),
    ] = False,
    no_check: Annotated[
        bool,
        typer.Option("--no-check", help="With --install: change the client's file without starting its servers first."),
    ] = False,
    scope: _ScopeOption = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --install or --uninstall: show what would change, and change nothing."),
    ] = False,
    keyring: Annotated[
        bool | None,
        typer.Option(
            "--keyring/--no-keyring",
            help="Move plain-text secrets into the keyring of the system. [default: ask at the terminal]",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Write a pegboard.yaml, or put Pegboard into a client."""
    given = InstallOptions(
        source=source,
        config=config,
        scope=scope,
        force=force,
        confine=confine,
        check=not no_check,
        dry_run=dry_run,
        keyring=keyring,
    )

    async def write_configuration(printer: Printer) -> int:
        return await _write_configuration(printer, install, uninstall, given)

    return run_guarded(Options(as_json=as_json), write_configuration)


async def _write_configuration(
    printer: Printer, install: str | None, uninstall: str | None, given: InstallOptions
) -> int:
    if install is not None and uninstall is not None:
        raise UsageError("--install and --uninstall exclude each other.")
    if SHELL in (install, uninstall):
        from pegboard.cli.shell_installation import install_for_shell, uninstall_for_shell

        act = install_for_shell if install is not None else uninstall_for_shell
        return await act(printer, given.config, given.scope, dry_run=given.dry_run)
    if install is not None:
        from pegboard.cli.client_installation import install as install_into

        require("`pegboard init --install`")
        return await install_into(printer, install, given)
    if not given.check:
        raise UsageError("--no-check goes with --install.")
    if uninstall is not None:
        from pegboard.cli.client_removal import uninstall as uninstall_from

        return uninstall_from(printer, uninstall, given.source, given.scope, dry_run=given.dry_run)
    if given.dry_run or given.scope is not None:
        raise UsageError(f"{'--dry-run' if given.dry_run else '--scope'} goes with --install or --uninstall.")
    return await _write_start(printer, given)


# -- a configuration to begin with -----------------------------------------------------------------


async def _write_start(printer: Printer, given: InstallOptions) -> int:
    config = given.config or TARGET
    chosen = given.source if given.source is not None else BESIDE if BESIDE.is_file() else None
    if chosen is BESIDE:
        require_accepted(BESIDE, exactly=True)  # what is written counts as accepted
    taken = read_client(chosen) if chosen is not None else None
    if taken is not None:
        printer.masker = Masker(secrets_in(dict(taken.servers)))
        require_free(config, force=given.force)
    kept = SecretsMove()
    if taken is not None:
        stays = f"{chosen} still contains them in plain text."
        kept = await moved_secrets(
            taken.servers, config, keyring=given.keyring, ask=not printer.as_json, stays_in=stays
        )
    held = held_servers(kept.servers, config, taken.sandboxed if taken else (), confine=given.confine)
    taken = replace(taken, servers=held.servers) if taken else None
    excluded = taken.excluded if taken else EMPTY
    text = client_text(taken, chosen.name) if taken and chosen else starter_text()
    try:
        backup = write(config, text, force=given.force, like=chosen, allowed=may_read(held.servers))
    except BaseException:
        kept.undo()
        raise
    accept_text(config)
    configuration, found = inspect(config, registered=registered_plugins())
    specs = configuration.specs.values() if configuration is not None else ()
    installed = [*install_packages(spec for spec in specs if spec.name in held.done)]
    problems = [*(taken.problems if taken else ()), *found]
    servers = list(taken.servers) if taken else []
    if printer.as_json:
        printer.document(
            {
                "written": str(config),
                "source": str(chosen) if chosen else None,
                "servers": servers,
                "confined": held.done,
                "keyring": list(kept.names),
                "staying": [{"name": name, "reason": why} for name, why in excluded.items()],
                "backup": str(backup) if backup else None,
                "problems": [problem_json(problem) for problem in problems],
            }
        )
        return DONE
    excluded_lines = [f"{name} is excluded: {why}." for name, why in excluded.items()]
    _show_start(
        printer, config, chosen, servers, backup, [*confined_lines(held), *installed, *kept.lines, *excluded_lines]
    )
    for problem in problems:
        printer.note(f"{problem.severity}: {problem}")
    return DONE


def _show_start(
    printer: Printer, config: Path, chosen: Path | None, servers: list[str], backup: Path | None, notes: list[str]
) -> None:
    if chosen is not None:
        printer.say(
            f"Wrote {config} with {plural(len(servers), 'server')} from {chosen}: {', '.join(servers) or 'none'}."
        )
    else:
        printer.say(f"Wrote {config}, with tools that read the current folder.")
    for note in notes:
        printer.say(note)
    if backup is not None:
        printer.say(f"The previous file is kept as {backup}.")
    option = "" if config == TARGET else f" --config {config}"
    printer.say(f"Next: pegboard check{option}, then pegboard surface{option}, then pegboard serve{option}.")
