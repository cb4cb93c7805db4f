"""Setting up providers, queues and contracts: what an administrator saves, on record.

An audit entry holds what each field was before and is after, but for what may be a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Model
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.core.contracts import parse_contract
from reconciliation.core.errors import InvalidContract, NotYoursToGive
from reconciliation.core.standing import two_from
from reconciliation.models import ContractVersion, Provider, ReviewQueue
from reconciliation.sealing import seal
from reconciliation.services.audit import actor_of, add_entry
from workflows.core.changes import Changes
from workflows.rights import holds
from workflows.services.changes import changes_of

log = structlog.get_logger(__name__)

SEALED = frozenset({"credential", "credential_sealed"})

OF_A_QUEUE = ("view_reviewqueue", "decide", "assign", "second")
OF_ITS_TENANT = ("view_tenant", "view_payloads", "control_runs")


# --- owners -----------------------------------------------------------------------------------


@transaction.atomic
def make_owner(user: User, queue: ReviewQueue) -> None:
    """Let `user` answer for `queue`, with the rights that this takes; again changes nothing.

    Rights on the queue itself; and where it has a tenant, to see that with what was sent, and to
    stop its runs.
    """
    queue.owners.add(user)
    for right in OF_A_QUEUE:
        assign_perm(f"reconciliation.{right}", user, queue)
    if queue.tenant is not None:
        for right in OF_ITS_TENANT:
            assign_perm(f"workflows.{right}", user, queue.tenant)


@transaction.atomic
def set_owners(queue: ReviewQueue, owners: Iterable[User], *, by: User) -> None:
    """Make `owners` the owners of `queue`: whoever is one no more loses the rights on it.

    Rights on its tenant stay: they may be held for another queue's sake.

    Raises:
        NotYoursToGive: owners would get rights that `by` does not hold, or `by` would get some;
            an administrator may.
    """
    wanted, present = set(owners), set(queue.owners.all())
    ensure_may_give(wanted, queue, by)
    for user in present - wanted:
        queue.owners.remove(user)
        for right in OF_A_QUEUE:
            remove_perm(f"reconciliation.{right}", user, queue)
    for user in wanted:
        make_owner(user, queue)
    if wanted != present:
        detail = {
            "added": sorted(user.get_username() for user in wanted - present),
            "removed": sorted(user.get_username() for user in present - wanted),
            "before": sorted(user.get_username() for user in present),
            "after": sorted(user.get_username() for user in wanted),
        }
        add_entry(actor_of(by), "set owners", f"queue:{queue.slug}", detail)


def ensure_may_give(owners: Iterable[User], queue: ReviewQueue, by: User) -> None:
    """Owning a queue brings rights, on its tenant too: nobody gives what they do not hold.

    Raises: NotYoursToGive
    """
    if by.is_superuser:
        return
    given: list[tuple[str, Model]] = [(f"reconciliation.{right}", queue) for right in OF_A_QUEUE]
    if queue.tenant is not None:
        given += [(f"workflows.{right}", queue.tenant) for right in OF_ITS_TENANT]
    for owner in owners:
        new = [each for each in given if not holds(owner, *each)]
        if new and (owner == by or not all(holds(by, *each) for each in new)):
            raise NotYoursToGive(
                f"Owners of {queue} may decide what is held in it, and see its tenant with what "
                "was sent. You cannot give that to yourself, nor to others without holding it. "
                "An administrator can. Nothing was changed."
            )


# --- providers and queues ---------------------------------------------------------------------


@transaction.atomic
def save_provider(
    provider: Provider, *, by: User, changed: Sequence[str], credential: str = ""
) -> None:
    """Save a provider; a `credential` that is given is sealed and replaces the one before.

    Of one that is there only what was changed is written: it may have broken its contract, and lost
    what it was trusted with, since it was read.
    """
    if credential:
        provider.credential_sealed = seal(credential.encode())
    changes = changes_of(provider, changed, sealed=SEALED)
    if provider._state.adding:
        provider.save()
    else:
        columns = {field.name for field in provider._meta.concrete_fields} & set(changed)
        provider.save(update_fields=columns | ({"credential_sealed"} if credential else set()))
    note_saved(provider, changes, by=by)


@transaction.atomic
def save_queue(queue: ReviewQueue, *, by: User, changed: Sequence[str]) -> None:
    """Raises `NotYoursToGive`: by it `by` could decide alone what takes two people."""
    ensure_may_loosen(queue, by)
    changes = changes_of(queue, set(changed) - {"owners"})  # those have an entry of their own
    queue.save()
    note_saved(queue, changes, by=by)


def ensure_may_loosen(queue: ReviewQueue, by: User) -> None:
    """Whoever decides in a queue does not let themselves do it alone there; an administrator may.

    Raises: NotYoursToGive
    """
    before = ReviewQueue.objects.filter(pk=queue.pk).first()
    if before is None or by.is_superuser or not holds(by, "reconciliation.decide", queue):
        return
    if asks_two_from(queue) > asks_two_from(before):
        raise NotYoursToGive(
            f"You decide in {queue}, so it is for somebody else to say that fewer of its cases "
            "take two people. Nothing was changed."
        )


def asks_two_from(queue: ReviewQueue) -> Decimal:
    """The amount from which a queue asks for two people."""
    return two_from(queue.approvals_needed, queue.second_from)


def note_saved(subject: Provider | ReviewQueue, changes: Changes, *, by: User) -> None:
    add_entry(actor_of(by), "set up", name_of(subject), {"changes": changes})
    log.info("setup.saved", subject=name_of(subject), fields=sorted(changes))


def name_of(subject: Provider | ReviewQueue) -> str:
    kind = "provider" if isinstance(subject, Provider) else "queue"
    return f"{kind}:{subject.slug}"


# --- contracts --------------------------------------------------------------------------------


def add_contract_version(document: Any, *, by: User) -> ContractVersion:
    """Add a version of a contract; versions that are there never change.

    Raises:
        InvalidContract: names each field that does not fit, or says that the version is taken.
    """
    contract = parse_contract(document, where="document")
    row = ContractVersion(
        slug=contract.slug, version=contract.version, document=contract.model_dump(mode="json")
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            add_entry(actor_of(by), "added contract", f"contract:{row.slug}:{row.version}", {})
    except IntegrityError as error:
        raise InvalidContract(
            f"version: {contract.slug} has a version {contract.version} already; operations keep "
            "it as it is, so a changed contract takes a new number"
        ) from error
    return row
