"""What a person may do with a hold, and which queues are theirs to see to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet

from reconciliation.access.seeing import visible_queues
from reconciliation.core import standing
from reconciliation.models import Hold, ReviewQueue
from workflows.access import visible_tenants
from workflows.rights import holds, objects_with

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def is_administrator(user: User) -> bool:
    """Who sees to what no queue takes; a closed account is nobody's."""
    return user.is_superuser and user.is_active


def has_right(user: User, right: str, queue: ReviewQueue) -> bool:
    return holds(user, f"reconciliation.{right}", queue)


def may(user: User, right: str, hold: Hold) -> bool:
    """Whether they hold `right` on the hold's queue; what no queue takes is the administrators'."""
    if hold.queue is None:
        return is_administrator(user)
    return has_right(user, right, hold.queue)


def may_decide(user: User, hold: Hold) -> bool:
    return may(user, "decide", hold)


def may_assign(user: User, hold: Hold) -> bool:
    return may(user, "assign", hold)


def may_review(user: User, hold: Hold) -> bool:
    """Whether somebody may decide a hold or confirm what others propose on it."""
    return may_decide(user, hold) or (
        hold.queue is not None and has_right(user, "second", hold.queue)
    )


def ensure_may_review(user: User, hold: Hold) -> None:
    """Raises `PermissionDenied`: this person may neither decide this hold nor confirm there."""
    deny("" if may_review(user, hold) else standing.NOT_YOURS)


def may_answer_for(user: User, queue: ReviewQueue) -> bool:
    """Whether `user` may see the queue's holds and decide them."""
    seen = visible_queues(user).filter(pk=queue.pk).exists()
    of_tenant = queue.tenant_id is None or visible_tenants(user).filter(pk=queue.tenant_id).exists()
    return seen and of_tenant and holds(user, "reconciliation.decide", queue)


def with_right(user: User, right: str) -> QuerySet[ReviewQueue]:
    return objects_with(user, f"reconciliation.{right}", ReviewQueue.objects.all())


def team_queues(user: User) -> QuerySet[ReviewQueue]:
    """Those whose holds are a person's to see to: which they own, or may decide."""
    return ReviewQueue.objects.filter(Q(owners=user) | Q(pk__in=with_right(user, "decide")))


def owned_queues(user: User) -> QuerySet[ReviewQueue]:
    return ReviewQueue.objects.filter(owners=user).order_by("name")


def deny(why: str) -> None:
    if why:
        raise PermissionDenied(why)
