"""Unpack the browser of the tests out of its npm package: `python tools/chromium.py PACKAGE NODE FOLDER`.

The package is for x86-64 Linux; elsewhere nothing is done, and the tests that need a browser say so.
"""

import platform
import shutil
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

INFLATE = """
const {createReadStream} = require("fs"), {pipeline} = require("stream"), {createBrotliDecompress} = require("zlib");
pipeline(createReadStream(process.argv[1]), createBrotliDecompress(), process.stdout, (error) => {
  if (error) { console.error(String(error)); process.exitCode = 1; }
});
"""

# The fonts here are the only ones, so that a page looks alike on every machine.
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias binding="same"><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""
MORE_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf")
"""Of matplotlib: fixed pitch, and the signs and scripts that Open Sans lacks."""


def can_run() -> bool:
    """Return whether the package's browser runs on this machine."""
    return sys.platform == "linux" and platform.machine() in {"x86_64", "AMD64"}


def unpack(package: Path, node: Path, folder: Path) -> None:
    """Put the browser, its libraries and its fonts into a folder, which is there as a whole or not at all.

    Args:
        package: The installed `@sparticuz/chromium`.
        node: The Node that inflates its parts.
        folder: Replaced where it exists.
    """
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    inflate(node, package / "bin" / "chromium.br", part / "chromium")
    (part / "chromium").chmod(0o755)
    for name in ("al2023.tar", "fonts.tar"):
        inflate(node, package / "bin" / f"{name}.br", part / name)
        with tarfile.open(part / name) as archive:
            archive.extractall(part, filter="data")
        (part / name).unlink()
    matplotlib = find_spec("matplotlib")
    assert matplotlib is not None
    assert matplotlib.origin is not None
    for name in MORE_FONTS:
        shutil.copy(Path(matplotlib.origin).with_name("mpl-data") / "fonts" / "ttf" / name, part / "fonts")
    (part / "fonts.conf").write_text(FONTS, "utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    part.rename(folder)


def inflate(node: Path, source: Path, target: Path) -> None:
    """Write a file without its brotli compression."""
    with target.open("wb") as out:
        subprocess.run([str(node), "-e", INFLATE, str(source)], stdout=out, check=True)


def main() -> int:
    """Unpack as the command line says and return the exit code."""
    package, node, folder = map(Path, sys.argv[1:])
    if can_run():
        unpack(package, node, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
