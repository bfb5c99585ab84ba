"""Curves as SVG: what is drawn, what is said of it, and that nothing in it is markup, script or style."""

import xml.etree.ElementTree as ET

import pytest
from markupsafe import Markup

from pegboard.console.charts import HEIGHT, WIDTH, Series, areas, bars, lines

NOTES = ["09:00: 3", "09:05: none", "09:10: 1"]
HOSTILE = '"><script>alert(1)</script>'


def drawn(svg: Markup, kind: str, style: str) -> list[dict[str, str]]:
    """Return the attributes of what is drawn of a series."""
    found = ET.fromstring(svg).iter(kind)
    return [dict(one.attrib) for one in found if style in one.attrib["class"].split()]


def points(one: dict[str, str]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in one["points"].split())]


def test_bars_stand_on_each_other_and_the_highest_is_as_high_as_the_picture() -> None:
    """F5: a step without a value has no bar."""
    svg = bars((Series(style="ok", values=[2, 0, 1]), Series(style="error", values=[1, None, 0])), NOTES, "Calls")
    ok, error = drawn(svg, "rect", "ok"), drawn(svg, "rect", "error")
    assert [float(one["height"]) for one in ok] == [80, 40]
    assert [(float(one["y"]), float(one["height"])) for one in error] == [(0, 40)]
    assert float(ok[0]["y"]) + float(ok[0]["height"]) == HEIGHT
    assert all(0 <= float(one["x"]) <= WIDTH - float(one["width"]) for one in (*ok, *error))


def test_a_line_is_interrupted_where_nothing_is_known_and_one_point_is_seen() -> None:
    """F5: nothing is made up between."""
    svg = lines((Series(style="p50", values=[10, 20, None, 40, None]),), ["a", "b", "c", "d", "e"], "Times")
    two, one = map(points, drawn(svg, "polyline", "p50"))
    assert [y for _, y in two] == [90, 60]
    assert [y for _, y in one] == [0, 0]
    assert one[0][0] < one[1][0]


def test_an_area_reaches_from_one_side_to_the_other() -> None:
    """F5: a value below nothing is drawn as nothing."""
    svg = areas((Series(style="saved", values=[4, -2, 2]), Series(style="sent", values=[0, 0, 0])), NOTES, "Tokens")
    (area,) = drawn(svg, "polygon", "saved")
    assert points(area)[0] == (0, HEIGHT)
    assert points(area)[-1] == (WIDTH, HEIGHT)
    assert all(0 <= y <= HEIGHT for _, y in points(area))
    assert drawn(svg, "polygon", "sent") == []


@pytest.mark.parametrize("draw", [bars, lines, areas])
@pytest.mark.parametrize("values", [[], [None], [0], [0, None, 0], [10**15, 1], [1] * 400])
def test_whatever_there_is_a_picture_says_what_it_shows_and_what_each_step_is(
    draw: object, values: list[float | None]
) -> None:
    """F5: also of nothing; texts are texts."""
    notes = [f"{at} {HOSTILE}" for at in range(len(values))]
    svg = draw((Series(style="ok", values=values),), notes, f"Shows {HOSTILE}")  # type: ignore[operator]
    picture = ET.fromstring(svg)
    assert (picture.attrib["role"], picture.attrib["aria-label"]) == ("img", f"Shows {HOSTILE}")
    assert [title.text for title in picture.iter("title")] == notes
    assert {one.tag for one in picture.iter()} <= {"svg", "rect", "title", "polyline", "polygon"}
    assert not any({"style", "onclick"} & one.attrib.keys() for one in picture.iter())
