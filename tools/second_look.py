"""Run a few failed tests once more, alone.

Hundreds of processes, browsers and clocks share the machine in the first run. What fails alone too fails the run. What
passes is named, so that it can be mended: it is a defect of the test or of the product. More than a handful of failures
are no accident, and get no second look.
"""

import json
import subprocess
import sys
from pathlib import Path

HANDFUL = 5
TESTS_FAILED = 1  # pytest's exit code; any other is a run that did not get to its end


def main(status: int, root: Path = Path()) -> int:
    """Return the exit code of the whole run.

    Args:
        status: The exit code of the first run.
        root: The folder with the cache of pytest.
    """
    cache = root / ".pytest_cache/v/cache/lastfailed"
    failed = list(json.loads(cache.read_text())) if status == TESTS_FAILED and cache.exists() else []
    if not 0 < len(failed) <= HANDFUL:
        return status
    print(f"\nFailed beside others, run again alone:\n{listed(failed)}", flush=True)
    again = subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode
    if again == 0:
        print(f"Passed alone, and should be mended:\n{listed(failed)}", flush=True)
    return again


def listed(tests: list[str]) -> str:
    """Return tests, a line each."""
    return "\n".join(f"  {test}" for test in tests)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
