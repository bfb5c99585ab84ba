"""The files by which the system starts the daemon with the session of its user: systemd's and launchd's."""

from __future__ import annotations

import os
import plistlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pegboard.daemon.process import IDLE_VARIABLE
from pegboard.errors import UsageError
from pegboard.thin.address import OF_USER, DaemonAddress

LABEL: Final = "pegboard.daemon"
MARK: Final = "Written by `pegboard daemon install`"
"""What is in each such file: no other one is overwritten or removed."""
_ALWAYS: Final = "900000000"
"""For how many seconds such a daemon waits for a client: it ends with the session."""


def service_file(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return where the file belongs; raises ``UsageError`` on a system that has neither kind."""
    home = Path(env.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111
    if platform == "darwin":
        return home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    if platform.startswith("linux"):
        return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "systemd" / "user" / "pegboard.service"
    raise UsageError("This system has neither systemd nor launchd.", hint="Clients start the daemon themselves.")


def service_text(address: DaemonAddress, env: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return the file, for the daemon of an address; raises ``UsageError`` for values that it cannot have."""
    command = [sys.executable, "-P", "-m", "pegboard", "daemon", "run"]
    kept = {name: env[name] for name in ("PATH", *OF_USER) if env.get(name)}
    if platform == "darwin" and env.get("XDG_RUNTIME_DIR"):
        kept["XDG_RUNTIME_DIR"] = env["XDG_RUNTIME_DIR"]
    kept[IDLE_VARIABLE] = _ALWAYS
    for text in (*command, *kept.values(), address.log):
        if any(ord(character) < 32 for character in text):
            raise UsageError(f"A service file cannot have this value: {text!r}.")
    return _launchd(address, command, kept) if platform == "darwin" else _systemd(address, command, kept)


def _systemd(address: DaemonAddress, command: list[str], env: Mapping[str, str]) -> str:
    variables = "".join(f"Environment={_quote_text(f'{name}={value}')}\n" for name, value in env.items())
    return (
        f"# {MARK}\n"
        "[Unit]\n"
        "Description=Pegboard: the servers of your MCP clients\n"
        "\n"
        "[Service]\n"
        f"ExecStart={' '.join(_quote_text(word).replace('$', '$$') for word in command)}\n"
        f"{variables}"
        f"StandardOutput=append:{_escape_percent(address.log)}\n"
        f"StandardError=append:{_escape_percent(address.log)}\n"
        "UMask=0077\n"
        "Restart=on-failure\n"
        "\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def _quote_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_escape_percent(escaped)}"'


def _escape_percent(text: str) -> str:
    return text.replace("%", "%%")


def _launchd(address: DaemonAddress, command: list[str], env: Mapping[str, str]) -> str:
    about = {
        "Label": LABEL,
        "ProgramArguments": command,
        "EnvironmentVariables": dict(env),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "StandardOutPath": address.log,
        "StandardErrorPath": address.log,
        "Umask": 0o077,
    }
    first, _, rest = plistlib.dumps(about).decode().partition("\n")
    return f"{first}\n<!-- {MARK} -->\n{rest}"


def start_commands(file: Path, platform: str = sys.platform) -> list[list[str]]:
    """Return what lets the system start it, now and from now on."""
    if platform == "darwin":
        return [["launchctl", "bootstrap", f"gui/{os.getuid()}", str(file)]]
    return [["systemctl", "--user", "daemon-reload"], ["systemctl", "--user", "enable", "--now", file.name]]


def stop_commands(file: Path, platform: str = sys.platform) -> list[list[str]]:
    """Return what lets the system end it, and start it no more; the file is removed afterwards."""
    if platform == "darwin":
        return [["launchctl", "bootout", f"gui/{os.getuid()}/{LABEL}"]]
    return [["systemctl", "--user", "disable", "--now", file.name]]
