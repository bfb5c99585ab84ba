"""`confine` of a server: what it means, and what it cannot be (A7)."""

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard.config.inspection import inspect
from pegboard.core.model.specs import CONFINE_DEFAULT, Confinement


def read(folder: Path, confine: Any, **more: Any) -> tuple[Confinement | None, list[str]]:
    """Return what a file with this value confines its server to, and its errors."""
    file = folder / "pegboard.yaml"
    file.write_text(json.dumps({"servers": {"one": {"command": "true", "confine": confine, **more}}}))
    configuration, problems = inspect(file, registered={})
    found = None if configuration is None else configuration.specs["one"].confine
    return found, [
        str(problem).partition("servers.one.confine")[2] for problem in problems if problem.severity == "error"
    ]


def test_what_a_file_confines_a_server_to(tmp_path: Path) -> None:
    "A7: `true` is its folder: an explicit `cwd`, else the file's; nothing is confined that no file says."
    whole = Confinement(write=CONFINE_DEFAULT.write, folder=str(tmp_path))
    assert read(tmp_path, True) == (whole, [])
    assert read(tmp_path, {}) == (whole, [])
    assert read(tmp_path, False) == read(tmp_path, None) == (None, [])
    assert read(tmp_path, True, cwd="work")[0] == Confinement(folder=str(tmp_path / "work"))
    given = {"write": ["data"], "read": ["/srv"], "network": [443, 443], "if_possible": True}
    assert read(tmp_path, given)[0] == Confinement(
        write=(str(tmp_path / "data"),), read=("/srv",), network=(443,), if_possible=True, folder=str(tmp_path)
    )
    nothing = read(tmp_path, {"write": [], "network": "none"})[0]
    assert nothing == Confinement(write=(), network=(), folder=str(tmp_path))


@pytest.mark.parametrize(
    ("confine", "error"),
    [
        ("yes", ": expected true or a mapping, found a string."),
        (
            {"network": "all"},
            ".network: expected none or a list of ports, found a string. Write none, or a list of ports",
        ),
        ({"network": [0]}, ".network: has a port that is not one of 1 to 65535."),
        ({"wirte": []}, ": the key 'wirte' is not known here. Did you mean 'write'?"),
    ],
)
def test_what_confine_cannot_be(tmp_path: Path, confine: Any, error: str) -> None:
    configuration, errors = read(tmp_path, confine)
    assert configuration is None
    assert len(errors) == 1
    assert errors[0].startswith(error)
