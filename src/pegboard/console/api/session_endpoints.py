"""Sessions: what is loaded in them, and what an operator does about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from pegboard.console.api.endpoint import Endpoint, request_class
from pegboard.console.context import Context
from pegboard.console.operated_sessions import operated_session, sent_to_model, session_overview
from pegboard.console.operator_request import OperatorRequest
from pegboard.core.access.permissions import LOCAL
from pegboard.core.model.delivery import TakesEffect
from pegboard.core.state.commands import Outcome, Status
from pegboard.operators.masked import Name, mask_value
from pegboard.operators.sent import SentToModel
from pegboard.operators.sessions import SessionOverview, SessionPage, list_sessions, remove_session
from pegboard.ports import SessionKey

Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=100)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnswer:
    """The answer to one name."""

    name: Name
    status: Status
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandAnswer:
    """What a command did in a session (S10).

    Attributes:
        status: ok, partial (some names were refused) or refused.
        items: the answer to each name.
        takes_effect: when the change can be used, or null where nothing changed.
        loaded: the wire names of everything that is loaded now.
        turn: the session's turn after it.
        message: everything in sentences.
    """

    status: Literal["ok", "partial", "refused"]
    items: tuple[ItemAnswer, ...]
    takes_effect: TakesEffect | None
    loaded: tuple[Name, ...]
    turn: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Whether there was something to delete."""

    deleted: bool


@request_class
class SessionQuery:
    """Which sessions are listed."""

    agent: Name = ""
    """Only those of this agent."""
    principal: Name = ""
    """Only those of this principal."""
    query: str = ""
    """Words that all stand in principal, agent or id."""
    offset: Annotated[int, Field(ge=0)] = 0
    """How many are passed over."""
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    """How many there are at most."""


@request_class
class NamedSession:
    """One session."""

    agent: Name
    """The agent."""
    session: Name
    """The session's id."""
    principal: Name = LOCAL
    """The user (principal) of the session."""

    @property
    def key(self) -> SessionKey:
        """Return principal, agent and session id."""
        return SessionKey(principal=self.principal, agent=self.agent, session=self.session)


@request_class
class SentQuery(NamedSession):
    """What the model of one session is sent."""

    step: Annotated[int, Field(ge=1)] | None = None
    """The number of a list that it was sent before; without it what it is sent next."""


@request_class
class Loading:
    """What is loaded."""

    names: Names
    """Toolkits, plugins or tools; each is answered for itself."""
    keep: Literal["turn", "idle", "session"] | None = None
    """Until when; without it as the agent's profile says."""


@request_class
class Unloading:
    """What is unloaded."""

    names: Names
    """Toolkits, plugins or tools; each is answered for itself."""


@request_class
class LoadoutChoice:
    """What a session is narrowed to."""

    loadout: Name | None
    """The name of a loadout, or null to narrow nothing."""


async def sessions(context: Context, visit: OperatorRequest, *, query: SessionQuery) -> SessionPage:
    """Return the sessions of every process on the store, the newest change first."""
    return await list_sessions(
        context.services,
        context.subjects.counting,
        agent=context.agent_of_list(visit, query.agent),
        agents=visit.operator.agents,
        principal=query.principal or None,
        query=query.query,
        offset=query.offset,
        limit=query.limit,
    )


async def session(context: Context, visit: OperatorRequest, *, query: NamedSession) -> SessionOverview:
    """Return what is loaded in a session, until when and because of what, what that costs, and its newest calls."""
    return await session_overview(context, visit, query.key)


async def sent(context: Context, visit: OperatorRequest, *, query: SentQuery) -> SentToModel:
    """Return what the model of a session is sent next, or was: tools and texts as they are, and what each costs."""
    return await sent_to_model(context, visit, query.key, query.step)


async def load(context: Context, visit: OperatorRequest, *, query: NamedSession, body: Loading) -> CommandAnswer:
    """Load toolkits, plugins or tools in a session; what is refused is an item of the answer."""
    opened = await operated_session(context, visit, query.key)
    return _command_answer(visit, await opened.load(*body.names, keep=body.keep))


async def unload(context: Context, visit: OperatorRequest, *, query: NamedSession, body: Unloading) -> CommandAnswer:
    """Unload toolkits, plugins or tools in a session; what is refused is an item of the answer."""
    opened = await operated_session(context, visit, query.key)
    return _command_answer(visit, await opened.unload(*body.names))


async def end_turn(context: Context, visit: OperatorRequest, *, query: NamedSession) -> CommandAnswer:
    """End the turn of a session: what lapses with it is unloaded."""
    opened = await operated_session(context, visit, query.key)
    return _command_answer(visit, await opened.end_turn())


async def use_loadout(
    context: Context, visit: OperatorRequest, *, query: NamedSession, body: LoadoutChoice
) -> CommandAnswer:
    """Narrow a session to a loadout at once, or to nothing any longer."""
    opened = await operated_session(context, visit, query.key)
    return _command_answer(visit, await opened.use_loadout(body.loadout))


async def delete_session(context: Context, visit: OperatorRequest, *, query: NamedSession) -> Deleted:
    """Delete a session; the next use of its name starts a new session."""
    context.agent_of_list(visit, query.agent)
    return Deleted(deleted=await remove_session(context.services, query.key, by=visit.operator.name))


def _command_answer(visit: OperatorRequest, outcome: Outcome) -> CommandAnswer:
    answer = CommandAnswer(
        status=outcome.status,
        items=tuple(ItemAnswer(name=item.name, status=item.status, message=item.text) for item in outcome.items),
        takes_effect=outcome.takes_effect,
        loaded=outcome.loaded,
        turn=outcome.turn,
        message=outcome.message,
    )
    return mask_value(answer, visit.names)


_CODES: Final = ("unknown_agent", "unknown_session")
ENDPOINTS: Final = (
    Endpoint("GET", "/api/sessions", sessions, ("unknown_agent",)),
    Endpoint("GET", "/api/session", session, _CODES),
    Endpoint("GET", "/api/session/sent", sent, _CODES),
    Endpoint("POST", "/api/session/load", load, _CODES, "switch"),
    Endpoint("POST", "/api/session/unload", unload, _CODES, "switch"),
    Endpoint("POST", "/api/session/end-turn", end_turn, _CODES, "switch"),
    Endpoint("POST", "/api/session/loadout", use_loadout, _CODES, "switch"),
    Endpoint("POST", "/api/session/delete", delete_session, ("unknown_agent",), "switch"),
)
