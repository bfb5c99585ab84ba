"""How long a browser stays signed in, and what waits for its next page."""

from __future__ import annotations

import httpx2

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import LIFETIME, MOST, OperatorAccess
from pegboard.console.pages.forms import Notice

from .addresses import visitor
from .programs import ORIGIN, serving

ADA = "ada-ada-ada-ada-ada-ada"


async def test_a_sign_in_lasts_from_its_last_request_as_the_process_counts(mailer: Pegboard) -> None:
    """G2: the browser is given no time at which it forgets the cookie by itself."""
    now = 0.0
    app = ConsoleApp(mailer, OperatorAccess(lambda: mailer.configuration.tokens, clock=lambda: now))
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
        given = (await client.post("/console/sign-in", data={"secret": ADA})).headers["set-cookie"]
        assert {part.strip().partition("=")[0] for part in given.lower().split(";")[1:]} == {
            "httponly",
            "path",
            "samesite",
        }
        for _ in range(3):
            now += LIFETIME - 1
            assert (await client.get("/console/access")).status_code == 200
        now += LIFETIME
        assert (await client.get("/console/access")).headers["location"] == "/console/sign-in"
    await app.close()


async def test_a_notice_waits_for_a_page_that_is_shown(mailer: Pegboard) -> None:
    async with serving(mailer) as (app, access), visitor(app, access, ADA) as ada:
        ada.sign_in.notices = [Notice(message="Server git was restarted.")]
        await ada.client.head("/console/access")
        assert "Server git was restarted." in (await ada.client.get("/console/access")).text
        assert "Server git was restarted." not in (await ada.client.get("/console/access")).text


async def test_only_looking_at_an_address_uses_no_code_up() -> None:
    """G2: a chat program that shows a preview asks with HEAD or GET; then the code is still good."""
    async with Pegboard.open({"store": "memory:"}) as board, serving(board) as (app, access):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as client:
            code = access.codes.new()
            for method in ("HEAD", "GET", "GET"):
                response = await client.request(method, f"/console/sign-in?code={code}")
                assert (response.status_code, "set-cookie" in response.headers) == (200, False)
            assert "set-cookie" in (await client.post("/console/sign-in", data={"secret": code})).headers
            assert (await client.get(f"/console/sign-in?code={code}")).status_code == 401


async def test_signing_in_again_and_again_signs_nobody_else_out(mailer: Pegboard) -> None:
    """G2: of the operator who has most sign-ins the oldest ends."""
    access = OperatorAccess(lambda: mailer.configuration.tokens)
    ada = access.with_token(ADA)
    bobs = [access.with_token("bob-bob-bob-bob-bob-bob") for _ in range(MOST + 1)]
    assert access.signed_in(ada) is not None
    assert access.signed_in(bobs[0]) is None
    assert access.signed_in(bobs[-1]) is not None
