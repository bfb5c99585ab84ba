import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.core.model.specs import RegisteredSpec
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.packages import PackageSource, installed_plugins
from pegboard.sources.registry import registered_plugins
from pegboard.support.installed import install_hint

ACME = Path(__file__).resolve().parents[1] / "packages" / "acme_tools"
SEED_NAMES = {"docker", "aws_lambda", "github", "duckduckgo", "arxiv", "wikipedia"}


@pytest.fixture
def acme(monkeypatch):
    monkeypatch.syspath_prepend(str(ACME))
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "acme_tools"]:
        del sys.modules[name]


async def call(name: str, tool: str, arguments: dict, overrides: dict | None = None):
    source, spec = PackageSource(), installed_plugins()[name]
    assert source.handles(spec)
    manifest = await source.describe(spec, overrides or {})
    found = next(t for t in manifest.tools if t.name == tool)
    return await source.call(spec, overrides or {}, found, arguments, CallContext())


def test_t3_installed_packages_bring_plugins_without_being_imported(acme):
    assert set(installed_plugins()) >= SEED_NAMES
    assert installed_plugins()["github"].category == "GitHub"
    assert "acme_tools" not in sys.modules


async def test_entry_points_name_modules_classes_factories_and_lists(acme):
    assert (await call("docker", "docker_ps", {})).content[0]["text"] == '["web", "db"]'
    deployed = await call("aws_lambda", "lambda_deploy", {"name": "demo"}, {"region": "us-east-1"})
    assert deployed.structured == {"name": "demo", "region": "us-east-1", "version": 1, "memory": 128}
    created = await call("github", "github_create_issue", {"title": "New"}, {"repository": "acme/x"})
    assert created.content[0]["text"] == "acme/x#3"
    found = await call("arxiv", "arxiv_search", {"query": "attention"})
    assert found.structured == {"1706.03762": "Attention Is All You Need"}
    assert not (await call("duckduckgo", "duckduckgo_search", {"query": "x"})).is_error
    assert not (await call("wikipedia", "wikipedia_page", {"title": "Owls"})).is_error


async def test_t5_the_parameters_of_a_packaged_class_are_its_overrides(acme):
    manifest = await PackageSource().describe(installed_plugins()["aws_lambda"], {})
    assert dict(manifest.parameters) == {"region": "string", "api_key": "string"}
    assert manifest.secrets == {"api_key"}


def write_distribution(folder: Path, name: str, entry_points: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[pegboard.plugins]\n{entry_points}\n")


async def test_p6_a_broken_package_costs_only_its_own_plugin(acme, tmp_path, monkeypatch):
    write_distribution(tmp_path, "broken_dist", "broken = broken_dist_module\nlost = not_there_at_all:thing\n")
    (tmp_path / "broken_dist_module.py").write_text("raise RuntimeError('half installed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ToolUnavailableError, match=r"broken.*'broken_dist'.*half installed"):
        await PackageSource().describe(installed_plugins()["broken"], {})
    with pytest.raises(ToolUnavailableError) as caught:
        await PackageSource().describe(installed_plugins()["lost"], {})
    assert caught.value.hint == install_hint("not_there_at_all")
    assert not (await call("docker", "docker_ps", {})).is_error


async def test_p6_a_name_that_only_a_package_can_bring_says_so():
    spec = registered_plugins()["homeassistant"]
    assert PackageSource().handles(spec)
    with pytest.raises(ToolUnavailableError) as caught:
        await PackageSource().describe(spec, {})
    assert "no installed package provides it" in caught.value.message
    assert "'pegboard.plugins'" in caught.value.hint


async def test_a_package_that_was_removed_is_unavailable():
    with pytest.raises(ToolUnavailableError, match="no installed package"):
        await PackageSource().describe(RegisteredSpec(name="gone", loader="entry_point:gone"), {})


def test_a_package_on_the_path_of_another_process_is_found():
    script = "from pegboard.sources.packages import installed_plugins; print(*sorted(installed_plugins()))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ACME)}
    )
    assert set(done.stdout.split()) >= SEED_NAMES


def test_a_package_that_is_installed_meanwhile_is_found(tmp_path, monkeypatch):
    """T11: what is installed is read once, and again when a folder of the import path has changed."""
    monkeypatch.syspath_prepend(tmp_path)
    assert "late" not in installed_plugins()
    write_distribution(tmp_path, "late", "late = late_tools")
    assert installed_plugins()["late"].module == "late_tools"
