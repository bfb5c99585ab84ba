"""Read the history of the git repository that the current folder is in; never changes it."""

from __future__ import annotations

import os
import subprocess
from typing import Final

from pegboard.marks import tool
from pegboard.quickstart._bounds import cut_lines, display_path, inside

__all__ = ["git_blame", "git_branches", "git_diff", "git_log", "git_show", "git_status"]

_SECONDS: Final = 20
# A repository's own configuration may name programs to run; none of them is.
_SAFE: Final = (
    *("--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false", "-c", "protocol.allow=never", "-c", "color.ui=false"),
)


@tool(read_only=True)
def git_log(count: int = 20, path: str = ".", revision: str = "HEAD") -> str:
    """List the newest commits that touch the folder or a path: hash, date, author, subject.

    Args:
        count: How many commits, at most 200.
        path: Only commits that touch this file or folder.
        revision: The branch, tag or commit to start from.
    """
    shape = "--format=%h %ad %an: %s"
    number = f"--max-count={max(1, min(count, 200))}"
    return _git("log", number, "--date=short", shape, _revision(revision), "--", _path(path)) or "No commits."


@tool(read_only=True)
def git_status() -> str:
    """Show the branch and the files that are changed, staged or untracked."""
    return _git("status", "--short", "--branch", "--ignore-submodules=all", "--", ".")


@tool(read_only=True)
def git_diff(revision: str = "HEAD", path: str = ".", staged: bool = False) -> str:
    """Show what changed in the working tree since a revision.

    Args:
        revision: What to compare with: a branch, tag, commit, or two as 'a..b'.
        path: Only this file or folder.
        staged: Whether to compare what is staged instead of the working tree.
    """
    options = ["--cached"] if staged else []
    return _git("diff", *_PLAIN, *options, _revision(revision), "--", _path(path)) or "No differences."


@tool(read_only=True)
def git_show(revision: str = "HEAD", path: str = ".") -> str:
    """Show one commit: message and changes.

    Args:
        revision: The commit, branch or tag.
        path: Only what it changed in this file or folder.
    """
    return _git("show", *_PLAIN, "--format=medium", f"{_revision(revision)}^{{commit}}", "--", _path(path))


@tool(read_only=True)
def git_blame(path: str, first: int = 1, count: int = 50) -> str:
    """Show who last changed each line of a file, and in which commit.

    Args:
        path: The file.
        first: The first line, counted from 1.
        count: How many lines, at most 200.
    """
    lines = f"-L{max(first, 1)},+{max(1, min(count, 200))}"
    return _git("blame", "--no-textconv", "--date=short", lines, "--", _path(path))


@tool(read_only=True)
def git_branches() -> str:
    """List branches with their newest commit, the newest first; a star marks the current one."""
    shape = "--format=%(HEAD) %(refname:short) %(objectname:short) %(committerdate:short) %(subject)"
    return _git("branch", "--list", "--sort=-committerdate", shape) or "No branches."


_PLAIN: Final = ("--no-ext-diff", "--no-textconv", "--no-color", "--relative", "--ignore-submodules=all")


def _revision(text: str) -> str:
    if not text or text.startswith("-") or ":" in text or any(c.isspace() or not c.isprintable() for c in text):
        raise ValueError(f"'{text}' is not a revision; name a branch, tag or commit.")
    return text


def _path(text: str) -> str:
    try:
        return display_path(inside(text))
    except FileNotFoundError:  # deleted files have a history too
        parts = text.replace("\\", "/").split("/")
        if text.startswith("/") or ".." in parts:
            raise ValueError(f"'{text}' is outside of the current folder.") from None
        return text


def _git(*arguments: str) -> str:
    done = _run_git(*_without_filters(), *arguments)
    if done.returncode:
        raise RuntimeError(_describe_git_error(done.stderr.decode(errors="replace")))
    return cut_lines(done.stdout.decode(errors="replace").splitlines(), "name a path, or ask for fewer")


def _without_filters() -> list[str]:
    """Return options that empty the commands of the filters which the repository itself configures."""
    wanted = r"^filter\..*\.(clean|smudge|process)$"
    done = _run_git("config", "--local", "--includes", "--null", "--name-only", "--get-regexp", wanted)
    names = [name for name in done.stdout.decode(errors="replace").split("\0") if name]
    required = {f"{name.rpartition('.')[0]}.required" for name in names}
    return [part for name in names for part in ("-c", f"{name}=")] + [
        part for name in sorted(required) for part in ("-c", f"{name}=false")
    ]


def _run_git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**kept, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"}
    try:
        return subprocess.run(
            ["git", *_SAFE, *arguments],
            capture_output=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise RuntimeError("git is not installed, or not on the PATH.") from None
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"git took longer than {_SECONDS} seconds; ask for less.") from None


def _describe_git_error(text: str) -> str:
    if "not a git repository" in text:
        return "the current folder is not in a git repository."
    if "does not have any commits yet" in text or "bad revision 'HEAD'" in text:
        return "the repository has no commits yet."
    first = next((line for line in text.splitlines() if line.strip()), "git failed")
    return first.removeprefix("fatal: ").removeprefix("error: ")
