"""Two people take the same case, or answer the same question, at the same moment: one has it."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model

from reconciliation.core.errors import CaseMoved
from reconciliation.core.review_work import BulkKind
from reconciliation.models import AuditEntry, BulkAction, CaseNote, Hold, Reminder
from reconciliation.services.assigning import claim
from reconciliation.services.bulk import Wanted, carry_out, confirm
from reconciliation.services.notes import answer, ask
from reconciliation.services.snoozing import remind
from tests.factories import many_held, owner_of, person, ready_provider
from tests.racing import at_once
from workflows.services.clock import database_now

pytestmark = pytest.mark.usefixtures("committed_db")


def test_of_two_who_act_at_once_one_is_first_and_nothing_is_done_twice() -> None:
    provider = ready_provider("payments")
    assert provider.default_queue is not None
    second = owner_of(provider.default_queue, "reviewer_2")
    first = get_user_model().objects.get(pk=person().pk)
    hold, asked = many_held(2, provider)

    claims = at_once(lambda: claim(hold.pk, first), lambda: claim(hold.pk, second))
    (told,) = (each for each in claims if isinstance(each, CaseMoved))
    assert "has it now" in str(told)
    assert claims.count(True) == 1
    assert AuditEntry.objects.filter(verb="claimed").count() == 1

    question = ask(asked, first, second, "Which card?", uuid4())
    answers = at_once(
        lambda: answer(question, first, "The blue one.", uuid4()),
        lambda: answer(question, second, "The red one.", uuid4()),
    )
    assert sum(isinstance(each, CaseMoved) for each in answers) == 1
    assert CaseNote.objects.filter(kind="answer").count() == 1

    soon = database_now() + timedelta(hours=1)
    wishes = at_once(*[lambda: remind(hold.pk, first, soon)] * 2)
    assert not [each for each in wishes if isinstance(each, Exception)]
    assert Reminder.objects.count() == 1

    token, wanted = uuid4(), Wanted(BulkKind.SNOOZE, until=soon)
    holds = [hold.pk, asked.pk]
    actions = at_once(*[lambda: confirm(wanted, holds, first, token)] * 2)
    assert actions[0] == actions[1] == BulkAction.objects.get()
    at_once(*[lambda: carry_out(actions[0].pk)] * 2)
    assert set(Hold.objects.values_list("snoozed_until", flat=True)) == {soon}
    assert AuditEntry.objects.filter(verb="snoozed").count() == 2
