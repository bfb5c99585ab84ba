"""Where the parts of pictures stand: areas that are as sizes, nothing over another, the same every time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.console.flow import GAP, LEAST, Link, bands, column, height_of
from pegboard.console.flow_picture import MOST_SERVERS, MOST_TOOLKITS, STATES, flow_picture
from pegboard.console.token_picture import HEIGHT, WIDTH, picture_of
from pegboard.console.treemap import Box, fitting, squarified
from pegboard.operators.agent_flow import AgentFlow, FlowPart
from pegboard.operators.token_map import MappedServer, MappedTool, TokenMap

FIELD = Box(x=3, y=5, width=960, height=420)
sizes = st.lists(st.integers(0, 10_000), max_size=60)
NAMES = ("<b>&\"'\u202e", "a" * 300, "メール送信サーバー" * 9, "naïve café", "﷽﷽﷽﷽", "notes", "")


def over(one: Box, two: Box) -> float:
    """Return the area that two boxes share."""
    wide = min(one.x + one.width, two.x + two.width) - max(one.x, two.x)
    high = min(one.y + one.height, two.y + two.height) - max(one.y, two.y)
    return max(wide, 0) * max(high, 0)


@given(sizes)
def test_tiles_are_as_large_as_their_sizes_fill_the_field_and_do_not_overlap(given_sizes: list[int]) -> None:
    """F5: and are the same every time."""
    boxes, total = squarified(given_sizes, FIELD), sum(given_sizes)
    assert boxes == squarified(given_sizes, FIELD)
    for size, box in zip(given_sizes, boxes, strict=True):
        assert box.area == pytest.approx(FIELD.area * size / total if total else 0, rel=1e-6, abs=1e-6)
        assert FIELD.x - 1e-6 <= box.x
        assert box.x + box.width <= FIELD.x + FIELD.width + 1e-6
        assert FIELD.y - 1e-6 <= box.y
        assert box.y + box.height <= FIELD.y + FIELD.height + 1e-6
    assert sum(over(one, two) for at, one in enumerate(boxes) for two in boxes[:at]) < 1e-3


@given(st.lists(st.integers(50, 100), min_size=4, max_size=30))
def test_tiles_of_like_sizes_are_near_to_squares(given_sizes: list[int]) -> None:
    for box in squarified(given_sizes, Box(x=0, y=0, width=600, height=600)):
        assert max(box.width / box.height, box.height / box.width) < 5


@given(st.dictionaries(st.text(max_size=5), st.floats(0, 1e6), max_size=30), st.floats(0, 900))
def test_nodes_of_a_column_stand_apart_in_order_and_no_lower_than_a_line(
    given_sizes: dict[str, float], h: float
) -> None:
    """F5: the larger, the higher; together they are as high as is wanted, or as they need."""
    nodes = [*column(given_sizes, h).values()]
    assert [node.key for node in nodes] == [*given_sizes]
    assert all(node.height >= LEAST - 1e-9 for node in nodes)
    assert all(two.y == pytest.approx(one.y + one.height + GAP) for one, two in pairwise(nodes))
    if nodes:
        high = nodes[-1].y + nodes[-1].height
        assert high == pytest.approx(max(h, len(nodes) * LEAST + (len(nodes) - 1) * GAP))
        assert high == pytest.approx(height_of([len(nodes)], h))
    for one in nodes:
        assert all(one.height >= two.height - 1e-6 for two in nodes if given_sizes[one.key] >= given_sizes[two.key])


links = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.floats(0, 1e5)), max_size=12)


@given(links)
def test_bands_fill_their_nodes_and_do_not_overlap(given_links: list[tuple[str, str, float]]) -> None:
    """F5: on both ends."""
    made = [Link(source=a, target=b, state="loaded", size=size) for a, b, size in given_links]
    left = column({one.source: 1.0 for one in made}, 200)
    right = column({one.target: 1.0 for one in made}, 200)
    found = bands(made, left, right)
    assert [one.link for one in found] == made
    for nodes, key, start, high in (
        (left, "source", "left", "left_height"),
        (right, "target", "right", "right_height"),
    ):
        for name, node in nodes.items():
            own = [one for one in found if getattr(one.link, key) == name]
            assert sum(getattr(one, high) for one in own) == pytest.approx(node.height)
            assert getattr(own[0], start) == pytest.approx(node.y)
            for one, two in pairwise(own):
                assert getattr(two, start) == pytest.approx(getattr(one, start) + getattr(one, high))


@given(st.text(max_size=60) | st.sampled_from(NAMES), st.floats(0, 400), st.sampled_from([13, 14, 15]))
def test_a_name_stands_whole_cut_or_not_at_all(name: str, width: float, size: int) -> None:
    found = fitting(name, width, size)
    assert found in ("", name) or (found.endswith("…") and name.startswith(found[:-1].rstrip("…")))
    assert len([one for one in found if one.isascii()]) * 0.6 * size <= width + size


def part(toolkit: str, server: str, tokens: int | None = 10, state: str = "may_load") -> FlowPart:
    return FlowPart(toolkit=toolkit, server=server, kind="server", state=state, tools=1, tokens=tokens)  # type: ignore[arg-type]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 60), st.integers(0, 220), st.none() | st.integers(0, 9_999), st.sampled_from([*STATES])
        ),
        min_size=1,
        max_size=120,
    )
)
def test_many_toolkits_and_servers_fold_and_no_token_is_lost(
    rows: list[tuple[int, int, int | None, str]],
) -> None:
    """F5: the picture stays of a size that can be looked at."""
    parts = tuple(
        part(f"t{toolkit}" if toolkit else "", f"s{server}", tokens, state) for toolkit, server, tokens, state in rows
    )
    picture = flow_picture(AgentFlow(agent="ada", parts=parts, not_granted=3), servers=True)
    assert picture is not None
    toolkits = [node for node in picture.nodes if node.x == 320]
    servers = [node for node in picture.nodes if node.x == 710]
    assert len(toolkits) <= MOST_TOOLKITS
    assert len(servers) <= MOST_SERVERS
    assert picture.height <= 900
    whole = sum(tokens or 0 for _, _, tokens, _ in rows)
    for column_of in (toolkits, servers):
        told = [node.title.partition(": ")[2].partition(" tokens")[0].replace(",", "") for node in column_of]
        assert sum(int(one) for one in told if one.isdigit()) == whole


def test_what_folds_says_how_many_more() -> None:
    """F5: 50 toolkits of 200 servers."""
    parts = tuple(part(f"kit{at % 50}", f"server{at}", 1_000 - at) for at in range(200))
    picture = flow_picture(AgentFlow(agent="ada", parts=parts, not_granted=0), servers=False)
    assert picture is not None
    labels = [node.label for node in picture.nodes]
    assert f"and {50 - MOST_TOOLKITS + 1} more" in labels
    assert f"and {200 - MOST_SERVERS + 1} more" in labels
    hrefs = [node.href for node in picture.nodes if node.x == 710 and node.href]
    assert all(href.startswith("/console/agent?agent=ada&q=server") for href in hrefs)


def test_an_agent_that_reaches_nothing_has_no_picture() -> None:
    assert flow_picture(AgentFlow(agent="ada", parts=(), not_granted=9), servers=True) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_is_cut_to_its_tile_and_whole_in_its_title(name: str) -> None:
    """F5: an area of nothing is no link, and what is not listed has its part."""
    tools = (MappedTool(name=name, tokens=70), MappedTool(name="b", tokens=30))
    server = MappedServer(name=name, kind="server", tokens=110, tools=tools, more=4, more_tokens=10)
    found = picture_of(TokenMap(servers=(server,), tokens=150, more=3, more_tokens=40, unknown=1))
    own, rest = found.tiles
    assert own.own.box.area == pytest.approx(WIDTH * HEIGHT * 110 / 150)
    assert rest.own.label == "and 3 more"
    assert "\u202e" not in own.own.title
    assert all(inner.box.width * inner.box.height > 0 for inner in own.tools)
    assert sum(inner.box.area for inner in own.tools) == pytest.approx(own.own.box.within(2, 24).area)
