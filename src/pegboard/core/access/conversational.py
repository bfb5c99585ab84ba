"""Which servers keep the state of one conversation, as browsers and terminals do: each client has its own (G12)."""

from __future__ import annotations

import re
from typing import Final

from pegboard.core.model.specs import ServerSpec

READ_ON: Final = "2026-11-29"
"""The day on which this was read in what the packages say of themselves."""
PACKAGES: Final = frozenset({
    # browsers: the page that is open
    "@playwright/mcp", "@executeautomation/playwright-mcp-server", "@modelcontextprotocol/server-puppeteer",
    "puppeteer-mcp-server", "chrome-devtools-mcp", "@browsermcp/mcp", "@browserbasehq/mcp", "browser-use",
    "@angiejones/mcp-selenium", "@hyperbrowser/mcp",
    # terminals: what runs, and in which folder
    "@wonderwhy-er/desktop-commander", "iterm-mcp", "mcp-server-commands", "terminal-controller",
    # what was thought or computed so far
    "@modelcontextprotocol/server-sequential-thinking", "mcp-server-sequential-thinking", "mcp-python-interpreter",
    "jupyter-mcp-server",
})  # fmt: skip
"""The packages of such servers; the name of the command counts as one, too."""
_VERSION: Final = re.compile(r"(?<=.)(@|==|\[).*$")


def keeps_conversation(spec: ServerSpec) -> bool:
    """Return whether a server is known to keep the state of one conversation.

    >>> keeps_conversation(ServerSpec(name="web", command="npx", args=("-y", "@playwright/mcp@latest", "--headless")))
    True
    >>> keeps_conversation(ServerSpec(name="git", command="uvx", args=("mcp-server-git",)))
    False
    """
    command = (spec.command or "").replace("\\", "/").rpartition("/")[2]
    return spec.command is not None and any(_VERSION.sub("", text) in PACKAGES for text in (command, *spec.args))
