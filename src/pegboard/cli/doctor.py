"""`pegboard doctor`: start one server or plugin and say what was refused to it (A7), or look the installation over."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pegboard.accepted_grants import without_opening
from pegboard.assembly import Pegboard, read_configuration, store_copies
from pegboard.board.catalog.loader import PluginRequest
from pegboard.cli.common import Options, run, run_guarded, warnings_to
from pegboard.cli.exit_codes import DONE, FAILED, NEEDS_LOGIN, UNAVAILABLE, exit_code_of_error
from pegboard.cli.options import ConfigOption, JsonOption
from pegboard.cli.plugin_problems import own_paths, policy_of, started_as
from pegboard.cli.rendering import Printer, plural
from pegboard.cli.store_lines import check_json, sealed_line, size_text
from pegboard.core.model.masking import Masker
from pegboard.core.model.naming import one_line
from pegboard.core.model.specs import PluginSpec
from pegboard.errors import StoreError, ToolUnavailableError
from pegboard.operators.servers import ServerState, printed_lines, server_state
from pegboard.sources.confinement import SYSTEM, ConfinementPolicy, available
from pegboard.support.version import full_version

if TYPE_CHECKING:
    from pegboard.ports.store_copies import StoreCheck, StoreCopies


MOST_APART: Final = 5.0
"""By how many seconds the clock of this machine may differ from that of the store."""
_UNKNOWN: Final = {
    "store_in_memory": "in memory: lost when the process ends",
    "store_missing": "none yet: the first start creates it",
}
"""What is said of a store that is not there and need not be, by the code of the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What a machine and the store of a configuration are found to be.

    ``ahead`` is by how many seconds the clock of this machine is before that of the store; ``error`` is why nothing is
    known of the store. ``waiting`` are the edits of the configuration that wait for a person, as texts.
    """

    configuration: str
    store: StoreCheck | None = None
    ahead: float | None = None
    error: StoreError | None = None
    waiting: tuple[str, ...] = ()

    @property
    def clocks_differ(self) -> bool:
        """Return whether the clocks differ by more than they may."""
        return self.ahead is not None and abs(self.ahead) > MOST_APART

    @property
    def is_sound(self) -> bool:
        """Return whether nothing is wrong."""
        if self.store is None:
            return self.error is None or self.error.code in _UNKNOWN
        return self.store.sound and not self.clocks_differ


async def diagnose_installation(configuration: str, copies: StoreCopies) -> Installation:
    """Return what this machine and a store are found to be; nothing is changed."""
    began = time.time()
    try:
        found = await copies.check(thorough=False)
    except StoreError as error:
        return Installation(configuration=configuration, error=error)
    ahead = max(began - found.now, 0.0) or min(time.time() - found.now, 0.0)  # the store was asked in between
    return Installation(configuration=configuration, store=found, ahead=ahead)


def installation_lines(found: Installation) -> Iterator[str]:
    """Yield what was found, for people."""
    yield f"Pegboard {full_version()} on Python {platform.python_version()}, {platform.system()}"
    yield f"configuration  {found.configuration}"
    if found.waiting:
        count = plural(len(found.waiting), "change")
        yield f"waiting        {count} until a person accepts it with `pegboard accept`: {found.waiting[0]}"
    store = found.store
    if store is None:
        yield f"store          {_UNKNOWN.get(found.error.code) or found.error if found.error else ''}"
        return
    yield f"store          {store.place} ({store.engine}), {size_text(store.bytes)}"
    yield f"schema         version {store.schema} of {store.understood}"
    yield f"writable       {f'no: {store.read_only}' if store.read_only else 'yes'}"
    yield f"key            {sealed_line(store.sealed)}"
    yield f"clock          {_clock(found)}"
    yield f"replicas       {len(store.replicas) or 'none serves it now'}"
    for one in store.replicas:
        ago = max(0.0, store.now - one.seen_at)
        yield f"  {one.id}  {one.address}  Pegboard {one.version}, seen {ago:.0f} s ago"
    versions = sorted({one.version for one in store.replicas})
    if len(versions) > 1:
        yield f"  Pegboard {' and '.join(versions)} at the same time: update all of them soon."


def _clock(found: Installation) -> str:
    ahead = found.ahead or 0.0
    if not found.clocks_differ:
        return "the same as that of the store"
    which = "ahead of" if ahead > 0 else "behind"
    return (
        f"{abs(ahead):,.0f} s {which} that of the store: set both by one time server, "
        "else approvals and logins end too early or too late"
    )


def installation_json(found: Installation) -> dict[str, Any]:
    """Return what was found, for scripts."""
    error = found.error
    return {
        "sound": found.is_sound,
        "version": full_version(),
        "python": platform.python_version(),
        "system": platform.system(),
        "configuration": found.configuration,
        "waiting": list(found.waiting),
        "store": None if found.store is None else check_json(found.store),
        "clock_ahead": found.ahead,
        "error": None if error is None else {"code": error.code, "message": error.message, "hint": error.hint},
    }


EXAMPLE = "pegboard doctor notes"
SHOWN_PATHS = 12
SHOWN_LINES = 5
LONGEST_TARGET = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What became of one start; ``policy`` is what a confined process may reach, ``unconfined`` why it is not so."""

    state: ServerState
    came_up: bool
    policy: ConfinementPolicy | None
    unconfined: str
    lines: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """Return 0 where it came up and nothing was refused to it."""
        if self.came_up:
            return FAILED if self.state.refused else DONE
        return NEEDS_LOGIN if self.state.state == "needs_login" else UNAVAILABLE


def doctor(
    server: Annotated[
        str | None,
        typer.Argument(
            metavar="SERVER", help="The name of a server or plugin. Without it: the store, replicas and clocks."
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> int:
    """Check the store, replicas and clocks, or start one server."""
    if server is None:
        return _diagnose_installation(Options(config=config, as_json=as_json))
    name = server

    async def diagnose(board: Pegboard, printer: Printer) -> int:
        found = await _diagnose(board, printer, name)
        if printer.as_json:
            printer.document(_json(found))
        else:
            _print(found, printer)
        return found.exit_code

    return run(Options(config=config, as_json=as_json), diagnose)


def _diagnose_installation(options: Options) -> int:
    """Say how the store, the processes that serve it, clocks and the key are."""

    async def diagnose_server(printer: Printer) -> int:
        with warnings_to(printer):
            read = read_configuration(options.config)
        printer.masker = Masker(read.configuration.secrets)
        _, waiting = without_opening(read.configuration)
        try:
            found = await diagnose_installation(read.name, store_copies(read))
        except StoreError as error:
            found = Installation(configuration=read.name, error=error)
        found = replace(found, waiting=tuple(map(str, waiting)))
        if printer.as_json:
            printer.document(installation_json(found))
        else:
            for line in installation_lines(found):
                printer.say(line)
        if found.is_sound:
            return DONE
        return FAILED if found.error is None else exit_code_of_error(found.error)

    return run_guarded(options, diagnose_server)


async def _diagnose(board: Pegboard, printer: Printer, name: str) -> Diagnosis:
    services, loader = board.services, board.services.loader
    await server_state(services, name)  # refuses a name that nothing has
    with printer.working(f"Starting {name}", lasting=True):
        await loader.refresh([PluginRequest(plugin=name)])
    state = await server_state(services, name)
    policy, unconfined = _policy(board, loader.specs[name])
    lines = [line.text for line in await printed_lines(services, name) if line.kind != "event" and line.text.strip()]
    came_up = not loader.missing(PluginRequest(plugin=name), confirm=True) and not state.unavailable
    return Diagnosis(
        state=state, came_up=came_up, policy=policy, unconfined=unconfined, lines=tuple(lines[-SHOWN_LINES:])
    )


def _policy(board: Pegboard, spec: PluginSpec) -> tuple[ConfinementPolicy | None, str]:
    """Return what the process of a plugin may reach; else why it is not confined."""
    if spec.confine is None:
        return None, "the file has no `confine` for it"
    if reason := available(spec.confine.network):
        return None, reason
    try:
        policy = policy_of(started_as(spec), spec.confine, own_paths(board.configuration))
    except ToolUnavailableError as refused:
        return None, refused.message
    return policy, ""


def _print(found: Diagnosis, printer: Printer) -> None:
    state = found.state
    where = f" ({state.place})" if state.place else ""
    what = "Server" if state.kind == "server" else "Plugin"
    printer.say(f"{what} '{state.name}'{where}: {one_line(state.target, limit=LONGEST_TARGET)}")
    for line in _reach(found):
        printer.say(f"  {line}")
    if found.came_up:
        printer.say(f"It started and has {plural(state.tools, 'tool')}.")
    else:
        printer.say("It did not start.")
    for reason in state.unavailable:
        printer.say(f"  {reason}")
    if found.lines:
        printer.say("Its last lines:")
        for line in found.lines:
            printer.say(f"  {line}")
    for one in state.refused:
        printer.say(f"{one.text[0].upper()}{one.text[1:]}.")
    if not state.refused and found.policy is not None:
        printer.say("It reports no refused access.")


def _reach(found: Diagnosis) -> list[str]:
    """Return what it may reach, in lines."""
    policy = found.policy
    if policy is None:
        return [f"not confined: {found.unconfined}"]
    if policy.network is None:
        network = "without limits, but no Unix sockets"
    else:
        network = f"TCP ports {', '.join(map(str, policy.network))}" if policy.network else "none"
    return [
        "confined",
        f"writes   {_list_some_paths(tuple(each for each in policy.write if each != policy.caches)) or 'nothing else'}",
        f"reads    the system{', ' if (reads := _list_some_paths(tuple(_beyond_system(policy.read)))) else ''}{reads}",
        f"network  {network}",
        f"caches   {policy.caches}, and temporary files",
    ]


def _list_some_paths(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - SHOWN_PATHS} more" if len(paths) > SHOWN_PATHS else ""
    return ", ".join(paths[:SHOWN_PATHS]) + more


def _beyond_system(paths: tuple[str, ...]) -> Iterator[str]:
    """Yield what is no part of what every program reads."""
    every = tuple(f"{each}/" for each in SYSTEM)
    return (each for each in paths if not f"{each}/".startswith(every))


def _json(found: Diagnosis) -> dict[str, Any]:
    state, policy = found.state, found.policy
    return {
        "name": state.name,
        "kind": state.kind,
        "target": state.target,
        "where": state.place or None,
        "confined": policy is not None,
        "unconfined_because": found.unconfined or None,
        "write": list(policy.write) if policy is not None else None,
        "read": list(policy.read) if policy is not None else None,
        "network": list(policy.network) if policy is not None and policy.network is not None else None,
        "caches": policy.caches if policy is not None else None,
        "came_up": found.came_up,
        "tools": state.tools,
        "errors": list(state.unavailable),
        "lines": list(found.lines),
        "refused": [
            {"kind": one.kind, "what": one.what, "line": one.line or None, "why": one.why or None}
            for one in state.refused
        ],
    }
