"""A secret of the configuration goes to the issuer that it is from, whatever the server says (G11)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from authorization.site import LoginSite, login_site
from pegboard import Pegboard

SECRETS = {
    "client_credentials": {"kind": "client_credentials", "client_id": "robot", "client_secret": "robot-secret-0003"},
    "code": {"kind": "code", "client_id": "known-basic", "client_secret": "known-secret-0002"},
}


@pytest.fixture
def issuer() -> Iterator[LoginSite]:
    with login_site() as issuer:
        yield issuer


@pytest.fixture
def server(issuer: LoginSite) -> Iterator[LoginSite]:
    """A server whose logins another site issues."""
    with login_site(authorization_server=issuer.origin) as server:
        issuer.change(protects=(server.url,))
        yield server


def configured(server: LoginSite, auth: dict[str, Any], folder: Path) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{folder}/pegboard.db",
        "servers": {"linear": {"url": server.url, "auth": auth}},
        "agents": {"default": {"tools": ["linear"]}},
    }


async def outcome(config: dict[str, Any], principal: str) -> Any:
    async with Pegboard.open(config) as board:
        session = await board.session(agent="default", session_id="t", principal=principal)
        return await session.call("linear__whoami", {})


@pytest.mark.parametrize("kind", SECRETS)
async def test_g11_a_secret_is_not_handed_to_an_issuer_that_only_the_server_names(
    kind: str, server: LoginSite, issuer: LoginSite, tmp_path: Path
) -> None:
    """G11: the refusal says which line names the issuer; nothing but its metadata is asked for, by two principals."""
    auth = SECRETS[kind]
    for principal in ("ada", "ben"):
        answer = await outcome(configured(server, auth, tmp_path), principal)
        assert answer.status != "ok"
        assert answer.login is None
        assert f"wants a login by {issuer.origin}" in answer.message
        assert f"add `issuer: {issuer.origin}" in answer.message
        assert auth["client_secret"] not in answer.message
    assert [asked["path"] for asked in issuer.requests] == []


async def test_g11_a_secret_is_handed_to_the_issuer_that_is_configured(
    server: LoginSite, issuer: LoginSite, tmp_path: Path
) -> None:
    """G11: the same two sites, with the line that the refusal asks for."""
    auth = {**SECRETS["client_credentials"], "issuer": issuer.origin}
    for principal in ("ada", "ben"):
        assert (await outcome(configured(server, auth, tmp_path), principal)).status == "ok"
    assert issuer.counts["machine_logins"] == 1


async def test_g11_a_key_that_only_signs_needs_no_issuer(server: LoginSite, issuer: LoginSite, tmp_path: Path) -> None:
    """G11: it is never sent, and what it signs counts for one issuer."""
    auth = {"kind": "private_key_jwt", "client_id": "signer", "client_secret": issuer.signer_key}
    assert (await outcome(configured(server, auth, tmp_path), "ada")).status == "ok"
