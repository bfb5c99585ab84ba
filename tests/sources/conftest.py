"""A folder of Python modules and the source that brings them in; sources of MCP servers."""

import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard.board.catalog.apply_settings import misnamed_tools, with_configuration
from pegboard.core.model.masking import Masker
from pegboard.core.model.specs import PythonSpec
from pegboard.core.model.tools import CallResult, Manifest
from pegboard.errors import ToolUnavailableError
from pegboard.ports import CallContext
from pegboard.sources.mcp import McpSource
from pegboard.sources.python import PythonSource

ALICE = CallContext(principal="alice")


class Workshop:
    """A folder with a configuration's modules, and the source that brings them in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = PythonSource()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def spec(self, target: str, **more) -> PythonSpec:
        return PythonSpec(name=more.pop("name", "mine"), target=target, folder=str(self.folder), **more)

    def beside(self, name: str) -> "Workshop":
        """Return another folder that shares this one's source."""
        other = Workshop(self.folder / name)
        other.source = self.source
        return other

    async def describe(self, target: str, overrides=None, **more) -> Manifest:
        spec = self.spec(target, **more)
        manifest = await self.source.describe(spec, overrides or {})
        for fault in misnamed_tools(manifest, spec):
            raise fault
        return with_configuration(manifest, spec)

    async def call(self, target: str, tool: str, arguments=None, overrides=None, **more) -> CallResult:
        manifest = await self.describe(target, overrides, **more)
        found = next(t for t in manifest.tools if t.name == tool)
        return await self.source.call(self.spec(target, **more), overrides or {}, found, arguments or {}, ALICE)

    async def refused(self, target: str, overrides=None, **more) -> ToolUnavailableError:
        with pytest.raises(ToolUnavailableError) as caught:
            await self.describe(target, overrides, **more)
        return caught.value


@pytest.fixture
async def workshop(tmp_path):
    before = set(sys.modules)
    made = Workshop(tmp_path)
    yield made
    await made.source.aclose()
    ours = [module for name, module in sys.modules.items() if name not in before]
    assert not any(str(tmp_path) in str(getattr(module, "__file__", "")) for module in ours)


@pytest.fixture
async def source(*, fast_path: bool) -> AsyncIterator[McpSource]:
    """A source whose calls go around the SDK, or through it where a test marked `both_paths` runs the second time."""
    source = McpSource(mask=Masker(["hunter22"]).text, fast_path=fast_path)
    yield source
    await source.aclose()
