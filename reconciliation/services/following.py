"""What is opened in place of an operation that a person gave up: its replacement, or its undo.

A recorded decision is the only way to a second operation at one step and visit. Here it is opened
by the run's own write step, under the claim; from then on it is an operation like any other.
What a person has decided is never dropped because something went wrong on the way: the run is held.
"""

from __future__ import annotations

from reconciliation.core.facts import HoldReason
from reconciliation.core.states import DecisionKind, OperationState
from reconciliation.models import Operation
from reconciliation.sealing import has_digest
from reconciliation.services.holds import not_ready
from reconciliation.services.ledger import described
from reconciliation.services.providers import missing_of
from workflows.core.errors import UsageError
from workflows.core.intents import Intent
from workflows.core.steps import UndoFunction
from workflows.services import kinds
from workflows.services.claims import Claim
from workflows.services.failures import call
from workflows.services.run_view import RunView

FOLLOWED = (DecisionKind.REPLACE, DecisionKind.UNDO)
LONGEST_ROOT = 90  # of an effect's name, so that a number still fits behind it


def decided_to_follow(operation: Operation) -> DecisionKind | None:
    """What a person had in mind for the place of an operation that was given up, if anything."""
    if operation.state != OperationState.ABANDONED:
        return None
    kinds_of = operation.decisions.filter(kind__in=FOLLOWED).values_list("kind", flat=True)
    kind = kinds_of.first()
    return DecisionKind(kind) if kind else None


def next_in_place(
    claim: Claim, view: RunView, operation: Operation, kind: DecisionKind
) -> Operation | kinds.Result:
    """Describe the operation that comes in the place of `operation`; nothing is written yet."""
    undone = operation if kind is DecisionKind.UNDO else operation.compensates
    provider = operation.provider
    if provider.contract_version is None:
        return kinds.Hold(HoldReason.NOT_READY, not_ready(missing_of(provider, claim.tenant)))
    value, problem = asked(claim, view, undone)
    if problem is not None:
        return held_if_failed(problem)
    if not isinstance(value, Intent):
        return kinds.Hold(
            "intent_refused", f"step {claim.step.name} returned {type(value).__name__}, not Intent"
        )
    if kind is DecisionKind.REPLACE and not means_the_same(value, operation):
        return changed(claim, operation)
    try:
        following = described(claim, value, provider)
    except UsageError as error:
        return kinds.Hold("intent_refused", str(error))
    following.effect = effect_after(operation)
    following.supersedes = operation if kind is DecisionKind.REPLACE else None
    following.compensates = undone
    return following


def asked(
    claim: Claim, view: RunView, undone: Operation | None
) -> tuple[object, kinds.Result | None]:
    """Ask the author's code what is to be written: for the step itself, or to undo `undone`."""
    if undone is None:
        return call(claim, view)
    assert claim.step.write is not None
    undo: UndoFunction | None = claim.step.write.undo
    if undo is None:
        return None, kinds.Hold(
            "undo_missing",
            f"Step {claim.step.name} of {claim.workflow.name} version {claim.workflow.version} "
            "declares no undo any more. Nothing was sent.",
        )
    receipt = {"operation": str(undone.pk), "resource": resource_of(undone)}
    return call(claim, view, lambda run: undo(run, receipt))


def resource_of(operation: Operation) -> str:
    """The provider's record of an effect that was proven, the latest proof first."""
    proof = operation.evidence.filter(completes=True).order_by("-recorded_at", "-id").first()
    return proof.resource if proof else ""


def held_if_failed(problem: kinds.Result) -> kinds.Result:
    if isinstance(problem, kinds.Fail):
        return kinds.Hold(problem.reason, problem.message)
    return problem


def means_the_same(intent: Intent, operation: Operation) -> bool:
    """Whether the author's code still means what the person has seen and decided on."""
    said = (intent.action, intent.target, intent.amount, intent.currency)
    stored = (operation.action, operation.target, operation.amount, operation.currency)
    parameters = {"action": intent.action, "parameters": dict(intent.parameters)}
    return said == stored and has_digest(parameters, operation.parameters_digest)


def changed(claim: Claim, operation: Operation) -> kinds.Hold:
    return kinds.Hold(
        "intent_changed",
        f"It was decided to replace “{operation.summary}”, and step {claim.step.name} now means "
        "another write. Nothing was sent: what goes out is what was decided on.",
    )


def effect_after(operation: Operation) -> str:
    """A name of its own, since one effect of one step and visit has one operation for ever."""
    place = places_before(operation)
    root = first_effect(operation)[:LONGEST_ROOT]
    return f"{root}~{place + 1}"


def places_before(operation: Operation) -> int:
    return Operation.objects.filter(
        run=operation.run_id, step=operation.step, visit=operation.visit
    ).count()


def first_effect(operation: Operation) -> str:
    first = Operation.objects.filter(
        run=operation.run_id,
        step=operation.step,
        visit=operation.visit,
        supersedes=None,
        compensates=None,
    )
    return first.values_list("effect", flat=True).get()
