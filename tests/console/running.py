"""The console of a gateway that runs, and clients of both eras that are in its sessions."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Page, expect

from gateway.clients import Connected, connected
from pegboard.assembly import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess

from .sites import site


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """A gateway with its console: its origin, and where one-time codes come from."""

    origin: str
    new_code: Callable[[], Awaitable[str]]

    async def sign_in(self, page: Page) -> None:
        """Sign in with a one-time code, as whoever has started the gateway."""
        await page.goto(f"{self.origin}/console?code={await self.new_code()}")
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()

    def client(
        self, era: str, *, agent: str = "", session: str = "s", token: str | None = None
    ) -> AbstractAsyncContextManager[Connected]:
        """Connect a client of an era to a session of an agent, the default one without a name."""
        return connected(f"{self.origin}/mcp{agent and f'/{agent}'}?session={session}", era, token=token)


@asynccontextmanager
async def running(config: Path) -> AsyncIterator[Console]:
    """Serve a configuration and its console in this process."""
    async with Pegboard.open(config, watch=True) as board:
        access = OperatorAccess(lambda: ())

        async def code() -> str:
            return access.codes.new()

        app = ConsoleApp(board, access)
        try:
            async with site(app) as origin:
                yield Console(origin=origin, new_code=code)
        finally:
            await app.close()
