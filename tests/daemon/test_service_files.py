"""The files by which systemd and launchd start the daemon."""

import json
import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from pegboard.daemon.process import IDLE_VARIABLE
from pegboard.daemon.service_files import service_file, service_text
from pegboard.errors import UsageError
from pegboard.thin.address import DaemonAddress

from .daemon_clients import OwnDaemon, until

ODD = '/opt/a b/50% "x" $HOME\\y'
ENV = {"HOME": "/home/ada", "PATH": f"{ODD}:/usr/bin", "XDG_CONFIG_HOME": "/home/ada/.config", "SECRET": "hunter22"}
ADDRESS = DaemonAddress("/run/user/1000/100%/pegboard", "0011", "")


def test_g12_launchd_reads_the_agent() -> None:
    """G12, X5: any path comes through as it is; of the variables only those that decide where the user's files lie."""
    found = plistlib.loads(service_text(ADDRESS, ENV, "darwin").encode())
    assert found["ProgramArguments"][1:] == ["-P", "-m", "pegboard", "daemon", "run"]
    assert found["StandardErrorPath"] == ADDRESS.log
    variables = dict(found["EnvironmentVariables"])
    assert float(variables.pop(IDLE_VARIABLE)) > 86400
    assert variables == {name: ENV[name] for name in ("HOME", "PATH", "XDG_CONFIG_HOME")}
    assert service_file(ENV, "darwin") == Path(f"/home/ada/Library/LaunchAgents/{found['Label']}.plist")


def test_g12_systemd_takes_the_unit(tmp_path: Path) -> None:
    """G12, X5: it is verified by systemd itself where that is there; signs that mean something to it are escaped."""
    text = service_text(ADDRESS, ENV, "linux")
    assert "hunter22" not in text
    (path,) = [line for line in text.splitlines() if line.startswith('Environment="PATH=')]
    assert path == 'Environment="PATH=/opt/a b/50%% \\"x\\" $HOME\\\\y:/usr/bin"'
    assert "StandardError=append:/run/user/1000/100%%/pegboard/0011.log" in text.splitlines()
    unit = tmp_path / "pegboard.service"
    unit.write_text(text)
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
        done = subprocess.run([analyze, "--user", "verify", str(unit)], capture_output=True, text=True, env=env)
        assert str(unit) not in done.stderr, done.stderr
        assert "pegboard.service" not in done.stderr, done.stderr


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_g12_a_value_that_no_service_file_can_have_is_refused(platform: str) -> None:
    """G12: a line break would begin another setting."""
    with pytest.raises(UsageError, match="cannot have"):
        service_text(ADDRESS, {**ENV, "PATH": "/bin\nExecStartPre=/bin/evil"}, platform)


def test_g12_install_writes_the_unit_and_uninstall_removes_it(daemon: OwnDaemon) -> None:
    """G12: a file of someone else stays; without systemd it is said what is left to do."""
    daemon.env |= {"XDG_CONFIG_HOME": str(daemon.runtime / "config"), "PATH": str(daemon.runtime)}
    file = service_file(daemon.env, "linux")
    shown = daemon.command("daemon", "install", "--print")
    assert (shown.returncode, file.exists()) == (0, False)
    ran = daemon.command("daemon", "install")
    assert ran.returncode == 0, ran.stderr
    assert file.read_text() == shown.stdout
    assert "systemctl --user enable --now pegboard.service" in ran.stdout
    assert daemon.command("daemon", "uninstall").returncode == 0
    assert not file.exists()
    assert json.loads(daemon.command("daemon", "uninstall", "--json").stdout)["removed"] is False
    file.write_text("[Service]\nExecStart=/bin/mine\n")
    for command in "install", "uninstall":
        refused = daemon.command("daemon", command)
        assert refused.returncode == 2
        assert "Traceback" not in refused.stderr
    assert file.read_text() == "[Service]\nExecStart=/bin/mine\n"


def test_g12_the_command_of_the_unit_is_the_daemon_that_clients_find(daemon: OwnDaemon) -> None:
    """G12: it is started as the unit says, with the variables of the unit alone."""
    unit = plistlib.loads(service_text(DaemonAddress("/x", "y", ""), daemon.env, "darwin").encode())
    env = {"XDG_RUNTIME_DIR": str(daemon.runtime), **unit["EnvironmentVariables"]}
    with subprocess.Popen(unit["ProgramArguments"], env=env, stdin=subprocess.DEVNULL) as process:
        try:
            assert until(lambda: daemon.status().get("pid")) == process.pid
            assert daemon.command("daemon", "stop").returncode == 0
            assert process.wait(60) == 0
        finally:
            process.kill()
