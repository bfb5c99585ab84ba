"""Resources, templates and prompts that a test defines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from pegboard.core.access.instances import LoginOwner
from pegboard.core.access.listed_items import ListKind
from pegboard.core.model.specs import PluginSpec
from pegboard.core.model.tools import JsonObject
from pegboard.errors import UpstreamError
from pegboard.ports import CallContext
from pegboard.ports.resources import NOBODY

_NOT_FOUND = -32602


class FakeResources:
    """What servers offer besides tools, in memory: texts by URI, prompts by name.

    >>> offered = FakeResources(resources={"wiki": {"wiki://start": "Welcome"}})
    >>> sorted(offered.capabilities("wiki"))
    ['resources']

    ``asked`` is the log of reads: the server, the method and its parameters.
    """

    def __init__(
        self,
        *,
        resources: Mapping[str, Mapping[str, str]] | None = None,
        templates: Mapping[str, Sequence[str]] | None = None,
        prompts: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Define what each server offers.

        Args:
            resources: By server: texts by URI.
            templates: By server: URI templates with names in braces.
            prompts: By server: the text of the one message by the prompt's name.
        """
        self.asked: list[tuple[str, str, JsonObject]] = []
        self._texts = {server: dict(texts) for server, texts in (resources or {}).items()}
        self._templates = {server: tuple(given) for server, given in (templates or {}).items()}
        self._prompts = {server: dict(given) for server, given in (prompts or {}).items()}
        self._watchers: list[tuple[str, str, Callable[[str], None]]] = []
        self._callbacks: list[Callable[[str, ListKind], None]] = []

    def put(self, server: str, uri: str, text: str) -> None:
        """Set a resource: subscribers are notified of an update, and everyone of a new one.

        Args:
            server: Its name.
            uri: As the server knows it.
            text: What a read returns from now on.
        """
        texts = self._texts.setdefault(server, {})
        known = uri in texts
        texts[uri] = text
        for callback in () if known else tuple(self._callbacks):
            callback(server, "resources")
        for name, watched, updated in tuple(self._watchers):
            if name == server and uri.startswith(watched):
                updated(uri)

    def capabilities(self, server: str) -> frozenset[str]:
        """Return what a server declares to have.

        Args:
            server: Its name.

        Returns:
            Of ``resources`` and ``prompts`` those of which something was given.
        """
        has = {"resources": server in self._texts or server in self._templates, "prompts": server in self._prompts}
        return frozenset(name for name, given in has.items() if given)

    def cached(
        self,
        spec: PluginSpec,
        scope: str,  # noqa: ARG002
        kind: ListKind,
        owner: LoginOwner = NOBODY,  # noqa: ARG002
    ) -> Sequence[JsonObject] | None:
        """Return a list as :meth:`offers` does: in memory it is always fresh."""
        return self._list_items(spec.name, kind)

    async def offers(
        self,
        spec: PluginSpec,
        scope: str,  # noqa: ARG002
        kind: ListKind,
        owner: LoginOwner = NOBODY,  # noqa: ARG002
    ) -> Sequence[JsonObject]:
        """Return a list as it stands on the wire."""
        return self._list_items(spec.name, kind)

    def _list_items(self, server: str, kind: ListKind) -> Sequence[JsonObject]:
        match kind:
            case "resources":
                return [{"uri": uri, "name": uri} for uri in self._texts.get(server, {})]
            case "templates":
                return [{"uriTemplate": given, "name": given} for given in self._templates.get(server, ())]
            case "prompts":
                return [{"name": name} for name in self._prompts.get(server, {})]

    async def ask(self, spec: PluginSpec, method: str, params: JsonObject, context: CallContext) -> JsonObject:  # noqa: ARG002
        """Record a request, and answer it; a completion has no values.

        Raises:
            UpstreamError: There is no such resource or prompt.
        """
        self.asked.append((spec.name, method, params))
        key = str(params.get("uri") or params.get("name") or "")
        texts = (self._texts if method == "resources/read" else self._prompts).get(spec.name, {})
        if method == "completion/complete":
            return {"completion": {"values": []}}
        if key not in texts:
            error = UpstreamError(f"Server '{spec.name}' has no '{key}'.")
            error.answer = {"code": _NOT_FOUND, "message": f"there is no '{key}'"}
            raise error
        if method == "resources/read":
            return {"contents": [{"uri": key, "mimeType": "text/plain", "text": texts[key]}]}
        return {"messages": [{"role": "user", "content": {"type": "text", "text": texts[key]}}]}

    async def subscribe(
        self,
        spec: PluginSpec,
        uri: str,
        scope: str,  # noqa: ARG002
        updated: Callable[[str], None],
        owner: LoginOwner = NOBODY,  # noqa: ARG002
    ) -> Callable[[], None] | None:
        """Call back when :meth:`put` sets a resource, or one beneath it; returns what ends it."""
        watcher = (spec.name, uri, updated)
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher) if watcher in self._watchers else None

    def by_login(self, spec: PluginSpec) -> bool:  # noqa: ARG002
        """Return False: everyone gets the same."""
        return False

    async def kept_as(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> str | None:  # noqa: ARG002
        """Return None: lists in memory are always there, and none is kept."""
        return None

    def may_keep(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:  # noqa: ARG002
        """Return False: none is kept."""
        return False

    def is_up(self, spec: PluginSpec, scope: str, owner: LoginOwner = NOBODY) -> bool:  # noqa: ARG002
        """Return True: nothing has to be started."""
        return True

    def matches(self, template: str, uri: str) -> bool:
        """Return whether a template gives a URI: each name in braces stands for one segment."""
        parts = re.split(r"\{[^}]*\}", template)
        return re.fullmatch("[^/]+".join(map(re.escape, parts)), uri) is not None

    def on_up(self, callback: Callable[[PluginSpec, str, LoginOwner], None]) -> None:
        """Do nothing: no connection is opened."""

    def on_changed(self, callback: Callable[[str, ListKind], None]) -> None:
        """Call back when :meth:`put` adds a resource."""
        self._callbacks.append(callback)
