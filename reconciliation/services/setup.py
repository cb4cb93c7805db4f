"""Setting up providers, queues and contracts: what an administrator saves, on record.

An audit entry names what was changed and never holds the values: a credential may be among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.core.contracts import parse_contract
from reconciliation.core.errors import InvalidContract
from reconciliation.models import ContractVersion, Provider, ReviewQueue
from reconciliation.sealing import seal
from reconciliation.services.audit import actor_of, add_entry

log = structlog.get_logger(__name__)

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
    """
    wanted, present = set(owners), set(queue.owners.all())
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
        }
        add_entry(actor_of(by), "set owners", f"queue:{queue.slug}", detail)


def note_rights(subject: Provider | ReviewQueue, whose: str, *, by: User) -> None:
    """Put on record that somebody's rights on `subject` were changed."""
    add_entry(actor_of(by), "set rights", name_of(subject), {"of": whose})


# --- providers and queues ---------------------------------------------------------------------


@transaction.atomic
def save_provider(
    provider: Provider, *, by: User, changed: Sequence[str], credential: str = ""
) -> None:
    """Save a provider; a `credential` that is given is sealed and replaces the one before."""
    if credential:
        provider.credential_sealed = seal(credential.encode())
    provider.save()
    note_saved(provider, by=by, changed=changed)


@transaction.atomic
def save_queue(queue: ReviewQueue, *, by: User, changed: Sequence[str]) -> None:
    queue.save()
    note_saved(queue, by=by, changed=changed)


def note_saved(subject: Provider | ReviewQueue, *, by: User, changed: Sequence[str]) -> None:
    detail: dict[str, Any] = {"fields": sorted(changed)}
    add_entry(actor_of(by), "set up", name_of(subject), detail)
    log.info("setup.saved", subject=name_of(subject), fields=sorted(changed))


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
