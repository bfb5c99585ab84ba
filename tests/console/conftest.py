"""A browser for every worker of the tests, in whose loop each test of a page runs; a page has a visitor of its own."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from pegboard import Pegboard
from pegboard.console.app import ConsoleApp

from .browser import PATIENCE, started
from .programs import Program, program, serving

expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: Path) -> AsyncIterator[Browser]:
    """Start the browser once: that takes longer than most pages."""
    async with started(chromium) as browser:
        yield browser


@pytest.fixture
def screenshots(tmp_path: Path) -> Path:
    """Return where screenshots are written: into the documentation where `make screenshots` says so."""
    return Path(os.environ.get("PEGBOARD_SCREENSHOTS") or tmp_path / "screenshots")


TOOLS = '''
from pegboard import tool


@tool(title="Send a mail", requires_confirmation=True)
def send_mail(to: str) -> str:
    """Send <b>one</b> mail to somebody."""
    return f"sent to {to}"


@tool(user_input_fields=["code"])
def pay(amount: int, code: str) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def read_mail() -> str:
    """Read the newest mail."""
    return "no mail"
'''
MAILER = """
store: sqlite:///state.db
plugins: {mail: {python: mail_tools}, clock: {python: pegboard.quickstart.clock}}
toolkits:
  post: {label: "<script>alert(1)</script>", icon: letter, description: "Mail \u202egnp.exe", tools: [mail]}
agents:
  mailer: {display_name: Mailer, role: "writes <i>mail</i>", allowed_toolkits: [post], initial_toolkits: [post]}
  deskless: {dialect: pegboard, allowed_toolkits: [post]}
  "a% b é": {allowed_toolkits: [post], initial_toolkits: [post], tools: [clock]}
tokens:
  ada: {token: ada-ada-ada-ada-ada-ada, agents: [mailer, deskless, "a% b é"], console: true}
  bob: {token: bob-bob-bob-bob-bob-bob, agents: ["a% b é"], console: true}
  eve: {token: eve-eve-eve-eve-eve-eve, agents: [mailer]}
"""


@pytest.fixture
def mailer_config(tmp_path: Path) -> Path:
    """Return a configuration with two agents that send mail, two operators and someone else."""
    (tmp_path / "mail_tools.py").write_text(TOOLS)
    path = tmp_path / "pegboard.yaml"
    path.write_text(MAILER)
    return path


@pytest.fixture
async def mailer(mailer_config: Path) -> AsyncIterator[Pegboard]:
    async with Pegboard.open(mailer_config) as board:
        yield board


@pytest.fixture
async def app(mailer: Pegboard) -> AsyncIterator[ConsoleApp]:
    async with serving(mailer) as (app, _):
        yield app


@pytest.fixture
async def ada(app: ConsoleApp) -> AsyncIterator[Program]:
    """Return the program of an operator of both agents."""
    async with program(app, "ada-ada-ada-ada-ada-ada") as ada:
        yield ada


@pytest.fixture
async def bob(app: ConsoleApp) -> AsyncIterator[Program]:
    """Return the program of an operator of the second agent."""
    async with program(app, "bob-bob-bob-bob-bob-bob") as bob:
        yield bob
