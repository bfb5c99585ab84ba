"""How the process of a server is started: as it is configured, or confined (A7)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.core.access.named_paths import OwnPaths
from pegboard.core.model.specs import Confinement, ServerSpec
from pegboard.errors import StoreError, ToolUnavailableError
from pegboard.sources import confinement as confining
from pegboard.sources.confinement import KeptRefusals
from pegboard.sources.mcp.transports.moved_files import moved_file
from pegboard.support import user_folders
from pegboard.support.user_token import make_token

if TYPE_CHECKING:
    from pegboard.sources.confinement import ConfinementPolicy, InstalledProgram, RefusalReader

log = logging.getLogger("pegboard.sources.mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is started; ``policy`` is what it may reach, None where it is not confined.

    ``refusals`` reads what it says it was refused; ``cwd`` is the folder that it is started in.
    """

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    policy: ConfinementPolicy | None = None
    refusals: RefusalReader | None = None
    cwd: str | None = None

    def end(self) -> None:
        """Remove what was made for this start, once its process has ended."""
        if self.policy is not None:
            confining.remove_folder(self.policy.temporary)


@dataclass(slots=True, kw_only=True)
class Launches:
    """What holds for every start of one source.

    ``own_paths`` returns the files of Pegboard's own, which nothing that is confined reaches; ``unconfined`` are the
    names of the servers that have been reported to run unconfined. ``started`` takes the number of each process.
    ``resolves``: packages that are not pinned are looked for in their newest version, since someone has just named
    them. ``folder`` is where a server without a ``cwd`` starts; None is the current one. ``refusals`` keeps what
    confined processes were refused.
    """

    own_paths: Callable[[], OwnPaths] = OwnPaths
    started: Callable[[int], None] | None = None
    unconfined: set[str] = field(default_factory=set[str])
    resolves: bool = False
    folder: str | None = None
    refusals: KeptRefusals = field(default_factory=KeptRefusals)


def confined_launch(
    spec: ServerSpec,
    confinement: Confinement,
    env: Mapping[str, str],
    launches: Launches,
    *,
    outside: Mapping[str, str],
) -> Launch:
    """Return how a server is started confined; its folders are made. It asks the file system: not for the event loop.

    The package of a runner is installed first, with the environment ``outside``.

    Raises:
        ToolUnavailableError: this system cannot confine it, or not to this.
    """
    command = spec.command or ""
    if reason := confining.available(confinement.network):
        if not confinement.if_possible:
            raise ToolUnavailableError(
                f"it has to be confined, and cannot be: {reason}",
                hint=f"`if_possible: true` under `confine` in `{spec.section}` runs it unconfined there.",
            )
        if spec.name not in launches.unconfined:
            launches.unconfined.add(spec.name)
            log.warning("server %r RUNS UNCONFINED, with all rights of its user: %s (`if_possible`)", spec.name, reason)
        return Launch(command=command, args=spec.args, env=env, cwd=spec.cwd or launches.folder)
    program = package_program(spec, confinement, outside, resolve=launches.resolves)
    args, reads = spec.args, spec.reads
    if program is not None:
        command, args, reads = program.command, program.args, (*reads, program.folder)
        data = user_folders.data_of_plugin(spec.name, Path(confinement.folder))
        if kept := moved_file(spec, program.package, outside, data):
            env = {**env, **kept}
            confinement = replace(confinement, write=(*confinement.write, str(data)))
    token = _kept_from_gateways() if confinement.network != () else ""
    made = _made_data_folder(confinement)
    cwd = spec.cwd or made or launches.folder
    temporary = confining.made_temporary(spec.name)
    try:
        own = _own_paths(launches)
        policy = confining.policy_for(
            confinement,
            name=spec.name,
            command=command,
            args=args,
            env=env,
            cwd=cwd,
            own=own,
            reads=reads,
            temporary=temporary,
        )
        policy = replace(policy, token=token)
        command, args, env = confining.confined_command(command, args, env, policy, cwd=cwd)
    except BaseException:
        confining.remove_folder(temporary)
        raise
    folder = cwd or os.getcwd()  # noqa: PTH109
    given = tuple(confining.given_files(spec.args, spec.env, folder))
    reader = confining.RefusalReader(policy=policy, confinement=confinement, own=own, folder=folder, given=given)
    return Launch(command=command, args=args, env=env, policy=policy, refusals=reader, cwd=cwd)


def _own_paths(launches: Launches) -> OwnPaths:
    try:
        return launches.own_paths()
    except StoreError as error:  # it is not known what counts of a project that it may write
        raise ToolUnavailableError(error.message, hint=error.hint) from None


def _made_data_folder(confinement: Confinement) -> str | None:
    """Make the folder for the data of a server that belongs to no project, and return it; None for any other one.

    Such a folder is made too where `write` names it: `init` names it beside others.
    """
    data = user_folders.plugin_data().absolute()
    for each in map(Path, (confinement.folder, *confinement.write)):
        if each.is_relative_to(data) and ".." not in each.parts and not each.is_file():
            try:
                each.mkdir(parents=True, exist_ok=True, mode=0o700)
            except OSError as error:
                raise ToolUnavailableError(f"its folder {str(each)!r} cannot be made: {error.strerror}") from None
    return confinement.folder if Path(confinement.folder).is_relative_to(data) else None


def package_program(
    spec: ServerSpec, confinement: Confinement, outside: Mapping[str, str], *, resolve: bool
) -> InstalledProgram | None:
    """Return the program of the package of a confined server, installed with an environment; None where it has none.

    Raises ``ToolUnavailableError``; ``resolve``: the newest version that it may be is looked for.
    """
    return confining.installed_program(
        spec.command or "",
        spec.args,
        outside,
        name=spec.name,
        scripts=confinement.scripts,
        resolve=resolve,
        limit=spec.start,
    )


def _kept_from_gateways() -> str:
    """Return the file of the token that gateways of this user demand while a process runs that could use one."""
    try:
        return str(make_token())
    except OSError as error:
        raise ToolUnavailableError(
            f"it is confined and has network, and the token that keeps it out of the gateway cannot be made: {error}",
            hint="Make that folder writable, or confine it with `network: none`.",
        ) from None
