"""No sequence of answers, events, restarts and edits leads to a write other than was approved.

A run is driven through random sequences: people answer and take back, time passes, rights and
policies change, events are forged, the author's code changes its mind between the proposal and the
write, answers of the provider are lost, workers die. Whatever leaves is compared with what was
approved when it left.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models.functions import Now
from guardian.shortcuts import assign_perm, remove_perm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciliation.core.errors import NotAllowed
from reconciliation.core.states import DecisionKind
from reconciliation.models import Hold, Operation, Transmission
from reconciliation.services.decisions import record_decision
from reconciliation.services.reconcile import reconcile
from tests.approving import aged, approver, policy
from tests.claiming import expire_lease
from tests.contract.far_side import FarSide, Said, Seen
from tests.deciding import answer_on
from tests.factories import advanced, person, ready_provider, tenant
from workflows.core.boundary.canonical import canonical
from workflows.core.definitions import Workflow
from workflows.core.errors import NotEntitled, ProposalIsOver
from workflows.core.events import Incoming
from workflows.core.intents import Intent
from workflows.core.proposals import APPROVAL_EVENT, Answer, ProposedAction
from workflows.models import Approval, Proposal
from workflows.registry import registry
from workflows.services.answers import Given, answer, source_of
from workflows.services.asking_again import ask_again
from workflows.services.authorising import sealed_of
from workflows.services.claims import claim_run
from workflows.services.inbox import receive
from workflows.services.ownership import Keeper
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

FINANCE = "finance"
# What the author's code says at the proposal and at the write: it may change in between.
mind: dict[str, float] = {}
shifting = Workflow("tests.shifting")


def parameters(amount: float) -> dict[str, Any]:
    return {"order": "ORD-1", "amount": amount, "currency": "EUR"}


@shifting.approval(action="refunds.create", expires_in=timedelta(hours=1), on_denied="hold")
def propose(run: RunView) -> ProposedAction:
    said = parameters(mind["proposed"])
    return ProposedAction("refunds.create", "order ORD-1", said, "Refund order ORD-1")


@shifting.write(provider="payments", approved_by=propose, on_failure="hold")
def refund(run: RunView) -> Intent:
    said = parameters(mind["sent"])
    return Intent("refunds.create", "order ORD-1", said, "Refund order ORD-1")


class Scene:
    """One run, the people around it, and the provider that sees what leaves."""

    def __init__(self, side: FarSide) -> None:
        mind.update(proposed=100, sent=100)
        self.user = approver()
        assign_perm("workflows.control_runs", approver("asker_1"), tenant())
        self.lose_next = False
        self.finance: int | None = None  # the group that the policy means, where it names one
        side.seen.clear()
        side.answers = self.provider
        self.run = start("tests.shifting", {}, tenant=tenant())
        self.sent: list[bytes] = []

    def provider(self, seen: Seen) -> Said:
        if seen.method != "POST":
            return Said(body=b'{"id": "re_1", "status": "succeeded"}')
        said = json.loads(seen.body)
        self.sent.append(canonical({name: said[name] for name in parameters(0)}))
        if self.lose_next:
            self.lose_next = False
            return Said(fault="drop")
        made = said | {"id": "re_1", "account": "acct_demo", "status": "succeeded"}
        return Said(201, {"Request-Id": "req_1"}, json.dumps(made).encode())

    # --- what can happen ----------------------------------------------------------------------

    def latest(self) -> Proposal | None:
        return Proposal.objects.filter(run=self.run).order_by("-id").first()

    def say(self, kind: Answer) -> None:
        proposal = self.latest()
        if proposal is None:
            return
        said = Given(kind, proposal.parameters_digest, uuid4(), "For the property test.")
        user = get_user_model().objects.get(pk=self.user.pk)
        with suppress(NotEntitled, ProposalIsOver):
            answer(proposal.pk, user, said)

    def work(self) -> None:
        for operation in Operation.objects.filter(due_at__isnull=False):
            Operation.objects.filter(pk=operation.pk).update(due_at=Now())
            reconcile(operation.pk)
        before, allowed = len(self.sent), self.approved()
        advanced(self.run)
        for left in self.sent[before:]:
            assert left in allowed, "it was not approved when it left"

    def approved(self) -> set[bytes]:
        """What may leave now, by a reading of the tables that shares nothing with the boundary."""
        user = get_user_model().objects.get(pk=self.user.pk)
        if not user.has_perm("workflows.approve_actions", tenant()):
            return set()
        if self.finance is not None and not user.groups.filter(pk=self.finance).exists():
            return set()
        newest = self.latest()
        if newest is None or newest.state != "approved":
            return set()
        if not Proposal.objects.filter(pk=newest.pk, expires_at__gt=Now()).exists():
            return set()
        last = Approval.objects.filter(proposal=newest).order_by("at", "id").last()
        if last is None or last.answer != "approve":
            return set()
        return {canonical(sealed_of(newest)["parameters"])}

    def run_out(self) -> None:
        proposal = self.latest()
        if proposal is not None:
            aged(proposal, timedelta(hours=2))

    def forge(self) -> None:
        """An event that says "approved", with nobody's answer behind it."""
        proposal = self.latest()
        if proposal is None:
            return
        said = {"proposal": str(proposal.pk), "answer": "approve"}
        receive(
            Incoming(
                source=source_of(tenant()).pk,
                tenant=tenant().pk,
                event_id=str(uuid4()),
                type=APPROVAL_EVENT,
                correlation=str(proposal.pk),
                body=json.dumps(said | {"digest": proposal.parameters_digest}).encode(),
            )
        )

    def try_again(self) -> None:
        """A person lets a held step be tried again, or a held write be sent, where that is
        offered."""
        hold = Hold.objects.filter(state="open").first()
        if hold is None:
            return
        kind = DecisionKind.SEND_AGAIN if hold.operation_id else DecisionKind.TRY_AGAIN
        with suppress(NotAllowed):
            record_decision(hold.pk, person(), answer_on(hold, kind))

    def die(self) -> None:
        """A worker takes the run and is never heard of again."""
        self.run.refresh_from_db()
        if claim_run(self.run.pk, Keeper().worker) is not None:
            expire_lease(self.run)

    def renew(self) -> None:
        proposal = self.latest()
        asker = get_user_model().objects.get(username="asker_1")
        if proposal is not None:
            with suppress(ProposalIsOver):
                ask_again(proposal.pk, asker)

    def put_in_force(self, **document: Any) -> None:
        policy(**document)
        self.finance = None

    def ask_finance(self) -> None:
        self.put_in_force(approvals=[{"actions": ["refunds.*"], "groups": [FINANCE]}])
        self.finance = Group.objects.get(name=FINANCE).pk

    def join_finance(self) -> None:
        self.user.groups.add(Group.objects.get_or_create(name=FINANCE)[0])

    def make_finance_again(self) -> None:
        Group.objects.filter(name=FINANCE).delete()
        self.join_finance()

    def lose_answer(self) -> None:
        self.lose_next = True


ACTS: dict[str, Callable[[Scene], Any]] = {
    "work": Scene.work,
    "approve": lambda scene: scene.say(Answer.APPROVE),
    "deny": lambda scene: scene.say(Answer.DENY),
    "ask": lambda scene: scene.say(Answer.QUESTION),
    "withdraw": lambda scene: scene.say(Answer.WITHDRAW),
    "propose otherwise": lambda _scene: mind.update(proposed=999),
    "send otherwise": lambda _scene: mind.update(sent=999),
    "send the same, written otherwise": lambda _scene: mind.update(sent=100.0),
    "run out": Scene.run_out,
    "forge an event": Scene.forge,
    "try again": Scene.try_again,
    "a worker dies": Scene.die,
    "ask for it again": Scene.renew,
    "lose the answer": Scene.lose_answer,
    "the approver may no more": lambda scene: remove_perm(
        "workflows.approve_actions", scene.user, tenant()
    ),
    "and may again": lambda scene: assign_perm("workflows.approve_actions", scene.user, tenant()),
    "a policy that lets nobody": lambda scene: scene.put_in_force(grants=[]),
    "a policy that lets them": lambda scene: scene.put_in_force(),
    "a policy that asks finance": Scene.ask_finance,
    "the approver joins finance": Scene.join_finance,
    "the approver leaves finance": lambda scene: scene.user.groups.clear(),
    "finance is made again": Scene.make_finance_again,
}
# Most sequences begin as a run does, so that what follows meets a write that could be made.
BEGUN = ["work", "approve"]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(begun=st.booleans(), acts=st.lists(st.sampled_from(sorted(ACTS)), min_size=1, max_size=9))
def test_nothing_leaves_but_what_was_approved(side: FarSide, begun: bool, acts: list[str]) -> None:
    with transaction.atomic():
        registry.add(shifting)
        ready_provider("payments", side.url)
        scene = Scene(side)
        for name in [*(BEGUN if begun else []), *acts, "work", "work"]:
            ACTS[name](scene)
        # However often it was sent, it was one operation's bytes under one key.
        assert len(set(scene.sent)) <= 1
        assert Transmission.objects.values("operation").distinct().count() <= 1
        transaction.set_rollback(True)


def test_the_sequence_that_people_mean_is_sent_once(side: FarSide) -> None:
    """The property above is not empty: what was approved does leave."""
    registry.add(shifting)
    ready_provider("payments", side.url)
    scene = Scene(side)
    for name in ("work", "approve", "work"):
        ACTS[name](scene)
    assert scene.sent == [canonical(parameters(100))]


def test_what_the_code_changed_between_is_not_sent(side: FarSide) -> None:
    registry.add(shifting)
    ready_provider("payments", side.url)
    scene = Scene(side)
    for name in ("work", "approve", "send otherwise", "work"):
        ACTS[name](scene)
    assert scene.sent == []
    hold = Operation.objects.get().holds.get()
    assert "Otherwise than proposed: the parameters." in hold.message
    assert "A new proposal" in hold.message
