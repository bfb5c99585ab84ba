"""What is known of one MCP client; each client that writes in its own way has a file of its own beside this one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pegboard.config.documents.document import is_list, is_mapping
from pegboard.config.location import Machine
from pegboard.core.model.naming import one_line
from pegboard.core.model.tools import EMPTY

ClientScope = Literal["local", "project", "user"]
"""Whose servers they are: one person's in one folder (Claude Code), a project's, one person's everywhere."""
TimeUnit = Literal["seconds", "milliseconds"]
Root = tuple[str, ...]
Server = dict[str, Any]
_REFERENCE: Final = re.compile(r"(?<!\$)\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")
_OWN_LOGIN: Final = ("authorizationUrl", "tokenUrl", "tokenParamName", "authServerMetadataUrl")
"""Keys of `oauth` that say what Pegboard takes from the server itself: where they are needed it would not log in."""
_DISCOVERED: Final = "dynamic_discovery"
_INPUT: Final = re.compile(r"\$\{input:([^}]*)\}")
_SHELL: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{\s*([A-Za-z_]\w*)\s*\})")
_LIMITS: Final = ("timeout", "start")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What servers take from their client's environment: variables, and inputs that the client asks for."""

    variables: Sequence[str] = ()
    inputs: Sequence[str] = ()


def references_of(servers: Any) -> References:
    """Return what servers in our own shape refer to."""
    texts = texts_in(servers)
    return References(
        variables=sorted({name for text in texts for name in _REFERENCE.findall(text)}),
        inputs=list(dict.fromkeys(name for text in texts for name in _INPUT.findall(text))),
    )


def without_trust(_entry: Mapping[str, Any], found: Server) -> Server:
    """Return a server without a ``trust`` that means something else than ours."""
    return {key: value for key, value in found.items() if key != "trust" or value == "annotations"}


def as_written(_entry: Mapping[str, Any], found: Server) -> Server:
    """Return a server as it is."""
    return found


def plain_entry(entry: Server, _references: References) -> Server:
    """Return the entry of Pegboard as it is."""
    return entry


def from_milliseconds(value: Any) -> Any:
    """Return a limit of a client in seconds; what is no number as it is.

    >>> from_milliseconds(5000), from_milliseconds(1500), from_milliseconds("5s")
    (5, 1.5, '5s')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return value // 1000 if value % 1000 == 0 else value / 1000


def limit_text(value: Any, unit: TimeUnit) -> Any:
    """Return a limit of a client in this unit as we write it; what is no number as it is.

    >>> limit_text(1800, "seconds"), limit_text("600", "milliseconds"), limit_text("2m", "seconds")
    ('1800s', '0.6s', '2m')
    """
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return f"{value if unit == 'seconds' else from_milliseconds(value)}s"


# -- references in texts ---------------------------------------------------------------------------


def editor_text(text: str) -> str:
    """Return a text of a client that refers as editors do, in which the sign between folders is ``${/}``."""
    return text.replace("${/}", "${pathSeparator}")


def shell_text(text: str) -> str:
    """Return a text of a client that refers to variables as a shell does.

    What is not in capitals may be meant as it is written: it stays where there is no such variable.

    >>> shell_text("$HOME/a"), shell_text("${ HOME }"), shell_text("items?$top=1")
    ('${HOME}/a', '${HOME}', 'items?${top:-$top}=1')
    """

    def own_reference(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        return f"${{{name}}}" if found[2] or name.isupper() else f"${{{name}:-${name}}}"

    return _SHELL.sub(own_reference, text)


def literal_text(text: str) -> str:
    """Return a text of a client that refers to nothing."""
    return text.replace("${", "$${")


def editor_variables(folder: str, home: str, *, separator: str = os.sep) -> Mapping[str, str]:
    """Return what editors know besides the environment, for servers of a project's folder."""
    return {
        "workspaceFolder": folder,
        "workspaceFolderBasename": os.path.basename(folder) or folder,  # noqa: PTH119
        "userHome": home,
        "pathSeparator": separator,
    }


def no_limit(_value: Mapping[str, Any], _machine: Machine) -> float | None:
    """Return nothing: this client has no limit for the start of every server."""
    return None


def never_client_only(_entry: Mapping[str, Any], _found: Server) -> str:
    """Return nothing: what this client can start, anyone can."""
    return ""


def _own_login(entry: Mapping[str, Any], title: str) -> str:
    """Return why only this client can log in to the server of an entry, or nothing."""
    provider, auth, oauth = entry.get("authProviderType"), entry.get("auth"), entry.get("oauth")
    if isinstance(provider, str) and provider != _DISCOVERED:
        return f"{title} logs in to it in its own way (authProviderType: {one_line(provider, limit=40)})"
    if isinstance(auth, str) and auth != "oauth":
        return f"how {title} logs in to it is not known here (auth: {one_line(auth, limit=40)})"
    if (
        is_mapping(oauth)
        and oauth.get("enabled") is not False
        and (own := [key for key in _OWN_LOGIN if oauth.get(key)])
    ):
        return f"its login has settings that Pegboard takes from the server itself: oauth.{', oauth.'.join(own)}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """An MCP client: where its files lie, and how it writes a server.

    ``roots`` are the paths of keys under which its servers may stand, the usual one first. ``project``
    are its files relative to a project's folder, ``user`` those of a person: a leading ``~`` stands
    for the home folder, ``{apps}`` for where the system keeps the settings of applications.

    ``text`` returns a text of a server, in any of its keys, with our references in place of the client's own. ``unit``
    is that of its limits, None where it is not known.

    ``ignored`` keys mean something to this client only; ``renamed`` ones are ours under another name.
    ``translate`` gets a server as it is in the file and what is left of it after both, and returns
    it as most clients write it; ``client_only_reason`` gets both, and says why only this client can start it, or
    nothing; ``entry`` completes the entry under which Pegboard itself is put in. ``start_limit`` gets what is in the
    file, and returns within how many seconds this client wants every server to have started.

    ``project_folder`` is how the folder of a project is written in its file, empty where that cannot be written:
    such clients start servers there. ``starts_elsewhere`` says that a server has to name it as its ``cwd``.
    """

    name: str
    title: str
    roots: tuple[Root, ...] = (("mcpServers",),)
    project: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    marker: str = ""
    ignored: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default=EMPTY)
    text: Callable[[str], str] = editor_text
    unit: TimeUnit | None = None
    translate: Callable[[Mapping[str, Any], Server], Server] = without_trust
    client_only_reason: Callable[[Mapping[str, Any], Server], str] = never_client_only
    entry: Callable[[Server, References], Server] = plain_entry
    start_limit: Callable[[Mapping[str, Any], Machine], float | None] = no_limit
    project_folder: str = ""
    starts_elsewhere: bool = False

    def server(self, entry: Any) -> Any:
        """Return one server as most clients write it."""
        if not is_mapping(entry):
            return entry
        found = {
            self.renamed.get(key, key): with_texts(value, self.text)
            for key, value in entry.items()
            if key not in self.ignored
        }
        if self.unit is not None:
            own = (key for key in _LIMITS if key in found and (key == "timeout" or key in self.renamed.values()))
            found |= {key: limit_text(found[key], self.unit) for key in own}
        if is_list(command := found.get("command")) and command and not is_list(found.get("args") or []):
            found["command"] = command[0]  # what is wrong is reported of `args`
        return self.translate(entry, found)

    def unstartable(self, entry: Any) -> str:
        """Return why a server is for this client only, or nothing."""
        if not is_mapping(entry):
            return ""
        return self.client_only_reason(entry, self.server(entry)) or _own_login(entry, self.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFilePlace:
    """One place where a client keeps its servers.

    ``folder`` is where it starts them, if known. Those of the scope ``local`` stand under the name of their folder in a
    file of the user.
    """

    client: McpClient
    path: Path
    scope: ClientScope
    folder: Path | None = None


# -- texts in servers ------------------------------------------------------------------------------


def with_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if is_mapping(value):
        return {key: with_texts(inner, change) for key, inner in value.items()}
    return [with_texts(inner, change) for inner in value] if is_list(value) else value


def with_inputs(value: Any, fill: Callable[[str], str]) -> Any:
    """Return a value in which what the client asks for is filled in by its name."""
    return with_texts(value, lambda text: _INPUT.sub(lambda found: fill(found[1]), text))


def texts_in(value: Any) -> list[str]:
    """Return every text in a value."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if is_mapping(value) else value if is_list(value) else ()
    return [text for item in inner for text in texts_in(item)]


def input_variable(name: str) -> str:
    """Return the environment variable that stands for an input.

    >>> input_variable("gh-token"), input_variable("2nd key"), input_variable("?")
    ('GH_TOKEN', 'INPUT_2ND_KEY', 'INPUT')
    """
    bare = re.sub(r"\W+", "_", name).strip("_").upper() or "INPUT"
    return f"INPUT_{bare}" if bare[0].isdigit() else bare
