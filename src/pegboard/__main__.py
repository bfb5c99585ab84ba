"""Run the command as ``python -m pegboard``."""

from pegboard.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
