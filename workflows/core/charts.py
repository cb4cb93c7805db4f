"""Where the marks of a chart stand: pure geometry, no Django, no clock.

Horizontal positions are percentages of the width, so that a chart stretches without scaling its
text; vertical ones are pixels. The texts are those of the table behind the chart too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COLUMNS_HEIGHT = 112  # pixels that the tallest column's foot stands at
HEADROOM = 24  # above the tallest column, for its number
COLUMN_SHARE = 0.7  # of the room of one column that is painted
STRIP_HEIGHT = 30
STRIP_LEAST = 2.0  # pixels: one of many is still seen


@dataclass(frozen=True, slots=True)
class Value:
    """One number of a chart; `late` paints it as overdue."""

    label: str
    number: int
    late: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A painted number: `middle` is where its texts stand."""

    value: Value
    x: float
    width: float
    y: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def text_y(self) -> float:
        return self.y - 6


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns or bars side by side. `title` says in a sentence what they show."""

    title: str
    marks: tuple[Mark, ...]
    total: int


def columns(title: str, values: Sequence[Value]) -> Chart:
    """Return upright columns, the tallest of them as high as the room allows."""
    most = max((value.number for value in values), default=0)
    room = 100 / len(values) if values else 100.0
    marks = []
    for place, value in enumerate(values):
        height = (COLUMNS_HEIGHT - HEADROOM) * value.number / most if most else 0.0
        x = place * room + room * (1 - COLUMN_SHARE) / 2
        y = COLUMNS_HEIGHT - height
        marks.append(Mark(value, x, room * COLUMN_SHARE, round(y, 1), round(height, 1)))
    return Chart(title, tuple(marks), sum(value.number for value in values))


def strip(title: str, numbers: Sequence[Value]) -> Chart:
    """Return a low row of columns on a scale of its own; of nothing, a line is drawn."""
    most = max((value.number for value in numbers), default=0)
    room = 100 / len(numbers) if numbers else 100.0
    marks = []
    for place, value in enumerate(numbers):
        height = max(STRIP_HEIGHT * value.number / most, STRIP_LEAST) if value.number else 1.0
        y = STRIP_HEIGHT - height
        marks.append(
            Mark(value, place * room + room * 0.08, room * 0.84, round(y, 1), round(height, 1))
        )
    return Chart(title, tuple(marks), sum(value.number for value in numbers))


def shares(title: str, values: Sequence[Value], *, start: float, room: float) -> Chart:
    """Return lying bars, each as long as its share of the whole: `room` percent from `start`."""
    total = sum(value.number for value in values)
    marks = tuple(
        Mark(value, start, room * value.number / total if total else 0.0, 29.0 * place + 5, 13.0)
        for place, value in enumerate(values)
    )
    return Chart(title, marks, total)
