"""What every adapter owes that can be asked what became of an operation."""

from __future__ import annotations

import pytest

from reconciliation.adapters.base import Unavailable
from reconciliation.core.matching import Fit, compare
from tests.contract.far_side import FarSide, Said
from tests.contract.lanes import LANES, OTHER, Lane
from tests.contract.sending import LONG, Sending

LOOKED_UP = [lane for lane in LANES if lane.shown is not None]

pytestmark = pytest.mark.parametrize("lane", LOOKED_UP, ids=str)


def looked_up(sending: Sending, mark: str) -> object:
    lane = sending.lane
    shown = lane.shown
    assert shown is not None
    sending.side.answers = lambda seen: shown(seen, sending.prepared, mark)
    return sending.adapter.look_up(lane.action, sending.operation, LONG, sending.prepared)


def test_a_look_up_finds_what_carries_our_mark(lane: Lane, side: FarSide) -> None:
    sending = Sending(lane, side)
    found = looked_up(sending, str(sending.operation))
    assert isinstance(found, list)
    (record,) = found
    assert compare(sending.intended(), record, marker_required=True).fit is Fit.MATCH


def test_a_look_up_that_finds_nothing_says_so(lane: Lane, side: FarSide) -> None:
    assert looked_up(Sending(lane, side), "") == []


def test_what_carries_the_mark_of_another_is_never_ours(lane: Lane, side: FarSide) -> None:
    """A filter may be ignored: what is shown has to say itself whose it is."""
    sending = Sending(lane, side)
    found = looked_up(sending, OTHER)
    if lane.unmarked_is == "unavailable":
        assert isinstance(found, Unavailable)
    else:
        assert isinstance(found, list)
        fits = {compare(sending.intended(), each, marker_required=True).fit for each in found}
        assert fits == {Fit.NOT_OURS}


@pytest.mark.parametrize(
    "said",
    [
        Said(500),
        Said(429, {"Retry-After": "9"}),
        Said(429),
        Said(fault="drop"),
        Said(200, {}, b"<html>"),
    ],
)
def test_a_look_up_that_is_not_answered_finds_nothing_out(
    lane: Lane, side: FarSide, said: Said
) -> None:
    sending = Sending(lane, side)
    side.answers = lambda _seen: said
    found = sending.adapter.look_up(lane.action, sending.operation, LONG, sending.prepared)
    assert isinstance(found, Unavailable)
    assert found.throttled == (said.status == 429)
    assert found.retry_after_seconds == (9 if said.headers else None)
