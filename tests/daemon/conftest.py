"""A configuration with one server, and a daemon of the test's own."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .daemon_clients import SERVER, OwnDaemon, own_daemon


@pytest.fixture
def daemon() -> Iterator[OwnDaemon]:
    with own_daemon() as made:
        yield made


@pytest.fixture
def config(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / "box.py").write_text(SERVER)
    content = {
        "servers": {"box": {"command": sys.executable, "args": [str(project / "box.py")]}},
        "agents": {"ada": {"tools": ["box"], "unloaded_call": "run"}},
    }
    path = project / "pegboard.yaml"
    path.write_text(json.dumps(content))
    return path
