"""Where holds of one kind go, and who answers for them."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from reconciliation.core.notifications import Times
from workflows.models.ids import new_id

TIMES = Times()
NOT_BACKWARDS = MinValueValidator(timedelta())


class ReviewQueue(models.Model):
    """Takes holds by (tenant, provider, action), most specific first; an empty field takes any."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=200)
    tenant = models.ForeignKey(
        "workflows.Tenant", on_delete=models.PROTECT, null=True, blank=True, related_name="queues"
    )
    provider = models.ForeignKey(
        "reconciliation.Provider",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="queues",
    )
    action = models.CharField(max_length=100, blank=True)
    owners = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="queues")
    due_after = models.DurationField(default=timedelta(hours=4))
    # How many people it takes to decide; and from which amount it always takes two.
    approvals_needed = models.PositiveSmallIntegerField(
        default=1, choices=[(1, "one person"), (2, "two people")]
    )
    second_from = models.DecimalField(
        max_digits=20, decimal_places=4, null=True, blank=True, validators=[MinValueValidator(0)]
    )
    # Who hears of a hold that nobody decides, and when: before its due time, and after it.
    tell_before = models.DurationField(default=TIMES.before, validators=[NOT_BACKWARDS])
    tell_on_call_after = models.DurationField(default=TIMES.on_call, validators=[NOT_BACKWARDS])
    tell_owners_after = models.DurationField(default=TIMES.owners, validators=[NOT_BACKWARDS])
    tell_administrators_after = models.DurationField(
        default=TIMES.administrators, validators=[NOT_BACKWARDS]
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="queue_one_person_or_two", condition=Q(approvals_needed__in=[1, 2])
            )
        ]
        permissions = [
            ("decide", "Can decide holds"),
            ("assign", "Can assign holds"),
            ("second", "Can confirm the decisions of others"),
            ("configure", "Can set it up"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def times(self) -> Times:
        return Times(
            before=self.tell_before,
            on_call=self.tell_on_call_after,
            owners=self.tell_owners_after,
            administrators=self.tell_administrators_after,
        )
