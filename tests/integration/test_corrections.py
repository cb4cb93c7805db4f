"""What is said of a decision afterwards, and what was typed before one: neither moves anything."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied

from reconciliation.core.errors import InvalidDecision, NotAllowed
from reconciliation.models import Decision, Hold
from reconciliation.services.corrections import CorrectionGiven, correct
from reconciliation.services.drafts import drafts_of, keep
from tests.deciding import ABANDON, decide, seconder_of, states
from tests.factories import NOTE, code_of, owner_of, person

pytestmark = pytest.mark.django_db


# --- corrections ------------------------------------------------------------------------------


def correction(hold: Hold, **fields: object) -> CorrectionGiven:
    given = {"note": f"Wrong: {NOTE}", "token": uuid4(), "code": code_of(hold.case_id)}
    return CorrectionGiven(**(given | fields))  # type: ignore[arg-type]


def test_a_correction_stands_beside_the_decision_and_moves_nothing(hold: Hold) -> None:
    decision = decide(hold, ABANDON)
    given = correction(hold)
    before = states(hold)
    corrections = {correct(hold.pk, person(), given).pk for _ in range(2)}
    assert states(hold) == before
    (made,) = Decision.objects.filter(kind="correction")
    assert (corrections, made.corrects) == ({made.pk}, decision)
    assert correct(hold.pk, person(), correction(hold)).corrects == decision


def test_only_what_was_decided_is_corrected_and_by_who_may_decide(hold: Hold) -> None:
    with pytest.raises(NotAllowed, match="nothing to correct"):
        correct(hold.pk, person(), correction(hold))
    decide(hold)
    with pytest.raises(InvalidDecision, match="at least 20"):
        correct(hold.pk, person(), correction(hold, note="wrong"))
    with pytest.raises(PermissionDenied):
        correct(hold.pk, seconder_of(hold.queue), correction(hold))


# --- drafts -----------------------------------------------------------------------------------


def test_a_draft_is_one_person_s_and_goes_with_their_decision(hold: Hold) -> None:
    case, other = hold.case_id, owner_of(hold.queue, "reviewer_2")
    assert keep(person(), case, {"note": "half a sen", "code": "abcdef", "kind": "applied"})
    draft = drafts_of(person(), case).first()
    assert draft is not None
    assert draft.typed == {"note": "half a sen", "kind": "applied"}  # the code is typed anew
    assert drafts_of(other, case).first() is None
    keep(other, case, {"note": "my own"})
    decide(hold)
    assert drafts_of(person(), case).first() is None
    assert drafts_of(other, case).first() is not None  # theirs had no effect, and is not lost


def test_an_empty_draft_is_none_and_old_ones_go(hold: Hold) -> None:
    keep(person(), hold.pk, {"note": "old"})
    old = drafts_of(person(), hold.pk).first()
    assert old is not None
    type(old).objects.update(saved_at=old.saved_at - timedelta(days=31))
    keep(person(), hold.case_id, {"note": "new"})
    assert drafts_of(person(), hold.pk).first() is None
    assert not keep(person(), hold.case_id, {"note": "  "})
    assert drafts_of(person(), hold.case_id).first() is None
