"""The site of the login tests: an authorization server and a protected MCP server at `/mcp`, on one free port.

`login_site()` runs it in a thread of the test, `tests/servers/login_server.py` as a process; a `LoginSite` speaks to
either by HTTP.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn

from authorization.app import app
from authorization.options import Options


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSite:
    """What a test asks of a site that runs."""

    origin: str

    @property
    def url(self) -> str:
        """The address of the protected MCP server."""
        return f"{self.origin}/mcp"

    def change(self, **changes: Any) -> None:
        """Change some options; what was given out stays."""
        self._post("options", changes)

    def reset(self, **options: Any) -> None:
        """Forget everything, and begin again with these options."""
        self._post("reset", options)

    def expire(self) -> None:
        """Let every access token expire now; refresh tokens stay."""
        self._post("expire")

    def log_out_all(self) -> None:
        """Take back every token of everyone; registrations stay."""
        self._post("logout-all")

    def forget_clients(self) -> None:
        """Know none of those who registered: `invalid_client`."""
        self._post("forget-clients")

    def release(self) -> None:
        """Let the calls of `slow` that wait go on."""
        self._post("release")

    @property
    def counts(self) -> dict[str, int]:
        """How often what happened; a name that is not in it never did."""
        return self._get("counts")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What came to the authorization server, in order: `path`, `method`, `parameters`, `agent`."""
        return self._get("requests")

    @property
    def secrets(self) -> list[str]:
        """Every token, code and secret that was given out."""
        return self._get("secrets")

    @property
    def signer_key(self) -> str:
        """The private key of the client `signer`, as PEM."""
        return self._get("signer-key")

    def _post(self, what: str, body: object = None) -> None:
        with httpx2.Client(trust_env=False) as http:
            answer = http.post(f"{self.origin}/control/{what}", json=body or {})
        assert answer.status_code == 200, answer.text

    def _get(self, what: str) -> Any:
        with httpx2.Client(trust_env=False) as http:
            return http.get(f"{self.origin}/control/{what}").raise_for_status().json()


@contextmanager
def login_site(**options: Any) -> Iterator[LoginSite]:
    """Run the site in a thread, on a free port of the loopback."""
    listener = listening(0)
    server = server_of(listener, Options(**options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield LoginSite(origin=origin_of(listener))
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def listening(port: int) -> socket.socket:
    """Return a socket that listens; who connects before the site has started waits."""
    # asyncio turns Nagle's algorithm off only for sockets that say they are TCP.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


def origin_of(listener: socket.socket) -> str:
    """Return the origin of the site that listens here."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def server_of(listener: socket.socket, options: Options) -> uvicorn.Server:
    """Return what serves the site at this socket."""
    made = app(origin_of(listener), options)
    return uvicorn.Server(uvicorn.Config(made, log_config=None, date_header=False, timeout_graceful_shutdown=1))
