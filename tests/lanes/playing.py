"""Playing a rehearsal's cases against a real counterpart, with a worker in the test's process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from reconciliation.adapters.base import Adapter
from reconciliation.adapters.registry import ADAPTERS
from reconciliation.models import ContractVersion, Provider, ReviewQueue, Sandbox
from reconciliation.rehearsal.cases import BY_NAME
from reconciliation.rehearsal.play import Played, rehearse
from reconciliation.services.rehearsals import Outcome, keep_rehearsal
from tests.factories import owner_of, settled, tenant
from workflows.models import Run

VARIANTS = ("lost_answer", "never_arrived", "late_answer")
# Run state, operation state, transmissions, effects, requests that came to the proxy.
End = tuple[str, str, tuple[str, ...], int, int]

ONCE = ("first: acknowledged",)
LOST = ("first: unknown",)
REPEATED = ("first: unknown", "replay: acknowledged")

SETTLED: End = ("completed", "verified", ONCE, 1, 1)
FOUND: End = ("completed", "verified", LOST, 1, 1)
REPLAYED: End = ("completed", "verified", REPEATED, 1, 2)
HELD: End = ("held", "held", LOST, 1, 1)
HELD_WITHOUT: End = ("held", "held", LOST, 0, 1)

# What an exchange with a counterpart may take on a machine that has other work.
TIMEOUT_SECONDS = 4

BASE: dict[str, Any] = {
    "name": "A lane of the tests",
    "reviewed_on": "2026-11-29",
    "review_again_on": "2027-11-29",
    "sources": [{"title": "tests/lanes", "evidence": "observed"}],
    "scope": ["account"],
    "timeout_seconds": TIMEOUT_SECONDS,
    "budget": {"look_ups": 2},
}


class InThisProcess:
    """A crew of one, that does not die."""

    def __init__(self, provider: str, folder: Path) -> None:
        self.runs: list[UUID] = []

    def lasting(self) -> InThisProcess:
        return self

    def doomed(self, point: str) -> Any:
        raise AssertionError("no worker dies in the lanes: see tests/acceptance/test_rehearse.py")

    def take(self, run: UUID, seconds: float) -> None:
        self.runs.append(run)
        settled(Run.objects.get(pk=run))

    def end(self) -> None:
        """Nothing is left of it."""


@dataclass(frozen=True)
class Lane:
    """A provider that a real counterpart stands for."""

    provider: Provider
    sandbox: Sandbox

    def play(self, *names: str) -> tuple[dict[str, Played], Outcome]:
        """Play the named cases in their order; return what each came to, and the whole."""
        outcome, played = rehearse(
            self.sandbox, [BY_NAME[name] for name in names], lambda _: None, crew_of=InThisProcess
        )
        return {each.case.name: each for each in played}, outcome

    def keep(self, outcome: Outcome) -> Provider:
        """Keep the rehearsal; return the provider as it is trusted after."""
        keep_rehearsal(self.provider, outcome, by="system")
        self.provider.refresh_from_db()
        return self.provider


def lane(
    adapter: type[Adapter],
    url: str,
    parameters: Mapping[str, Any],
    contract: Mapping[str, Any],
    account: str = "acct_lane",
) -> Lane:
    """Set a provider up whose counterpart is at `url`, spoken to by `adapter`."""
    slug = f"lane-{adapter.__name__.lower()}"
    ADAPTERS[slug] = adapter
    tenant()
    queue, _ = ReviewQueue.objects.get_or_create(slug=slug, defaults={"name": slug})
    owner_of(queue)
    document = {**BASE, **contract, "slug": slug, "version": 1}
    version = ContractVersion.objects.create(slug=slug, version=1, document=document)
    provider = Provider.objects.create(
        slug=slug,
        name=slug,
        adapter=slug,
        account=account,
        base_url=url,
        contract_version=version,
        default_queue=queue,
    )
    sandbox = Sandbox.objects.create(
        provider=provider,
        base_url=url,
        account=provider.account,
        action="write",
        parameters=dict(parameters),
    )
    return Lane(provider, sandbox)


def end(played: Played) -> End:
    seen = played.seen
    return (
        seen.run,
        str(seen.operation),
        tuple(played.ledger),
        len(seen.effects),
        seen.requests,
    )


def ends(played: Mapping[str, Played], names: Sequence[str] = ()) -> dict[str, End]:
    return {name: end(each) for name, each in played.items() if not names or name in names}
