"""What the review pages derive by themselves: legs of a transmission, the protection window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciliation.core.classify import Phase
from reconciliation.core.states import TransmissionState
from reconciliation.decision_pages import DecisionForm, DecisionOption
from reconciliation.pages import Window, legs

NOW = datetime(2026, 3, 10, 3, 0, tzinfo=UTC)
T = TransmissionState


@pytest.mark.parametrize(
    ("phase", "state", "kinds"),
    [
        ("", T.SENDING, ("gap", "none", "none")),
        (Phase.RESOLVE, T.NOT_SENT, ("stop", "none", "none")),
        (Phase.CONNECT, T.NOT_SENT, ("stop", "none", "none")),
        (Phase.TLS, T.UNKNOWN, ("gap", "none", "none")),
        (Phase.SEND, T.UNKNOWN, ("done", "short", "none")),
        (Phase.WAIT, T.UNKNOWN, ("done", "sent", "gap")),
        (Phase.ANSWER, T.UNKNOWN, ("done", "sent", "gap")),
        (Phase.ANSWER, T.ACKNOWLEDGED, ("done", "sent", "done")),
        (Phase.ANSWER, T.REJECTED, ("done", "sent", "done")),
    ],
)
def test_a_leg_is_solid_only_where_it_is_known(
    phase: str, state: str, kinds: tuple[str, str, str]
) -> None:
    assert tuple(leg.kind for leg in legs(phase, state, timedelta(seconds=30))) == kinds


def test_every_phase_and_state_has_legs() -> None:
    for state in T:
        for phase in ("", *Phase):
            assert len(legs(phase, state, timedelta())) == 3


def window(start: float | None, end: float | None) -> Window:
    def at(hours: float | None) -> datetime | None:
        return None if hours is None else NOW + timedelta(hours=hours)

    return Window(at(start), at(end), NOW)


@pytest.mark.parametrize(
    ("start", "end", "state", "passed"),
    [
        (None, None, "none", 0),
        (-1, None, "none", 0),
        (None, 24, "unsent", 0),
        (-6, 18, "open", 25),
        (-0.75, 0.25, "closing", 75),
        (-24, 0, "ended", 100),
        (-48, -24, "ended", 100),
    ],
)
def test_the_protection_window(
    start: float | None, end: float | None, state: str, passed: float
) -> None:
    shown = window(start, end)
    assert shown.state == state
    assert shown.passed_percent == pytest.approx(passed)
    assert shown.left >= timedelta()


def test_all_decisions_stay_visible_and_none_is_chosen_for_anyone() -> None:
    options = (
        DecisionOption("applied", "It is done", "…", allowed=True),
        DecisionOption("send_again", "Send again", "…", allowed=False, why_not="No key."),
    )
    form = DecisionForm("/", "/", "operation", options, "c84e6f", 1, "token", "basis", NOW)
    assert form.offered + form.not_offered == options
    assert form.draft.kind == ""
