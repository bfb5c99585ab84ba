"""FastMCP's ``create_proxy``: every tool of every server, as it does by default and with ``mode="auto"``."""

from __future__ import annotations

from benchmarks.gateways.adapter import Adapter, Setup
from benchmarks.gateways.installing import environment

PROGRAM = """
import json, sys
from fastmcp.server import create_proxy

config, transport, port, mode = sys.argv[1:]
proxy = create_proxy(json.load(open(config)), mode=mode or None)
if transport == "stdio":
    proxy.run(show_banner=False)
else:
    proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False)
"""


class FastMcpProxy(Adapter):
    def __init__(self, mode: str = "") -> None:
        self.mode = mode
        self.name = f"fastmcp 4.1.2 {mode}".strip()
        self.note = f'create_proxy(mode="{mode}")' if mode else "create_proxy"

    def install(self) -> None:
        environment("fastmcp", "fastmcp==4.1.2")

    def command(self, setup: Setup) -> list[str]:
        python = environment("fastmcp", "fastmcp==4.1.2") / "python"
        program = setup.write("proxy.py", PROGRAM)
        return [str(python), program, setup.client_file(), setup.transport, str(setup.port), self.mode]

    def env(self, setup: Setup) -> dict[str, str]:
        return {"FASTMCP_CHECK_FOR_UPDATES": "off"}
