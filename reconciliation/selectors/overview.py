"""The overview: what needs the reader, whether outcomes are known, and how the machinery is.

Counts are those of what the reader may see. A fixed number of queries, each over a partial index
or over the newest rows by ID, so that no history makes it slower.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import reverse

from reconciliation import access
from reconciliation.core.facts import Dispatch
from reconciliation.core.figures import AGES, LATENCIES, MOST_SENDS, Sums, place_of, within
from reconciliation.core.states import OperationState
from reconciliation.models import Provider
from reconciliation.overview_pages import (
    Figure,
    OverviewPage,
    ProviderLine,
    Strip,
    Verdict,
    Wrong,
)
from reconciliation.selectors.case_stamp import CHANGED
from reconciliation.selectors.overview_ledger import (
    DOUBLE,
    FAILED_CHECK,
    PROVIDERS_SHOWN,
    UNSETTLED_LOOKED_AT,
    WRONG_SHOWN,
    Open,
    WrongEffect,
    by_provider,
    newest_since,
    open_operations,
    providers_of,
    stretch_of,
    wrong_effects,
)
from reconciliation.selectors.overview_needs import (
    HoldCounts,
    hold_counts,
    most_urgent,
    need_of,
)
from workflows.core.charts import Chart, Value, columns, shares, strip
from workflows.core.durations import age
from workflows.core.ranges import DAY, HOUR, MONTH, WEEK, Range
from workflows.models import Tenant
from workflows.pages import Filter, Link
from workflows.rights import held_on
from workflows.selectors.health import health
from workflows.selectors.paging import address
from workflows.selectors.run_slices import RunSlices, run_slices, runs_by_slice
from workflows.selectors.words import counted
from workflows.sql import fetch_of
from workflows.sql.statement import Statement
from workflows.together import together
from workflows.worker_pages import Health

# What the charts count changes with the clock too: drawn anew at least so often.
REDRAWN_EVERY = timedelta(minutes=5)
# How far back its figures and charts look.
RANGES = (HOUR, DAY, WEEK, MONTH)
# So many outcomes that are not known, and are no case yet, are counted: an outage makes many.
UNKNOWN_LOOKED_AT = 1_000
SHARES_START, SHARES_ROOM = 24.0, 58.0  # percent of the width of the chart of sends


NEWEST = Statement(
    "overview_newest",
    f"""
    SELECT {CHANGED} AS changed,
        (SELECT id FROM workflows_run ORDER BY id DESC LIMIT 1) AS run,
        (SELECT id FROM reconciliation_operation ORDER BY id DESC LIMIT 1) AS operation,
        (
            SELECT concat_ws(' ', count(*), max(id::text)) FROM (
                SELECT id FROM reconciliation_operation WHERE state = 'unknown'
                ORDER BY id DESC LIMIT {UNKNOWN_LOOKED_AT}
            ) looked_at
        ) AS unknown
    """,  # noqa: S608 (constants)
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What a poll asks first: what changes when the page would."""

    tenants: tuple[UUID, ...]
    health: tuple[Health, ...]
    seen: str


def standing(user: User, now: datetime) -> Standing:
    """What `user` may see, and whether anything has become of it, in the zone of `now`, in which
    they are told times. Two queries; three for who may see every tenant.

    Nothing is counted: that there is a newer run or operation, or an entry about any case, is found
    by an index, whoever may see it.
    """
    held = held_on(user, "workflows.view_tenant", Tenant)
    tenants = tuple(
        map(UUID, held)
        if held is not None
        else Tenant.objects.order_by("pk").values_list("pk", flat=True)
    )
    asked = access.asked_of(user)
    (found,) = fetch_of(NEWEST, asked)
    machinery = health(now) if tenants else ()
    told = (
        [line.state for line in machinery],
        int(now.timestamp() // REDRAWN_EVERY.total_seconds()),
        str(now.tzinfo),
    )
    seen = hashlib.sha256(repr((asked, found, told)).encode()).hexdigest()[:16]
    return Standing(tenants, machinery, seen)


def overview_page(user: User, now: datetime, known: Standing, back: Range) -> OverviewPage:
    """The page for `user`, which looks `back`; `known` is what `standing` found at `now`."""
    since = now - back.length
    counts = hold_counts(user, now)
    without_outcome, otherwise, newest, providers, by_slice, mine = together(
        open_operations(user, known.tenants, now),
        wrong_effects(known.tenants, now),
        newest_since(known.tenants, since),
        providers_of(user),
        runs_by_slice(known.tenants, back, now),
        most_urgent(user),
    )
    rows = [Open(*row) for row in without_outcome]
    silent = [row for row in rows if row.has_no_outcome]
    wrong = [WrongEffect(*row) for row in otherwise]
    kinds = Counter(each.kind for each in wrong)
    stretch = stretch_of(newest, since)
    slices = run_slices(by_slice, back, now)
    return OverviewPage(
        verdict=verdict_of(silent, counts, kinds[DOUBLE]),
        health=known.health,
        figures=figures_of(silent, kinds[FAILED_CHECK], kinds[DOUBLE], stretch.sums, now),
        needs=tuple(need_of(hold, now) for hold in mine),
        mine=counts.mine,
        total=counts.total,
        providers=lines_of(providers[:PROVIDERS_SHOWN], rows),
        more_providers=len(providers) > PROVIDERS_SHOWN,
        ages=ages_of(silent),
        latencies=latencies_of(stretch.sums),
        sends=sends_of(stretch.sums),
        runs=strips_of(slices, back),
        starts=slices.starts,
        wrong=tuple(wrong_of(each) for each in wrong[:WRONG_SHOWN]),
        since=stretch.since,
        back=back,
        ranges=tuple(
            Filter(each.text, address(reverse("start"), range_in(each)), each is back)
            for each in RANGES
        ),
        url=address(reverse("start"), range_in(back) | {"seen": known.seen}),
    )


def range_in(back: Range) -> dict[str, str]:
    """How an address says it; the usual one is not said."""
    return {} if back is DAY else {"range": back.key}


# --- in a sentence ----------------------------------------------------------------------------


def verdict_of(silent: Sequence[Open], counts: HoldCounts, doubles: int) -> Verdict:
    """The state of things, the most serious first."""
    twice = (
        f"{counted(doubles, 'operation')} took effect more than once in the last 30 days."
        if doubles
        else "Nothing is known to have happened twice in the last 30 days."
    )
    if silent:
        number, late = total(silent), total(silent, late=True)
        due = f"{late:,} {'is' if late == 1 else 'are'} past due. " if late else ""
        return Verdict(
            f"{at_most(number, 'operation')} {'has' if number == 1 else 'have'} no known outcome.",
            f"{due}{elsewhere(silent)}None is sent again unless its provider's contract makes that "
            f"safe. {twice}",
            "operation",
            "unknown",
        )
    if counts.total:
        waits = "waits" if counts.total == 1 else "wait"
        due = f"{counts.late:,} past due. " if counts.late else ""
        lead = f"{counted(counts.total, 'case')} {waits} for a person."
        return Verdict(lead, f"{due}Every outcome is known. {twice}", "hold", "open")
    lead = "Every outcome is known, and nothing waits for a person."
    return Verdict(lead, twice, "operation", "verified")


def elsewhere(rows: Sequence[Open]) -> str:
    """How many of `rows` the reader finds in no list of cases, and why."""
    number = sum(row.number for row in rows if row.unseen)
    if not number:
        return ""
    return f"{number:,} {'is' if number == 1 else 'are'} held in queues that you may not see. "


def total(rows: Sequence[Open], *, late: bool = False) -> int:
    """How many operations `rows` stand for, or how many of them are late."""
    return sum(row.number for row in rows if row.late or not late)


def at_most(number: int, one: str) -> str:
    """A count that stops where no more rows were looked at."""
    more = " or more" if number >= UNSETTLED_LOOKED_AT else ""
    return f"{number:,}{more} {one if number == 1 else one + 's'}"


# --- in numbers -------------------------------------------------------------------------------


def figures_of(
    silent: Sequence[Open], wrong: int, doubles: int, sums: Sums, now: datetime
) -> tuple[Figure, ...]:
    return (
        silent_figure(silent, now),
        latency_figure(sums),
        sends_figure(sums),
        Figure("Duplicate effects", f"{doubles:,}", "found in 30 days", "wrong", "double")
        if doubles
        else Figure("Duplicate effects", "0", "none in 30 days", "operation", "verified"),
        Figure("Failed result checks", f"{wrong:,}", "took effect, not as meant", "wrong", "check")
        if wrong
        else Figure("Failed result checks", "0", "none is open", "operation", "verified"),
        unaided_figure(sums),
    )


def silent_figure(silent: Sequence[Open], now: datetime) -> Figure:
    term = "Without an outcome"
    if not silent:
        return Figure(term, "0", "none", "operation", "verified")
    late = total(silent, late=True)
    oldest = age(now - min(row.oldest for row in silent))
    note = f"{late:,} past due, oldest {oldest}" if late else f"oldest {oldest}"
    return Figure(term, f"{total(silent):,}", note, *(("due", "late") if late else ("", "")))


def latency_figure(sums: Sums) -> Figure:
    half, most = within(sums.latencies, 0.5), within(sums.latencies, 0.95)
    if half is None or most is None:
        return Figure("Time to an outcome", "none", "no outcome was unknown and then settled")
    return Figure(
        "Time to an outcome", age(half), f"half are settled by then, 95 in 100 in {age(most)}"
    )


def sends_figure(sums: Sums) -> Figure:
    each = sums.sends_each
    if each is None:
        return Figure("Sends per operation", "none", "nothing was sent")
    note = f"{counted(sums.sent, 'operation')}, {counted(sums.sends, 'send')}"
    return Figure("Sends per operation", f"{each:.2f}", note)


def unaided_figure(sums: Sums) -> Figure:
    share = sums.unaided_share
    if share is None:
        return Figure("Settled without people", "none", "nothing was settled")
    note = f"{sums.unaided:,} of {sums.settled:,} settled"
    return Figure("Settled without people", f"{share:.1%}", note)


# --- in charts --------------------------------------------------------------------------------


def ages_of(silent: Sequence[Open]) -> Chart:
    """How long outcomes have not been known; a column is late when one in it is past due."""
    numbers, late = [0] * len(AGES), [False] * len(AGES)
    for row in silent:
        numbers[row.age] += row.number
        late[row.age] = late[row.age] or row.late
    values = [Value(AGES[place][1], numbers[place], late[place]) for place in range(len(AGES))]
    title = f"Age of the {at_most(total(silent), 'operation')} without an outcome: {spelt(values)}."
    return columns(title if silent else "No operation is without an outcome.", values)


def latencies_of(sums: Sums) -> Chart:
    numbers = [0] * len(LATENCIES)
    for latency in sums.latencies:
        numbers[place_of(latency, LATENCIES)] += 1
    values = [Value(label, number) for (_, label), number in zip(LATENCIES, numbers, strict=True)]
    title = f"Time from no answer to a settled outcome: {spelt(values)}."
    return columns(title if sums.latencies else "No outcome was unknown and then settled.", values)


def sends_of(sums: Sums) -> Chart:
    names = ["1 send", *(f"{number} sends" for number in range(2, MOST_SENDS)), "4 or more"]
    values = [Value(name, number) for name, number in zip(names, sums.by_sends, strict=True)]
    title = f"Sends per operation: {spelt(values)}."
    title = title if sums.sent else "Nothing was sent."
    return shares(title, values, start=SHARES_START, room=SHARES_ROOM)


def strips_of(slices: RunSlices, back: Range) -> tuple[Strip, ...]:
    return tuple(
        Strip(
            state.value,
            strip(
                f"{state.value.capitalize()}, by the {back.each} in which they started, highest "
                f"{max(numbers):,}",
                [
                    Value(f"{start:%H:%M}", number)
                    for start, number in zip(slices.starts, numbers, strict=True)
                ],
            ),
            max(numbers),
        )
        for state, numbers in slices.counts.items()
    )


def spelt(values: Sequence[Value]) -> str:
    """What a chart shows, in words."""
    return ", ".join(f"{value.number:,} {value.label}" for value in values if value.number)


# --- in lists ---------------------------------------------------------------------------------


def lines_of(providers: Sequence[Provider], rows: Sequence[Open]) -> tuple[ProviderLine, ...]:
    unknown = by_provider(rows, OperationState.UNKNOWN)
    held = by_provider(rows, OperationState.HELD)
    return tuple(
        ProviderLine(
            Link(provider.name, reverse("provider", args=[provider.slug])),
            provider.stopped or Dispatch.ON.value,  # type: ignore[attr-defined]  # annotated
            unknown[provider.pk],
            held[provider.pk],
            provider.contradiction if provider.contradicted_at else "",
        )
        for provider in providers
    )


WRONG = {
    DOUBLE: "It took effect more than once.",
    FAILED_CHECK: "Accepted, but the result is not as expected.",
}


def wrong_of(effect: WrongEffect) -> Wrong:
    url = operation_url(effect.pk)
    return Wrong(url, effect.summary, WRONG[effect.kind], effect.at, effect.kind)


def operation_url(operation: UUID) -> str:
    return reverse("operation", args=[operation])
