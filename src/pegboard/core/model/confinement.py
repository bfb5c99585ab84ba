"""What a plugin's process may reach (A7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

OWN_FOLDER: Final = "."
"""What stands for the folder of a plugin itself: an explicit ``cwd``, else that of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What the process of a plugin may write, read and reach, besides what every one may.

    Paths are absolute, or :data:`OWN_FOLDER`, which is resolved when a policy is made of it. ``network`` None leaves
    the network as it was, ``()`` is none at all, else the TCP ports that may be used. ``if_possible`` runs the
    plugin unconfined where the system cannot confine it. ``folder`` is what :data:`OWN_FOLDER` stands for.
    """

    write: tuple[str, ...] = (OWN_FOLDER,)
    read: tuple[str, ...] = ()
    network: tuple[int, ...] | None = None
    if_possible: bool = False
    folder: str = ""


CONFINE_DEFAULT: Final = Confinement()
"""What ``confine: true`` says."""
