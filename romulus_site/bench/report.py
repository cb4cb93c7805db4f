"""How figures are summed up and shown: medians with their spread, never an average."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from romulus_site.bench.costs import Costs

DIGITS = 4
UNKNOWN = "-"
DOUBT = 0.05

Summary = dict[str, float]
"""Median, lowest and highest of a number of figures; of many also `p95`."""


def rounded(value: float) -> float:
    """Return `value` to as many digits as a measurement has."""
    return float(f"{value:.{DIGITS}g}")


def summary(values: Iterable[float]) -> Summary:
    figures = sorted(values)
    return {
        "median": rounded(statistics.median(figures)),
        "lowest": rounded(figures[0]),
        "highest": rounded(figures[-1]),
    }


def summary_of_many(values: Iterable[float]) -> Summary:
    """Return the summary with the figure that 95 of 100 do not exceed."""
    figures = sorted(values)
    place = max(0, -(-95 * len(figures) // 100) - 1)
    return {**summary(figures), "p95": rounded(figures[place])}


def summary_of_costs(costs: Sequence[Costs]) -> dict[str, Summary | None]:
    """Return the summary of each cost; None of one that is unknown."""
    found = {}
    for name in costs[0]:
        values = [value for cost in costs if (value := cost[name]) is not None]
        found[name] = summary(values) if values else None
    return found


def ratios(figures: Sequence[float], others: Sequence[float]) -> Summary:
    """Return the summary of the ratios of figures that were measured one after the other."""
    return summary(figure / other for figure, other in zip(figures, others, strict=True))


def median_between(values: Iterable[float]) -> list[float] | None:
    """Return the two of `values` between which their source's median lies in 95 of 100 cases,
    however it scatters; None of fewer than six, which cannot tell."""
    figures = sorted(values)
    number = len(figures)
    left_out, doubt = 0, 0.0
    # As many are below the median as a coin, tossed for each, shows heads.
    while left_out < number / 2:
        doubt += 2 * math.comb(number, left_out) / 2**number
        if doubt > DOUBT:
            break
        left_out += 1
    if not left_out:
        return None
    return [rounded(figures[left_out - 1]), rounded(figures[number - left_out])]


# --- tables ---------------------------------------------------------------------------------


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return lines of columns: text to the left, figures to the right."""
    columns = [
        aligned([head, *map(cell, values)], to_the_right=any(map(is_figure, values)))
        for head, *values in zip(heads, *rows, strict=True)
    ]
    return ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]


def aligned(texts: Sequence[str], *, to_the_right: bool) -> list[str]:
    width = max(map(len, texts))
    return [text.rjust(width) if to_the_right else text.ljust(width) for text in texts]


def is_figure(value: object) -> bool:
    return isinstance(value, int | float)


def cell(value: object) -> str:
    if value is None:
        return UNKNOWN
    return (
        f"{value:.{DIGITS}g}" if isinstance(value, float) and value < 10**DIGITS else plain(value)
    )


def plain(value: object) -> str:
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def spread(summed: Mapping[str, float] | None) -> list[object]:
    """Return the three cells of a summary."""
    return [summed[name] if summed else None for name in ("median", "lowest", "highest")]


def measured_on(facts: Mapping[str, object]) -> str:
    """Return the line that says what the figures depend on."""
    where = "embedded" if facts["embedded"] else "server"
    return (
        f"PostgreSQL {facts['postgresql']} ({where}, fsync {facts['fsync']}, synchronous_commit "
        f"{facts['synchronous_commit']}), Python {facts['python']}, {facts['cpus']} processors"
    )
