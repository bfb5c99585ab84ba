"""Everything odd that servers and issuers were seen to do, met by Pegboard as a good client does (G11)."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from authorization.oddities import ODDITIES, Oddity
from authorization.site import LoginSite
from logins.conftest import Person
from pegboard import Pegboard
from pegboard.board.session import Session
from pegboard.core.state.call_plans import CallAnswer
from pegboard.operators.audit import AuditQuery, audit
from pegboard.operators.logins import OperatorLogins
from pegboard.support.backoff import Backoff

MOST_LOGINS = 4
"""How often a person follows an address before they have had enough."""


@dataclass
class Story:
    """The calls of one session, the person at hand, and all that either was shown."""

    site: LoginSite
    session: Session
    logins: OperatorLogins
    person: Person
    tool: str
    seen: list[str] = field(default_factory=list[str])
    pages: list[httpx2.Response] = field(default_factory=list[httpx2.Response])

    async def call(self) -> CallAnswer:
        return self._noted(await self.session.call(f"linear__{self.tool}", {"text": "x"}))

    async def followed(self, answer: CallAnswer) -> CallAnswer:
        """Return what comes of a call once a person has followed every address that it asks for."""
        for _ in range(MOST_LOGINS):
            if answer.login is None:
                break
            page = await self.person(answer.login.url, "ada")
            self.pages.append(page)
            self.seen.append(page.text)
            if page.status_code != 200:
                break
            answer = self._noted(await self.session.resume(answer.login.id))
        return answer

    def _noted(self, answer: CallAnswer) -> CallAnswer:
        self.seen.append(repr(answer))
        return answer


@pytest.mark.parametrize("oddity", ODDITIES, ids=str)
async def test_g11_pegboard_meets_it(
    oddity: Oddity,
    site: LoginSite,
    configuration: dict[str, Any],
    person: Person,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "pegboard")
    site.reset(**oddity.options)
    async with Pegboard.open(configuration) as board:
        session = await board.session(agent="default", session_id="t", principal="ada")
        logins = OperatorLogins(board.services)
        story = Story(site=site, session=session, logins=logins, person=person, tool=oddity.tool)
        await told(story, oddity)
        recorded = [repr(line) for line in (await audit(board.services, AuditQuery())).lines]
        recorded.append(repr(await logins.listed()))
    asked = {request["path"] for request in site.requests}
    assert not asked & set(oddity.never)
    assert {name: site.counts.get(name) for name in oddity.counts} == oddity.counts
    logged = [caplog.handler.format(record) for record in caplog.records if record.name.startswith(("pegboard", "mcp"))]
    assert secrets_in(site, [*story.seen, *recorded, *logged], configuration) == []


async def told(story: Story, oddity: Oddity) -> None:
    """Tell the story of a row, to the end that it says."""
    answer = await story.followed(await story.call())
    if oddity.then is not None:
        assert answer.status == "ok", answer
        logins = len(story.pages)
        story.site.change(**oddity.then)
        story.site.expire()
        if oddity.control:
            getattr(story.site, oddity.control)()
        answer = await story.call()
        assert len(story.pages) == logins
    match oddity.outcome:
        case "works":
            assert answer.status == "ok", answer
        case "needs_login":
            assert answer.login is not None, answer
            story.seen.append(repr(await story.logins.listed()))
            again = (await story.call()).login
            assert again is not None
            assert again.pending == answer.login.pending
            assert (await story.followed(answer)).status == "ok"
        case "refused":
            assert refusal(story, answer), answer
        case "waits":
            assert answer.status == "tool_unavailable", answer
            assert "the login is kept" in answer.message
            story.site.change(**dict.fromkeys(oddity.then or (), None))
            await comes_back(story)


def refusal(story: Story, answer: CallAnswer) -> str:
    """Return what someone was told of what is wrong: whoever called, else whoever followed the address."""
    if answer.status == "tool_unavailable":
        return answer.message
    last = story.pages[-1]
    return last.text if answer.status == "needs_login" and last.status_code == 400 else ""


async def comes_back(story: Story) -> None:
    """Call until the issuer may be asked again; no one logs in."""
    pause = Backoff(first=0.05, longest=0.2)
    async with asyncio.timeout(10):
        while (answer := await story.call()).status != "ok":
            assert answer.status == "tool_unavailable", answer
            await pause.wait()


def secrets_in(site: LoginSite, shown: Sequence[str], configuration: dict[str, Any]) -> list[str]:
    """Return what was given out in secret and stands somewhere in plain."""
    folder = Path(configuration["store"].removeprefix("sqlite:///")).parent
    stored = [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]
    return [secret for secret in site.secrets if any(secret in text for text in (*shown, *stored))]
