"""The open waits of the events page, and which events came close to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count

from workflows.core.near_misses import CLOSENESS, NearMiss
from workflows.core.states import WaitState
from workflows.event_pages import Comparison, Near, WaitRow, Waits
from workflows.models import Wait
from workflows.pages import Pager
from workflows.selectors.comparisons import comparison_of
from workflows.selectors.events_asked import COUNTED, Asked, Reader, here, newest_of
from workflows.selectors.near_events import near_to_each
from workflows.selectors.paging import address, as_uuid
from workflows.selectors.run_children import link_to

WAITS_SHOWN = 20
NEAR_SHOWN = 6


@dataclass(frozen=True)
class ShownWaits:
    rows: Sequence[Wait]
    newer: bool
    older: bool


def waits_of(
    reader: Reader, asked: Asked
) -> tuple[ShownWaits, Mapping[UUID, tuple[NearMiss, ...]]]:
    """A page of the open waits, the newest first, and what came close to each."""
    open_waits = Wait.objects.filter(state=WaitState.WAITING)
    parts = [open_waits.filter(tenant=tenant) for tenant in reader.tenants]
    whole = Wait.objects.select_related("run").defer("run__input").annotate(got=Count("matches"))
    before, after = as_uuid(asked.wbefore), as_uuid(asked.wafter)
    rows, newer, older = newest_of(parts, whole, before, after, WAITS_SHOWN)
    return ShownWaits(rows, newer, older), near_to_each(rows)


def waits_part(
    reader: Reader, shown: ShownWaits, near: Mapping[UUID, tuple[NearMiss, ...]], asked: Asked
) -> Waits:
    return Waits(
        rows=tuple(wait_row(wait, near.get(wait.pk, ()), asked) for wait in shown.rows),
        total=waits_total(reader),
        pager=waits_pager(shown, asked),
    )


def waits_total(reader: Reader) -> str:
    open_waits = Wait.objects.filter(state=WaitState.WAITING, tenant__in=reader.tenants)
    number = open_waits[:COUNTED].count()
    return f"{COUNTED:,} or more waiting" if number >= COUNTED else f"{number:,} waiting"


def wait_row(wait: Wait, near: Sequence[NearMiss] = (), asked: Asked | None = None) -> WaitRow:
    """A row of an open wait that comes with its run and `got`."""
    url = near_url(asked or Asked(), wait, near[0]) if near else ""
    return WaitRow(
        id=wait.pk,
        types=" or ".join(wait.event_types),
        correlation=wait.correlation,
        run=link_to(wait.run),
        step=wait.step,
        started_at=wait.started_at,
        deadline=wait.deadline,
        needed=wait.needed,
        got=getattr(wait, "got", 0),
        close=len(near),
        close_url=url,
    )


def near_url(asked: Asked, wait: Wait, miss: NearMiss) -> str:
    query = asked.query(wait=str(wait.pk), event=str(miss.event.id))
    query |= {"wbefore": asked.wbefore, "wafter": asked.wafter}
    return f"{address(here(), query)}#near"


def waits_pager(shown: ShownWaits, asked: Asked) -> Pager:
    def at(**place: str) -> str:
        return f"{address(here(), asked.query(**place))}#waits"

    if not shown.rows:
        return Pager(newer=at() if shown.newer or shown.older else "")
    return Pager(
        newer=at(wafter=str(shown.rows[0].pk)) if shown.newer else "",
        older=at(wbefore=str(shown.rows[-1].pk)) if shown.older else "",
    )


# --- what came close --------------------------------------------------------------------------


def close(
    reader: Reader,
    shown: ShownWaits,
    near: Mapping[UUID, tuple[NearMiss, ...]],
    asked: Asked,
) -> tuple[tuple[Near, ...], Comparison | None]:
    """The pairs that came closest, and the one that is compared: the chosen, else the first."""
    pairs = [(wait, miss) for wait in shown.rows for miss in near.get(wait.pk, ())]
    pairs.sort(key=lambda pair: CLOSENESS[pair[1].nearness])
    if not pairs:
        return (), None
    asked_for = (as_uuid(asked.wait), as_uuid(asked.event))
    chosen = next((pair for pair in pairs if (pair[0].pk, pair[1].event.id) == asked_for), pairs[0])
    listed = pairs[:NEAR_SHOWN]
    if chosen not in listed:
        listed = [chosen, *listed[:-1]]
    wait, miss = chosen
    comparison = comparison_of(
        wait, miss, reader.zone, may_attach=wait.tenant_id in reader.controlled
    )
    return tuple(near_of(pair, chosen, asked) for pair in listed), comparison


def near_of(pair: tuple[Wait, NearMiss], chosen: tuple[Wait, NearMiss], asked: Asked) -> Near:
    wait, miss = pair
    return Near(
        type=miss.event.type,
        correlation=miss.event.correlation,
        note=miss.nearness.sentence,
        url=near_url(asked, wait, miss),
        current=pair == chosen,
    )
