"""Redirects: followed within the origin of the address that was asked, with method, body and headers. Import late."""

from __future__ import annotations

from typing import Final

import httpx2

from pegboard.core.model.naming import one_line

MOST_REDIRECTS: Final = 5
"""How many redirects one request may follow."""
STATUSES: Final = frozenset({301, 302, 303, 307, 308})


class RedirectError(Exception):
    """A redirect that is not followed; the text says where it leads."""


class Redirects:
    """Where the requests of one connection go since their server redirected them; ``method`` is that of a request."""

    def __init__(self) -> None:
        self._targets: dict[tuple[str, str], httpx2.URL] = {}

    def target(self, method: str, url: httpx2.URL) -> httpx2.URL:
        """Return the address that a request to ``url`` is sent to."""
        return self._targets.get((method, str(url)), url) if self._targets else url

    def follow(self, method: str, url: httpx2.URL, asked: httpx2.URL, location: str) -> httpx2.URL:
        """Send further requests to ``url`` to where the answer of the address ``asked`` leads, and return that.

        Raises ``RedirectError`` for an address outside of the origin, and forgets what was followed before.
        """
        try:
            target = within_origin(asked, location)
        except RedirectError:
            self.forget(method, url)
            raise
        self._targets[method, str(url)] = target
        return target

    def forget(self, method: str, url: httpx2.URL) -> None:
        """Send further requests to ``url`` itself."""
        self._targets.pop((method, str(url)), None)


def within_origin(url: httpx2.URL, location: str) -> httpx2.URL:
    """Return the address that an answer of ``url`` redirects to; raises ``RedirectError`` outside of its origin."""
    try:
        target = url.join(location)
    except httpx2.InvalidURL:
        raise RedirectError("it redirects to an address that cannot be read") from None
    if not location or target.origin != url.origin or target.userinfo not in (b"", url.userinfo):
        raise RedirectError(f"it redirects to {_place_of_url(target)}, another origin, which is not followed")
    return target.copy_with(userinfo=url.userinfo, fragment=None)


def too_many_redirects(url: httpx2.URL) -> RedirectError:
    """Return the error for a request that was redirected again and again, from ``url`` at last."""
    return RedirectError(f"it redirects more than {MOST_REDIRECTS} times, at last from {_place_of_url(url)}")


def _place_of_url(url: httpx2.URL) -> str:
    """Return an address without what may be secret in it."""
    return one_line(str(url.copy_with(userinfo=b"", query=None, fragment=None)), limit=200)
