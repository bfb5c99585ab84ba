"""Each oddity is done by the site as its row says, seen by the SDK's client with a person at hand."""

from contextlib import suppress

import pytest

from authorization.oddities import ODDITIES, Oddity
from authorization.sdk_client import Kept, sdk_client, sdk_login
from authorization.site import LoginSite


async def called(site: LoginSite, kept: Kept, tool: str, *, expired: bool) -> bool:
    """Return whether a call by the SDK's client is answered."""
    auth = sdk_login(site.url, kept)
    if expired:
        auth.context.token_expiry_time = 1  # the SDK stores no expiry
    with suppress(Exception):
        async with sdk_client(site.url, auth) as client:
            return not (await client.call_tool(tool, {"text": "x"})).is_error
    return False


@pytest.mark.parametrize("oddity", ODDITIES, ids=str)
async def test_the_client_of_the_sdk_meets_it(site: LoginSite, oddity: Oddity) -> None:
    kept = Kept()
    site.reset(**oddity.options)
    works = await called(site, kept, oddity.tool, expired=False)
    if oddity.then is not None:
        assert works
        site.change(**oddity.then)
        site.expire()
        if oddity.control:
            getattr(site, oddity.control)()
        works = await called(site, kept, oddity.tool, expired=True)
    assert works == oddity.sdk
    if works and oddity.outcome == "works":
        assert {name: site.counts.get(name) for name in oddity.counts} == oddity.counts
