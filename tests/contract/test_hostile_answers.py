"""Answers that are forged, ambiguous or made to break whoever reads them prove nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciliation.adapters.base import Unavailable
from reconciliation.adapters.declared import LONGEST_ID, id_at
from reconciliation.core.states import TransmissionState
from tests.contract.far_side import FarSide, Said, Seen
from tests.contract.lanes import GENERIC, LANES, Lane
from tests.contract.sending import LONG, Sending

GROWING = '<!DOCTYPE a [<!ENTITY b "re_1"><!ENTITY c "&b;&b;">]><a><requestId>&c;</requestId></a>'
BODIES = {
    "nested without end": b"[" * 200_000 + b"]" * 200_000,
    "one name twice": b'{"id": "re_1", "id": "re_2", "executionArn": "a", "executionArn": "b"}',
    "no number": b'{"id": "re_1", "amount": NaN, "executionArn": "a"}',
    "no text": b'{"id": "\xff\xfe"}',
    "a number too long": b'{"id": "re_1", "executionArn": "a", "amount": ' + b"9" * 9000 + b"}",
    "entities": GROWING.encode(),
    "entities that do not look like it": f'<?xml version="1.0" encoding="UTF-16"?>{GROWING}'.encode(
        "utf-16"
    ),
}
# S3 answers with its head alone.
READ = [lane for lane in LANES if lane.adapter != "aws-s3"]


@pytest.mark.parametrize("lane", READ, ids=str)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_does_not_mean_one_thing_proves_nothing(
    lane: Lane, side: FarSide, body: bytes
) -> None:
    sending = Sending(lane, side)
    side.answers = lambda seen: replace(sending.accepted(seen), body=body)
    outcome = sending.send()
    assert sending.state(outcome) is TransmissionState.UNKNOWN
    assert len(side.seen) == 1


@pytest.mark.parametrize("lane", [lane for lane in READ if lane.shown is not None], ids=str)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_look_up_that_does_not_mean_one_thing_shows_nothing(
    lane: Lane, side: FarSide, body: bytes
) -> None:
    sending, shown = Sending(lane, side), lane.shown
    assert shown is not None

    def answer(seen: Seen) -> Said:
        return replace(shown(seen, sending.prepared, str(sending.operation)), body=body)

    side.answers = answer
    found = sending.adapter.look_up(lane.action, sending.operation, LONG, sending.prepared)
    assert isinstance(found, Unavailable)


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("re_1", "re_1"),
        (17, "17"),
        (False, None),
        ({"a": 1}, None),
        (["re_1"], None),
        ("", None),
        ("  ", None),
        ("re\x00", None),
        ("r" * LONGEST_ID, "r" * LONGEST_ID),
        ("r" * (LONGEST_ID + 1), None),
    ],
)
def test_a_resource_is_named_by_a_text_or_a_number(named: Any, found: str | None) -> None:
    assert id_at("id", {"id": named}) == found


def test_no_value_of_a_parameter_gets_out_of_its_place_in_the_path(side: FarSide) -> None:
    given = dict(GENERIC.settings["actions"]["tickets.create"]) | {"path": "/tickets/{title}"}
    lane = replace(GENERIC, settings={**GENERIC.settings, "actions": {GENERIC.action: given}})
    lane = replace(lane, parameters={"title": "a\r\nX-Other: b/../c?d=e&f#g%2e"})
    sending = Sending(lane, side)
    side.answers = sending.accepted
    sending.send()
    (seen,) = side.seen
    assert seen.path == "/tickets/a%0D%0AX-Other%3A%20b%2F..%2Fc%3Fd%3De%26f%23g%252e"
