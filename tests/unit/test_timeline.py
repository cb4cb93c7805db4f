"""The geometry of the time axis: order is kept, quiet folds, labels never lie on other bars."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.core.timeline import (
    BAR_LEAST,
    FOLD_WIDTH,
    FOLDS_AT_MOST,
    LANE_HEIGHT,
    Lane,
    Span,
    axis,
    draw,
)

START = datetime(2026, 3, 9, 22, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def span(
    start: float,
    end: float | None,
    paint: str = "good",
    *,
    label: str = "",
    working: bool = True,
) -> Span:
    return Span(paint, at(start), None if end is None else at(end), "a bar", label, working=working)


def test_work_is_to_scale_when_nothing_is_quiet() -> None:
    along = axis([span(0, 100)], at(0), at(100))
    assert [along.x(at(second)) for second in (0, 25, 100)] == [0, 25, 100]


def test_a_quiet_stretch_of_a_minute_or_less_stays_to_scale() -> None:
    along = axis([span(0, 20), span(80, 100)], at(0), at(100))
    assert along.quiet == ()


def test_a_longer_quiet_stretch_folds_to_a_band_of_fixed_width() -> None:
    along = axis([span(0, 20), span(10_000, 10_020)], at(0), at(10_020))
    [(begin, until)] = along.quiet
    assert at(20) < begin < until < at(10_000)
    assert along.x(until) - along.x(begin) == pytest.approx(FOLD_WIDTH)
    assert along.x(at(10_020)) == pytest.approx(100)


def test_a_wait_is_quiet_and_folds_while_an_attempt_never_does() -> None:
    wait = axis([span(0, 5), span(5, 4000, "wait", working=False)], at(0), at(4000))
    work = axis([span(0, 5), span(5, 4000)], at(0), at(4000))
    assert len(wait.quiet) == 1
    assert work.quiet == ()


def test_what_begins_or_ends_inside_a_quiet_stretch_is_never_folded_away() -> None:
    spans = [
        span(0, 5),
        span(5, 3000, "wait", working=False),
        span(3000, None, "hold", working=False),
    ]
    along = axis(spans, at(0), at(9000))
    assert all(not begin < at(3000) < until for begin, until in along.quiet)
    assert len(along.quiet) == 2


def test_what_came_or_was_done_is_a_dot_within_the_axis_and_nothing_folds_over_it() -> None:
    spans = (
        span(0, 5),
        span(5, 4000, "wait", working=False),
        span(2000, 2000, "person", label="paused", working=False),
        span(4000, 4000, "person", working=False),
    )
    line = draw([Lane("step", spans)], [], start=at(0), end=at(4000), running=False)
    paused, last = (bar for bar in line.steps.rows[0].bars if bar.is_mark)
    assert len(line.folds) == 2
    assert line.folds[0].x < paused.middle < line.folds[1].x
    assert last.x + last.width <= 100
    assert [bar.is_mark for bar in line.steps.rows[0].bars] == [False, False, True, True]


def test_many_folds_leave_room_for_the_work() -> None:
    spans = [span(number * 1000, number * 1000 + 10) for number in range(40)]
    along = axis(spans, at(0), at(39_010))
    assert along.fold_width * len(along.quiet) <= FOLDS_AT_MOST + 0.001


def test_true_scale_folds_nothing() -> None:
    spans = [span(0, 20), span(10_000, 10_020)]
    assert axis(spans, at(0), at(10_020), fold=False).quiet == ()


def test_where_there_was_no_work_nothing_folds() -> None:
    assert axis([span(0, 900, "wait", working=False)], at(0), at(900)).quiet == ()


def test_a_run_that_has_just_begun_has_an_axis() -> None:
    along = axis([], at(0), at(0))
    assert along.x(at(0)) == 0


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100_000), st.floats(0.01, 5000), st.booleans(), st.text("abc", max_size=9)
        ),
        max_size=12,
    )
)
def test_every_drawing_keeps_time_in_order_and_inside_the_frame(
    parts: list[tuple[float, float, bool, str]],
) -> None:
    spans = tuple(
        span(start, start + length, label=label, working=working)
        for start, length, working, label in parts
    )
    end = at(max((start + length for start, length, *_ in parts), default=0) + 1)
    along = axis(spans, at(0), end)
    moments = sorted({at(0), end, *(edge for one in spans for edge in (one.start, one.end or end))})
    for earlier, later in pairwise(moments):
        assert along.x(earlier) <= along.x(later) + 1e-6
    line = draw([Lane("step", spans)], [], start=at(0), end=end, running=False)
    for bar in line.steps.rows[0].bars:
        assert -1e-6 <= bar.x <= bar.x + bar.width <= 100 + 1e-6
        assert bar.width >= BAR_LEAST - 1e-9


def test_a_bar_of_no_length_can_still_be_seen_and_stays_inside() -> None:
    line = draw([Lane("step", (span(100, 100),))], [], start=at(0), end=at(100), running=False)
    [bar] = line.steps.rows[0].bars
    assert bar.width == BAR_LEAST
    assert bar.x + bar.width == pytest.approx(100)


def test_an_open_bar_reaches_now() -> None:
    line = draw([Lane("step", (span(50, None),))], [], start=at(0), end=at(100), running=True)
    [bar] = line.steps.rows[0].bars
    assert bar.x + bar.width == pytest.approx(100)


@pytest.mark.parametrize(
    ("spans", "place"),
    [
        ((span(0, 90, label="two words"),), "in"),
        ((span(0, 1, label="two words"),), "after"),
        ((span(99, 100, label="two words"),), "before"),
        ((span(48, 50, label="two words"), span(51, 90)), "before"),
        ((span(0, 48), span(49, 51, label="two words"), span(52, 90)), ""),
        ((span(0, 100), span(49, 50, label="two words")), ""),
    ],
)
def test_a_label_stands_where_there_is_room(spans: tuple[Span, ...], place: str) -> None:
    line = draw([Lane("step", spans)], [], start=at(0), end=at(100), running=False, fold=False)
    [labelled] = [bar for bar in line.steps.rows[0].bars if bar.label]
    assert labelled.label_at == place


def test_the_unknown_outcome_lies_behind_the_sends() -> None:
    spans = (span(0, 10, "ink"), span(5, None, "unknown", working=False))
    line = draw([Lane("refund", spans)], [], start=at(0), end=at(60), running=True)
    assert [bar.paint for bar in line.steps.rows[0].bars] == ["unknown", "ink"]


def test_a_hand_over_joins_the_lanes_of_two_workers_in_the_order_of_their_leases() -> None:
    workers = [
        Lane("w-1", (span(0, 20, "gone"), span(60, 70, "done"))),
        Lane("w-2", (span(30, 50, "done"),)),
    ]
    line = draw([], workers, start=at(0), end=at(70), running=False)
    down, up = line.workers.hops
    assert (down.x1, down.x2) == (
        line.workers.rows[0].bars[0].width,
        line.workers.rows[1].bars[0].x,
    )
    assert down.y1 < down.y2 < 2 * LANE_HEIGHT
    assert up.y1 > up.y2


def test_a_worker_that_takes_its_own_run_again_hands_nothing_over() -> None:
    workers = [Lane("w-1", (span(0, 20, "done"), span(30, 50, "done")))]
    assert draw([], workers, start=at(0), end=at(50), running=False).workers.hops == ()


def test_ticks_are_round_clock_times_that_do_not_touch() -> None:
    line = draw([Lane("step", (span(0, 300),))], [], start=at(0), end=at(300), running=False)
    assert [tick.label for tick in line.ticks][:3] == ["22:00", "22:01", "22:02"]
    xs = sorted(tick.x for tick in line.ticks)
    assert all(right - left >= 9 for left, right in pairwise(xs))


def test_two_thousand_tries_are_drawn() -> None:
    spans = tuple(span(number * 2, number * 2 + 1, label=str(number)) for number in range(2000))
    line = draw([Lane("step", spans)], [], start=at(0), end=at(4000), running=False)
    assert len(line.steps.rows[0].bars) == 2000
