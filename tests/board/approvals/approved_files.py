"""A plugin whose calls a person approves; what it did is in a file beside it."""

from pathlib import Path

from pegboard import Approval, Session

TOOLS = '''
from pathlib import Path

from pegboard import tool

HERE = Path(__file__).parent


def noted(name, *values):
    with (HERE / "ran").open("a") as file:
        file.write(f"{name} {values}\\n")


@tool(requires_confirmation=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    noted("delete_file", path)
    return f"deleted {path}"


@tool(user_input_fields=["code"])
def pay(amount: int, code: str) -> str:
    """Pay an amount."""
    noted("pay", amount, code)
    return f"paid {amount} with {code}"


@tool(external_execution=True)
def sign(text: str) -> str:
    """Sign a text."""
    noted("sign", text)
    return "signed here"


def read_file(path: str) -> str:
    """Read a file."""
    return f"read {path}"


def never(principal, arguments):
    return "never" if arguments["path"] == "guarded" else None


def large(principal, arguments):
    if arguments["path"] == "broken":
        1 / 0
    return f"{principal} wipes something large" if arguments["path"] == "large" else arguments["path"] == "x"


@tool(requires_confirmation=large, guard=never)
def wipe(path: str) -> str:
    """Wipe something."""
    noted("wipe", path)
    return f"wiped {path}"


__all__ = ["delete_file", "pay", "sign", "read_file", "wipe"]
'''
CONFIG = """
store: sqlite:///state.db
plugins: {files: {python: files_tools}}
agents: {ada: {tools: [files]}, bob: {tools: [files]}}
"""


def ran(folder: Path) -> list[str]:
    found = folder / "ran"
    return found.read_text().splitlines() if found.exists() else []


def written(folder: Path) -> bytes:
    """Return everything that the store has written."""
    return b"".join(file.read_bytes() for file in folder.glob("state.db*"))


def set_up(config: Path, text: str = CONFIG) -> None:
    """Write the plugin and a configuration."""
    config.with_name("files_tools.py").write_text(TOOLS)
    config.write_text(text)


async def asked(session: Session, name: str = "delete_file", **arguments: object) -> Approval:
    """Return the approval that a call waits for."""
    answer = await session.call(name, arguments or {"path": "a.txt"})
    assert answer.status == "needs_approval", answer
    assert answer.approval is not None
    return answer.approval
