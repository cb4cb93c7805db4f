"""Providers for people: what each documents, what it lacks, and what to do when it is silent."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.urls import reverse

from reconciliation import access
from reconciliation.core.contracts import Contract, Source
from reconciliation.core.facts import Dispatch
from reconciliation.core.runbook import (
    Question,
    RestsOn,
    evidence_lines,
    pace,
    possible_holds,
    questions,
)
from reconciliation.models import Provider, Rehearsal, ReviewQueue
from reconciliation.pages import Owner
from reconciliation.provider_pages import (
    ContractLine,
    ContractSheet,
    ProviderPage,
    ProviderRow,
    ProvidersPage,
    QueueOwners,
    ReadyPart,
    RehearsalRow,
    Runbook,
    SourceRow,
)
from reconciliation.selectors.contract import is_overdue, reviewed
from reconciliation.selectors.provider_rail import (
    RIGHT_COLUMNS,
    holders_of,
    own_stop,
    stops_over,
    switch_of,
)
from reconciliation.selectors.rehearsal_matrix import matrix_of
from reconciliation.services.providers import queues_of as all_queues_of
from reconciliation.services.providers import readiness_of
from workflows.core.words import without_credentials
from workflows.pages import Fact, Link
from workflows.rights import holds
from workflows.together import together

MOST = 200  # providers on the list
REHEARSALS = 5
TITLES = {
    "record": ("Operation record", "Every send is written down before it leaves."),
    "evidence": ("Evidence path", "Something that can prove what became of a write."),
    "owner": ("Owner", "Somebody who decides what software cannot."),
}


def providers_page(user: User, now: datetime) -> ProvidersPage:
    """The providers that `user` may see, by name; what stands in for one at rehearsals is none."""
    rows = (
        access.visible_providers(user)
        .filter(stands_in_for=None)
        .select_related("contract_version", "default_queue")
        .prefetch_related("stops", "queues")
        .order_by("name")[:MOST]
    )
    decided = access.with_deciders([queue.pk for each in rows for queue in all_queues_of(each)])
    return ProvidersPage(
        rows=tuple(row_of(provider, now, decided) for provider in rows),
        setup_url=reverse("admin:reconciliation_provider_changelist") if user.is_staff else "",
    )


def row_of(provider: Provider, now: datetime, decided: Collection[UUID]) -> ProviderRow:
    ready = readiness_of(provider, decided=decided)
    contract = provider.contract_version.contract if provider.contract_version else None
    return ProviderRow(
        provider=Link(provider.name, reverse("provider", args=[provider.slug])),
        adapter=provider.adapter,
        contract=f"{contract.slug} v{contract.version}" if contract else "",
        dispatch=str(provider.dispatch),
        lacks=tuple(TITLES[part.name][0] for part in ready if part.lacks),
        overdue=contract is not None and is_overdue(contract, now),
    )


def provider_page(provider: Provider, user: User, now: datetime) -> ProviderPage:
    """One provider as `user` may see it; `provider` comes from `access.provider_for`."""
    contract = provider.contract_version.contract if provider.contract_version else None
    may_switch = holds(user, "reconciliation.pause_dispatch", provider)
    queues, latest, stops, own = together(
        queues_of(provider, user),
        latest_rehearsals(provider),
        stops_over(provider, user),
        own_stop(provider),
    )
    dispatch = Dispatch(own[0]) if own else Dispatch.ON
    return ProviderPage(
        name=provider.name,
        slug=provider.slug,
        facts=facts_of(provider),
        dispatch=str(dispatch),
        dispatch_url=f"{reverse('dispatch_change')}?provider={provider.slug}" if may_switch else "",
        switch=switch_of(provider, user, dispatch, stops, may_switch=may_switch),
        setup_url=reverse("admin:reconciliation_provider_change", args=[provider.pk])
        if user.is_staff
        else "",
        parts=tuple(
            ReadyPart(*TITLES[part.name], lacks=part.lacks) for part in readiness_of(provider)
        ),
        contract=sheet_of(provider, contract, now) if contract else None,
        contradicted_at=provider.contradicted_at,
        contradiction=provider.contradiction,
        review_url=reverse("provider_review", args=[provider.slug]),
        queues=tuple(queue_of(queue, user) for queue in queues),
        runbook=runbook_of(provider, contract) if contract else None,
        rehearsals=tuple(rehearsal_row(row) for row in latest),
        # One contract's claims at a time: what an earlier version showed says nothing of this one.
        matrix=matrix_of(
            [row for row in latest if row.contract_version_id == provider.contract_version_id]
        ),
        holders=holders_of(provider, queues, user),
        right_columns=tuple(RIGHT_COLUMNS),
    )


def facts_of(provider: Provider) -> tuple[Fact, ...]:
    facts = [
        Fact("Adapter", provider.adapter, code=True),
        Fact("Address", without_credentials(provider.base_url), code=True),
        Fact("Account", provider.account, code=True),
    ]
    if provider.region:
        facts.append(Fact("Region", provider.region, code=True))
    return tuple(facts)


# --- the contract -----------------------------------------------------------------------------


def sheet_of(provider: Provider, contract: Contract, now: datetime) -> ContractSheet:
    return ContractSheet(
        version=f"{contract.slug} v{contract.version}",
        name=contract.name,
        questions=lines_of(provider, contract),
        reviewed=reviewed(contract),
        overdue=is_overdue(contract, now),
        scope=", ".join(contract.scope),
        sources=tuple(source_of(source) for source in contract.sources),
        unverified=contract.unverified,
        notes=contract.notes,
    )


def lines_of(provider: Provider, contract: Contract) -> tuple[ContractLine, ...]:
    """What the contract says, and how fast this provider is asked."""
    asked = list(questions(contract))
    if contract.look_up is not None:
        asked.append(pace(contract, provider.look_ups_per_second))
    return tuple(
        ContractLine(line.asks, line.answer, line.so, known_by(line, provider, contract))
        for line in asked
    )


def known_by(line: Question, provider: Provider, contract: Contract) -> str:
    """Why an answer of the contract is relied on here, or that it is not."""
    claims = {
        RestsOn.REPLAY: provider.replay_trust,
        RestsOn.LOOK_UP: provider.look_up_trust,
    }
    read = {source.evidence for source in contract.sources}
    documented = next(said for kind, said in SAID.items() if kind in read)
    match line.rests_on:
        case RestsOn.OURS:
            return "our own setting"
        case RestsOn.DOCUMENTS:
            return documented
        case RestsOn.RATE if contract.look_up is not None and contract.look_up.rate is not None:
            return SAID[contract.look_up.rate.source.evidence]
        case claim:
            return claims[claim] or f"{documented}; not used: never shown here, nor accepted"


# The best first.
SAID = {
    "primary": "read at the provider",
    "secondary_quote": "quoted elsewhere",
    "observed": "seen in a run",
}


def source_of(source: Source) -> SourceRow:
    url = source.url if source.url.startswith(("https://", "http://")) else ""
    return SourceRow(source.title, url, SAID[source.evidence])


# --- the owners -------------------------------------------------------------------------------


def queues_of(provider: Provider, user: User) -> QuerySet[ReviewQueue]:
    """The queues that take its holds, of those that `user` may see."""
    takes = Q(provider=provider) | Q(pk=provider.default_queue_id)
    found = access.visible_queues(user).filter(takes).select_related("tenant")
    return found.prefetch_related("owners").order_by("name")


def queue_of(queue: ReviewQueue, user: User) -> QueueOwners:
    takes = [str(queue.tenant.name)] if queue.tenant else []
    takes += [queue.action] if queue.action else []
    return QueueOwners(
        queue=queue.name,
        takes=", ".join(takes) or "whatever no other queue takes",
        owners=tuple(
            Owner(owner.get_full_name() or owner.get_username(), you=owner == user)
            for owner in queue.owners.all()
        ),
    )


# --- the runbook ------------------------------------------------------------------------------


def runbook_of(provider: Provider, contract: Contract) -> Runbook:
    shown = ", ".join(provider.visible_parameters) or "none"
    key = f"under its key ({contract.key.name})" if contract.key else "without a key"
    return Runbook(
        record=(
            "The operation's page: what was meant, each send with its attempt ID, and what was "
            "said to it. The review queue leads there.",
            f"Sent {key} from the account {provider.account}; parameters that people see: {shown}.",
            f"At the provider, look for our operation's ID in {contract.look_up.marker}."
            if contract.look_up
            else "The provider keeps nothing of ours to look for: compare time, target and amount.",
        ),
        evidence=evidence_lines(contract),
        holds=possible_holds(contract),
    )


def latest_rehearsals(provider: Provider) -> QuerySet[Rehearsal]:
    return Rehearsal.objects.filter(provider=provider).order_by("-ended_at")[:REHEARSALS]


def rehearsal_row(row: Rehearsal) -> RehearsalRow:
    return RehearsalRow(
        at=row.ended_at,
        claims=tuple(f"{claim.replace('_', ' ')}: {said}" for claim, said in row.claims.items()),
        breaches=row.breaches,
    )
