"""Containers on this machine."""

from pegboard.marks import tool

_CONTAINERS = {"web": "running", "db": "running", "old": "exited"}


@tool(read_only=True)
def docker_ps(everything: bool = False) -> list[str]:
    """List containers.

    Args:
        everything: Whether to list stopped ones too.
    """
    return [name for name, state in _CONTAINERS.items() if everything or state == "running"]


@tool(read_only=True)
def docker_logs(container: str, lines: int = 10) -> str:
    """Show the newest lines of a container's log."""
    if container not in _CONTAINERS:
        raise LookupError(f"no container is named '{container}'")
    return "\n".join(f"{container}: line {n}" for n in range(1, lines + 1))


def docker_restart(container: str) -> str:
    """Restart a container."""
    return f"restarted {container}"
