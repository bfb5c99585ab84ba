"""Pegboard as a guest in another process: what is global there is afterwards as it was before."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SERVER = HERE.parent / "servers" / "plain_server.py"
ACME = HERE.parent / "packages" / "acme_tools"
CONFIG = f"""
store: sqlite:///state.db
servers:
  far: {{command: {json.dumps(sys.executable)}, args: [{json.dumps(str(SERVER))}]}}
plugins:
  paint: {{python: colour}}
  shop: {{python: shop_h}}
toolkits:
  all: {{tools: [paint, shop], focus: [{{python: 'hooks_h:none'}}]}}
agents:
  ada:
    allowed_toolkits: [all]
    initial_toolkits: [all]
    tools: [paint, shop, calculator, docker, far]
"""
PAINT = """
print("imported")

def colour() -> str:
    print("called")
    return "red"
"""
SHOP = """
def shop_price(item: str) -> str:
    from shop_h import prices
    return prices.__name__
"""


def test_a_closed_board_leaves_nothing_behind_in_its_hosts_process(tmp_path: Path) -> None:
    """Streams, paths, modules, signal handlers, the policy of event loops, loggers, threads and children."""
    beside, host = tmp_path / "beside", tmp_path / "host"
    for folder in (beside, host):
        folder.mkdir()
    (host / "colour.py").write_text("WHOSE = 'the host'\n")
    (beside / "colour.py").write_text(
        "print('imported')\ndef colour() -> str:\n    print('called')\n    return 'red'\n"
    )
    (beside / "shop_h").mkdir()
    (beside / "shop_h" / "__init__.py").write_text("from shop_h.prices import shop_price\n__all__ = ['shop_price']\n")
    (beside / "shop_h" / "prices.py").write_text(SHOP)
    (beside / "hooks_h.py").write_text("def none(message, tools):\n    return None\n")
    (beside / "pegboard.yaml").write_text(CONFIG)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(host), str(ACME))), "XDG_CACHE_HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, HERE / "host_process.py", tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    *printed, last = ran.stdout.splitlines()
    found = json.loads(last)
    assert found["seen"]["colour"] == "red", found
    assert found["seen"]["shop_price"] == "shop_h.prices"
    assert "3" in found["seen"]["add"]
    assert "web" in found["seen"]["docker_ps"]
    assert found["seen"]["far__pid"].isdigit()
    assert (found["changed"], found["host"], found["muted"]) == ({}, "the host", [])
    assert found["seen"]["blocking"] == "ok"
    assert printed == ["imported", "called"] * 2, "what nobody calls the third time is known from the store"
