"""Rehearsals on record: the sandbox, what stands in for its provider, and what follows from one.

Probe before trust (architecture, section 8): what a contract claims is used for a provider only
after its sandbox has shown it, and a contradiction ends that at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.db import transaction

from reconciliation.adapters.registry import adapter_class
from reconciliation.core.addresses import address_problem
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.facts import Dispatch
from reconciliation.core.rehearsals import NAME, Claim, Verdict
from reconciliation.models import ContractVersion, Provider, Rehearsal, ReviewQueue, Sandbox
from reconciliation.rehearsal.providers import EXAMPLES
from reconciliation.sealing import seal, unseal
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.contradictions import locked
from reconciliation.services.dispatch import stops_over, strictest
from reconciliation.services.providers import adapter_of, credential_of, exceptions_for
from reconciliation.services.setup import make_owner
from reconciliation.services.telling import tell_contradicted
from workflows.models import Tenant
from workflows.models.ids import new_id
from workflows.services.changes import changes_of
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

BUILT_IN = "rehearsal"  # the adapter of the destination that ships: a sandbox by itself
SUFFIX = "-rehearsal"
LONGEST_SLUG = 50
# Our own patience and pauses are no claim of the provider's, so a rehearsal need not take long.
TIMEOUT_SECONDS = 4.0
PAUSES = {"first_pause_seconds": 0.1, "longest_pause_seconds": 0.5}


# --- the sandbox ------------------------------------------------------------------------------


def sandbox_of(provider: Provider) -> Sandbox:
    """Return where `provider` may be rehearsed.

    Raises:
        InvalidProvider: it has no sandbox, or one that is its own account by now; or no contract
            whose claims could be shown.
    """
    if provider.contract_version is None:
        raise InvalidProvider(f"{provider.slug} has no contract: there is nothing to show")
    found = Sandbox.objects.filter(provider=provider).select_related("stand_in").first()
    if found is not None:
        ensure_apart(found)
        return found
    if provider.adapter == BUILT_IN:
        return built_in_sandbox(provider)
    raise InvalidProvider(
        f"{provider.slug} has no sandbox: set one up in the admin (its address, account and "
        "credential, and the action to rehearse), so that no real account is written to"
    )


def check_sandbox(sandbox: Sandbox, credential: str = "") -> None:
    """Make sure that `sandbox` can be rehearsed in, with a new `credential` if one is given.

    Raises:
        InvalidProvider: it is the provider's own account, or its write cannot be prepared.
    """
    ensure_apart(sandbox, credential)
    provider = sandbox.provider
    if provider.contract_version is None:
        raise InvalidProvider(f"{provider.slug} has no contract: there is nothing to show")
    adapter = adapter_of(provider, provider.contract_version.contract)
    if not isinstance(sandbox.parameters, dict):
        raise InvalidProvider("parameters: a JSON object")
    operation = new_id()
    adapter.prepare(sandbox.action, sandbox.parameters, operation, str(operation))


def ensure_apart(sandbox: Sandbox, credential: str = "") -> None:
    """Make sure that rehearsing makes no effects where real ones are made.

    Raises:
        InvalidProvider: address, account and credential are the provider's own.
    """
    provider = sandbox.provider
    same = (sandbox.base_url, sandbox.account) == (provider.base_url, provider.account)
    used = credential or credential_in(sandbox)
    if provider.adapter != BUILT_IN and same and used == credential_of(provider):
        raise InvalidProvider(
            f"the sandbox of {provider.slug} is the account that real work goes to: give it "
            "another address, account or credential"
        )


def ensure_may_be_called(sandbox: Sandbox) -> None:
    """Make sure that its destination can be asked from here: a probe that never leaves shows
    nothing, and an effect that nobody counts is no effect that was not there.

    Raises:
        InvalidProvider: it may not be called.
    """
    provider = sandbox.provider
    schemes = adapter_class(provider.adapter).schemes
    wrong = address_problem(sandbox.base_url, exceptions_for(provider), schemes)
    if wrong:
        raise InvalidProvider(f"{provider.slug} cannot be rehearsed at {sandbox.base_url}: {wrong}")


def credential_in(sandbox: Sandbox) -> str:
    sealed = bytes(sandbox.credential_sealed)
    return unseal(sealed).decode() if sealed else ""


@transaction.atomic
def save_sandbox(
    sandbox: Sandbox, *, by: User, changed: Sequence[str], credential: str = ""
) -> None:
    """Save a sandbox; a `credential` that is given is sealed and replaces the one before.

    Raises:
        InvalidProvider: it is the provider's own account.
    """
    if credential:
        sandbox.credential_sealed = seal(credential.encode())
    ensure_apart(sandbox)
    changes = changes_of(sandbox, changed, sealed={"credential"})
    sandbox.save()
    detail = {"changes": changes}
    add_entry(actor_of(by), "set up", f"sandbox:{sandbox.provider.slug}", detail)


def built_in_sandbox(provider: Provider) -> Sandbox:
    """The rehearsal destination is its own sandbox: what it holds is nobody's."""
    actions = provider.settings.get("actions", {})
    action = next((name for name in actions if name in EXAMPLES), None)
    if action is None:
        raise InvalidProvider(f"{provider.slug} declares none of the actions {sorted(EXAMPLES)}")
    return Sandbox.objects.create(
        provider=provider,
        base_url=provider.base_url,
        account=provider.account,
        region=provider.region,
        credential_sealed=provider.credential_sealed,
        action=action,
        parameters=EXAMPLES[action],
    )


# --- what stands in for the provider -----------------------------------------------------------


@transaction.atomic
def stand_in_for(sandbox: Sandbox, base_url: str) -> Provider:
    """Return the provider under which `sandbox` stands in the ledger, reached by `base_url`.

    It trusts nothing yet, and nothing has contradicted it.

    Raises:
        InvalidProvider: dispatch to it is not on.
    """
    provider = sandbox.provider
    slug = provider.slug[: LONGEST_SLUG - len(SUFFIX)] + SUFFIX
    stand_in = sandbox.stand_in or Provider(slug=slug)
    stand_in.name = f"{provider.name} (rehearsal)"[:200]
    stand_in.adapter = provider.adapter
    stand_in.account, stand_in.region = sandbox.account, sandbox.region
    stand_in.base_url = base_url
    stand_in.credential_sealed = bytes(sandbox.credential_sealed)
    stand_in.settings = provider.settings
    stand_in.visible_parameters = provider.visible_parameters
    stand_in.look_ups_per_second = provider.look_ups_per_second
    stand_in.contract_version = quick_version(provider)
    stand_in.replay_trust = stand_in.look_up_trust = ""
    stand_in.contradicted_at, stand_in.contradiction = None, ""
    stand_in.default_queue = queue_of_rehearsals()
    stand_in.save()
    if sandbox.stand_in is None:
        sandbox.stand_in = stand_in
        sandbox.save(update_fields=["stand_in"])
    stops = list(stops_over(stand_in.pk, tenant_of_rehearsals().pk, sandbox.action))
    if strictest(stops) is not Dispatch.ON:
        raise InvalidProvider(
            f"dispatch is {strictest(stops)} for {stand_in.slug}, or for everything: nothing would "
            "be sent"
        )
    return stand_in


def quick_version(provider: Provider) -> ContractVersion:
    """The provider's contract with our own pauses cut short; one row for each that differs."""
    assert provider.contract_version is not None
    contract = quick(provider.contract_version.contract)
    slug = contract.slug[: LONGEST_SLUG - len(SUFFIX)] + SUFFIX
    versions = ContractVersion.objects.filter(slug=slug).order_by("-version")
    latest = versions.first()
    number = latest.version if latest else 0
    document = contract.model_dump(mode="json") | {"slug": slug}
    if latest is not None and latest.document == document | {"version": number}:
        return latest
    document["version"] = number + 1
    return ContractVersion.objects.create(slug=slug, version=number + 1, document=document)


def quick(contract: Contract) -> Contract:
    budget = contract.budget.model_copy(update=PAUSES)
    timeout = min(contract.timeout_seconds, TIMEOUT_SECONDS)
    return contract.model_copy(update={"budget": budget, "timeout_seconds": timeout})


def tenant_of_rehearsals() -> Tenant:
    return Tenant.objects.get_or_create(slug=NAME, defaults={"name": "Rehearsals"})[0]


def queue_of_rehearsals() -> ReviewQueue:
    queue, _ = ReviewQueue.objects.get_or_create(
        slug=NAME, defaults={"name": "Rehearsals", "tenant": tenant_of_rehearsals()}
    )
    make_owner(clerk(), queue)
    return queue


def clerk() -> User:
    """Who answers for what is rehearsed: Romulus itself. Nobody can sign in as it."""
    user, created = User.objects.get_or_create(username=NAME)
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def set_trust(stand_in: Provider, *, replay: bool, look_up: bool) -> None:
    """Let the contract's claims be used for what stands in, as far as they were probed."""
    stand_in.replay_trust = "probed by the rehearsal that is under way" if replay else ""
    stand_in.look_up_trust = "probed by the rehearsal that is under way" if look_up else ""
    stand_in.save(update_fields=["replay_trust", "look_up_trust"])


# --- what follows ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a rehearsal came to.

    Attributes:
        complete: every case that the contract has claims for was tried.
        breaches: how many promises were broken.
    """

    started_at: datetime
    claims: Mapping[Claim, Verdict]
    cases: Sequence[Mapping[str, Any]]
    breaches: int
    complete: bool

    @property
    def contradicted(self) -> list[Claim]:
        found = [claim for claim, verdict in self.claims.items() if verdict is CONTRADICTED]
        return sorted(found)


CONTRADICTED = Verdict.CONTRADICTED
SAID = {
    Claim.REPLAY: "the same key again made another result",
    Claim.MISMATCH: "changed parameters under the same key were not refused as documented",
    Claim.LOOK_UP: "a look-up does not show the record that carries our ID",
    Claim.VERIFY: "the result could not be checked as documented",
}


@transaction.atomic
def keep_rehearsal(provider: Provider, outcome: Outcome, by: str) -> Rehearsal:
    """Keep what a rehearsal showed, and let the provider be trusted as far as it showed that."""
    assert provider.contract_version is not None
    row = Rehearsal.objects.create(
        provider=provider,
        contract_version=provider.contract_version,
        started_at=outcome.started_at,
        complete=outcome.complete,
        claims={str(claim): str(verdict) for claim, verdict in outcome.claims.items()},
        cases=list(outcome.cases),
        breaches=outcome.breaches,
    )
    # It may have been contradicted, or that been reviewed, since the rehearsal began.
    was_contradicted = locked(provider).contradicted_at is not None
    changes = consequences(provider, outcome, database_now())
    if changes:
        Provider.objects.filter(pk=provider.pk).update(**changes)
    if "contradicted_at" in changes and not was_contradicted:
        tell_contradicted(provider, changes["contradicted_at"])
    detail = {"rehearsal": str(row.pk), "claims": row.claims, "breaches": row.breaches}
    add_entry(by, "rehearsed", f"provider:{provider.slug}", detail)
    if outcome.contradicted:
        log.error("contract.contradicted", provider=provider.slug, claims=outcome.contradicted)
    return row


def consequences(provider: Provider, outcome: Outcome, now: datetime) -> dict[str, Any]:
    """What changes of the provider: what it is trusted with, and whether it broke its contract."""
    changes: dict[str, Any] = {}
    if outcome.breaches or outcome.contradicted:
        changes["replay_trust"] = ""
    if outcome.breaches or Claim.LOOK_UP in outcome.contradicted:
        changes["look_up_trust"] = ""
    if outcome.contradicted:
        said = "; ".join(SAID[claim] for claim in outcome.contradicted)
        changes |= {"contradicted_at": now, "contradiction": f"Rehearsal: {said}"[:300]}
    if outcome.complete and not outcome.breaches:
        shown = f"Shown by a rehearsal on {now:%Y-%m-%d} under {provider.contract_version}."
        confirmed = {claim for claim, v in outcome.claims.items() if v is Verdict.CONFIRMED}
        if Claim.REPLAY in confirmed and not outcome.contradicted:
            changes["replay_trust"] = shown
        if Claim.LOOK_UP in confirmed:
            changes["look_up_trust"] = shown
    return changes
