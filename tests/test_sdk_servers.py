"""Servers of the tests start warm: what they import of the SDK has been imported where they are forked off."""

import ast
from pathlib import Path

SERVERS = Path(__file__).parent / "servers"


def imported(path: Path) -> set[str]:
    """Return the modules that a script imports at its top."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_whatever_a_server_imports_of_the_sdk_is_there_before_it_is_forked_off() -> None:
    warm = imported(SERVERS / "warm_parent.py")
    slow = ("mcp", "mcp_types", "uvicorn", "starlette")
    wanted = {
        name
        for path in SERVERS.glob("*_server.py")
        for name in imported(path)
        if name.partition(".")[0] in slow and not any(known.startswith(f"{name}.") for known in warm)
    }
    assert len(wanted) > 3
    assert wanted <= warm
