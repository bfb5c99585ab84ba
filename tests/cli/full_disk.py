"""Run commands again and again with the user's state folder on a disk of 64 kB with less and less room on it.

`full_disk.py STATE COMMAND…` prints one line of JSON for each amount of room, with what the command answered and which
files in the folder `home` it changed. Before each run that folder and the disk are as they were.
"""

import contextlib
import io
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from pegboard.cli import main

PAGE = 4096
PAGES = 16


def files(folder: Path) -> dict[str, str]:
    """Return what is in each file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes().decode("latin-1")
        for path in folder.rglob("*")
        if path.is_file()
    }


def rooms(state: Path) -> Iterator[int]:
    """Yield how many pages are free, and leave just so many free; without mounts, what may be written at once.

    What is in the folder is as it was before each.
    """
    kept = shutil.copytree(state, Path(f"{state}-kept"))
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={PAGE * PAGES}", "tmpfs", str(state)]).returncode
    for pages in range(PAGES):
        for path in state.iterdir():
            shutil.rmtree(path)
        shutil.copytree(kept, state, dirs_exist_ok=True)
        if mounted == 0:
            filler = state / "filler"
            with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(PAGE))
            with filler.open("r+b") as file:
                file.truncate(max(filler.stat().st_size - pages * PAGE, 0))
            yield pages
            filler.unlink()
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (pages * 64, resource.RLIM_INFINITY))
            yield pages
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


state, *command = sys.argv[1:]
began = files(Path("home"))
for room in rooms(Path(state)):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(command)
    now = files(Path("home"))
    changed = sorted(name for name in {*began, *now} if began.get(name) != now.get(name))
    print(json.dumps({"room": room, "code": code, "out": out.getvalue(), "err": err.getvalue(), "changed": changed}))
    for path in (Path("home", name) for name in changed):
        name = str(path.relative_to("home"))
        if name in began:
            path.write_bytes(began[name].encode("latin-1"))
        else:
            path.unlink()
