"""What is installed and started where others work with it: one script, the image, the replicas behind a proxy."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from jsonschema_rs import validator_for

from pegboard.config.inspection import inspect
from pegboard.configuration_source import registered_plugins

ROOT = Path(__file__).resolve().parent.parent
START = ROOT / "packaging" / "start.sh"
REPLICAS = ("pegboard-1", "pegboard-2", "pegboard-3")
SECRETS = {"PEGBOARD_KEY", "PEGBOARD_SECOND_KEY", "PEGBOARD_TOKEN", "POSTGRES_PASSWORD"}


def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))


def script(*arguments: str, home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([START, *arguments], capture_output=True, text=True, env=environment(home, **variables))


def environment(home: Path, **variables: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**own, "PYTHON": sys.executable, "PEGBOARD_HOME": str(home), **variables}


# -- the script ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that was empty, into which the script has installed Pegboard."""
    folder = tmp_path_factory.mktemp("home")
    ran = script("install", home=folder, PEGBOARD_COMMIT="0123456789ab")
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.fixture
def port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def served(installed: Path, port: int) -> Iterator[str]:
    """Return the address of the gateway that the script has started in that folder, without any option."""
    started = subprocess.Popen(
        [START], stderr=subprocess.PIPE, text=True, env=environment(installed, PEGBOARD_PORT=str(port))
    )
    try:
        assert started.stderr is not None
        line = next((line for line in started.stderr if line.startswith("Pegboard serves MCP at ")), "")
        yield line.removeprefix("Pegboard serves MCP at ").strip()
        started.send_signal(signal.SIGTERM)
        assert started.wait(20) == 0
    finally:
        started.kill()
        started.wait()


def test_one_script_installs_and_serves_in_an_empty_folder(installed: Path, served: str, port: int) -> None:
    """It is the process itself that serves, so that a signal to the script ends it in order; no sources are needed."""
    assert served == f"http://127.0.0.1:{port}/mcp"
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }}  # fmt: skip
    headers = {"accept": "application/json, text/event-stream"}
    answer = httpx2.post(served, json=call, headers=headers, trust_env=False, timeout=60)
    assert answer.status_code == 200
    assert '"serverInfo"' in answer.text
    assert script("ready", home=installed, PEGBOARD_PORT=str(port)).returncode == 0
    code = "import json, pegboard, psycopg, psycopg_pool; print(json.dumps(pegboard.__file__))"
    ran = subprocess.run([installed / ".venv/bin/python", "-I", "-c", code], capture_output=True, text=True)
    assert Path(json.loads(ran.stdout)).is_relative_to(installed)


def test_what_the_replicas_serve_comes_up_with_what_is_installed_there(installed: Path, tmp_path: Path) -> None:
    """Of a machine without Node and uv: both are in the installation. The version names the commit that was given."""
    text = (ROOT / "packaging" / "pegboard.yaml").read_text("utf-8")
    config = tmp_path / "pegboard.yaml"
    config.write_text(re.sub(r"(?m)^store: .*$", 'store: "memory:"', text))
    fetching = runpy.run_path(str(ROOT / "tools" / "uv.py"))["environment"]()
    given = {**fetching, "PEGBOARD_TOKEN": "t" * 32, "PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(tmp_path / "state")}
    assert script("run", "--version", home=installed, **given).stdout.endswith("(0123456789ab)\n")
    ran = script("run", "check", "--probe", "--json", "--config", str(config), home=installed, **given)
    assert [one["message"] for one in json.loads(ran.stdout)["problems"]] == [], ran.stderr
    assert {"npx", "node", "uvx"} <= {path.name for path in (installed / ".venv" / "bin").iterdir()}


def test_no_environment_is_replaced_that_the_script_has_not_made(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "somebody's").touch()
    for arguments in (("install",), ()):
        ran = script(*arguments, home=tmp_path)
        assert (ran.returncode, ran.stderr.startswith(f"start.sh: {tmp_path}/.venv is there")) == (1, True)
    assert [path.name for path in (tmp_path / ".venv").iterdir()] == ["somebody's"]


def test_secrets_come_from_files_and_stand_in_no_command_line(tmp_path: Path) -> None:
    for name in SECRETS:
        (tmp_path / name).write_text(f"value of {name}\n")
    shows = "import os, sys; print(*(f'{name}={os.environ.get(name)}' for name in sys.argv[1:]), sep='\\n')"
    program = tmp_path / "home" / ".venv" / "bin" / "pegboard"
    program.parent.mkdir(parents=True)
    (program.parent.parent / ".pegboard-installed").touch()
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.argv = sys.argv[:1] + sys.argv[2:]\n{shows}\n")
    program.chmod(0o755)
    files = {f"{name}_FILE": str(tmp_path / name) for name in SECRETS}
    asked = [*sorted(SECRETS), "PGPASSWORD", *sorted(files)]
    ran = script("run", "show", *asked, home=tmp_path / "home", **files)
    assert ran.stdout.splitlines() == [
        *(f"{name}=value of {name}" for name in sorted(SECRETS)),
        "PGPASSWORD=value of POSTGRES_PASSWORD",
        *(f"{name}=None" for name in sorted(files)),
    ]
    ran = script("run", "show", "PEGBOARD_KEY", home=tmp_path / "home", **{**files, "PEGBOARD_KEY": "given"})
    assert ran.stdout == "PEGBOARD_KEY=given\n"
    ran = script("run", "show", home=tmp_path / "home", PEGBOARD_KEY_FILE=str(tmp_path / "none"))
    assert (ran.returncode, ran.stderr) == (
        1, f"start.sh: PEGBOARD_KEY_FILE says {tmp_path / 'none'}, which cannot be read.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (("fly",), {}, "start.sh: 'fly' is none of install, serve, ready, run."),
        (("serve",), {}, "start.sh: Pegboard is not installed in"),
        (("install",), {"PYTHON": "/bin/false"}, "start.sh: Pegboard needs Python 3.11 or newer with venv and pip."),
    ],
)
def test_the_script_says_what_is_missing(
    tmp_path: Path, arguments: tuple[str, ...], variables: dict[str, str], said: str
) -> None:
    ran = script(*arguments, home=tmp_path, **variables)
    assert ran.returncode == 1
    assert ran.stderr.startswith(said)
    assert list(tmp_path.iterdir()) == []


# -- the image -------------------------------------------------------------------------------------


def test_the_image_is_made_by_the_script_and_runs_it_as_nobody_who_may_change_it() -> None:
    lines = (ROOT / "Containerfile").read_text("utf-8").splitlines()
    done = [line for line in lines if line and not line.startswith("#")]
    assert re.fullmatch(r"FROM python:3\.\d+\.\d+-slim-\w+", done[0])
    installs = next(number for number, line in enumerate(done) if "start.sh install" in line)
    users = [number for number, line in enumerate(done) if line.startswith("USER ")]
    assert [done[number] for number in users] == ["USER 10001"]
    assert users[0] > installs
    assert done[-2:] == ['ENTRYPOINT ["/opt/pegboard/source/packaging/start.sh"]', 'CMD ["serve"]']


def test_the_image_is_given_each_file_that_it_copies() -> None:
    given = [line[1:] for line in (ROOT / ".containerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    text = (ROOT / "Containerfile").read_text("utf-8")
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for name in line.split()]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if not any(name == one or name.startswith(f"{one}/") for one in given)] == []
    assert (ROOT / ".dockerignore").read_bytes() == (ROOT / ".containerignore").read_bytes()


# -- the replicas ----------------------------------------------------------------------------------


def test_the_compose_file_fits_the_schema_of_the_compose_specification() -> None:
    folder = importlib.resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "compose-spec.json").read_text("utf-8"))
    validator = validator_for(schema)
    assert [f"{error.instance_path}: {error.message}" for error in validator.iter_errors(compose())] == []
    assert not validator.is_valid({"services": {"a": {"imagine": "b"}}})


def test_three_replicas_serve_one_database_and_are_asked_whether_they_are_ready() -> None:
    services = compose()["services"]
    assert set(services) == {"postgres", *REPLICAS, "proxy"}
    for name in REPLICAS:
        assert services[name]["environment"]["PEGBOARD_ADDRESS"] == f"http://{name}:8321"
        assert services[name]["healthcheck"]["test"][-1] == "ready"
        assert services[name]["user"] != "0"
        assert services[name]["read_only"]
        assert services["proxy"]["depends_on"][name] == {"condition": "service_healthy"}
    upstreams = re.search(r"reverse_proxy (.+) \{", (ROOT / "packaging" / "Caddyfile").read_text("utf-8"))
    assert upstreams is not None
    assert upstreams[1].split() == [f"{name}:8321" for name in REPLICAS]


def test_images_are_pinned_and_no_file_has_a_secret() -> None:
    document = compose()
    images = [service["image"] for service in document["services"].values()]
    assert [image for image in images if not re.search(r":\d+\.\d+", image)] == []
    assert {secret["environment"] for secret in document["secrets"].values()} == SECRETS - {"PEGBOARD_SECOND_KEY"}
    used = {name for service in document["services"].values() for name in service.get("secrets", [])}
    assert used == set(document["secrets"])
    told = [
        f"{name}={value}"
        for service in document["services"].values()
        for name, value in service.get("environment", {}).items()
    ]
    assert [one for one in told if re.match(r"\w*(PASSWORD|KEY|TOKEN)=", one)] == []


def test_the_second_key_goes_to_every_replica_as_a_file() -> None:
    document = yaml.safe_load((ROOT / "packaging" / "second-key.yaml").read_text("utf-8"))
    assert tuple(document["services"]) == REPLICAS
    for service in document["services"].values():
        (name,) = service["secrets"]
        assert service["environment"] == {"PEGBOARD_SECOND_KEY_FILE": f"/run/secrets/{name}"}
        assert document["secrets"] == {name: {"environment": "PEGBOARD_SECOND_KEY"}}


def test_what_the_replicas_serve_is_a_configuration_without_an_error() -> None:
    path, env = ROOT / "packaging" / "pegboard.yaml", {"PEGBOARD_TOKEN": "t" * 32}
    configuration, problems = inspect(path, registered=registered_plugins(), env=env, additions=())
    assert [str(problem) for problem in problems if problem.severity == "error"] == []
    assert configuration is not None
    assert configuration.store.startswith("postgresql://")
