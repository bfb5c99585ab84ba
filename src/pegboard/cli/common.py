"""What every command shares: the open board, and errors as exit codes; free of typer, for the start of `serve`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Container, Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pegboard import mcp_extra
from pegboard.cli import exit_codes
from pegboard.cli.caller import CALLER
from pegboard.cli.rendering import Printer
from pegboard.core.model.delivery import COMMAND
from pegboard.core.model.naming import did_you_mean, label_problem, may_be_of
from pegboard.errors import (
    ConfigError,
    NotAcceptedError,
    PegboardError,
    UnknownAgentError,
    UsageError,
    agent_required,
)
from pegboard.problems import Problem
from pegboard.support.made_folders import without_made_folders

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.board import Session
    from pegboard.board.catalog.loader import CatalogLoader, PluginRequest
    from pegboard.core.access.permissions import CompiledPermissions
    from pegboard.core.model.tools import Plugin

QUICKSTART = (
    "pegboard: no pegboard.yaml here, so this is the packaged read-only configuration, working in the current folder. "
    "`pegboard init` writes one of your own, with the servers of an .mcp.json that is here."
)
COMMAND_LINE = "command line"
"""Who did it, in the audit trail, where a command did."""
LONGEST_WAIT = 20.0
"""How long a command waits for servers that have never been asked before, in seconds."""
LONGEST_SILENCE = 5.0
"""How long it goes on waiting once some have answered and no other one does, in seconds."""
_STEP = 1.0
"""How often it notes how far it is, in seconds."""
_WORKS = 0.1
"""Seconds of processor time in one step from which on an import works, and does not only wait."""
_MOVE_IT = "Move slow work out of the import into the first call, or remove the plugin from the configuration."


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that commands have in common."""

    config: Path | None = None
    agent: str | None = None
    session: str = "default"
    principal: str = "local"
    sub_app: str | None = None
    as_json: bool = False


Action = Callable[["Pegboard", Printer], Awaitable[int]]


def run(
    options: Options,
    action: Action,
    *,
    needs_mcp: str = "",
    watch: bool = False,
    fast_path: bool | None = None,
    cached: bool = False,
    idle: float | None = None,
    asks: bool = True,
    calls: bool = False,
) -> int:
    """Open the board, do something with it, and return the exit code.

    ``needs_mcp`` is what needs the extra ``mcp``, if anything does; ``asks`` is as in ``guarded``; ``calls`` says that
    tools are called, so that folders which are made stay; see ``Pegboard.open`` for the others.
    """

    async def with_open_board(printer: Printer) -> int:
        if (caller := CALLER.get()) is not None:
            async with caller.board(options.config) as board:
                printer.masker = board.services.masker
                return await action(board, printer)
        if needs_mcp:
            mcp_extra.require(needs_mcp)
        from pegboard.assembly import Pegboard

        with warnings_to(printer), nullcontext() if calls else without_made_folders():
            async with Pegboard.open(
                options.config, watch=watch, fast_path=fast_path, cached=cached, idle=idle
            ) as board:
                printer.masker = board.services.masker
                if board.quickstart and not options.as_json:
                    printer.note(QUICKSTART)
                return await action(board, printer)

    return run_guarded(options, with_open_board, asks=asks)


def action_raising(error: PegboardError) -> Callable[[Printer], Awaitable[NoReturn]]:
    """Return an action for ``guarded`` that raises an error."""

    async def raise_error(printer: Printer) -> NoReturn:  # noqa: ARG001
        raise error

    return raise_error


class _WarningHandler(logging.Handler):
    """A log handler that prints each warning of the library in one line."""

    def __init__(self, printer: Printer) -> None:
        super().__init__(logging.WARNING)
        self._printer = printer

    def emit(self, record: logging.LogRecord) -> None:
        self._printer.note(f"pegboard: {record.getMessage()}")


@contextmanager
def warnings_to(printer: Printer) -> Generator[None]:
    """Print the warnings of the library while the context lasts, and of others their errors alone."""
    from pegboard.gateway.process.setup import OF_LIBRARIES

    for name in OF_LIBRARIES:
        logging.getLogger(name).setLevel(logging.ERROR)
    logger, notes = logging.getLogger("pegboard"), _WarningHandler(printer)
    logger.addHandler(notes)
    propagated, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(notes)
        logger.propagate = propagated


def run_guarded(options: Options, action: Callable[[Printer], Awaitable[int]], *, asks: bool = True) -> int:
    """Do something, and report what goes wrong instead of failing with a traceback.

    Where it needs a configuration that was found and is not accepted, the person at the terminal is asked, and it is
    done once they accept it; with ``asks`` false no one is asked.
    """
    printer, caller = Printer(as_json=options.as_json), CALLER.get()

    async def run_until_accepted() -> int:
        while True:
            try:
                return await action(printer)
            except NotAcceptedError as waits:
                if caller is not None or not asks or not await accepted_now(waits, printer):
                    raise

    async def run_and_report() -> int:
        try:
            return await run_until_accepted()
        except (PegboardError, OSError, BaseExceptionGroup) as error:
            return report(error, printer)

    try:
        _require_text(options)
        return asyncio.run(run_until_accepted()) if caller is None else caller.defer(run_and_report())
    except (PegboardError, OSError, BaseExceptionGroup) as error:
        return report(error, printer)


async def accepted_now(waits: NotAcceptedError, printer: Printer) -> bool:
    """Return whether the person at the terminal accepts a configuration that was found, having read what it would run.

    What they have read is accepted, not what the file says by then.
    """
    from pegboard.cli.person import ask_agreement
    from pegboard.config.acceptance import accept_text
    from pegboard.config.documents.document import display_path

    name = display_path(waits.path)
    would = [f"  {line}" for line in waits.would] or ["  only the tools that come with Pegboard"]
    if not await ask_agreement(
        [f"{name} was found here and is not accepted yet. It would:", *would, f"Accept {name}?"]
    ):
        return False
    accept_text(waits.path, waits.digest)
    printer.note(f"pegboard: {name} is accepted.")
    return True


def _require_text(options: Options) -> None:
    for name, value in (("--agent", options.agent), ("--session", options.session), ("--principal", options.principal)):
        if value is not None and not value.strip():
            raise UsageError(f"{name} is empty.", hint="Name one, or omit the option.")
        if value is not None and (problem := label_problem(value)):
            raise UsageError(f"{name} {problem}", hint="Choose a shorter name in plain text.")


def report(error: BaseException, printer: Printer) -> int:
    """Report what went wrong and return the exit code; what is no mistake of the user is raised again."""
    cause = _unwrap_group(error)
    if isinstance(cause, BrokenPipeError):
        raise cause
    if isinstance(cause, KeyboardInterrupt):
        return exit_codes.INTERRUPTED
    if not isinstance(cause, PegboardError | OSError):
        raise error
    failure = cause if isinstance(cause, PegboardError) else _system_error(cause)
    if printer.as_json:
        printer.document({"error": _error_json(failure)})
    else:
        printer.note(f"pegboard: {failure}")
    return exit_codes.exit_code_of_error(failure)


def _unwrap_group(error: BaseException) -> BaseException:
    """Return what a task group wraps, where it is one thing."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return _unwrap_group(group.exceptions[0]) if len(group.exceptions) == 1 else group
    return error


def _system_error(error: OSError) -> PegboardError:
    where = f"{error.filename}: " if error.filename else ""
    return PegboardError(f"{where}{error.strerror or error}.", code="system_error")


def _error_json(error: PegboardError) -> dict[str, Any]:
    """Return an error as scripts read it; that of a configuration has its problems, the first one's place."""
    problems = error.problems if isinstance(error, ConfigError) else ()
    errors = (problem.place for problem in problems if problem.severity == "error")
    place = error.location or next(errors, None)
    found: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
    }
    if problems:
        found["problems"] = [problem_json(problem) for problem in problems]
    return found


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a problem of a configuration as scripts read it."""
    place = problem.place
    return {
        "severity": problem.severity,
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "path": place.path if place else "",
    }


def system_user() -> str:
    """Return the name under which the system knows the user who runs the command; ``local`` where it knows none."""
    import getpass

    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no variable names one, and no entry of the system does
        return "local"
    return "local" if label_problem(name) else name


def chosen_agent(board: Pegboard, name: str | None) -> str:
    """Return the agent that is meant.

    Raises ``UsageError`` where none is named and none is the default, ``UnknownAgentError`` where there is none such.
    """
    agent = name or board.world.default_agent()
    if agent is None:
        raise agent_required(board.world.agents)
    require_agent(board, agent)
    return agent


def require_agent(board: Pegboard, name: str | None) -> None:
    """Refuse the name of an agent that there is not, and say which is near, or which there are; None names none."""
    if name is not None and name not in board.world.agents:
        known = board.world.agents
        hint = did_you_mean(name, known) or f"There are: {', '.join(known)}."
        raise UnknownAgentError(f"There is no agent '{name[:100]}'.", hint=hint)


async def open_session(board: Pegboard, options: Options) -> Session:
    """Return the session that the options name; its records say that the command line did it."""
    from pegboard.board import Session
    from pegboard.board.session_info import open_sub_app

    agent = chosen_agent(board, options.agent)
    opened = await board.session(
        agent=agent,
        session_id=options.session,
        principal=options.principal,
        sub_app=open_sub_app(board.world, agent, options.sub_app),
        host=COMMAND,
    )
    return Session(board.services, replace(opened.info, by=COMMAND_LINE))


async def discover(
    board: Pegboard,
    printer: Printer,
    permissions: CompiledPermissions | None = None,
    *,
    start: bool = True,
    registered: bool = False,
    about: Sequence[str] = (),
    known_is_enough: bool = False,
) -> None:
    """Ask servers and modules for their tools that no one has asked before; go on without the slow ones.

    Whose code has changed since is asked again. With ``permissions`` only those that are granted; without ``start`` no
    server; with ``registered`` also what is constructed only when it is loaded. Where only some names matter
    (``about``), no server is asked, or waited for, that none of them can be of. With ``known_is_enough`` none is
    waited for once the tools of any are known: whose are not known yet is printed.
    """
    from pegboard.board.catalog.loader import PluginRequest

    kinds = (_ASKED if start else _ASKED - {"server"}) | (_REGISTERED if registered else frozenset[str]())
    unseen = [p for p in board.world.catalog.plugins.values() if p.kind in kinds and not _has_answered(p)]
    granted = [plugin for plugin in unseen if permissions is None or permissions.grants_unseen(plugin)]
    if about:
        granted = [plugin for plugin in granted if plugin.kind != "server" or plugin in _owners(board, granted, about)]
    wants = {want.key: want for want in (PluginRequest(plugin=plugin.name) for plugin in granted)}
    wants |= {want.key: want for want in await _unknown_from_start(board, permissions, kinds | _REGISTERED)}
    loader = board.services.loader
    wants |= {want.key: want for want in loader.stale() if _kind(board, want) in kinds}
    if known_is_enough and any(
        p.kind == "server" and _has_known_tools(p) for p in board.world.catalog.plugins.values()
    ):
        servers = {key: want for key, want in wants.items() if _kind(board, want) == "server"}
        wants = {key: want for key, want in wants.items() if key not in servers}
        if unknown := ", ".join(dict.fromkeys(want.plugin for want in servers.values())):
            await board.services.loader.ready(servers.values(), wait=0)  # started, and not waited for
            probe = "`pegboard check --probe` asks every server"
            printer.note(f"pegboard: the tools of {unknown} are not known yet; {probe}.")
    if not wants:
        return
    names = ", ".join(dict.fromkeys(want.plugin for want in wants.values()))
    slow = any(_kind(board, want) == "server" for want in wants.values())
    with printer.working(f"Asking {names} for tools", lasting=slow) as say:
        await wait_for_plugins(loader, wants.values(), printer, say, silence=LONGEST_SILENCE)


async def wait_for_plugins(
    loader: CatalogLoader,
    wants: Collection[PluginRequest],
    printer: Printer,
    say: Callable[[str], None],
    *,
    silence: float = LONGEST_WAIT,
) -> None:
    """Ask plugins for their tools; note which of them do not answer within ``LONGEST_WAIT``, and go on without.

    Meanwhile ``say`` takes what is waited for. Once some have answered and no other one does for ``silence`` seconds,
    no more is waited for; nor where all that is left are imports during which this process does nothing for as long;
    nor for what was late before in this process.
    """
    asked = {loader.fetch(want): want for want in wants if loader.missing(want, retry=True, confirm=True)}
    began = answered_at = worked_at = time.monotonic()
    used = time.process_time()
    waiting = {task for task in asked if not loader.is_late(task)}
    while waiting and (now := time.monotonic()) < began + LONGEST_WAIT:
        if len(waiting) < len(asked) and now >= answered_at + silence:
            break
        if now >= worked_at + silence and all(loader.line_being_imported(asked[task]) for task in waiting):
            break
        done, waiting = await asyncio.wait(waiting, timeout=_STEP, return_when=asyncio.FIRST_COMPLETED)
        before, used = used, time.process_time()
        worked_at = time.monotonic() if used - before >= _WORKS else worked_at
        answered_at = time.monotonic() if done else answered_at
        if waiting:
            say(listed_plugins(loader, [asked[task] for task in waiting]))
    if late := [want for task, want in asked.items() if not task.done()]:
        await loader.ready(wants, confirm=True, wait=0)  # nothing waits for them again
        waited = time.monotonic() - began
        failed = f"did not answer within {waited:.0f} s" if waited >= _STEP else "has not answered yet"
        what_to_do = f" {_MOVE_IT}" if any(loader.line_being_imported(want) for want in late) else ""
        printer.note(f"pegboard: {listed_plugins(loader, late)} {failed}; going on without.{what_to_do}")


def listed_plugins(loader: CatalogLoader, wants: Iterable[PluginRequest]) -> str:
    """Return the names of plugins, with the line that runs of each that is being brought in."""
    lines = {want.plugin: loader.line_being_imported(want) for want in wants}
    return ", ".join(f"{name} ({line})" if line else name for name, line in lines.items())


async def _unknown_from_start(
    board: Pegboard, permissions: CompiledPermissions | None, kinds: Container[str]
) -> list[PluginRequest]:
    """Return what is not known yet of what an agent has from the start, or any agent: every session asks for it."""
    from pegboard.board.discover import unknown_at_start

    compiler = board.services.compiler
    await compiler.refresh()
    agents = (
        [permissions]
        if permissions is not None
        else [compiler.permissions_of_agent(name) for name in board.world.agents]
    )
    return [want for agent in agents for want in unknown_at_start(agent) if _kind(board, want) in kinds]


def _owners(board: Pegboard, unseen: Sequence[Plugin], names: Sequence[str]) -> Sequence[Plugin]:
    """Return which plugins that have not been seen some names may be of: none of what is known, all of what is not."""
    catalog = board.world.catalog
    found: list[Plugin] = []
    for name in names:
        bare = name.partition(":")[2] if name.startswith(("plugin:", "tool:", "toolkit:")) else name
        known = catalog.plugins.get(bare)
        if catalog.find_tool(bare) is not None or (known is not None and _has_answered(known)):
            continue
        of = [plugin for plugin in unseen if bare.partition("/")[0] == plugin.name or _begins_as(bare, plugin)]
        if not of and bare not in board.world.toolkits:
            return unseen
        found += of
    return found


def _begins_as(name: str, plugin: Plugin) -> bool:
    """Return whether a name begins as those of a plugin do, where they have a beginning of their own."""
    return plugin.prefix != "" and may_be_of(name, plugin.name, prefix=plugin.prefix)


def _kind(board: Pegboard, want: PluginRequest) -> str:
    return board.world.catalog.plugins[want.plugin].kind


_ASKED = frozenset({"server", "python", "entry_point"})
"""Kinds of plugins that may be asked at any time; others contact services when they are constructed."""
_REGISTERED = frozenset({"agno"})


def _has_answered(plugin: Plugin) -> bool:
    return any(variant.known or variant.unavailable for variant in plugin.variants.values())


def _has_known_tools(plugin: Plugin) -> bool:
    return any(variant.known for variant in plugin.variants.values())
