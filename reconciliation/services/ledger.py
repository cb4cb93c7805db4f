"""Opening an operation: its identity is committed before the first byte can leave (promise P3)."""

from __future__ import annotations

import structlog
from django.db import transaction
from django.db.models.functions import Now

from reconciliation.models import Operation, Provider
from reconciliation.sealing import digest, redact, seal
from reconciliation.services.providers import adapter_of, contract_of
from workflows.core.errors import LostOwnership, PermanentError
from workflows.core.intents import Intent
from workflows.core.states import RunState
from workflows.core.values import ensure_storable
from workflows.failpoints import failpoint
from workflows.models import Run
from workflows.services.claims import Claim

log = structlog.get_logger(__name__)

WITH_PROVIDER = ("provider__contract_version", "provider__default_queue", "contract_version")


def operation_of(claim: Claim) -> Operation | None:
    """The operation that this step and visit has opened, if it has."""
    return (
        Operation.objects.select_related(*WITH_PROVIDER)
        .filter(run_id=claim.run, step=claim.step.name, visit=claim.visit)
        .first()
    )


def open_operation(claim: Claim, intent: Intent, provider: Provider) -> Operation:
    """Write down one intended effect: its identity, its key and the exact bytes of its request.

    Raises:
        PermanentError: the intent cannot become a request; says what is wrong.
        LostOwnership: a later claim holds the run; nothing was written.
    """
    contract = provider.contract_version
    assert contract is not None, "the caller holds the run of a provider without one"
    parameters = dict(intent.parameters)
    ensure_storable(parameters, f"parameters of {intent.action}")
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
        due_at=None,
    )
    operation.idempotency_key = str(operation.pk)
    operation.key_scope, operation.request_sealed = request_of(operation, parameters)
    failpoint("before_open", claim.step.name)
    with transaction.atomic():
        ensure_held(claim)
        operation.save(force_insert=True)
    failpoint("after_open", claim.step.name)
    operation.refresh_from_db(fields=["created_at"])
    log.info("operation.opened", operation=str(operation.pk), action=operation.action)
    return operation


def provider_of(claim: Claim) -> Provider:
    assert claim.step.write is not None
    slug = claim.step.write.provider
    try:
        return Provider.objects.select_related("contract_version", "default_queue").get(slug=slug)
    except Provider.DoesNotExist:
        raise PermanentError(
            f"step {claim.step.name} writes to provider {slug!r}, which is not set up here"
        ) from None


def request_of(operation: Operation, parameters: dict[str, object]) -> tuple[dict[str, str], bytes]:
    """Return the scope that the key is pinned to, and the sealed bytes of the request."""
    adapter = adapter_of(operation.provider, contract_of(operation))
    prepared = adapter.prepare(
        operation.action, parameters, operation.pk, operation.idempotency_key
    )
    return adapter.connection.scope, seal(prepared.to_bytes())


def ensure_held(claim: Claim) -> None:
    """Lock the run and make sure that this claim still holds it, lease and fence (promise P2).

    Raises:
        LostOwnership: it does not.
    """
    held = (
        Run.objects.select_for_update()
        .filter(
            pk=claim.run,
            state=RunState.RUNNING,
            lease_owner=claim.worker,
            fence=claim.fence,
            lease_expires_at__gt=Now(),
        )
        .exists()
    )
    if not held:
        raise LostOwnership(f"run {claim.run}: fence {claim.fence} holds it no more")
