"""Where files of this user lie: one rule for all of Pegboard, that of the system it runs on."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_NAME: Final = "pegboard"


def cache() -> Path:
    """Return the folder of what can be computed again: ``$XDG_CACHE_HOME/pegboard``, else the system's."""
    if found := _on_linux("XDG_CACHE_HOME", "~/.cache"):
        return found
    import platformdirs

    return platformdirs.user_cache_path(_NAME, appauthor=False)


def plugin_caches() -> Path:
    """Return the folder of the caches of confined plugins: beside that of Pegboard's own, which no plugin gets."""
    own = cache()
    return own.with_name(f"{own.name}-plugins")


def plugin_data() -> Path:
    """Return the folder of what confined plugins keep that belong to no project: beside that of Pegboard's own data."""
    base = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")  # noqa: PTH111
    return Path(base) / f"{_NAME}-plugins"


def data_of_plugin(name: str, folder: Path) -> Path:
    """Return the folder for the data of a confined plugin: apart for each name and each folder that it belongs to."""
    digest = hashlib.sha256(f"{name}\0{folder.absolute()}".encode(errors="surrogatepass")).hexdigest()[:12]
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:40]
    return plugin_data().absolute() / f"{plain}-{digest}"


def is_of_user(folder: Path) -> bool:
    """Return whether a configuration in a folder is the user's own, of no project: in their home or its settings."""
    home, place = Path.home(), folder.absolute()
    if home.is_relative_to(place) or place.is_relative_to(configuration(os.environ)):
        return True
    return place.is_relative_to(home) and place.relative_to(home).parts[0].startswith(".")


def packages() -> Path:
    """Return the folder of the packages of runners that confined plugins are started from, which none may change."""
    own = cache()
    return own.with_name(f"{own.name}-packages")


def _on_linux(variable: str, usual: str) -> Path | None:
    """Return what platformdirs returns on Linux: importing it is a part of every start that is felt."""
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return None
    return Path(os.environ.get(variable, "").strip() or os.path.expanduser(usual)) / _NAME  # noqa: PTH111


def state() -> Path:
    """Return the folder of what survives a restart: ``$XDG_STATE_HOME/pegboard``, else the system's."""
    if found := _on_linux("XDG_STATE_HOME", "~/.local/state"):
        return found
    import platformdirs

    return platformdirs.user_state_path(_NAME, appauthor=False)


def configuration(env: Mapping[str, str]) -> Path:
    """Return the folder of what the user wrote: ``$XDG_CONFIG_HOME/pegboard`` of an environment, else the system's."""
    if base := env.get("XDG_CONFIG_HOME"):
        return Path(base) / _NAME
    if found := _on_linux("XDG_CONFIG_HOME", "~/.config"):
        return found
    import platformdirs

    return platformdirs.user_config_path(_NAME, appauthor=False)
