"""`pegboard session …`: load and unload tools of a session, and show what is loaded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import Options, open_session, run, system_user
from pegboard.cli.exit_codes import DONE, REFUSED
from pegboard.cli.options import AgentOption, ConfigOption, JsonOption, PrincipalOption, with_session_options
from pegboard.cli.rendering import Printer, TableColumn, plural
from pegboard.cli.session_changes import end_turn, fallback, load, outcome_json, unload
from pegboard.core.state.sessions import from_text
from pegboard.operators.sessions import remove_session

if TYPE_CHECKING:
    from pegboard.assembly import Pegboard
    from pegboard.board import Session
    from pegboard.core.model.leases import Lease
    from pegboard.core.state.sessions import State
    from pegboard.ports import SessionKey, StoredState


@with_session_options
def show(
    options: Options,
) -> int:
    """Show the turn, and what is loaded and why."""

    async def print_session(board: Pegboard, printer: Printer) -> int:
        on = await open_session(board, options)
        state = (await on.snapshot()).state
        if printer.as_json:
            surface = await on.surface()
            printer.document(
                {
                    **outcome_json("ok", loaded=surface.names),
                    **_key_json(on),
                    "turn": state.turn,
                    "label": state.label,
                    "loadout": state.loadout,
                    "leases": [_lease_json(lease) for lease in state.leases],
                }
            )
            return DONE
        _print_state(on, state, printer)
        return DONE

    return run(options, print_session)


def _print_state(on: Session, state: State, printer: Printer) -> None:
    label = f" ({state.label})" if state.label else ""
    narrowed = f", loadout '{state.loadout}'" if state.loadout else ""
    printer.heading(f"{_name(on)}: turn {state.turn}{label}{narrowed}")
    if state.leases:
        columns = [TableColumn(title) for title in ("lease on", "until", "because", "loaded", "used", "without")]
        printer.table(columns, [_lease_row(lease) for lease in state.leases])
    else:
        printer.say("Nothing has been loaded; `pegboard surface` shows what is loaded from the start.")


def list_(
    config: ConfigOption = None,
    agent: AgentOption = None,
    principal: Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only this principal's.")] = None,
    as_json: JsonOption = False,
) -> int:
    """List the sessions that have stored anything."""
    options = Options(config=config, agent=agent, principal=principal or "local", as_json=as_json)

    async def print_sessions(board: Pegboard, printer: Printer) -> int:
        found = await board.services.store.sessions(principal=principal, agent=agent)
        records = [_record(key, stored) for key, stored in found]
        if printer.as_json:
            printer.document(records)
        elif not records:
            printer.say("No session has changed anything yet.")
        else:
            columns = [TableColumn(c) for c in ("session", "agent", "principal", "turn", "leases", "changed")]
            rows = [[*list(r.values())[:4], ", ".join(r["leases"]), r["updated_at"]] for r in records]
            printer.table(columns, rows)
        return DONE

    return run(options, print_sessions)


def _record(key: SessionKey, stored: StoredState) -> dict[str, Any]:
    try:
        state = from_text(stored.text)
    except ValueError:
        state = None
    return {
        "session": key.session,
        "agent": key.agent,
        "principal": key.principal,
        "turn": state.turn if state is not None else None,
        "leases": [str(lease.subject) for lease in state.leases] if state is not None else [],
        "updated_at": datetime.fromtimestamp(stored.updated_at, UTC).isoformat(timespec="seconds"),
    }


def delete(
    session: Annotated[str, typer.Option("--session", metavar="ID", help="The session.")],
    config: ConfigOption = None,
    agent: AgentOption = None,
    principal: PrincipalOption = "local",
    as_json: JsonOption = False,
) -> int:
    """Forget a session, and its calls that wait for a person."""
    options = Options(config=config, agent=agent, session=session, principal=principal, as_json=as_json)

    async def delete_session(board: Pegboard, printer: Printer) -> int:
        on = await open_session(board, options)
        gone = await remove_session(board.services, on.key, by=system_user())
        message = f"{_name(on)} {'is deleted.' if gone else 'has no stored state.'}"
        if printer.as_json:
            item = {"name": session, "status": "unloaded" if gone else "not_found", "message": message}
            loaded = (await on.surface()).names
            printer.document(outcome_json("ok" if gone else "refused", items=[item], loaded=loaded))
        else:
            (printer.say if gone else printer.note)(message)
        return DONE if gone else REFUSED

    return run(options, delete_session)


def forget(
    config: ConfigOption = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only this agent's.")] = None,
    principal: Annotated[
        str, typer.Option("--principal", metavar="NAME", help="The principal whose uses are deleted.")
    ] = "local",
    everyone: Annotated[bool, typer.Option("--everyone", help="The uses of all principals.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Forget which tools were used for what was needed."""
    options = Options(config=config, agent=agent, principal=principal, as_json=as_json)

    async def forgotten(board: Pegboard, printer: Printer) -> int:
        whose = None if everyone else principal
        gone = await board.forget(principal=whose, agent=agent)
        if not gone and agent is not None:
            board.agent(agent)  # a name with nothing remembered may be misspelt
        if printer.as_json:
            printer.document({"status": "ok", "forgotten": gone, "principal": whose, "agent": agent})
        else:
            of = f" by agent '{agent}'" if agent is not None else ""
            name = "everyone" if whose is None else f"'{whose}'"
            printer.say(f"{plural(gone, 'remembered use')}{of} for {name} deleted.")
        return DONE

    return run(options, forgotten)


def _key_json(on: Session) -> dict[str, str]:
    return {"principal": on.key.principal, "agent": on.key.agent, "session": on.key.session}


def _name(on: Session) -> str:
    return f"Session '{on.key.session}' of agent '{on.key.agent}' for '{on.key.principal}'"


def _lease_json(lease: Lease) -> dict[str, Any]:
    return {
        "subject": str(lease.subject),
        "until": str(lease.until),
        "because": lease.because.value,
        "loaded_turn": lease.loaded_turn,
        "used_turn": lease.used_turn,
        "without": sorted(lease.excluded),
    }


def _lease_row(lease: Lease) -> tuple[str, ...]:
    turns = f"turn {lease.loaded_turn}", f"turn {lease.used_turn}"
    return str(lease.subject), str(lease.until), lease.because.value, *turns, ", ".join(sorted(lease.excluded))


COMMANDS: dict[str, tuple[Callable[..., int], str]] = {
    "load": (load, "pegboard session load devops git__git_log --agent assistant"),
    "unload": (unload, "pegboard session unload devops --agent assistant"),
    "fallback": (fallback, "pegboard session fallback --session thread-42"),
    "end-turn": (end_turn, "pegboard session end-turn --session thread-42"),
    "show": (show, "pegboard session show --session thread-42 --principal ada"),
    "list": (list_, "pegboard session list --json"),
    "forget": (forget, "pegboard session forget --principal ada --agent assistant"),
    "delete": (delete, "pegboard session delete --session thread-42 --principal ada"),
}
