"""Find servers in what operators paste and in the files of this machine's clients, and try one before it is added."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pegboard.config.clients.pasted import (
    ReadServer,
    ReadServers,
    installed_client_files,
    read_pasted,
    read_servers,
    with_references,
)
from pegboard.config.inspection import inspect
from pegboard.config.location import Machine
from pegboard.confined_servers import confine_servers
from pegboard.core.access.descriptions import OtherNames, read_definition
from pegboard.core.model.agents import World
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import ServerSpec
from pegboard.core.model.tools import EMPTY, Tool
from pegboard.errors import ConfigError, PegboardError
from pegboard.mcp_extra import require
from pegboard.operators.adding_servers import FoundServer, FoundServers, ServerTrial, TriedTool

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.board import Board
    from pegboard.core.access.named_paths import OwnPaths
    from pegboard.ports import Source

START: Final = 30.0
"""For how many seconds a server that is tried may start, and then list its tools."""
STOP: Final = 10.0
"""For how many seconds it is waited for its end."""
MOST: Final = 2_000
"""How many tools are shown of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFinderOfBoard:
    """What finds and tries servers for the configuration that a board has open.

    ``opened`` opens a board over sources that writes nothing, ``own_paths`` are kept from what is confined, ``others``
    gives the names of other servers' tools. ``start`` is for how many seconds a server may start.
    """

    path: Callable[[], Path]
    env: Mapping[str, str]
    opened: Callable[[Sequence[Source], Masker], Board]
    own_paths: Callable[[], OwnPaths]
    others: Callable[[], Mapping[str, Sequence[str]]]
    masker: Callable[[], Masker]
    start: float = START

    async def read_pasted(self, text: str) -> FoundServers:
        """Return the servers of a text; raises ``ConfigError`` where it has none that can be read."""
        return await asyncio.to_thread(lambda: self._found_servers(read_pasted(text, self._machine)))

    async def installed(self) -> tuple[FoundServers, ...]:
        """Return the servers of this machine's clients."""
        return await asyncio.to_thread(self._installed_servers)

    async def read_written(self, name: str, entry: Mapping[str, Any]) -> FoundServers:
        """Return a server that someone has written by hand."""
        plain, variables = with_references(name, entry)
        server = ReadServer(name=name, entry=plain, variables=variables)
        return self._found_servers(ReadServers(title="", file="", servers=(server,)))

    def has_variable(self, variable: str) -> bool:
        """Return whether the environment has a variable."""
        return bool(self.env.get(variable))

    async def try_server(self, name: str, entry: Mapping[str, Any], variables: Mapping[str, str]) -> ServerTrial:
        """Start a server as it would be started, with these variables beside the environment, and stop it."""
        began = time.monotonic()

        def failed_trial(message: str) -> ServerTrial:
            return ServerTrial(name=name, ok=False, message=message, seconds=time.monotonic() - began)

        try:
            require("a trial of a server")
            spec, masker = await asyncio.to_thread(self._spec, name, entry, variables)
            tools = await self._list_tools(spec, masker)
        except TimeoutError:
            return failed_trial(f"It did not answer within {self.start:g} s, and was stopped.")
        except PegboardError as error:
            return failed_trial(str(error))
        return ServerTrial(
            name=name,
            ok=True,
            message="It answers.",
            seconds=time.monotonic() - began,
            tools=tools[:MOST],
            tokens=sum(tool.tokens for tool in tools),
        )

    @property
    def _machine(self) -> Machine:
        return Machine(folder=self.path().absolute().parent, env=self.env)

    def _installed_servers(self) -> tuple[FoundServers, ...]:
        found: list[FoundServers] = []
        own = self.path().absolute()
        for file in installed_client_files(self._machine):
            if file.spot.path.expanduser().absolute() != own:
                with suppress(ConfigError):
                    found.append(self._found_servers(read_servers(file, self._machine)))
        return tuple(found)

    def _found_servers(self, read: ReadServers) -> FoundServers:
        entries = {server.name: server.entry for server in read.servers}
        held = confine_servers(entries, self.path())
        return FoundServers(
            title=read.title,
            file=read.file,
            servers=tuple(
                FoundServer(
                    name=server.name,
                    entry=server.entry,
                    variables=server.variables,
                    rule=server.rule,
                    unsupported_reason=server.unsupported_reason,
                    confine=held.servers[server.name].get("confine"),
                )
                for server in read.servers
            ),
            problems=tuple(str(problem) for problem in read.problems),
        )

    def _spec(self, name: str, entry: Mapping[str, Any], variables: Mapping[str, str]) -> tuple[ServerSpec, Masker]:
        """Return how a server is started; raises ``ConfigError`` where its entry is not valid, or cannot run."""
        text = json.dumps({"servers": {name: dict(entry)}}, ensure_ascii=False)
        path = self.path().with_name("pegboard.yaml")
        configuration, problems = inspect(path, registered=EMPTY, env={**self.env, **variables}, text=text)
        if configuration is None:
            first = next(problem for problem in problems if problem.severity == "error")
            raise ConfigError(first.message, code=first.code, hint=first.hint)
        spec = configuration.specs[name]
        assert isinstance(spec, ServerSpec)
        if spec.unavailable:
            raise ConfigError(f"It cannot run: {spec.unavailable}", code="server_invalid")
        known = self.masker().values | configuration.secrets
        return replace(spec, timeout=min(spec.timeout, self.start)), Masker(known.union(variables.values()))

    async def _list_tools(self, spec: ServerSpec, masker: Masker) -> tuple[TriedTool, ...]:
        """Return the tools of a server that is started for that alone; raises ``ConfigError`` where it has none."""
        from pegboard.sources.mcp import McpSource
        from pegboard.stores.sql import MemoryStore

        source = McpSource(
            mask=masker.text,
            learn=masker.learn,
            spawns=1,
            start_timeout=self.start,
            asks=False,
            resolves=True,
            store=MemoryStore(),  # with one it is known what wants a login
        )
        source.keep_from(self.own_paths)
        board = self.opened((source,), masker)
        try:
            async with asyncio.timeout(self.start + 1):
                await board.adopt(World(), {spec.name: spec}, masker=masker)
                await board.ready(spec.name)
            plugin = board.world.catalog.plugins[spec.name]
            if fault := plugin.variant("").unavailable:
                raise ConfigError(fault, code="server_invalid")
            others = {server: names for server, names in self.others().items() if server != spec.name}
            own = [spec.name, *(tool.name for tool in plugin.tools)]
            names = OtherNames.of(others, own=own)
            return tuple(_tried_tool(tool, names, board) for tool in plugin.tools)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP):
                    await board.aclose()


def _tried_tool(tool: Tool, others: OtherNames, board: Board) -> TriedTool:
    said = (f"{found.text}: {found.excerpt}" for found in read_definition(tool, others=others))
    return TriedTool(
        name=tool.name,
        description=tool.description,
        tokens=board.services.prices((tool,)),
        warnings=tuple(dict.fromkeys(said)),
    )
