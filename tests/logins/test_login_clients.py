"""As whom Pegboard asks for logins: by the address of a document, as registered, registered again for more (G11)."""

from typing import Any

import pytest

from authorization.site import LoginSite
from logins.conftest import Person
from logins.test_library_logins import logged_in
from pegboard import Pegboard

DOCUMENT = "https://client.example/pegboard.json"
DESCRIBED = {
    "client_id": DOCUMENT,
    "client_name": "Pegboard of the tests",
    "redirect_uris": ["http://127.0.0.1/callback"],
    "grant_types": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_method": "none",
}


@pytest.fixture
def described(configuration: dict[str, Any]) -> dict[str, Any]:
    servers = {"linear": {**configuration["servers"]["linear"], "auth": {"client_id": DOCUMENT}}}
    return {**configuration, "servers": servers}


async def client_of(board: Pegboard, person: Person, site: LoginSite) -> str:
    """Return as which client a person has logged in; it is the same after a renewal."""
    session = await logged_in(board, person)
    site.expire()
    answer = await session.call("linear__whoami", {})
    assert answer.result.structured is not None, answer
    return answer.result.structured["client"]


async def test_g11_the_address_of_a_document_is_who_the_client_is_where_the_issuer_reads_it(
    described: dict[str, Any], person: Person, site: LoginSite
) -> None:
    site.reset(client_documents={DOCUMENT: DESCRIBED})
    async with Pegboard.open(described) as board:
        assert await client_of(board, person, site) == DOCUMENT
    assert "registrations" not in site.counts


async def test_g11_where_the_issuer_reads_no_documents_the_client_registers(
    described: dict[str, Any], person: Person, site: LoginSite
) -> None:
    site.reset(metadata_documents=False)
    async with Pegboard.open(described) as board:
        assert await client_of(board, person, site) not in (DOCUMENT, "")
    assert site.counts["registrations"] == 1


async def test_g11_more_scopes_are_asked_for_as_before_where_the_issuer_registers_nobody_any_more(
    board: Pegboard, person: Person, site: LoginSite
) -> None:
    session = await logged_in(board, person)
    site.change(registration_status=403)
    refused = await session.call("linear__write", {"text": "x"})
    assert refused.login is not None
    await person(refused.login.url, "ada")
    assert (await session.resume(refused.login.id)).status == "ok"
    assert site.counts["registrations"] == 1
