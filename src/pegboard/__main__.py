"""Run the command as ``python -m pegboard``."""

import os
import sys

if __name__ == "__main__":
    # Python looks for modules in the current folder first then: one of a folder that is not trusted would be run (P11).
    if sys.path[:1] in ([os.getcwd()], [""]):  # noqa: PTH109
        del sys.path[0]
    from pegboard.cli import main

    raise SystemExit(main())
