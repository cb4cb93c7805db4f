"""What a provider was seen to do in its sandbox, and the sandbox in which it was asked.

A rehearsal is evidence about a contract: added, never changed.
"""

from __future__ import annotations

from django.core.validators import URLValidator
from django.db import models
from django.db.models.functions import Now

from reconciliation.models.provider import ContractVersion, Provider
from workflows.models.ids import new_id


class Sandbox(models.Model):
    """Where a provider may be rehearsed: an account in which a second effect hurts nobody."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    provider = models.OneToOneField(Provider, on_delete=models.PROTECT, related_name="sandbox")
    base_url = models.CharField(max_length=300, validators=[URLValidator(["http", "https"])])
    account = models.CharField(max_length=200)
    region = models.CharField(max_length=100, blank=True)
    credential_sealed = models.BinaryField(default=b"", blank=True)
    # The write that is rehearsed; {unique} in a parameter is another word for each case.
    action = models.CharField(max_length=100)
    parameters = models.JSONField(default=dict)
    # The provider under which rehearsals stand in the ledger; made by the first one.
    stand_in = models.OneToOneField(
        Provider, on_delete=models.PROTECT, null=True, editable=False, related_name="stands_in_for"
    )

    class Meta:
        verbose_name_plural = "sandboxes"

    def __str__(self) -> str:
        return f"sandbox of {self.provider.slug}"


class Rehearsal(models.Model):
    """One rehearsal of a provider: what each case showed, under which contract, and when."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="rehearsals")
    contract_version = models.ForeignKey(ContractVersion, on_delete=models.PROTECT)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(db_default=Now())
    complete = models.BooleanField()  # every case that the contract has claims for was tried
    # By claim (replay, look_up, …): confirmed or contradicted. A claim that is not in it was not
    # shown either way.
    claims = models.JSONField()
    cases = models.JSONField()  # of each: what the destination, the ledger and the run showed
    breaches = models.PositiveIntegerField()  # of the promises: a double effect, a wrong advance

    class Meta:
        indexes = [
            # The provider page: the latest.
            models.Index(name="rehearsal_latest", fields=["provider", "-ended_at"])
        ]

    def __str__(self) -> str:
        return f"rehearsal of {self.provider.slug}, {self.ended_at:%Y-%m-%d}"
