"""Who may do what to a held case short of deciding it: a table, and what is never among it."""

from __future__ import annotations

from itertools import product

import pytest

from reconciliation.core.review_work import (
    NO_DECIDER,
    NOT_YOURS,
    SETTLED,
    Assignment,
    BulkKind,
    needs_note,
    why_not_assign,
    why_not_look_up,
    why_not_snooze,
)

ME, YOU, OTHER = 1, 2, 3


def wanted(
    assignee: int | None,
    to: int | None,
    *,
    decides: bool = False,
    assigns: bool = False,
    fits: bool = True,
    is_open: bool = True,
) -> Assignment:
    return Assignment(is_open, assignee, ME, to, assigns, decides, fits)


@pytest.mark.parametrize(
    ("assignment", "refused"),
    [
        # Claiming what nobody has.
        (wanted(None, ME, decides=True), ""),
        (wanted(None, ME), NO_DECIDER),
        (wanted(None, ME, assigns=True), NO_DECIDER),
        # Giving back what is mine.
        (wanted(ME, None), ""),
        (wanted(YOU, None, decides=True), NOT_YOURS),
        (wanted(YOU, None, assigns=True), ""),
        # Giving it to others, and taking it from them.
        (wanted(None, YOU, decides=True), NOT_YOURS),
        (wanted(None, YOU, assigns=True), ""),
        (wanted(ME, YOU, decides=True), NOT_YOURS),
        (wanted(ME, YOU, assigns=True), ""),
        (wanted(YOU, OTHER, assigns=True), ""),
        (wanted(YOU, ME, decides=True), NOT_YOURS),
        (wanted(YOU, ME, decides=True, assigns=True), ""),
    ],
)
def test_who_may_give_a_case_to_whom(assignment: Assignment, refused: str) -> None:
    assert why_not_assign(assignment) == refused


def test_nobody_gets_a_case_that_they_may_not_see_and_decide() -> None:
    for assignee, decides, assigns in product((None, ME, YOU), (True, False), (True, False)):
        for to in (ME, YOU, OTHER):
            given = wanted(assignee, to, decides=decides, assigns=assigns, fits=False)
            assert why_not_assign(given)


def test_nothing_is_done_to_a_case_that_is_settled() -> None:
    assert why_not_assign(wanted(ME, None, is_open=False, assigns=True)) == SETTLED
    assert why_not_snooze(is_open=False, may_decide=True, may_assign=True) == SETTLED
    facts = {"of_a_write": True, "can_be_asked": True, "may_decide": True}
    assert why_not_look_up(is_open=False, **facts) == SETTLED
    assert why_not_look_up(is_open=True, **facts) == ""


def test_a_word_is_needed_where_ones_own_case_goes_to_somebody_else() -> None:
    assert needs_note(ME, ME, YOU)
    assert not needs_note(ME, ME, None)
    assert not needs_note(None, ME, YOU)
    assert not needs_note(YOU, ME, OTHER)


def test_nothing_that_is_done_to_many_decides() -> None:
    assert {str(kind) for kind in BulkKind} == {"assign", "snooze", "remind", "look_up"}
