"""Text of others that would run, were it markup, wherever others can say something."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import Group, User
from django.db.models.functions import Now

from reconciliation.core.review_work import BulkKind
from reconciliation.models import Channel, DispatchStop, Operation, Provider, ReviewQueue
from reconciliation.services.addressing import pass_on
from reconciliation.services.bulk import Wanted, confirm
from reconciliation.services.notes import ask, comment
from reconciliation.services.saved_views import save_view
from tests.approving import approver, proposal_of
from tests.claiming import ready_run
from tests.deciding import ABANDON, KEEP_HOLDING, decide, propose, two_needed
from tests.destination import RunningDestination
from tests.events import FAILING, delivered, waiting
from tests.factories import (
    administrator,
    advanced,
    open_hold_of,
    person,
    ready_provider,
    settled,
    started_run,
    tenant,
)
from tests.scripted import scripted_provider
from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.core.proposals import Answer, ProposedAction
from workflows.models import AccessToken, EventSource, Pause, ServiceAccount, Tenant, Worker
from workflows.registry import registry
from workflows.services.answers import Given, answer
from workflows.services.clock import database_now
from workflows.services.policies import add_policy
from workflows.services.run_view import RunView
from workflows.services.runs import start

# Ends an attribute and an element, and would run under no content policy; "&lt;" is for a page that
# takes an escape away.
MARK = '"></a></script><img src=x onerror="document.title=1">&lt;img src=x onerror=1>'

marked = Workflow("tests.marked")


@marked.write(provider="desk")
def tell_the_desk(run: RunView) -> Intent:
    return Intent(
        action="comments.create",
        target=MARK,
        parameters={"ticket": "T-17", "body": MARK},
        summary=MARK,
    )


marked_and_approved = Workflow("tests.marked_and_approved")


@marked_and_approved.approval(action="refunds.create", expires_in=timedelta(hours=1))
def ask_people(run: RunView) -> ProposedAction:
    return ProposedAction(
        action="refunds.create",
        target=MARK,
        parameters={"note": MARK},
        summary=MARK,
        reason=MARK,
    )


@marked_and_approved.write(provider="payments", approved_by=ask_people)
def do_it(run: RunView) -> Intent:
    approved: ProposedAction = run.output("ask_people").action
    return approved


def said_to_the_boundary() -> None:
    """In what is proposed, asked about it and answered, and in the policy; whoever proposes it."""
    allows: dict[str, Any] = {
        "tools": [{"action": "refunds.create"}],
        "grants": [{"subjects": ["*"], "actions": ["refunds.*"]}],
    }
    add_policy(tenant(), allows, by=administrator(), note=MARK)
    ServiceAccount.objects.create(kind="agent", slug="bot", name=MARK, owner=person())
    AccessToken.objects.create(label=MARK, tenant=tenant(), digest="")
    registry.add(marked_and_approved)
    for _ in range(2):
        asked = proposal_of(advanced(start(marked_and_approved.name, {}, tenant=tenant())))
    given = Given(Answer.QUESTION, asked.parameters_digest, uuid4(), MARK)
    answer(asked.pk, approver(), given)


def said_everywhere(destination: RunningDestination) -> None:
    """The mark in all that others say: providers, events, workers, people, and what runs give."""
    registry.add(marked)
    ready_provider("desk", destination.url)
    destination.client.arm("apply_then_drop")
    settled(start(marked.name, {"note": MARK}, tenant=tenant(), labels={"file": MARK}))
    held = open_hold_of(Operation.objects.get())
    decide(held, KEEP_HOLDING, note=MARK * 2)
    comment(held, person(), MARK, uuid4())
    ask(held, person(), person(), MARK, uuid4())
    tomorrow = database_now() + timedelta(days=1)
    administrator()
    for each in User.objects.filter(is_superuser=True):
        save_view(each, MARK[:60], "view=unknown")
        confirm(Wanted(BulkKind.REMIND, until=tomorrow), [held.pk], each, uuid4())
    with scripted_provider() as refusing:
        refusing.status = 400
        refusing.body = json.dumps({"error": {"type": MARK, "message": MARK}}).encode()
        ready_provider("payments", refusing.url)
        advanced(started_run("refund"))
    Provider.objects.filter(slug="payments").update(contract_version=None)
    advanced(started_run("refund"))

    def fail(_: object) -> None:
        raise ValueError(MARK)

    advanced(ready_run(function=fail))
    advanced(ready_run(function=lambda _: {"file": MARK, MARK: 1}))
    said_to_the_boundary()
    waiting(FAILING, MARK)
    delivered(f"{MARK} ", event_id=MARK, type=MARK, payload={MARK: MARK})
    delivered(f"{MARK} ", event_id=f"{MARK}2", payload={MARK: MARK})
    propose(two_needed(held), ABANDON, note=MARK * 2)
    for each in (Provider, ReviewQueue, Tenant, EventSource):
        each.objects.update(name=MARK)
    broken = Provider.objects.filter(slug="desk")
    broken.update(contradicted_at=Now(), contradiction=MARK, replay_trust=MARK)
    Group.objects.create(name=MARK)
    User.objects.update(first_name=MARK)
    Worker.objects.update(host=MARK)
    Worker.objects.create(host=MARK, pid=7, workflows=[[MARK, 1]])
    Pause.objects.create(workflow=MARK, by=f"user:1 {MARK}", reason=MARK)
    until = Now() + timedelta(hours=1)
    DispatchStop.objects.create(state="paused", by=MARK, reason=MARK, action="x", until=until)
    pass_on()  # what is told of all that reaches nobody, and is shown as that
    failing = {"failing_since": Now(), "problem": MARK, "address": MARK}
    Channel.objects.create(kind="slack", queue=ReviewQueue.objects.first(), **failing)
