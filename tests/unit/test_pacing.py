"""How far apart a provider's questions lie, how late they may be, how long it is left alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from reconciliation.core.contracts import Budget, LookUpRate, Source, parse_contract
from reconciliation.core.errors import InvalidContract
from reconciliation.core.pacing import (
    LONGEST_PAUSE,
    ROOM,
    UNSAID_PAUSE,
    last_moment,
    pause_for,
    questions_of_look_up,
    rate_of,
    spacing,
    turn_within,
)
from tests.unit.facts import (
    BLIND,
    BOTH,
    KEY,
    LOOK_UP,
    LOOKED_UP,
    REPLAY,
    S,
    at,
    contract,
    facts,
    sent,
)

LOST = sent(1, S.UNKNOWN)
READ = Source(title="Rate limits", evidence="primary")
DOCUMENTED = contract(
    look_up=LOOK_UP.model_copy(update={"rate": LookUpRate(per_second=20, source=READ)})
)


@pytest.mark.parametrize(
    ("own", "under", "rate"), [(10, LOOKED_UP, 10), (10, DOCUMENTED, 10), (50, DOCUMENTED, 20)]
)
def test_what_is_set_counts_and_never_more_than_is_documented(
    own: float, under: Any, rate: float
) -> None:
    assert rate_of(own, under) == rate


def test_turns_lie_apart_as_the_rate_says() -> None:
    assert spacing(10, LOOKED_UP, 1) == timedelta(seconds=0.1)
    assert spacing(50, DOCUMENTED, 2) == timedelta(seconds=0.1)


def test_a_look_up_has_room_for_the_check_of_what_it_finds() -> None:
    checked = contract(look_up=LOOK_UP, verifies=True)
    assert (questions_of_look_up(LOOKED_UP), questions_of_look_up(checked)) == (1, 2)


WINDOW_CLOSES = at(3000 - 11)  # as `closes_at` has it, but for a moment
SHORT = contract(
    key=KEY, replay=REPLAY, look_up=LOOK_UP, budget=Budget(look_ups=3, elapsed_seconds=60)
)


def test_what_it_finds_can_be_followed_while_the_key_protects() -> None:
    last = last_moment(facts(BOTH, LOST), at(1))
    assert last is not None
    answered = last + BOTH.timeout + ROOM
    assert WINDOW_CLOSES - timedelta(seconds=0.1) < answered <= WINDOW_CLOSES


def test_what_it_finds_can_be_followed_while_romulus_looks_for_proof() -> None:
    assert last_moment(facts(SHORT, LOST), at(1)) == at(60) - SHORT.timeout - ROOM


@pytest.mark.parametrize(
    "of",
    [
        facts(LOOKED_UP, LOST),
        facts(BLIND, LOST),
        facts(BOTH, LOST, replay_trusted=False),  # its key guards nothing here
        facts(BOTH, LOST, contradicted=True),
    ],
)
def test_what_protects_nothing_is_in_no_hurry(of: Any) -> None:
    assert last_moment(of, at(1)) is None


def test_what_is_over_is_in_no_hurry() -> None:
    assert last_moment(facts(BOTH, LOST), at(5000)) is None


def test_a_turn_is_brought_forward_and_never_put_off() -> None:
    assert turn_within(at(10), None) == at(10)
    assert turn_within(at(10), at(5)) == at(5)
    assert turn_within(at(10), at(20)) == at(10)


@pytest.mark.parametrize(
    ("said", "pause"),
    [
        (None, UNSAID_PAUSE),
        (0, UNSAID_PAUSE),
        (9, timedelta(seconds=9)),
        (86_400, LONGEST_PAUSE),
    ],
)
def test_a_provider_is_left_alone_as_it_wants_within_bounds(
    said: float | None, pause: timedelta
) -> None:
    assert pause_for(said) == pause


@pytest.mark.parametrize("rate", [0, -1, 1001])
def test_a_contract_s_rate_is_a_rate_and_the_message_names_it(rate: float) -> None:
    document = DOCUMENTED.model_dump(mode="json")
    document["look_up"]["rate"]["per_second"] = rate
    with pytest.raises(InvalidContract, match=r"look_up\.rate\.per_second"):
        parse_contract(document, where="test.yaml")


def test_a_contract_s_rate_says_where_it_was_read() -> None:
    document = DOCUMENTED.model_dump(mode="json")
    del document["look_up"]["rate"]["source"]
    with pytest.raises(InvalidContract, match=r"look_up\.rate\.source"):
        parse_contract(document, where="test.yaml")
