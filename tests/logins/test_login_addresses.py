"""Where a server may lead a login to: https, or this machine where the server is this machine itself (G11)."""

import pytest

from pegboard.errors import ToolUnavailableError
from pegboard.sources.mcp.login.web import require_safe

REMOTE, HERE = "https://mcp.example/mcp", "http://127.0.0.1:9000/mcp"
SAFE = (
    ("https://login.example/authorize", REMOTE),
    ("https://login.example:8443/authorize?tenant=1", HERE),
    ("http://127.0.0.1:8000/authorize", HERE),
    ("http://localhost:8000/authorize", HERE),
    ("http://[::1]:8000/authorize", HERE),
    ("https://10.0.0.5/authorize", "https://10.0.0.5/mcp"),
    ("https://10.0.0.6/authorize", "https://10.0.0.5/mcp"),
)
UNSAFE = (
    ("http://login.example/authorize", REMOTE),
    ("http://10.255.255.1/authorize", HERE),
    ("http://127.0.0.1:8000/authorize", REMOTE),
    ("https://localhost/authorize", REMOTE),
    ("https://localhost./authorize", REMOTE),
    ("https://127\u30020\u30020\u30021/authorize", REMOTE),
    ("https://localhost\u3002/authorize", REMOTE),
    ("https://127.1/authorize", REMOTE),
    ("https://2130706433/authorize", REMOTE),
    ("https://0x7f.1/authorize", "https://10.0.0.5/mcp"),
    ("https://169.254.169.254/latest", REMOTE),
    ("https://[fd00::1]/authorize", REMOTE),
    ("javascript:alert(1)", HERE),
    ("file:///etc/passwd", HERE),
    ("//login.example/authorize", REMOTE),
    ("https://[::1/authorize", REMOTE),
    ("", REMOTE),
)


@pytest.mark.parametrize(("url", "server"), SAFE)
def test_g11_a_login_may_lead_there(url: str, server: str) -> None:
    require_safe(url, server)


@pytest.mark.parametrize(("url", "server"), UNSAFE)
def test_g11_a_login_may_not_lead_there(url: str, server: str) -> None:
    with pytest.raises(ToolUnavailableError, match="A login"):
        require_safe(url, server)
