"""Where plugins come from, as the configuration describes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pegboard.core.model.recording import EVERYTHING, Recording
from pegboard.core.model.references import ByReference
from pegboard.core.model.tools import EMPTY, JsonObject
from pegboard.problems import Place

OWN_FOLDER: Final = "."
"""What stands for the folder of a plugin itself: an explicit ``cwd``, else that of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What the process of a plugin may write, read and reach, besides what every one may.

    Paths are absolute, or :data:`OWN_FOLDER`, which is resolved when a policy is made of it. ``network`` None leaves
    the network as it was, ``()`` is none at all, else the TCP ports that may be used. ``if_possible`` runs the
    plugin unconfined where the system cannot confine it; ``scripts`` lets code of its packages run, unconfined, while
    they are installed. ``folder`` is what :data:`OWN_FOLDER` stands for.
    """

    write: tuple[str, ...] = (OWN_FOLDER,)
    read: tuple[str, ...] = ()
    network: tuple[int, ...] | None = None
    if_possible: bool = False
    scripts: bool = False
    folder: str = ""

    def reaches(self, port: int) -> bool:
        """Return whether its process may connect to a port of this machine."""
        return self.network is None or port in self.network


def any_reaches(confinements: Iterable[Confinement | None], port: int) -> bool:
    """Return whether one of the plugins that are confined may connect to a port of this machine."""
    return any(each is not None and each.reaches(port) for each in confinements)


CONFINE_DEFAULT: Final = Confinement()
"""What ``confine: true`` says."""


ApproveRule = str | Mapping[str, Any]
"""When a person approves a call (A1): ``always``, ``destructive``, or by argument the patterns of which one matches.

With who answers it is a mapping of ``by`` (a word) and ``when`` (any of these) (A5).
"""


Instance = Literal["session", "client", "principal", "all", "store"]
"""Who shares what a plugin constructs, or the connections of a server (G9)."""


PLUGIN_TIMEOUT: Final = 120.0
"""How long one call of a plugin of Python may take where no one says so, in seconds."""
HTTP_SPACE: Final = " \t\r\n"
"""What HTTP takes off both ends of a header's value, and clients off an address."""
NAME_ONLY: Final = "missing:"
"""How the loader of a plugin begins that is known by name only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSettings:
    """What the configuration can say of any plugin (T10).

    ``requires``, ``policy``, ``needs``, ``when``, ``guards`` and ``approve`` speak of its tools by their own names; in
    ``needs`` and ``when`` no name at all speaks of the whole plugin (T12), and a name in ``approve`` may be a pattern;
    ``approve_places`` is where each rule stands.
    ``instance`` None is what its kind has where no one says so. What it constructs, or a connection, is closed after
    ``idle`` seconds without use; None is the default of who uses it. ``timeout`` is in seconds, for one call.
    ``confine`` is what its process may reach (A7); None is all that its user may.
    ``record`` is what is kept of its calls at most (X4).
    """

    name: str
    category: str | None = None
    description: str = ""
    prefix: str | None = None
    requires: Mapping[str, tuple[str, ...]] = field(default=EMPTY)
    policy: Mapping[str, str] = field(default=EMPTY)
    needs: Mapping[str, tuple[str, ...]] = field(default=EMPTY)
    when: Mapping[str, str] = field(default=EMPTY)
    guards: JsonObject = field(default=EMPTY)
    approve: Mapping[str, ApproveRule] = field(default=EMPTY)
    approve_places: Mapping[str, Place] = field(default=EMPTY)
    default_on: bool = True
    shared_only: bool = False
    instance: Instance | None = None
    timeout: float = PLUGIN_TIMEOUT
    idle: float | None = None
    confine: Confinement | None = None
    record: Recording = EVERYTHING
    place: Place | None = None


LoginKind = Literal["code", "client_credentials", "private_key_jwt", "none"]
"""How a remote server is logged in to: by a person, by the gateway with a secret or a key, or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """What the configuration says of the login to a server (G11); nothing of it has to be said.

    ``client_secret`` is the private key, in PEM, where ``kind`` is ``private_key_jwt``.
    """

    client_id: str = ""
    client_secret: str = ""
    scopes: tuple[str, ...] = ()
    issuer: str = ""
    kind: LoginKind = "code"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec(PluginSettings):
    """The description of an MCP server: a command to start (stdio) or a ``url`` (HTTP).

    ``timeout`` is in seconds, for one request; ``start`` is for its start, in which a server that is ``fetched`` may
    have to be installed first. ``unavailable`` says why it cannot be started
    (a missing environment variable), or is empty. A message from the server is at most ``message_limit`` bytes long,
    inflated. ``pins`` is what becomes of a list of tools that differs from what was first seen (A4), ``reads`` what its
    program consists of, besides what its command says, ``auth`` how it is logged in to, None where nothing is said.
    ``references`` are the texts of ``args``, ``env``, ``url`` and ``headers`` with values that are read when it starts;
    there they stand as they are written (G13). ``written`` is what decides what runs and what is sent, where it refers
    to variables: with the references, so that another value of a variable is no other server.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default=EMPTY)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default=EMPTY)
    transport: Literal["stdio", "http", "sse"] = "stdio"
    timeout: float = 60.0
    start: float = 60.0
    fetched: bool = False
    message_limit: int = 32 * 1024 * 1024
    trust_annotations: bool = False
    pins: Literal["additions", "ask", "trust"] = "additions"
    unavailable: str = ""
    reads: tuple[str, ...] = ()
    auth: LoginSettings | None = None
    references: tuple[ByReference, ...] = ()
    written: str = ""

    @property
    def noun(self) -> str:
        """Return what it is, in messages."""
        return "server"

    @property
    def label(self) -> str:
        """Return how messages name it."""
        return f"Server {self.name!r}"

    @property
    def limit_hint(self) -> str:
        """Return what to do where a message of its is too large."""
        return f"Raise `limits: {{message: ...}}` in `{self.section}` if its messages have to be larger."

    @property
    def section(self) -> str:
        """Return where its settings are written, as hints name it: ``servers: git``, ``mcpServers: git``."""
        head = self.place.path.removesuffix(f".{self.name}") if self.place is not None else "servers"
        return f"{head}: {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonSpec(PluginSettings):
    """The description of a plugin written in Python: a module, or ``module:object``."""

    target: str
    folder: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSpec(PluginSettings):
    """The description of a plugin that is known by name: built in, an Agno toolkit, or an installed package's.

    ``loader`` tells the source how to bring it in (``agno:agno.tools.file:FileTools``,
    ``entry_point:name`` …); ``packages`` are what it imports besides, as they are installed. ``by_category`` is
    whether nothing but a category that an agent's loadout names brings it into the catalog (L9).
    ``counterpart`` names what replaces it where that is not installed: ``module`` or ``module:object``.
    ``module`` is what an installed package brings it in by, ``package`` the name and version of that package.
    """

    loader: str
    packages: tuple[str, ...] = ()
    counterpart: str = ""
    module: str = ""
    package: str = ""
    by_category: bool = False

    @property
    def brings_tools(self) -> bool:
        """Return whether something brings the plugin in: a name without a package has no tools."""
        return not self.loader.startswith(NAME_ONLY)


PluginSpec = ServerSpec | PythonSpec | RegisteredSpec
