"""Opening an operation: its identity is committed before the first byte can leave (promise P3)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models.functions import Now

from reconciliation.models import Operation, Provider
from reconciliation.sealing import canonical, digest, redact, seal
from reconciliation.services.providers import adapter_of, contract_of, scope_of
from workflows.core.boundary.canonical import read_back
from workflows.core.errors import LostOwnership
from workflows.core.intents import Intent, check_intent
from workflows.core.states import RunState
from workflows.failpoints import failpoint
from workflows.models import Run
from workflows.services.claims import Claim
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

WITH_PROVIDER = (
    "run",
    "provider__contract_version",
    "provider__default_queue",
    "contract_version",
)


def operation_of(claim: Claim) -> Operation | None:
    """The operation that this step and visit stands at, if it has opened one.

    The last: a person may have had one replaced or undone, and what came in its place counts.
    """
    opened = list(
        Operation.objects.select_related(*WITH_PROVIDER).filter(
            run_id=claim.run, step=claim.step.name, visit=claim.visit
        )
    )
    followed = {link for each in opened for link in (each.supersedes_id, each.compensates_id)}
    return next((each for each in opened if each.pk not in followed), None)


def described(
    claim: Claim, intent: Intent, provider: Provider, proposal: UUID | None = None
) -> Operation:
    """Return one intended effect as it will be written down: its identity, its key and the exact
    bytes of its request. Nothing is written yet.

    Args:
        proposal: what people have approved, where the step is approved.

    Raises:
        UsageError: the intent cannot become a request; says what is wrong, and where.
    """
    contract = provider.contract_version
    assert contract is not None, "the caller holds the run of a provider without one"
    check_intent(intent)
    parameters = dict(intent.parameters)
    if proposal is not None:
        # What people were shown: equal values leave as equal bytes, and 1.0 as the 1 that they saw.
        parameters = read_back(canonical(parameters))
    operation = Operation(
        run_id=claim.run,
        step=claim.step.name,
        visit=claim.visit,
        effect=intent.effect,
        provider=provider,
        contract_version=contract,
        action=intent.action,
        target=intent.target,
        summary=intent.summary,
        amount=intent.amount,
        currency=intent.currency,
        parameters_redacted=redact(parameters, provider.visible_parameters),
        parameters_digest=digest({"action": intent.action, "parameters": parameters}),
        proposal_id=proposal,
        created_at=database_now(),
        due_at=None,
    )
    operation.idempotency_key = str(operation.pk)
    operation.key_scope = scope_of(provider)
    operation.request_sealed = sealed_request(operation, parameters, dict(intent.precondition))
    return operation


def open_operation(claim: Claim, intent: Intent, provider: Provider) -> Operation:
    """Write down one intended effect that nothing is sent of yet.

    Raises:
        UsageError: as `described`.
        LostOwnership: a later claim holds the run; nothing was written.
    """
    operation = described(claim, intent, provider)
    write_down(operation, claim)
    return operation


def write_down(operation: Operation, claim: Claim) -> None:
    """Commit its identity alone. Raises `LostOwnership` with nothing written."""
    failpoint("before_open", claim.step.name)
    with transaction.atomic():
        ensure_held(claim)
        operation.save(force_insert=True)
    failpoint("after_open", claim.step.name)
    log.info("operation.opened", operation=str(operation.pk), action=operation.action)


def is_written_down(operation: Operation) -> bool:
    return not operation._state.adding


def provider_of(claim: Claim) -> Provider | None:
    """The provider that the step writes to; None when it is not set up here."""
    assert claim.step.write is not None
    return (
        Provider.objects.select_related("contract_version", "default_queue")
        .filter(slug=claim.step.write.provider)
        .first()
    )


def sealed_request(
    operation: Operation, parameters: dict[str, object], expected: dict[str, object]
) -> bytes:
    """Return the exact bytes of the request, sealed, with what it was made of."""
    adapter = adapter_of(operation.provider, contract_of(operation))
    prepared = adapter.prepare(
        operation.action, parameters, operation.pk, operation.idempotency_key
    )
    read_path = adapter.precondition_path(operation.action, parameters) if expected else ""
    whole = replace(prepared, parameters=parameters, expected=expected, read_path=read_path)
    return seal(whole.to_bytes())


def ensure_held(claim: Claim) -> None:
    """Lock the run and make sure that this claim still holds it, lease and fence (promise P2).

    Raises:
        LostOwnership: it does not.
    """
    lock_held(claim)


def lock_held(claim: Claim) -> Run:
    """As `ensure_held`, and return the run, with no more than whether its end was asked for."""
    held = (
        Run.objects.select_for_update(no_key=True)
        .filter(
            pk=claim.run,
            state=RunState.RUNNING,
            lease_owner=claim.worker,
            fence=claim.fence,
            lease_expires_at__gt=Now(),
        )
        .only("cancel_asked_at")
        .first()
    )
    if held is None:
        raise LostOwnership(f"run {claim.run}: fence {claim.fence} holds it no more")
    return held
