"""Tools whose calls a person approves, and a configuration with them."""

from pathlib import Path
from typing import Any

from pegboard import Approval, Pegboard

TOOLS = '''
from pathlib import Path
from typing import Literal

from pegboard import tool


def noted(text):
    with Path(__file__).with_name("ran").open("a") as file:
        file.write(text + "\\n")
    return text


def delete_file(path: str, options: dict | None = None) -> str:
    """Delete a file <b>for ever</b>.

    Args:
        path: what goes.
        options: how.
    """
    return noted(f"deleted {path}")


@tool(user_input_fields=["code", "account"])
def pay(amount: int, code: int, account: Literal["main", "savings"]) -> str:
    """Pay an amount."""
    return noted(f"paid {amount} with {code} from {account}")


@tool(external_execution=True)
def sign(text: str) -> str:
    """Sign a text."""
    return ""


__all__ = ["delete_file", "pay", "sign"]
'''
CONFIG = """
store: sqlite:///state.db
plugins: {files: {python: waiting_tools, approve: {delete_file: always}}}
agents:
  default: {tools: [files]}
  mailer: {tools: [files]}
"""
TOKENS = """
tokens:
  ada: {token: ada-s3cret-token, agents: [mailer], console: true}
"""


def set_up(folder: Path, text: str = CONFIG) -> Path:
    """Write the tools and a configuration; return its path."""
    (folder / "waiting_tools.py").write_text(TOOLS)
    path = folder / "pegboard.yaml"
    path.write_text(text)
    return path


async def asked(
    board: Pegboard, name: str = "delete_file", *, agent: str = "default", session: str = "s", **arguments: Any
) -> Approval:
    """Return the approval that a call waits for."""
    answer = await (await board.session(agent=agent, session_id=session)).call(name, arguments or {"path": "a.txt"})
    assert answer.approval is not None, answer
    return answer.approval


def ran(config: Path) -> list[str]:
    found = config.with_name("ran")
    return found.read_text().splitlines() if found.exists() else []
