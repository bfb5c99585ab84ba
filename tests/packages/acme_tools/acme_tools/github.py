"""Issues of a repository."""

from collections.abc import Callable
from typing import Literal


def make_tools(repository: str = "acme/demo") -> list[Callable[..., object]]:
    """Make tools for one repository."""
    issues = {1: "The door sticks", 2: "Paint it blue"}

    def github_issues(state: Literal["open", "closed"] = "open") -> dict[int, str]:
        """List the issues of the repository."""
        return issues if state == "open" else {}

    def github_create_issue(title: str) -> str:
        """Open an issue."""
        issues[len(issues) + 1] = title
        return f"{repository}#{len(issues)}"

    return [github_issues, github_create_issue]
