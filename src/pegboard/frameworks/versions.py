"""Which versions of a framework its adapter is tested with, and one warning where another one is installed."""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from pegboard.support.installed import CODE

_LOG: Final = logging.getLogger("pegboard.frameworks")
_REQUIREMENT: Final = re.compile(r"([\w.-]+)\s*\(?([^;)]*)")
_BOUND: Final = re.compile(r"(>=|<)\s*(\d+(?:\.\d+)*)")


@cache
def warn_if_untested(framework: str) -> None:
    """Log a warning, once in a process, where a framework has another version than its adapter is tested with.

    Args:
        framework: the name of its distribution; what is tested is what Pegboard's own metadata says of its extra.
    """
    with suppress(PackageNotFoundError):
        installed, tested = version(framework), declared_range(framework)
        if not is_in(installed, tested):
            _LOG.warning(
                "%s %s is installed, and Pegboard's adapter is tested with %s: what it rests on may be different.",
                framework,
                installed,
                tested,
            )


def declared_range(framework: str) -> str:
    """Return the versions of a distribution that Pegboard declares, or nothing."""
    found = (_REQUIREMENT.match(line) for line in requires(CODE) or ())
    return next((one[2].strip() for one in found if one is not None and _normal(one[1]) == framework), "")


def is_in(installed: str, tested: str) -> bool:
    """Return whether a version is within bounds, by the numbers of its release.

    >>> is_in("0.24.0", "<1,>=0.24"), is_in("1.0.0rc1", "<1,>=0.24"), is_in("0.23.9", "<1,>=0.24")
    (True, False, False)
    """
    own = _release(installed)
    bounds = [(sign, _release(bound)) for sign, bound in _BOUND.findall(tested)]
    return all(own >= bound if sign == ">=" else own < bound for sign, bound in bounds)


def _release(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found is not None else ()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
