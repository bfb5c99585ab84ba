"""The files beside this one are programs: they are started, never imported."""

collect_ignore_glob = ["*.py"]
