"""The proxies that the environment names: one is made when an address needs it. Imports httpx2: import late."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import httpx2

from pegboard.core.model.naming import one_line
from pegboard.sources.mcp.certificates import tls
from pegboard.support.installed import install_line

_KINDS: Final = ("http", "https", "socks5", "socks5h")
_WANTS_LOGIN: Final = "407"


class ProxyUnusableError(httpx2.ProxyError):
    """A proxy of the environment cannot be used; ``hint`` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class ProxiedClient(httpx2.AsyncClient):
    """An HTTP client that reads the proxies of the environment, and makes one when a request needs it.

    A proxy that cannot be made costs the addresses that need it, no others: ``NO_PROXY`` and the scheme decide which.
    """

    def _get_proxy_map(self, proxy: Any, allow_env_proxies: bool) -> dict[str, Any]:
        if proxy is not None or not allow_env_proxies:
            return super()._get_proxy_map(proxy, allow_env_proxies)
        from httpx2._utils import get_environment_proxies

        return {
            pattern: None if address is None else _NamedProxy(pattern, address)
            for pattern, address in get_environment_proxies().items()
        }

    def _init_proxy_transport(self, proxy: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(proxy, _NamedProxy):
            return super()._init_proxy_transport(proxy, *args, **options)
        return _LazyProxyTransport(proxy, {**options, "verify": True})


class _NamedProxy:
    """The address of a proxy, and for which addresses it is."""

    def __init__(self, pattern: str, address: str) -> None:
        self.address = address
        name = f"{pattern.partition(':')[0]}_proxy"
        self.variable = next((one for one in (name, name.upper()) if os.environ.get(one)), "the system's settings")

    @property
    def shown(self) -> str:
        """Return where it stands, without the login in it."""
        scheme, _, rest = self.address.partition("://")
        return f"{self.variable} ({scheme}://{one_line(rest.rpartition('@')[2], limit=100)})"


class _LazyProxyTransport(httpx2.AsyncBaseTransport):
    """The way through a proxy, opened by the first request that goes through it."""

    def __init__(self, named: _NamedProxy, options: Mapping[str, Any]) -> None:
        self._named = named
        self._options = options
        self._transport: httpx2.AsyncHTTPTransport | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._transport is None:
            self._transport = self._open_transport()
        try:
            response = await self._transport.handle_async_request(request)
        except httpx2.ProxyError as error:
            raise self._proxy_error(str(error)) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            message = f"the proxy of {self._named.shown} cannot be reached: {one_line(str(error), limit=150)}"
            raise ProxyUnusableError(message, self._advice_without_proxy) from None
        if response.status_code == int(_WANTS_LOGIN):
            await response.aclose()
            raise self._proxy_error(_WANTS_LOGIN)
        return response

    async def aclose(self) -> None:
        """Close the way."""
        if self._transport is not None:
            await self._transport.aclose()

    @property
    def _advice_without_proxy(self) -> str:
        return "Correct that variable, or name the server's host in NO_PROXY if it is reached without a proxy."

    def _open_transport(self) -> httpx2.AsyncHTTPTransport:
        shown, scheme = self._named.shown, self._named.address.partition("://")[0].lower()
        if scheme not in _KINDS:
            raise ProxyUnusableError(f"the proxy of {shown} is of an unknown kind", self._advice_without_proxy)
        options = {**self._options, "verify": tls()}
        try:
            return httpx2.AsyncHTTPTransport(proxy=httpx2.Proxy(self._named.address), **options)
        except ImportError:
            message = f"the proxy of {shown} needs the package socksio, which is not installed"
            raise ProxyUnusableError(message, f"{install_line('socksio')}. {self._advice_without_proxy}") from None
        except (ValueError, httpx2.InvalidURL):
            raise ProxyUnusableError(f"the proxy of {shown} is no address", self._advice_without_proxy) from None

    def _proxy_error(self, said: str) -> ProxyUnusableError:
        shown = self._named.shown
        if _WANTS_LOGIN in said:
            message = f"the proxy of {shown} wants a login (HTTP 407)"
            return ProxyUnusableError(message, "Write it into that variable: http://USER:PASSWORD@HOST:PORT.")
        return ProxyUnusableError(
            f"the proxy of {shown} refused: {one_line(said, limit=150)}", self._advice_without_proxy
        )
