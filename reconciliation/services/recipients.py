"""Who is told: found anew for each batch of notifications, as rights, rota and channels are then.

People hear only of what they may see. Where nobody of those who are to hear first can be reached,
the next on the ladder are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache, cached_property
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Prefetch

from reconciliation import access
from reconciliation.channels import mail
from reconciliation.core.channels import ChannelKind
from reconciliation.core.notifications import Kind, Rung, rungs_from
from reconciliation.models import Channel, Hold, Notification, Provider, ReviewQueue, Shift
from reconciliation.services.rota import on_call_at
from workflows.access import visible_tenants

# What a queue's own channels are told of: cases that come, end, or get late for the first time.
OF_QUEUES = frozenset({Kind.OPENED, Kind.OVERDUE, Kind.WINDOW, Kind.PROVEN})


class AddressBook:
    """What is known of people, queues and channels while one batch is addressed."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._people_channels = cache(channels_of_person)
        self._sees = cache(may_see)
        self._sees_tenant = cache(may_see_tenant)

    @cached_property
    def _queues(self) -> dict[UUID, ReviewQueue]:
        """Every queue with its people, shifts and channels: there are tens of them."""
        shifts = Prefetch("shifts", Shift.objects.select_related("person"))
        rows = ReviewQueue.objects.prefetch_related("owners", "channels", shifts)
        return {queue.pk: queue for queue in rows}

    @cached_property
    def _administrators(self) -> list[User]:
        return list(User.objects.filter(is_superuser=True, is_active=True))

    def channels_for(self, notification: Notification) -> list[Channel]:
        """The channels that it is for; none that works when nobody can be reached now."""
        if notification.channel is not None:
            return [notification.channel]
        if notification.person is not None:
            return self._reach([notification.person], lambda _: True)
        if notification.hold is not None:
            return self._for_hold(notification, notification.hold)
        return self._for_queues(notification)

    # --- of a hold ------------------------------------------------------------------------

    def _for_hold(self, notification: Notification, hold: Hold) -> list[Channel]:
        queue = self._queues.get(hold.queue_id) if hold.queue_id else None
        found: list[Channel] = []
        first_time = notification.kind != Kind.OVERDUE or notification.rung == Rung.ASSIGNEE
        if queue is not None and notification.kind in OF_QUEUES and first_time:
            found += kept_for(queue)
        tenant = tenant_of(hold)
        for rung in rungs_from(Rung(notification.rung)):
            people = self._on(rung, hold, queue)
            reached = self._reach(people, lambda user: self._sees(user, hold.queue_id, tenant))
            if reached:
                return found + reached
        return found

    def _on(self, rung: Rung, hold: Hold, queue: ReviewQueue | None) -> list[User]:
        match rung:
            case Rung.ASSIGNEE:
                return [hold.assignee] if hold.assignee else []
            case Rung.ON_CALL:
                return on_call_at(queue.shifts.all(), self._now) if queue else []
            case Rung.OWNERS:
                return list(queue.owners.all()) if queue else []
            case Rung.ADMINISTRATORS:
                return self._administrators

    # --- of what several queues answer for --------------------------------------------------

    def _for_queues(self, notification: Notification) -> list[Channel]:
        queues = self._concerned(notification)
        found: list[Channel] = []
        if notification.kind != Kind.STOPPED:
            found = [channel for queue in queues for channel in kept_for(queue)]
        tenant = notification.says.get("tenant") or None
        owners = {owner.pk: owner for queue in queues for owner in queue.owners.all()}
        reached = self._reach(
            owners.values(),
            lambda user: self._sees_tenant(user, tenant) and may_see_subject(user, notification),
        )
        return found + (reached or self._reach(self._administrators, lambda _: True))

    def _concerned(self, notification: Notification) -> list[ReviewQueue]:
        if notification.queue_id is not None:
            return [self._queues[notification.queue_id]]
        queues = self._queues.values()
        if notification.provider is not None:
            return [queue for queue in queues if stands_for(queue, notification.provider)]
        tenant = notification.says.get("tenant") or ""
        return [queue for queue in queues if not tenant or str(queue.tenant_id) in ("None", tenant)]

    # --- people -----------------------------------------------------------------------------

    def _reach(self, people: Iterable[User], may_hear: Callable[[User], bool]) -> list[Channel]:
        return [
            channel
            for person in people
            if person.is_active and may_hear(person)
            for channel in self._people_channels(person)
        ]


def stands_for(queue: ReviewQueue, provider: Provider) -> bool:
    return provider.pk == queue.provider_id or queue.pk == provider.default_queue_id


def tenant_of(hold: Hold) -> UUID:
    case = hold.event or hold.held_run
    return case.tenant_id


def may_see(user: User, queue: UUID | None, tenant: UUID) -> bool:
    """Whether `user` may see a hold of `tenant` in `queue`; one of no queue is administrators'."""
    if queue is None and not user.is_superuser:
        return False
    in_view = queue is None or access.visible_queues(user).filter(pk=queue).exists()
    return in_view and may_see_tenant(user, tenant)


def may_see_subject(user: User, notification: Notification) -> bool:
    """Whether `user` may see the provider and the queue that a notification is about."""
    provider, queue = notification.provider_id, notification.queue_id
    if provider and not access.visible_providers(user).filter(pk=provider).exists():
        return False
    return not queue or access.visible_queues(user).filter(pk=queue).exists()


def may_see_tenant(user: User, tenant: UUID | None) -> bool:
    """Whether `user` may see `tenant`; for none, whether they may see any."""
    tenants = visible_tenants(user)
    return tenants.filter(pk=tenant).exists() if tenant else tenants.exists()


def kept_for(queue: ReviewQueue) -> list[Channel]:
    """A queue's own channels, also those that have stopped: what is for them waits."""
    return [channel for channel in queue.channels.all() if channel.enabled]


def channels_of_person(person: User) -> list[Channel]:
    """The channels that a person is reached by: their own, else e-mail to their account.

    That one is made when it is first needed, so that its failures are seen as any other's.
    """
    own = list(Channel.objects.filter(person=person))
    if not own and person.email and mail.is_set_up():
        usual = Channel(kind=ChannelKind.EMAIL, person=person)
        Channel.objects.bulk_create([usual], ignore_conflicts=True)
        own = list(Channel.objects.filter(person=person))
    return [channel for channel in own if channel.works]
