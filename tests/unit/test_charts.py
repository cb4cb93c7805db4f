"""Where the marks of charts stand."""

from __future__ import annotations

from workflows.core.charts import COLUMNS_HEIGHT, STRIP_LEAST, Value, columns, shares, strip


def test_the_tallest_column_leaves_room_for_its_number_and_none_overlaps() -> None:
    chart = columns("", [Value("a", 5), Value("b", 10), Value("c", 0)])
    assert chart.total == 15
    tallest = chart.marks[1]
    assert tallest.y + tallest.height == COLUMNS_HEIGHT
    assert tallest.text_y > 8
    assert [mark.height for mark in chart.marks] == [tallest.height / 2, tallest.height, 0]
    for left, right in zip(chart.marks, chart.marks[1:], strict=False):
        assert left.x + left.width < right.x


def test_nothing_is_drawn_of_nothing() -> None:
    assert columns("", []).marks == ()
    assert [mark.height for mark in columns("", [Value("a", 0)]).marks] == [0]
    assert shares("", [Value("a", 0)], start=24, room=58).marks[0].width == 0


def test_one_of_many_is_still_seen_and_an_empty_hour_is_a_line() -> None:
    low, high, empty = strip("", [Value("", 1), Value("", 10_000), Value("", 0)]).marks
    assert (low.height, high.height, empty.height) == (STRIP_LEAST, 30, 1)


def test_bars_share_the_room_by_their_part_of_the_whole() -> None:
    chart = shares("", [Value("a", 3), Value("b", 1)], start=24, room=60)
    assert [(mark.x, mark.width) for mark in chart.marks] == [(24, 45), (24, 15)]
