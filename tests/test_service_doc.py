"""What `docs/service.md` says to write starts a gateway, and is what systemd and launchd take."""

import plistlib
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pegboard.cli.serve_options import ServeOptions, plain_options

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "service.md").read_text("utf-8")


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def unit_command() -> list[str]:
    found = re.search(r"^ExecStart=(.+)$", block("ini"), re.MULTILINE)
    assert found is not None
    return shlex.split(found[1].replace("%h", "/home/ada"))


@pytest.mark.parametrize("home", ["/home/ada", "/Users/ada"])
def test_both_services_start_the_users_own_configuration(home: str) -> None:
    plist = plistlib.loads(block("xml").encode())
    command = unit_command() if home == "/home/ada" else plist["ProgramArguments"]
    assert command[:2] == [f"{home}/.local/bin/pegboard", "serve"]
    config = Path(home, ".config", "pegboard", "pegboard.yaml")
    assert plain_options(command[2:]) == ServeOptions(config=config, port=8321)
    assert (plist["Label"], plist["RunAtLoad"]) == ("pegboard", True)


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """The program is in for the command, which is not installed there; without systemd the page is read alone."""
    unit = tmp_path / "pegboard.service"
    unit.write_text(block("ini").replace("%h/.local/bin/pegboard", "/bin/true"))
    if (verify := shutil.which("systemd-analyze")) is not None:
        done = subprocess.run([verify, "--user", "verify", unit], capture_output=True, text=True, check=False)
        assert "pegboard.service:" not in done.stderr
    assert "Restart=on-failure" in unit.read_text()
