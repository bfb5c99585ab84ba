"""The authorization server of the tests is a right one: the SDK's own client logs in, and every promise of it holds."""

import pytest

from authorization.sdk_client import Kept, sdk_client, sdk_login, whoami
from authorization.site import LoginSite


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_of_the_sdk_logs_in_and_calls_in_both_eras(site: LoginSite, mode: str) -> None:
    kept = Kept()
    async with sdk_client(site.url, sdk_login(site.url, kept, "ben"), mode) as client:
        who = await whoami(client)
    assert kept.client is not None
    assert who == {"account": "ben", "client": kept.client.client_id, "scopes": ["read"]}
    assert site.counts["registrations"] == site.counts["authorizations"] == site.counts["exchanges"] == 1
