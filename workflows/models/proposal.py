"""What somebody wants to do and people are asked about, and what they have answered."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from workflows.core.proposals import Answer, ProposalState
from workflows.models.event import Event
from workflows.models.ids import new_id
from workflows.models.run import Run
from workflows.models.tenant import Tenant


class Proposal(models.Model):
    """One proposed action, exactly as it would be carried out. Only how it ends is written later.

    One that asks for the same again, after its approval lapsed, names the first in `root`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    root = models.UUIDField()  # the first of those that ask for the same; its own ID if it is that
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="proposals", db_index=False)
    step = models.CharField(max_length=63)
    visit = models.IntegerField()
    tenant = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, related_name="proposals", db_index=False
    )
    action = models.CharField(max_length=100)
    target = models.CharField(max_length=300)
    summary = models.CharField(max_length=300)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    currency = models.CharField(max_length=3, blank=True)
    reason = models.CharField(max_length=1000, blank=True)  # why, in the proposer's words
    parameters_sealed = models.BinaryField()  # canonical JSON, encrypted
    parameters_digest = models.CharField(max_length=100)  # "<key id>:<hmac-sha256>"
    proposed_by = models.CharField(max_length=200)  # a subject
    on_behalf_of = models.CharField(max_length=200, blank=True)  # a subject
    asked_by = models.CharField(max_length=200, blank=True)  # who asked for the same again
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()

    state = models.CharField(max_length=16, default=ProposalState.OPEN)
    ended_at = models.DateTimeField(null=True)
    # Its run has gone on by how it ended; whoever tries that step again proposes anew.
    followed_at = models.DateTimeField(null=True)
    # The operation that has used the approval: an approval counts once.
    used_by = models.UUIDField(null=True)
    used_at = models.DateTimeField(null=True)

    # Of the row as it was read for a page: when that was, by the database's clock.
    read_at: datetime

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="proposal_state_consistent",
                condition=Q(state=ProposalState.OPEN, ended_at__isnull=True)
                | Q(
                    state__in=[each.value for each in ProposalState if each != ProposalState.OPEN],
                    ended_at__isnull=False,
                ),
            ),
            models.CheckConstraint(
                name="proposal_used_only_if_approved",
                condition=Q(used_by__isnull=True) | Q(state=ProposalState.APPROVED),
            ),
            models.UniqueConstraint(
                name="proposal_one_open_per_root",
                fields=["root"],
                condition=Q(state=ProposalState.OPEN),
            ),
        ]
        indexes = [
            models.Index(name="proposal_run", fields=["run", "-id"]),
            models.Index(name="proposal_root", fields=["root", "-id"]),
            models.Index(
                name="proposal_open",
                fields=["tenant", "-id"],
                condition=Q(state=ProposalState.OPEN),
            ),
            models.Index(name="proposal_newest", fields=["tenant", "-id"]),
        ]

    def __str__(self) -> str:
        return self.summary


class Approval(models.Model):
    """One answer to a proposal, of a person here or in another system. Never changed (triggers):
    taking one back is an answer of its own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, related_name="answers", db_index=False
    )
    answer = models.CharField(max_length=16)
    subject = models.CharField(max_length=200)  # who: a person, or the source of another system
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="approvals"
    )
    by_name = models.CharField(max_length=200)
    note = models.CharField(max_length=2000, blank=True)
    digest = models.CharField(max_length=100)  # of the action, as it was shown
    event = models.ForeignKey(Event, on_delete=models.PROTECT, null=True)
    token = models.UUIDField(unique=True)  # of the form, or the event's own row
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="approval_answer_known",
                condition=Q(answer__in=[answer.value for answer in Answer]),
            )
        ]
        indexes = [models.Index(name="approval_proposal", fields=["proposal", "id"])]
