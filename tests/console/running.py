"""The console of a gateway that runs, and clients of both eras that are in its sessions."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Page, expect

from gateway.clients import Connected, connected
from pegboard.assembly import Pegboard
from pegboard.console.app import ConsoleApp
from pegboard.console.entry.operator_access import OperatorAccess
from pegboard.console.served_console import PREFIXES
from pegboard.gateway import Mount, serving


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    """A gateway that runs in this process, with its console."""

    origin: str
    board: Pegboard
    access: OperatorAccess

    async def sign_in(self, page: Page, token: str | None = None) -> None:
        """Sign in with a one-time code as the printed address does, or with an operator's token."""
        if token is None:
            unscripted = await page.evaluate("matchMedia('(scripting: none)').matches")
            await page.goto(f"{self.origin}/console?code={self.access.codes.new()}")
            if unscripted:
                await page.get_by_role("button", name="Sign in").click()
        else:
            await page.goto(f"{self.origin}/console")
            await page.get_by_label("Token").fill(token)
            await page.keyboard.press("Enter")
        await expect(page.locator("body[data-events]")).to_be_attached()

    def client(
        self, era: str, *, agent: str | None = None, session: str = "s", token: str | None = None
    ) -> AbstractAsyncContextManager[Connected]:
        """Connect a client of an era to a session of an agent, by default of the default one."""
        path = f"/mcp/{agent}" if agent else "/mcp"
        return connected(f"{self.origin}{path}?session={session}", era, token=token)


@asynccontextmanager
async def running(config: Path) -> AsyncIterator[Console]:
    """Serve a configuration over HTTP with its console in this process, each edit of it included."""
    async with Pegboard.open(config, watch=True) as board:
        access = OperatorAccess(lambda: board.configuration.tokens)
        mount = Mount(prefixes=PREFIXES, build=lambda: ConsoleApp(board, access))
        async with serving(board, port=0, mounts=[mount]) as url:
            yield Console(origin=url.removesuffix("/mcp"), board=board, access=access)
