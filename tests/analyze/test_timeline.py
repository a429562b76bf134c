"""Tests of analyze/timeline.py: a valid picture whose boxes and gaps stand where they should."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.analyze.timeline import (
    GAP,
    LEFT,
    MOST_BOXES,
    PLOT,
    RIGHT,
    Box,
    Lane,
    draw,
    gaps,
    round_step,
)

SVG = "{http://www.w3.org/2000/svg}"


def lane(*boxes: Box, end: float = 1000.0, **fields: object) -> Lane:
    known = {"caption": "c", "gap_word": "device: idle", **fields}
    return Lane("Device", boxes, 0.0, end, **known)  # type: ignore[arg-type]


EMPTY = lane(note="no start times")


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def texts(root: ElementTree.Element) -> list[str]:
    return [node.text or "" for node in root.iter(f"{SVG}text")]


def tips(root: ElementTree.Element) -> dict[str, dict[str, str]]:
    """Tooltip -> attributes of its rectangle."""
    found = {}
    for node in root.iter(f"{SVG}rect"):
        tip = node.find(f"{SVG}title")
        if tip is not None:
            found[tip.text or ""] = dict(node.attrib)
    return found


def test_boxes_and_gaps_stand_at_their_times() -> None:
    root = parsed(
        draw("t", EMPTY, lane(Box("aten::mul", 0, 250), Box("aten::add", 500, 1000)), False)
    )
    found = tips(root)
    mul, add = found["aten::mul: 250 us"], found["aten::add: 500 us"]
    assert (float(mul["x"]), float(mul["width"])) == (LEFT, PLOT / 4)
    assert (float(add["x"]), float(add["width"])) == (LEFT + PLOT / 2, PLOT / 2)
    gap = found["device: idle: 250 us"]
    assert (float(gap["x"]), float(gap["width"]), gap["fill"]) == (LEFT + PLOT / 4, PLOT / 4, GAP)
    assert {"mul", "add", "no start times"} <= set(texts(root))


def test_the_axis_has_a_unit_and_round_numbers() -> None:
    assert {"0 us", "200", "1,000"} <= set(
        texts(parsed(draw("t", EMPTY, lane(Box("a", 0, 9)), False)))
    )
    long = lane(Box("a", 0, 9), end=80_000.0)
    assert {"0 ms", "10", "80"} <= set(texts(parsed(draw("t", EMPTY, long, False))))


@given(st.floats(1e-3, 1e9))
def test_steps_of_the_axis_are_round_and_never_more_than_ten(span: float) -> None:
    step = round_step(span / 8)
    assert re.fullmatch(r"[125]\.?0*e[+-]\d+", f"{step:e}")
    assert 1 < span / step + 1e-9 <= 8 * (1 + 1e-9) + 1


def test_simulated_is_written_inside_both_plots_and_only_then() -> None:
    boxes = lane(Box("a", 0, 9))
    assert texts(parsed(draw("t", boxes, boxes, True))).count("SIMULATED") == 2
    assert "SIMULATED" not in draw("t", boxes, boxes, False)


def test_the_models_fixed_cost_is_hatched_at_the_start_of_each_execution() -> None:
    device = lane(Box("a", 0, 400), Box("b", 400, 800), fixed_us=300.0)
    hatched = [
        (float(node.attrib["x"]), float(node.attrib["width"]))
        for node in parsed(draw("t", EMPTY, device, True)).iter(f"{SVG}rect")
        if node.attrib.get("fill") == "url(#fixed)" and float(node.attrib["width"]) > 20
    ]
    assert hatched == [(LEFT, 328.8), (LEFT + 438.4, 328.8)]  # 300 and 400 of 1000 us on 1096 px


def test_one_clock_is_told_from_two() -> None:
    first, second = lane(Box("a", 0, 9)), lane(Box("b", 0, 9), end=500.0)
    assert "one clock for both" in texts(parsed(draw("t", first, first, False)))
    assert any(
        one.startswith("two clocks") for one in texts(parsed(draw("t", first, second, False)))
    )


HOSTILE = "</text><script>alert(1)</script>\x00\x1b[31m\ud800 \"'&"


def test_a_hostile_name_is_only_a_name() -> None:
    picture = draw(HOSTILE, EMPTY, lane(Box(HOSTILE, 0, 1000), caption=HOSTILE), False)
    picture.encode("utf-8")
    root = parsed(picture)
    assert {node.tag.removeprefix(SVG) for node in root.iter()} <= {
        "svg", "title", "rect", "text", "line", "defs", "pattern",
    }  # fmt: skip
    assert any("<script>" in text for text in texts(root))


@given(st.lists(st.tuples(st.text(max_size=8), st.floats(0, 999), st.floats(0, 500)), max_size=30))
def test_any_boxes_make_a_picture_inside_its_frame(boxes: list[tuple[str, float, float]]) -> None:
    made = [Box(name, start, min(start + size, 1000.0)) for name, start, size in boxes]
    root = parsed(draw("t", lane(*made), EMPTY, True))
    for node in root.iter(f"{SVG}rect"):
        if "x" in node.attrib:
            assert float(node.attrib["x"]) + float(node.attrib["width"]) <= RIGHT + 16.5 or (
                node.attrib["width"] == "1200.00"
            )


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(0, 300)), max_size=20))
def test_gaps_and_covered_time_make_up_the_axis(boxes: list[tuple[int, int]]) -> None:
    made = [Box("a", start, min(start + size, 1000)) for start, size in boxes]
    covered = {moment for box in made for moment in range(int(box.start_us), int(box.end_us))}
    assert sum(end - start for start, end in gaps(lane(*made))) + len(covered) == 1000


def test_thousands_of_events_stay_a_small_file_that_says_how_many() -> None:
    made = [Box("a", number * 0.05, number * 0.05 + 0.04) for number in range(20_000)]
    picture = draw("t", EMPTY, lane(*made), False)
    assert len(picture) < 10_000
    tiny = [Box("a", number, number + 0.001) for number in range(1000)]
    assert len(draw("t", EMPTY, lane(*tiny), False)) < 400_000
    assert "20000 events within: 1,000 us" in tips(parsed(picture))


def test_many_events_of_visible_size_are_merged_down_to_the_most() -> None:
    made = [Box("a", number, number + 0.9) for number in range(1000)]
    drawn = [tip for tip in tips(parsed(draw("t", EMPTY, lane(*made), False))) if "event" in tip]
    assert 0 < len(drawn) <= MOST_BOXES
    assert sum(int(tip.split()[0]) for tip in drawn) <= 1000


def test_an_operator_has_its_colour_in_every_run() -> None:
    def colour(*names: str) -> str:
        boxes = [Box(name, n * 100, n * 100 + 90) for n, name in enumerate(names)]
        return tips(parsed(draw("t", EMPTY, lane(*boxes), False)))["aten::mul: 90 us"]["fill"]

    assert colour("aten::mul") == colour("aten::add", "x", "aten::mul")


@pytest.mark.parametrize("empty", [lane(), lane(Box("a", 5, 5), end=0.0)])
def test_a_lane_without_length_is_said_to_be_empty(empty: Lane) -> None:
    assert "nothing was recorded" in texts(parsed(draw("t", empty, EMPTY, False)))
