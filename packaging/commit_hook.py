"""Write the commit that a distribution is built from into it; built from a source distribution, it keeps that one's."""

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface[Any]):
    """Puts the file that the package reads its commit from into wheels and source distributions."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, where this is a checkout and not installed as one."""
        root = Path(self.root)
        spec = importlib.util.spec_from_file_location("version", root / "src/pegboard/support/version.py")
        assert spec is not None
        assert spec.loader is not None
        made_from = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made_from)
        commit = os.environ.get("PEGBOARD_COMMIT") or made_from.commit_of(root)
        if not commit or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name, made_from.COMMIT_FILE)
        file.write_text(f"{commit}\n", "utf-8")
        package = "pegboard" if self.target_name == "wheel" else "src/pegboard"
        build_data["force_include"][str(file)] = f"{package}/{made_from.COMMIT_FILE}"
