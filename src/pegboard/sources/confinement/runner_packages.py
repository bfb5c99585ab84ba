"""Packages of runners, installed once outside of the confinement of what is started from them (A7).

Each lies in a folder of the user's cache that is named by runner, package, version, and the digest of the lock file
that says what else was installed with it. What is asked for is resolved to such a folder once, and kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pegboard.errors import ToolUnavailableError
from pegboard.sources.confinement.runner_command import RunnerCommand, runner_command
from pegboard.support import user_folders

_REQUESTS: Final = "requests"
_DONE: Final = "installed.json"
"""The file that is written into a folder of packages last."""
_LOCK: Final[Mapping[str, str]] = {"npm": "package-lock.json", "uv": "requirements.txt"}
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_.@+-]+")
_QUIET: Final = (
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--loglevel=error",
    "--global=false",
    "--omit-lockfile-registry-resolved=false",
)
_NOISE: Final = re.compile(r"npm (?:error|ERR!) (?:A complete log|code |syscall |errno )|npm (?:notice|warn)")
_PREFIX: Final = re.compile(r"^npm (?:error|ERR!) ?")
_MOST_SAID: Final = 6
"""Lines of an installer that fails which are passed on."""
_LONGEST_REASON: Final = 400
_BUILT: Final = re.compile(r"building .*disabled|no-build|only-binary|no wheels? with a matching", re.IGNORECASE)
_NO_PROGRAMS: Final = re.compile(r"activate.*|deactivate.*|python[\d.]*|pip[\d.]*|pydoc.*|.*\.(?:bat|ps1|fish|csh|nu)")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledProgram:
    """The program of a package: ``folder`` is where the package and what it needs lie, ``version`` what it is."""

    package: str
    command: str
    args: tuple[str, ...]
    folder: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _PackageInstallation:
    """One request for packages, and how the programs that install them are run.

    ``limit`` is how many seconds an installation may take, ``scripts`` whether code of the packages may run in it.
    """

    asked: RunnerCommand
    env: Mapping[str, str]
    scripts: bool
    limit: float
    name: str

    @property
    def request(self) -> Path:
        """Return the file that says what this request was resolved to."""
        asked = [self.asked.installer, self.asked.packages, self.asked.options, self.scripts]
        digest = hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:24]
        return user_folders.packages().absolute() / _REQUESTS / f"{digest}.json"


def installed_program(
    command: str,
    args: Sequence[str],
    env: Mapping[str, str],
    *,
    name: str,
    scripts: bool = False,
    resolve: bool = False,
    limit: float = 180.0,
) -> InstalledProgram | None:
    """Return the program that a command of a package runner starts, None for any other command.

    A package of one version is installed where it is not yet; one of any version only where it is to be resolved.

    Args:
        command: the runner.
        args: its arguments.
        env: the environment that it is run in, outside of the confinement.
        name: the server's.
        scripts: whether code of the packages may run while they are installed.
        resolve: whether the newest version that is asked for is looked for.
        limit: for how many seconds an installation may go on.

    Raises:
        ToolUnavailableError: there is no such program, or it cannot be installed.
    """
    asked = runner_command(command, args)
    if asked is None:
        return None
    one = _PackageInstallation(asked=asked, env=env, scripts=scripts, limit=limit, name=name)
    found = None if resolve and not asked.has_exact_versions else _resolved_folder(one)
    if found is None:
        if not (asked.has_exact_versions or resolve):
            raise ToolUnavailableError(
                f"it is confined, and which version of {', '.join(asked.packages)} to use was never decided",
                hint=f"`pegboard update {name} --config FILE` installs the newest one, which stays until then.",
            )
        with _installing_alone(one.request):
            found = (_resolved_folder(one) if asked.has_exact_versions else None) or _install(one)
    return _program(one, found)


def found_program(command: str, args: Sequence[str], *, scripts: bool = False) -> InstalledProgram | None:
    """Return the program that a command of a package runner starts where it is installed; nothing is installed."""
    try:
        asked = runner_command(command, args)
        if asked is None:
            return None
        one = _PackageInstallation(asked=asked, env={}, scripts=scripts, limit=0, name="")
        found = _resolved_folder(one)
        return None if found is None else _program(one, found)
    except ToolUnavailableError:
        return None


def _resolved_folder(one: _PackageInstallation) -> Path | None:
    """Return the folder that a request was resolved to, None where it is not whole."""
    try:
        folder = user_folders.packages().absolute() / str(json.loads(one.request.read_bytes())["folder"])
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if one.asked.installer == "uv" and not (folder / "bin" / "python").exists():  # its interpreter has gone
        return None
    return folder if (folder / _DONE).is_file() else None


def _install(one: _PackageInstallation) -> Path:
    """Look for the newest versions that are asked for, install them where they are not yet, and keep what was found."""
    top = user_folders.packages().absolute()
    (top / _REQUESTS).mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(dir=top, prefix="resolving-") as staging:
        npm = one.asked.installer == "npm"
        name, version = _resolve_npm(one, Path(staging)) if npm else _resolve_uv(one, Path(staging))
        lock = Path(staging, _LOCK[one.asked.installer])
        digest = hashlib.sha256(lock.read_bytes() + (b"scripts" if one.scripts else b"")).hexdigest()[:12]
        plain = _OTHERS.sub("+", f"{one.asked.runner}-{name}-{version}")[:100]
        folder = top / f"{plain}-{digest}"
        if not (folder / _DONE).is_file() or (not npm and not (folder / "bin" / "python").exists()):
            shutil.rmtree(folder, ignore_errors=True)
            try:
                (_install_npm if npm else _install_uv)(one, Path(staging), folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            _write(folder / _DONE, {"name": name, "version": version, "packages": one.asked.packages})
    _write(one.request, {"folder": folder.name, "asked": [*one.asked.packages, *one.asked.options]})
    return folder


def _write(file: Path, value: Mapping[str, Any]) -> None:
    made = file.with_name(f"{file.name}.{os.getpid()}")
    made.write_text(json.dumps(value), encoding="utf-8")
    made.replace(file)


@contextmanager
def _installing_alone(request: Path) -> Generator[None]:
    """Let one process at a time install what a request asks for."""
    import fcntl

    request.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with request.with_suffix(".lock").open("w") as held:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


# -- Node ------------------------------------------------------------------------------------------


def _npm(one: _PackageInstallation, folder: Path, *words: str) -> None:
    scripts = f"--ignore-scripts={'false' if one.scripts else 'true'}"
    _run_installer(one, "npm", [*words, *_QUIET, scripts, "--package-lock=true", *one.asked.options], folder)


def _resolve_npm(one: _PackageInstallation, staging: Path) -> tuple[str, str]:
    """Write the lock file of a request; return the name and version of the package whose program is started."""
    (staging / "package.json").write_text('{"name": "packages", "private": true}\n', encoding="utf-8")
    fresh = () if one.asked.has_exact_versions else ("--prefer-online",)
    _npm(one, staging, "install", "--package-lock-only", "--save-exact", *fresh, *one.asked.packages)
    direct = json.loads((staging / "package.json").read_bytes()).get("dependencies", {})
    name = one.asked.name if one.asked.name in direct else next(iter(direct))
    locked = json.loads((staging / _LOCK["npm"]).read_bytes())["packages"]
    return name, str(locked.get(f"node_modules/{name}", {}).get("version", "0"))


def _install_npm(one: _PackageInstallation, staging: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for file in ("package.json", _LOCK["npm"]):
        shutil.copy(staging / file, folder / file)
    _npm(one, folder, "ci")


# -- Python ----------------------------------------------------------------------------------------


def _resolve_uv(one: _PackageInstallation, staging: Path) -> tuple[str, str]:
    """Write the requirements of a request with their digests; return name and version of the first package."""
    asked = staging / "asked.txt"
    asked.write_text("".join(f"{each}\n" for each in one.asked.packages), encoding="utf-8")
    lock = staging / _LOCK["uv"]
    words = ["pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-annotate", "--output-file"]
    _run_installer(one, "uv", [*words, str(lock), str(asked), *_no_build(one), *one.asked.options], staging)
    lines = lock.read_text(encoding="utf-8").splitlines()
    named = (re.match(r"([\w.-]+)(?:==([\w.!+-]+)| @ .*?@?([0-9a-f]{12})?)", line) for line in lines)
    found = {_normal(each[1]): each[2] or each[3] or "0" for each in named if each is not None}
    name = _normal(one.asked.name or one.asked.packages[0].partition(" @ ")[0].strip())
    if name not in found:  # an address: the name of its last part, as far as that is one
        last = _normal(one.asked.packages[0].partition("@")[0].rstrip("/").rpartition("/")[2].removesuffix(".git"))
        name = last if last in found else _normal(one.asked.program)
    return name, found.get(name, "0")


def _install_uv(one: _PackageInstallation, staging: Path, folder: Path) -> None:
    options = list(zip(one.asked.options[::2], one.asked.options[1::2], strict=True))
    python = next((value for option, value in options if option == "--python"), "")
    by = ("--python", python) if python else ()
    _run_installer(one, "uv", ["venv", "--quiet", "--no-project", *by, str(folder)], staging)
    lock = shutil.copy(staging / _LOCK["uv"], folder / _LOCK["uv"])
    given = [word for pair in options if pair[0] not in ("--python", "--prerelease") for word in pair]
    into = ["--python", str(folder / "bin" / "python")]
    _run_installer(one, "uv", ["pip", "sync", "--quiet", *into, *_no_build(one), *given, str(lock)], staging)


def _no_build(one: _PackageInstallation) -> list[str]:
    return [] if one.scripts else ["--no-build"]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


# -- both ------------------------------------------------------------------------------------------


def _run_installer(one: _PackageInstallation, program: str, words: Sequence[str], folder: Path) -> None:
    """Run a program that installs; raises ``ToolUnavailableError`` with what it says where it fails."""
    named = ", ".join(one.asked.packages)
    found = shutil.which(program, path=one.env.get("PATH"))
    if found is None:
        raise ToolUnavailableError(
            f"it is confined, and {named} cannot be installed before it starts: there is no `{program}`",
            hint=f"Install `{program}`, or name a program that is installed in place of `{one.asked.runner}`.",
        )
    with subprocess.Popen(
        [found, *words],
        cwd=folder,
        env=dict(one.env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=one.limit)
        except BaseException as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise ToolUnavailableError(
                f"{named} could not be installed within {one.limit:g} s",
                hint="`start:` of the server says for how long it may be installed.",
            ) from None
    if process.returncode:
        raise _installation_error(one, program, printed.decode(errors="replace"))


def _installation_error(one: _PackageInstallation, program: str, printed: str) -> ToolUnavailableError:
    lines = (_PREFIX.sub("", line) for line in printed.splitlines() if not _NOISE.match(line))
    said = [line.strip() for line in lines if line.strip() and not line.startswith("    at ")]
    reason = " ".join(said[:_MOST_SAID])[:_LONGEST_REASON].strip().rstrip(".") or "it says nothing"
    if not one.scripts and _BUILT.search(printed):
        hint = "`confine: {scripts: true}` lets its code run, unconfined, while it is installed."
    else:
        hint = "Correct the name, the version or the registry of the package."
    return ToolUnavailableError(
        f"{', '.join(one.asked.packages)} could not be installed ({program}): {reason}",
        hint=hint,
    )


def _program(one: _PackageInstallation, folder: Path) -> InstalledProgram:
    """Return the program of a request in a folder of packages."""
    try:
        said = json.loads((folder / _DONE).read_bytes())
        package, version = str(said["name"]), str(said["version"])
    except (OSError, ValueError, LookupError, TypeError):
        package, version = "", ""
    programs = _programs(one, folder)
    path = programs.get(one.asked.program) if one.asked.program else _only_program(one, folder, programs)
    if path is None:
        listed = ", ".join(sorted(programs)) or "none"
        what = f"no program `{one.asked.program}`" if one.asked.program else "no single program to start"
        how = "-p PACKAGE PROGRAM" if one.asked.installer == "npm" else "--from PACKAGE PROGRAM"
        raise ToolUnavailableError(
            f"{', '.join(one.asked.packages)} has {what}; it has: {listed}",
            hint=f"Write `{one.asked.runner} {how}`.",
        )
    return InstalledProgram(
        package=package, command=str(path), args=one.asked.args, folder=str(folder), version=version
    )


def _programs(one: _PackageInstallation, folder: Path) -> dict[str, Path]:
    place = folder / "node_modules" / ".bin" if one.asked.installer == "npm" else folder / "bin"
    try:
        found = sorted(place.iterdir())
    except OSError:
        return {}
    return {file.name: file for file in found if file.exists() and not _NO_PROGRAMS.fullmatch(file.name)}


def _only_program(one: _PackageInstallation, folder: Path, programs: Mapping[str, Path]) -> Path | None:
    """Return the program that npx starts of a package: its only one, else the one with the name of the package."""
    try:
        name = one.asked.name or json.loads((folder / _DONE).read_bytes())["name"]
        said = json.loads((folder / "node_modules" / name / "package.json").read_bytes()).get("bin")
    except (OSError, ValueError, LookupError, TypeError):
        return None
    own = name.rpartition("/")[2]
    files = {own: said} if isinstance(said, str) else dict(said or {})
    if len(set(files.values())) == 1:
        return programs.get(next(iter(files)))
    return programs.get(own) if own in files else None
