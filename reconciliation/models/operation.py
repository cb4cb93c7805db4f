"""One intended external effect: one row, one ID and one idempotency key for ever (promise P3)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Collate, Now, Reverse

from reconciliation.core.states import SETTLED, OperationState
from reconciliation.models.provider import ContractVersion, Provider
from reconciliation.querysets import OperationQuerySet
from workflows.models import Proposal, Run
from workflows.models.ids import last_of, new_id


class Operation(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="operations")
    step = models.CharField(max_length=63)
    visit = models.PositiveIntegerField()
    effect = models.CharField(max_length=100)
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="operations")
    # The contract in force when it was opened; it is settled under this one.
    contract_version = models.ForeignKey(ContractVersion, on_delete=models.PROTECT)
    action = models.CharField(max_length=100)
    target = models.CharField(max_length=300)
    summary = models.CharField(max_length=300)
    amount = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    currency = models.CharField(max_length=3, blank=True)
    parameters_redacted = models.JSONField()
    parameters_digest = models.CharField(max_length=100)  # "<key id>:<hmac-sha256>"
    # What people have approved of it; never another one (trigger).
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, null=True, related_name="operations", db_index=False
    )
    idempotency_key = models.CharField(max_length=255)
    # Where the key counts: account, region, endpoint, credential; a replay goes nowhere else.
    key_scope = models.JSONField()
    request_sealed = models.BinaryField()  # the exact bytes, encrypted
    first_sent_at = models.DateTimeField(null=True)
    replay_not_after = models.DateTimeField(null=True)
    state = models.CharField(max_length=24, default=OperationState.INTENDED)
    resource = models.CharField(max_length=300, blank=True)
    receipt = models.JSONField(null=True)
    send_again_at = models.DateTimeField(null=True)
    # When Romulus looks at it next by itself; null while a worker or a person has it.
    due_at = models.DateTimeField(null=True)
    # When its provider may be asked about it, of the turns that are given out; used once.
    turn_at = models.DateTimeField(null=True)
    # The one in whose place a person had this one opened, and the one whose effect it takes back.
    supersedes = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="replacements"
    )
    compensates = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="undos"
    )
    created_at = models.DateTimeField(db_default=Now())
    settled_at = models.DateTimeField(null=True)

    objects = OperationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="operation_state_known",
                condition=Q(state__in=[state.value for state in OperationState]),
            ),
            models.CheckConstraint(
                name="operation_settled_iff_settled_at",
                condition=Q(state__in=SETTLED, settled_at__isnull=False)
                | (~Q(state__in=SETTLED) & Q(settled_at__isnull=True)),
            ),
            models.UniqueConstraint(
                name="operation_once_per_effect", fields=["run", "step", "visit", "effect"]
            ),
            # Nothing is replaced twice, and no effect is taken back twice.
            models.UniqueConstraint(
                name="operation_replaced_once",
                fields=["supersedes"],
                condition=Q(supersedes__isnull=False),
            ),
            models.UniqueConstraint(
                name="operation_undone_once",
                fields=["compensates"],
                condition=Q(compensates__isnull=False, supersedes__isnull=True),
            ),
            models.UniqueConstraint(
                name="operation_key_once_per_provider", fields=["provider", "idempotency_key"]
            ),
        ]
        indexes = [
            # The sweep's due reconciliations: unsettled rows only.
            models.Index(
                name="operation_due", fields=["due_at"], condition=Q(due_at__isnull=False)
            ),
            models.Index(
                name="operation_proposal",
                fields=["proposal"],
                condition=Q(proposal__isnull=False),
            ),
            models.Index(
                name="operation_unsettled", fields=["state", "id"], condition=~Q(state__in=SETTLED)
            ),
            # Search: by the end of the ID, the target or how it begins or ends, the resource or how
            # it begins.
            models.Index(last_of("id"), name="operation_id_end"),
            models.Index(Collate("target", "C"), name="operation_target"),
            models.Index(Collate(Reverse("target"), "C"), name="operation_target_end"),
            models.Index(
                Collate("resource", "C"), name="operation_resource", condition=~Q(resource="")
            ),
        ]

    def __str__(self) -> str:
        return self.summary
