"""Run uv with the index, certificates and proxy that pip is configured with.

uv reads its own variables only; a machine set up for pip (environment, pip.conf) should need nothing more.
What is already set for uv wins.
"""

import os
import subprocess
import sys
from pathlib import Path

# pip's option -> the variables that uv takes it from, the one to set first
PASSED_ON = {
    "index-url": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "cert": ("SSL_CERT_FILE",),
    "proxy": ("ALL_PROXY", "HTTPS_PROXY", "https_proxy", "all_proxy"),
    "trusted-host": ("UV_INSECURE_HOST",),
}


def pip_options() -> dict[str, str]:
    """Return pip's effective options; the environment beats `install`, which beats `global`."""
    listing = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):
        for line in listing.splitlines():
            name, separator, value = line.partition("=")
            if separator and name.startswith(section):
                found[name.removeprefix(section)] = value.strip("'\"")
    return found


def environment() -> dict[str, str]:
    """Return the variables of this process, and those that say to uv what pip is configured with."""
    options = pip_options()
    variables = dict(os.environ)
    for option, names in PASSED_ON.items():
        if option in options and not any(variables.get(name) for name in names):
            variables[names[0]] = options[option]
    return variables


def main() -> int:
    """Run uv from this interpreter's environment with the given arguments and return its exit code."""
    uv = Path(sys.executable).parent / "uv"
    return subprocess.run([str(uv), *sys.argv[1:]], env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
