"""What operators say to calls that wait for a person (A1–A3)."""

from __future__ import annotations

from dataclasses import replace

from pegboard.board.services import Services
from pegboard.core.access.approvals.approval import MAY_LAST, Approval, ApprovalStatus, Lasting, unknown_approval
from pegboard.core.access.approvals.digests import canonical, digest
from pegboard.core.model.agents import Agent
from pegboard.core.model.naming import label_problem, one_line
from pegboard.core.model.tools import EMPTY, Frozen, JsonObject, Tool
from pegboard.errors import UsageError
from pegboard.ports import SessionKey

_LASTS = {"once": "For once.", "session": "For the session.", "always": "For always."}
_BY_CLIENT = "By the user of the client."
_LONGEST_MESSAGE = 1000


class Approvals:
    """The calls that wait for a person, and the answers; the next call of every session is bound by them (A2).

    Args:
        services: the services of the board.
        elicited: whether it is the users of clients who answer here.
    """

    def __init__(self, services: Services, *, elicited: bool = False) -> None:
        self._services = services
        self._elicited = elicited

    async def list(self, *, agent: str | None = None, ended: bool = False) -> tuple[Approval, ...]:
        """Return the approvals that something may still come of, the newest first.

        Args:
            agent: only those of calls of this agent.
            ended: also those that were refused, are used or have expired, for a day after they would have expired.

        Raises:
            StoreError: they cannot be read.
            UsageError: the board works in the event loop of another thread.
        """
        self._services.loop.check()
        now = self._services.store.clock()
        found = await self._services.store.approvals(agent=agent, open_at=None if ended else now)
        return tuple(one.as_of(now) for one in found)

    async def allow(
        self,
        approval_id: str,
        *,
        by: str,
        lasts: Lasting = "once",
        fields: JsonObject | None = None,
        expected: ApprovalStatus | None = None,
    ) -> Approval:
        """Allow a call that waits; it runs when it is resumed or made again.

        Args:
            approval_id: the approval.
            by: who allows it.
            lasts: ``once`` is for this call; ``session`` for every call of the tool in the session, ``always`` for
                every one by the same agent and principal, as long as the tool and its rules stay as they are.
            fields: what a person fills in, where the tool asks for it.
            expected: the status that whoever decides was shown; where it is another one by now, nothing is changed.
                Not given, a refusal is overruled.

        Returns:
            The approval as it stands now.

        Raises:
            UsageError: there is no such approval, it was used or has expired, or it cannot be allowed this way;
                ``approval_changed`` where someone else was first.
            StoreError: it cannot be read or written.
        """
        if lasts not in _LASTS:
            raise UsageError(f"`lasts` is none of {', '.join(_LASTS)}.", hint="Without it the call is allowed once.")
        while True:
            known = await self._open(approval_id, by, expected)
            now = self._services.store.clock()
            allowed = replace(
                await self._with_filled_fields(known, lasts, fields),
                status="allowed",
                lasts=lasts,
                by=by,
                elicited=self._elicited,
                message="",
                decided_at=now,
                expires_at=now + self._lifetime(known) if lasts == "once" else None,
            )
            reason = f"{_LASTS[lasts]} {_BY_CLIENT}" if self._elicited else _LASTS[lasts]
            if await self._store_change(known, allowed, reason):
                return allowed

    async def refuse(
        self, approval_id: str, *, by: str, reason: str = "", expected: ApprovalStatus | None = None
    ) -> Approval:
        """Refuse a call that waits, or take back what was allowed and is not used.

        Args:
            approval_id: the approval.
            by: who refuses it.
            reason: what the model reads of it.
            expected: the status that whoever decides was shown; where it is another one by now, nothing is changed.

        Returns:
            The approval as it stands now.

        Raises:
            UsageError: there is no such approval, or it was used or has expired; ``approval_changed`` where someone
                else was first.
            StoreError: it cannot be read or written.
        """
        while True:
            known = await self._open(approval_id, by, expected)
            now = self._services.store.clock()
            refused = replace(
                known,
                status="refused",
                by=by,
                elicited=self._elicited,
                message=one_line(reason, limit=_LONGEST_MESSAGE),
                decided_at=now,
                expires_at=now + self._lifetime(known),
            )
            if await self._store_change(known, refused, reason):
                self._services.unkept.drop(known.id)
                return refused

    async def _open(self, approval_id: str, by: str, expected: ApprovalStatus | None) -> Approval:
        """Return an approval of which something may still come; raises ``UsageError``."""
        if problem := label_problem(by) or ("is empty." if not by.strip() else ""):
            raise UsageError(f"`by` {problem}", hint="Name who decides.")
        self._services.loop.check()
        found = await self._services.store.approval(approval_id)
        if found is None:
            raise unknown_approval(approval_id)
        status = found.as_of(self._services.store.clock()).status
        if status in ("used", "expired"):
            allowed_by = f": '{found.by}' had allowed it" if found.by else ""
            what = f"was used already{allowed_by}" if status == "used" else "has expired"
            raise UsageError(
                f"Approval '{found.id}' {what}.",
                code="approval_ended",
                hint="The call has to be made again.",
            )
        if expected not in (None, status):
            raise UsageError(
                f"Approval '{found.id}' is already {status}: '{found.by}' decided it in the meantime.",
                code="approval_changed",
                hint="Look at its current state, and decide again.",
            )
        return found

    async def _with_filled_fields(self, approval: Approval, lasts: Lasting, fields: JsonObject | None) -> Approval:
        """Return the approval with what a person filled in, if it is for a call that asks for it."""
        match approval.kind:
            case "external":
                raise UsageError(
                    f"'{approval.tool}' is run by the host program.",
                    code="approval_kind",
                    hint="Pass its result in: `await session.resume(id, result=...)`.",
                )
            case "confirm" if fields is not None:
                raise UsageError(f"'{approval.tool}' asks for no fields.", code="approval_kind")
            case "confirm":
                return approval
            case "user_input" if lasts not in MAY_LAST["user_input"]:
                raise UsageError(f"'{approval.tool}' asks for its fields in every call.", code="approval_kind")
            case "user_input":
                return await self._with_fields(approval, fields or EMPTY)

    async def _with_fields(self, approval: Approval, fields: JsonObject) -> Approval:
        services = self._services
        form = Tool(plugin="", name="fields", wire=f"{approval.tool} (fields)", input_schema=approval.fields)
        own = {name: value for name, value in fields.items() if name in approval.fields.get("properties", {})}
        problems = [f"it has no field '{name}'" for name in fields.keys() - own.keys()]
        if problems := problems + await services.validator.problems(form, own):
            raise UsageError(f"The fields of '{approval.tool}' do not fit: {'; '.join(problems)}.", code="bad_fields")
        key, asked = await services.store.digest_key(), services.unkept.get(approval.id) or approval.arguments
        if digest(key, canonical(self._arguments_as_asked(approval, asked))) != approval.asked:
            raise UsageError(
                f"The call of '{approval.tool}' holds a secret, which only the process that asked has.",
                code="approval_kind",
                hint="Answer it there.",
            )
        filled = {**asked, **own}
        masked: JsonObject = services.masker.value(filled)
        if masked != filled:
            services.unkept.put(approval.id, filled)
        binding = replace(approval.binding, arguments=digest(key, canonical(filled)))
        return replace(approval, arguments=Frozen(masked), binding=binding)

    @staticmethod
    def _arguments_as_asked(approval: Approval, arguments: JsonObject) -> JsonObject:
        return {name: value for name, value in arguments.items() if name not in approval.fields.get("properties", {})}

    def _lifetime(self, approval: Approval) -> float:
        agent = self._services.world.agents.get(approval.binding.agent)
        return (agent or Agent(name="")).approval_expires

    async def _store_change(self, known: Approval, approval: Approval, reason: str) -> bool:
        """Return whether the approval still stood as it was known, and is stored with its record now."""
        own, recorder = approval.binding, self._services.recorder
        key = SessionKey(principal=own.principal, agent=own.agent, session=own.session)
        decision = "allowed" if approval.status == "allowed" else "refused"
        record = recorder.entry(
            key,
            approval.turn,
            "approval",
            approval.binding.tool,
            decision,
            reason=reason,
            outcome=approval.id,
            by=approval.by,
        )
        if not await self._services.store.change_approval(approval, expected=known.status, audit=[record]):
            return False
        recorder.emit("approval_decided", record)
        return True
