"""One site for all tests of it; each begins again."""

from collections.abc import Iterator

import pytest

from authorization.site import LoginSite, login_site


@pytest.fixture(scope="session")
def running_site() -> Iterator[LoginSite]:
    with login_site() as site:
        yield site


@pytest.fixture
def site(running_site: LoginSite) -> LoginSite:
    """Return a site where nothing has happened."""
    running_site.reset()
    return running_site
