"""Playing a rehearsal: each case is a run of real workers against the sandbox, behind the proxy."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from reconciliation.core.classify import BEFORE_SEND
from reconciliation.core.rehearsals import (
    Claim,
    Seen,
    Verdict,
    breaches,
    together,
    verdicts,
)
from reconciliation.core.states import DecisionKind, EvidenceKind, HoldState, OperationState
from reconciliation.models import Hold, Operation, Provider, Sandbox
from reconciliation.rehearsal.breaks import Break, On
from reconciliation.rehearsal.cases import Case
from reconciliation.rehearsal.crew import Crew, RehearsalStopped
from reconciliation.rehearsal.far_side import FarSide, Looked
from reconciliation.rehearsal.flow import known_flow
from reconciliation.rehearsal.proxy import FaultProxy, fault_proxy
from reconciliation.services.answers import Answer, code_of
from reconciliation.services.decisions import record_decision
from reconciliation.services.rehearsals import (
    Outcome,
    clerk,
    set_trust,
    stand_in_for,
    tenant_of_rehearsals,
)
from workflows.models import Run
from workflows.services.clock import database_now
from workflows.services.runs import start

# How long one case may take, beside what the contract itself makes it wait for.
PATIENCE_SECONDS = 120.0
LATE_SECONDS = 2.0  # after the client's deadline
NOTE = "The rehearsal of this case is over; nothing is to come of it."

Say = Callable[[str], None]


class Taker(Protocol):
    """A worker that is told of runs one by one."""

    def take(self, run: uuid.UUID, seconds: float) -> None: ...


class Doomed(Protocol):
    """A worker that dies at a failpoint."""

    def tell(self, run: uuid.UUID) -> None: ...
    def wait_until_dead(self, seconds: float) -> None: ...


class Workers(Protocol):
    """Who does the work of a rehearsal."""

    def lasting(self) -> Taker: ...
    def doomed(self, point: str) -> Doomed: ...
    def end(self) -> None: ...


CrewOf = Callable[[str, Path], Workers]


@dataclass(frozen=True)
class Played:
    """One case, and what it came to."""

    case: Case
    seen: Seen
    run: uuid.UUID
    operation: uuid.UUID
    ledger: Sequence[str]
    reason: str
    claims: dict[Claim, Verdict]
    breaches: Sequence[str]

    def document(self) -> dict[str, Any]:
        """As it is kept, and told to scripts."""
        return {
            "case": self.case.name,
            "what": self.case.sentence,
            "destination": {
                "effects": list(self.seen.effects),
                "counted": self.seen.counted,
                "requests": self.seen.requests,
                "delivered": self.seen.deliveries,
                "other_parameters": str(self.seen.mismatch) if self.seen.mismatch else None,
            },
            "ledger": {
                "operation": str(self.operation),
                "state": str(self.seen.operation),
                "transmissions": list(self.ledger),
                "resource": self.seen.resource,
            },
            "run": {"id": str(self.run), "state": self.seen.run, "reason": self.reason},
            "claims": {str(claim): str(verdict) for claim, verdict in self.claims.items()},
            "breaches": list(self.breaches),
        }


@dataclass
class Stage:
    """Everything that the cases of one rehearsal share."""

    sandbox: Sandbox
    stand_in: Provider
    proxy: FaultProxy
    far_side: FarSide
    crew: Workers
    say: Say
    played: list[Played] = field(default_factory=list)

    @property
    def shown(self) -> dict[Claim, Verdict]:
        return together(each.claims for each in self.played)

    @property
    def patience(self) -> float:
        rule = self.far_side.contract.look_up
        waits = (rule.visibility_lag_seconds, rule.absence_proof_after_seconds or 0) if rule else ()
        return PATIENCE_SECONDS + 2 * sum(waits)


def rehearse(
    sandbox: Sandbox, cases: Iterable[Case], say: Say, *, crew_of: CrewOf = Crew
) -> tuple[Outcome, list[Played]]:
    """Play `cases` in the sandbox; return what they came to. Keeps nothing but the ledger's rows.

    Args:
        crew_of: makes the workers, for a provider's slug and a folder for their logs.

    Raises:
        RehearsalStopped: a worker did not do its part; nothing can be concluded.
        InvalidProvider: the sandbox cannot be used as it is set up.
    """
    started_at = database_now()
    with stage(sandbox, say, crew_of) as made:
        order = sorted(cases, key=lambda case: not case.probes)
        for case in order:
            if is_pointless(case, made.shown):
                continue
            say(f"{case.name}: {case.sentence}")
            made.played.append(play(made, case))
            trust_what_was_shown(made)
    claims = made.shown
    found = sum(len(each.breaches) for each in made.played)
    documents = [each.document() for each in made.played]
    return Outcome(started_at, claims, documents, found, complete=False), made.played


def is_pointless(case: Case, shown: Mapping[Claim, Verdict]) -> bool:
    """A key that is ignored needs no second probe, which would make another effect."""
    return case.needs is Claim.MISMATCH and shown.get(Claim.REPLAY) is Verdict.CONTRADICTED


@contextmanager
def stage(sandbox: Sandbox, say: Say, crew_of: CrewOf) -> Iterator[Stage]:
    """Set proxy, stand-in and crew up, and end them; logs stay only where something went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="romulus-rehearsal-"))
    with fault_proxy(sandbox.base_url) as proxy:
        stand_in = stand_in_for(sandbox, proxy.url)
        known_flow(stand_in.slug)
        crew = crew_of(stand_in.slug, folder)
        try:
            yield Stage(sandbox, stand_in, proxy, FarSide(sandbox, stand_in), crew, say)
        finally:
            crew.end()
    shutil.rmtree(folder, ignore_errors=True)


def trust_what_was_shown(made: Stage) -> None:
    """After each case: rely on a claim as soon as it was shown, and never on a contradicted one."""
    shown, stand_in = made.shown, made.stand_in
    stand_in.refresh_from_db()
    set_trust(
        stand_in,
        replay=shown.get(Claim.REPLAY) is Verdict.CONFIRMED
        and shown.get(Claim.MISMATCH) is not Verdict.CONTRADICTED,
        look_up=shown.get(Claim.LOOK_UP) is Verdict.CONFIRMED,
    )


# --- one case ---------------------------------------------------------------------------------


def play(made: Stage, case: Case) -> Played:
    """Play one case: start its run, let workers take it as far as it goes, then look at it all."""
    made.proxy.forget()
    if case.write is not None:
        late = made.far_side.contract.timeout_seconds + LATE_SECONDS
        made.proxy.arm(case.write, seconds=late if case.write is Break.LATE else 0)
    if case.asking is not None:
        # The budget counts for what is asked early and once more for what is asked late.
        times = 2 * made.far_side.contract.budget.look_ups if case.asked_again else None
        made.proxy.arm(case.asking, on=On.READS, times=times)
    parameters = unique_parameters(made.sandbox.parameters)
    run = started(made, case, parameters)
    if case.dies_at:
        doomed = made.crew.doomed(case.dies_at)
        doomed.tell(run.pk)
        doomed.wait_until_dead(made.patience)
    made.crew.lasting().take(run.pk, made.patience)
    played = looked_at(made, case, run, parameters)
    close(made, run)
    return played


def started(made: Stage, case: Case, parameters: dict[str, Any]) -> Run:
    given = {
        "case": case.name,
        "unique": secrets.token_hex(4),
        "action": made.sandbox.action,
        "parameters": parameters,
    }
    flow = known_flow(made.stand_in.slug)
    return start(flow.name, given, tenant=tenant_of_rehearsals(), labels={"case": case.name})


def unique_parameters(declared: Any) -> Any:
    """The declared parameters, with one new word for every {unique} in them."""
    word = f"rehearsal-{secrets.token_hex(6)}"

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{unique}", word)
        if isinstance(value, dict):
            return {name: filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [filled(each) for each in value]
        return value

    return filled(declared)


def looked_at(made: Stage, case: Case, run: Run, parameters: dict[str, Any]) -> Played:
    run.refresh_from_db()
    operation = Operation.objects.filter(run=run).first()
    if operation is None:
        said = (run.failure or {}).get("message", "")
        raise RehearsalStopped(f"{case.name}: no operation was opened. {said}")
    seen = seen_of(made, case, run, operation, parameters)
    return Played(
        case=case,
        seen=seen,
        run=run.pk,
        operation=operation.pk,
        ledger=[
            f"{purpose}: {state}"
            for purpose, state in operation.transmissions.order_by("number").values_list(
                "purpose", "state"
            )
        ],
        reason=(run.failure or {}).get("reason", ""),
        claims=verdicts(seen, made.far_side.contract),
        breaches=breaches(seen),
    )


def seen_of(
    made: Stage, case: Case, run: Run, operation: Operation, parameters: dict[str, Any]
) -> Seen:
    mismatch = None
    if case.needs is Claim.MISMATCH:
        mismatch = made.far_side.with_other_parameters(operation, parameters)
    probed = None
    if case.probes and made.far_side.contract.look_up is not None:
        probed = made.far_side.looked_up(operation)
    writes = made.proxy.writes()
    sight = made.far_side.effects(operation, writes)
    transmissions = list(operation.transmissions.values_list("phase", flat=True))
    evidence = list(
        operation.evidence.values_list("kind", "source", "postcondition", "detail_redacted")
    )
    looked = [(kind, detail) for kind, source, _, detail in evidence if source == "look-up"]
    checks = [met for _, _, met, _ in evidence if met is not None]
    return Seen(
        run=run.state,
        operation=OperationState(operation.state),
        resource=operation.resource,
        effects=sight.resources,
        counted=sight.counted,
        requests=len(writes),
        deliveries=sum(len(passage.answers) for passage in writes),
        left=sum(phase not in BEFORE_SEND for phase in transmissions),
        found=sum(kind == EvidenceKind.LOOKUP for kind, _ in looked) + (probed is Looked.FOUND),
        # Of the ledger's own look-ups some may have come before there was anything to find.
        absent=int(probed is Looked.ABSENT),
        unfiltered=sum("does not follow the filter" in detail for _, detail in looked)
        + (probed is Looked.UNFILTERED),
        mismatch=mismatch,
        verified=checks[-1] if checks else None,
        is_due=operation.due_at is not None,
    )


def close(made: Stage, run: Run) -> None:
    """Leave nothing for a person to do: what is held is abandoned, on record."""
    made.proxy.forget()
    for hold in Hold.objects.filter(run=run, state=HoldState.OPEN, operation__isnull=False):
        answer = Answer(
            kind=DecisionKind.ABANDON,
            note=NOTE,
            version=hold.version,
            token=uuid.uuid4(),
            code=code_of(hold.operation_id),
        )
        record_decision(hold.pk, clerk(), answer)
        made.crew.lasting().take(run.pk, made.patience)
