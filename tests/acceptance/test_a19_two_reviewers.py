"""Case A19: two reviewers decide the same case at the same moment, in two browsers.

The case's `signoff` is a write that is held here; the boundary's approvals bring their own. The
moment is the same one: both requests are let go together, on connections of their own. Where a
queue asks for two people the same holds of proposing, and of what ends a proposal.

Decisions have no web API: beside the browser there is the command line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from reconciliation.models import Decision, DecisionProposal, Operation, ProposalEnd
from reconciliation.services.audit import first_broken_entry
from tests.console.posting import filled, form_at, url_of
from tests.deciding import seconder_of, two_needed
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    code_of,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    ready_provider,
    settled,
)
from tests.racing import at_once
from workflows.services.results import result_of

pytestmark = pytest.mark.usefixtures("committed_db")

REPEATS = 50
BY_TWO = BY_COMMAND = 5


@pytest.fixture
def browsers(destination: RunningDestination) -> tuple[Client, Client]:
    """Two owners of the queue, each signed in somewhere else."""
    provider = ready_provider("desk", destination.url)
    both = (person(), owner_of(provider.default_queue, "reviewer_2"))
    signed_in = (Client(), Client())
    for client, user in zip(signed_in, both, strict=True):
        client.force_login(user)
    return signed_in


def pressing(client: Client, operation: Operation, kind: str) -> Callable[[], Any]:
    """The form, open and filled in; calling it presses the button."""
    form = form_at(client, url_of(operation))
    given = filled(form, kind)
    return lambda: client.post(form.url, given)


def test_one_decision_counts_and_the_other_is_told_whose(
    browsers: tuple[Client, Client], destination: RunningDestination
) -> None:
    for _ in range(REPEATS):
        operation = held_operation(destination)
        approves = pressing(browsers[0], operation, "applied")
        rejects = pressing(browsers[1], operation, "abandon")
        answers = at_once(approves, rejects)
        decision = Decision.objects.get(operation=operation)
        assert sorted(answer.status_code for answer in answers) == [
            HTTPStatus.SEE_OTHER,
            HTTPStatus.CONFLICT,
        ]
        refused = next(each for each in answers if each.status_code == HTTPStatus.CONFLICT)
        theirs = refused.context["page"].overtaken.theirs
        assert (theirs.by, theirs.at) == (decision.by_name, decision.at)
        # `notify` runs only as the recorded decision says.
        run = settled(operation.run)
        assert ("noted as c_1" in result_of(run)) is (decision.kind == "applied")
    assert Decision.objects.count() == REPEATS
    assert first_broken_entry() is None


def test_of_the_page_and_the_command_line_one_counts_too(
    browsers: tuple[Client, Client], destination: RunningDestination
) -> None:
    for _ in range(BY_COMMAND):
        operation = held_operation(destination)
        asked = ("decide", str(operation.pk), "--kind=abandon", "--by=reviewer_2", f"--note={NOTE}")
        code = f"--code={code_of(operation.pk)}"
        answers = at_once(
            pressing(browsers[0], operation, "applied"),
            partial(call_command, *asked, code, stdout=StringIO()),
        )
        decision = Decision.objects.get(operation=operation)
        if decision.kind == "applied":
            assert answers[0].status_code == HTTPStatus.SEE_OTHER
            assert "reviewer_1 decided first" in str(answers[1])
        else:
            assert answers[0].status_code == HTTPStatus.CONFLICT
            assert answers[0].context["page"].overtaken.theirs.by == "reviewer_2"


def test_two_proposals_at_the_same_moment_are_one(
    browsers: tuple[Client, Client], destination: RunningDestination
) -> None:
    for _ in range(BY_TWO):
        operation = held_operation(destination)
        two_needed(open_hold_of(operation))
        answers = at_once(
            pressing(browsers[0], operation, "applied"),
            pressing(browsers[1], operation, "abandon"),
        )
        proposal = DecisionProposal.objects.get(operation=operation)
        assert Counter(answer.status_code for answer in answers) == {
            HTTPStatus.SEE_OTHER: 1,
            HTTPStatus.CONFLICT: 1,
        }
        refused = next(each for each in answers if each.status_code == HTTPStatus.CONFLICT)
        assert refused.context["page"].overtaken.theirs.by == proposal.by_name
    assert not Decision.objects.exists()


def test_of_a_confirmation_a_refusal_and_a_withdrawal_at_the_same_moment_one_counts(
    browsers: tuple[Client, Client], destination: RunningDestination
) -> None:
    for _ in range(BY_TWO):
        operation = held_operation(destination)
        hold = two_needed(open_hold_of(operation))
        others = [Client(), Client()]
        for place, client in enumerate(others):
            client.force_login(seconder_of(hold.queue, f"second_{place}"))
        pressing(browsers[0], operation, "applied")()
        url = reverse("operation_second", args=[operation.pk])
        acts = []
        for client, verdict in (
            (others[0], "confirm"),
            (others[1], "refuse"),
            (browsers[0], "withdraw"),
        ):
            form = client.get(url_of(operation)).context["page"].proposal.form
            given = {
                "verdict": verdict,
                "version": form.version,
                "token": form.token,
                "code": form.code,
                "note": "I have asked the desk, and it is so.",
            }
            acts.append(partial(client.post, url, given))
        answers = at_once(*acts)
        ended = ProposalEnd.objects.get(proposal__operation=operation)
        codes = Counter(answer.status_code for answer in answers)
        assert codes == {HTTPStatus.SEE_OTHER: 1, HTTPStatus.CONFLICT: 2}
        confirmed = ended.kind == "confirmed"
        assert Decision.objects.filter(operation=operation).exists() is confirmed
        operation.refresh_from_db()
        assert operation.state == ("applied" if confirmed else "held")
    assert first_broken_entry() is None
