"""What a log line or a traceback with a login's objects in it would say: nothing that is secret (G11)."""

import pytest

from pegboard.sources.mcp.login.grant import LoginGrant
from pegboard.sources.mcp.login.identity import Identity

SECRET = "hunter22-hunter22"
GRANT = LoginGrant(
    access_token=SECRET,
    refresh_token=SECRET,
    obtained_at=0.0,
    issuer="https://login.example",
    resource="https://mcp.example/mcp",
    token_endpoint="https://login.example/token",
    client_id="pegboard",
    client_secret=SECRET,
)
IDENTITY = Identity(client_id="pegboard", client_secret=SECRET)


@pytest.mark.parametrize("held", [GRANT, IDENTITY], ids=lambda held: type(held).__name__)
def test_g11_what_is_secret_is_not_in_a_repr(held: object) -> None:
    assert "client_id='pegboard'" in repr(held)
    assert SECRET not in repr(held)
