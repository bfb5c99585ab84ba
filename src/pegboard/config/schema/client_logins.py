"""Take what a client's file says of the login to a remote server as ours: `auth` (G11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pegboard.config.documents.document import is_list, is_mapping

_OF_OAUTH: Final = {
    "clientId": "client_id",
    "client_id": "client_id",
    "clientSecret": "client_secret",
    "client_secret": "client_secret",
    "scopes": "scopes",
    "scope": "scopes",
}
"""The keys of `oauth` in Claude Code, VS Code, Gemini CLI and opencode, and in Codex."""
_OF_AUTH: Final = {"CLIENT_ID": "client_id", "CLIENT_SECRET": "client_secret", "scopes": "scopes"}
"""The keys of `auth` in Cursor."""
_ANSWERED_TO: Final = frozenset({"callbackPort", "callback_port", "callback_url", "redirectUri"})
_SWITCHED: Final = "enabled"
_OFF: Final[Mapping[str, Any]] = {"kind": "none"}


def with_auth(server: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a server with our `auth`, and why each other key of its login means nothing here.

    Where a client logs in by itself there is nothing to say: we do so, too. What has no form of a client is left as it
    stands, and is reported as anything that is written wrongly.

    >>> with_auth({"url": "u", "oauth": {"clientId": "x", "scope": "read write"}})
    ({'url': 'u', 'auth': {'client_id': 'x', 'scopes': ['read', 'write']}}, {})
    >>> with_auth({"url": "u", "oauth": False})[0]
    {'url': 'u', 'auth': {'kind': 'none'}}
    """
    found = dict(server)
    oauth, auth = found.get("oauth"), found.get("auth")
    said: dict[str, Any] = {}
    others: dict[str, str] = {}
    if is_mapping(oauth) or isinstance(oauth, bool):
        del found["oauth"]
        off = oauth is False or (is_mapping(oauth) and oauth.get(_SWITCHED) is False)
        said = dict(_OFF) if off else _renamed(oauth if is_mapping(oauth) else {}, _OF_OAUTH)
        others = {} if off or not is_mapping(oauth) else _others("oauth", oauth, {*_OF_OAUTH, _SWITCHED})
    if auth == "oauth":
        del found["auth"]
    elif is_mapping(auth) and any(key in _OF_AUTH for key in auth if key.isupper()):
        del found["auth"]
        said, others = {**said, **_renamed(auth, _OF_AUTH)}, {**others, **_others("auth", auth, {*_OF_AUTH})}
    if said and "auth" not in found and found.get("url") is not None:
        found["auth"] = said
    return found, others


def _renamed(section: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    values = {names[key]: value for key, value in section.items() if key in names and value not in (None, "")}
    if isinstance(scopes := values.get("scopes"), str):
        values["scopes"] = scopes.split()
    return {key: value for key, value in values.items() if not (is_list(value) and not value)}


def _others(section: str, value: Mapping[str, Any], known: set[str]) -> dict[str, str]:
    """Return why each key that is not known has no meaning here."""
    own = "a login of Pegboard comes back to an address of its own"
    return {
        f"{section}.{key}": own if key in _ANSWERED_TO else "it is not known here" for key in value if key not in known
    }
