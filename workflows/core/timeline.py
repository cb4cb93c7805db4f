"""Where things stand on the time axis of a run page: pure geometry, no Django, no clock.

Lanes share one axis. Quiet stretches, in which no worker works and nothing begins or ends, fold
to a band of fixed width once they are longer than a minute; the band states its length. Positions
are percentages of the width, so that the page can stretch without scaling its text; heights are
pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, pairwise

FOLD_FROM = timedelta(seconds=60)
FOLD_WIDTH = 8.0  # percent
FOLDS_AT_MOST = 45.0  # percent of the width that all folds share when there are many

# Around work a little quiet stays unfolded, so that bars do not touch the bands.
PAD_SHARE = 0.06
PAD_AT_MOST = timedelta(seconds=15)

LANE_HEIGHT = 38
BAR_LEAST = 0.55  # percent: a bar of a few milliseconds is still seen and hit
MARK = 1.0  # percent that the dot of a moment takes
LETTER = 0.85  # percent that a letter takes on the narrowest axis; decides where labels fit

TICK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
TICK_LAYOUTS = ((43200, "%d %b"), (60, "%H:%M"), (0, "%H:%M:%S"))  # from this step on, in seconds
TICKS = 8
TICK_ROOM = 9.0  # percent between the middles of two tick labels


# --- what the caller knows --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasts, in one lane.

    Attributes:
        paint: `good lost move wait hold none ink unknown block done gone`, a class of the bar.
        end: None while it goes on.
        working: a worker was at it; such a span never folds. Waits, holds and unknown outcomes
            are not work: the quiet inside them folds.
        title: what a reader hears and a pointer sees.
    """

    paint: str
    start: datetime
    end: datetime | None
    title: str
    label: str = ""
    url: str = ""
    working: bool = True

    @property
    def is_moment(self) -> bool:
        """Something that came or was done, rather than lasted."""
        return self.end == self.start and not self.working


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: a step, an operation or a wait below its step, a worker, or a person."""

    name: str
    spans: tuple[Span, ...] = ()
    kind: str = "step"  # with `state`, the badge at its head
    state: str = ""
    note: str = ""  # instead of a state
    url: str = ""
    child: bool = False
    pending: bool = False  # a step that has not begun


# --- what the page draws ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    width: float
    y: int
    height: int
    paint: str
    title: str
    url: str
    label: str
    label_at: str  # `in` the bar, `after` it or `before` it; empty without room

    is_mark: bool = False  # of a moment: a dot instead of a bar

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def middle_y(self) -> float:
        return self.y + self.height / 2

    @property
    def label_x(self) -> float:
        return self.x + self.width if self.label_at == "after" else self.x

    @property
    def label_y(self) -> int:
        return self.y + self.height - 3


@dataclass(frozen=True, slots=True)
class Row:
    lane: Lane
    bars: tuple[Bar, ...]
    line_y: float  # of the rule below it


@dataclass(frozen=True, slots=True)
class Fold:
    x: float
    width: float
    length: timedelta

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Hop:
    """A line from where one worker's lease ended to where the next one's began."""

    x1: float
    y1: int
    x2: float
    y2: int


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that share one drawing."""

    rows: tuple[Row, ...]
    hops: tuple[Hop, ...] = ()

    @property
    def height(self) -> int:
        return len(self.rows) * LANE_HEIGHT


@dataclass(frozen=True, slots=True)
class Timeline:
    """A drawn time axis. `folded` says whether quiet stretches are folded."""

    start: datetime
    end: datetime
    steps: Block
    workers: Block
    people: Block
    folds: tuple[Fold, ...]
    ticks: tuple[Tick, ...]
    folded: bool
    running: bool  # the right edge is now

    @property
    def end_clock(self) -> str:
        """The time of day at the right edge, in the zone of the axis."""
        return f"{self.end:%H:%M:%S}"


# --- the axis ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps times to percentages; built by `axis`."""

    start: datetime
    end: datetime
    quiet: tuple[tuple[datetime, datetime], ...] = ()
    fold_width: float = field(default=FOLD_WIDTH)

    @property
    def shown_seconds(self) -> float:
        """How much time is drawn to scale, in seconds."""
        return max(_seconds(self.start, self.end) - sum(_seconds(*part) for part in self.quiet), 0)

    def x(self, at: datetime) -> float:
        """Return the position of `at`, held inside the axis."""
        at = min(max(at, self.start), self.end)
        to_scale, folds = _seconds(self.start, at), 0.0
        for begin, finish in self.quiet:
            if at <= begin:
                break
            inside = min(at, finish)
            to_scale -= _seconds(begin, inside)
            folds += self.fold_width * _seconds(begin, inside) / _seconds(begin, finish)
        room = 100 - self.fold_width * len(self.quiet)
        total = self.shown_seconds
        return folds + (room * to_scale / total if total else 0.0)


def axis(spans: Sequence[Span], start: datetime, end: datetime, *, fold: bool = True) -> Axis:
    """Return the axis from `start` to `end`, with the long quiet stretches folded."""
    quiet = quiet_stretches(spans, start, end) if fold else []
    width = min(FOLD_WIDTH, FOLDS_AT_MOST / len(quiet)) if quiet else FOLD_WIDTH
    return Axis(start, end, tuple(quiet), width)


def quiet_stretches(
    spans: Sequence[Span], start: datetime, end: datetime
) -> list[tuple[datetime, datetime]]:
    """Return the stretches to fold: no work in them, nothing begins or ends, over a minute.

    Where there was no work at all there is nothing to make room for, and nothing folds.
    """
    busy = _busy(spans, start, end)
    work = sum((until - begin for begin, until in busy), timedelta())
    if not work:
        return []
    pad = min(work * PAD_SHARE, PAD_AT_MOST)
    gaps = [(before[1], after[0]) for before, after in pairwise(busy)]
    return [(begin + pad, until - pad) for begin, until in gaps if until - begin > FOLD_FROM]


def _busy(spans: Iterable[Span], start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """The merged times of work and the instants at which something begins or ends."""
    parts = [(start, start), (end, end)]
    for span in spans:
        until = span.end or end
        parts += [(span.start, until)] if span.working else [(span.start,) * 2, (until,) * 2]
    merged: list[tuple[datetime, datetime]] = []
    for begin, until in sorted(
        (min(max(begin, start), end), min(max(until, start), end)) for begin, until in parts
    ):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], until))
        else:
            merged.append((begin, until))
    return merged


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


# --- drawing ----------------------------------------------------------------------------------


def draw(
    steps: Sequence[Lane],
    workers: Sequence[Lane],
    people: Sequence[Lane] = (),
    *,
    start: datetime,
    end: datetime,
    running: bool,
    fold: bool = True,
) -> Timeline:
    """Return the drawing of `steps` above `workers` above `people` from `start` to `end`.

    The axis is labelled in the time zone of `start`; `end` has the same. It is now while the run
    is `running` (not finished), else when it finished. The spans of `workers` are leases: their
    hand-overs are joined in the order in which they were given.
    """
    spans = [span for lane in (*steps, *workers, *people) for span in lane.spans]
    along = axis(spans, start, end, fold=fold)
    return Timeline(
        start,
        end,
        steps=Block(_rows(steps, along)),
        workers=Block(_rows(workers, along), _hops(workers, along)),
        people=Block(_rows(people, along)),
        folds=tuple(
            Fold(along.x(begin), along.fold_width, until - begin) for begin, until in along.quiet
        ),
        ticks=_ticks(along),
        folded=fold,
        running=running,
    )


def _rows(lanes: Sequence[Lane], along: Axis) -> tuple[Row, ...]:
    return tuple(
        Row(lane, _bars(lane, number, along), (number + 1) * LANE_HEIGHT - 0.5)
        for number, lane in enumerate(lanes)
    )


def _bars(lane: Lane, number: int, along: Axis) -> tuple[Bar, ...]:
    spans = sorted(lane.spans, key=lambda span: span.start)
    places = [_place(span, along) for span in spans]
    followings = chain((x for x, _ in places[1:]), [100.0])
    bars, reached = [], 0.0
    for span, (x, width), following in zip(spans, places, followings, strict=False):
        height = 18 if span.paint in {"done", "gone"} else 14
        y = number * LANE_HEIGHT + (LANE_HEIGHT - height) // 2
        covered = reached > x + width  # by a bar that began earlier: no text on top of it
        after, before = (0.0, 0.0) if covered else (following - x - width, x - reached)
        inside = 0.0 if span.is_moment else width
        at = _label_place(span.label, inside, after=after, before=before)
        bars.append(
            Bar(
                *(x, width, y, height, span.paint, span.title, span.url, span.label, at),
                is_mark=span.is_moment,
            )
        )
        reached = max(reached, x + width)
    # What is not known lies behind what is: sends are drawn over their unknown outcome; and what
    # lasts behind what came while it did.
    return tuple(sorted(bars, key=lambda bar: (bar.paint != "unknown", bar.is_mark)))


def _place(span: Span, along: Axis) -> tuple[float, float]:
    x = along.x(span.start)
    if span.is_moment:
        return (min(max(x - MARK / 2, 0), 100 - MARK), MARK)
    width = max(along.x(span.end or along.end) - x, BAR_LEAST)
    return (min(x, 100 - width), width)


def _label_place(label: str, width: float, *, after: float, before: float) -> str:
    """Say where `label` fits without running over another bar of its lane."""
    needed = len(label) * LETTER + 1.5
    if not label:
        return ""
    if width >= needed:
        return "in"
    if after >= needed:
        return "after"
    return "before" if before >= needed else ""


def _hops(workers: Sequence[Lane], along: Axis) -> tuple[Hop, ...]:
    leases = sorted(
        ((span, number) for number, lane in enumerate(workers) for span in lane.spans),
        key=lambda lease: lease[0].start,
    )
    hops = []
    for (left, source), (right, target) in pairwise(leases):
        if source == target or left.end is None:
            continue
        down = target > source
        middle_of_source = source * LANE_HEIGHT + LANE_HEIGHT // 2
        middle_of_target = target * LANE_HEIGHT + LANE_HEIGHT // 2
        x1, width = _place(left, along)
        hops.append(
            Hop(
                x1 + width,
                middle_of_source + (9 if down else -9),
                _place(right, along)[0],
                middle_of_target - (9 if down else -9),
            )
        )
    return tuple(hops)


def _ticks(along: Axis) -> tuple[Tick, ...]:
    """Return clock times at round steps, where there is room between folds, start and end."""
    wanted = along.shown_seconds / TICKS
    step = next((step for step in TICK_STEPS if step >= wanted), TICK_STEPS[-1])
    layout = next(layout for above, layout in TICK_LAYOUTS if step >= above)
    taken = [0.0, 100.0] + [along.x(begin) + along.fold_width / 2 for begin, _ in along.quiet]
    ticks = [Tick(0.0, along.start.strftime(layout))]
    edges = [along.start, *(edge for part in along.quiet for edge in part), along.end]
    for begin, until in zip(edges[::2], edges[1::2], strict=True):
        first = -(-begin.timestamp() // step) * step
        for number in range(int((until.timestamp() - first) // step) + 1):
            at = datetime.fromtimestamp(first + number * step, tz=begin.tzinfo)
            x = along.x(at)
            if all(abs(x - other) >= TICK_ROOM for other in taken):
                taken.append(x)
                ticks.append(Tick(x, at.astimezone(along.start.tzinfo).strftime(layout)))
    return tuple(ticks)
