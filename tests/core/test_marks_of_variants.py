"""What a source demands before a tool runs, where a plugin is known under several overrides."""

from pegboard.core.model.tools import Confirmation, Manifest, Plugin, Tool

DEMANDED = Confirmation(kind="confirm")


def manifest(confirmation: Confirmation | None) -> Manifest:
    return Manifest(tools=(Tool(plugin="workspace", name="delete", confirmation=confirmation),))


def test_what_one_variant_demands_no_other_takes_away() -> None:
    """T13: whichever is seen first."""
    plugin = Plugin(name="workspace")
    for first, second in ((DEMANDED, None), (None, DEMANDED)):
        both = plugin.with_manifest("", manifest(first)).with_manifest("{}", manifest(second))
        assert [tool.confirmation for tool in both.tools] == [DEMANDED]


def test_a_source_may_take_its_own_demand_back() -> None:
    """T13: the newest report of the same variant counts."""
    plugin = Plugin(name="workspace").with_manifest("", manifest(DEMANDED)).with_manifest("", manifest(None))
    assert [tool.confirmation for tool in plugin.tools] == [None]
