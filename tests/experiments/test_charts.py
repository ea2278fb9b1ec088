"""Charts keep their data inside the frame, and a policy has one colour in all of them."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from tidegate.experiments.charts import bar_chart, colours, heat_map, line_chart
from tidegate.experiments.claims import MeanInterval
from tidegate.pictures import to_png, to_svg


def test_a_policy_has_one_colour_under_all_its_names() -> None:
    assert colours(["random", "age"])["random"] == colours(["EXACT", "RAND"])["RAND"]
    assert colours(["fifo"])["fifo"] == colours(["recent"])["recent"]
    many = colours(["IJOIN", "IJOIN as printed", "x", "y", "z"])
    assert len(set(many.values())) == 5


def test_all_points_are_inside_the_axes() -> None:
    chart = line_chart(
        "t",
        "x",
        "y",
        {"a": [(-5.0, MeanInterval(2, 1, 3)), (5.0, 7.0)]},
        dashed={"a": [(0.0, 9.0), (1.0, 1.0)]},
    )
    [axes] = chart.axes
    assert axes.get_xlim() == (-6, 6)
    assert axes.get_ylim() == (0, 10)
    assert [line.is_dashed() for line in axes.get_lines() if len(line.get_xdata()) == 2] == [False, True]  # type: ignore[arg-type]
    assert "stroke-dasharray" in to_svg(chart)


def test_a_logarithmic_axis_has_a_tick_at_each_power_of_two() -> None:
    [axes] = line_chart("t", "x", "y", {"a": [(1, 0.9), (6, 0.5), (32, 0.4)]}, log2_x=True).axes
    assert axes.get_xticks().tolist() == [1, 2, 4, 8, 16, 32]


def test_a_negative_bar_extends_below_zero() -> None:
    [axes] = bar_chart("t", "x", "y", {"g": {"up": 3.0, "down": MeanInterval(-6, -7, -5)}}).axes
    assert [bar.get_bbox().intervaly.tolist() for bar in axes.patches] == [[0, 3], [0, -6]]  # type: ignore[attr-defined]
    assert axes.get_ylim()[0] <= -7


def test_every_best_cell_of_a_row_has_a_frame() -> None:
    [axes] = heat_map("t", "x", "y", {"r": {"a": 0.5, "b": 0.5, "c": 0.1}}).axes
    assert len(axes.patches) == 3 + 2


def test_a_chart_is_the_same_bytes_every_time_and_its_text_stays_text() -> None:
    first, second = (
        bar_chart("a < b & $c$", "x", "y", {"g": {"age": MeanInterval(3, 2, 4)}}) for _ in range(2)
    )
    assert to_svg(first) == to_svg(second)
    assert to_png(first) == to_png(second)
    texts = [found.text for found in ET.fromstring(to_svg(first)).iter() if found.tag.endswith("text")]  # noqa: S314
    assert {"a < b & $c$", "age"} <= set(texts)


@pytest.mark.parametrize("unwanted", ["<?xml", "<metadata", "<style", "<!--", 'id="figure'])
def test_svg_can_be_embedded_in_a_page(unwanted: str) -> None:
    svg = to_svg(bar_chart("t", "x", "y", {"g": {"age": 1.0}}))
    assert svg.startswith("<svg ")
    assert unwanted not in svg
