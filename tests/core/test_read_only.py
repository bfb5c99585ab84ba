"""Which tools of servers count as read-only."""

from pegboard.core.access.read_only import reads_only
from pegboard.core.model.tools import Plugin, Tool

SERVER = Plugin(name="up", kind="server", trusted=True)
LOOK = Tool(plugin="up", name="look", annotations={"readOnlyHint": True})


def test_only_servers_have_to_be_trusted_and_seen() -> None:
    """G6: own plugins are believed; a server only with `trust: annotations`, and of what counts."""
    own, stranger = Plugin(name="up"), Plugin(name="up", kind="server")
    assert reads_only(own, LOOK, frozenset())
    assert not reads_only(stranger, LOOK, frozenset({"look"}))
    assert not reads_only(SERVER, LOOK, frozenset())
    assert reads_only(SERVER, LOOK, frozenset({"look"}))
    wipe = Tool(plugin="up", name="look", annotations={"readOnlyHint": False})
    assert not reads_only(own, wipe, frozenset({"look"}))
