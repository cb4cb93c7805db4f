"""What a provider's contract means for whoever is on call: questions with answers, and a runbook.

Pure text out of data: the provider's page shows it, and `docs/providers/` is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciliation.core.contracts import AnswerRule, Contract, LookUpRule, Meaning, Retry
from reconciliation.core.facts import HOLD_SENTENCES, HoldReason
from reconciliation.core.pacing import rate_of
from reconciliation.core.reason_words import reason_words

NEVER_ALONE = "a person's word counts only beside such proof, or while a key guards a repeat"


class RestsOn(StrEnum):
    """What makes an answer of the contract true of this provider, here."""

    DOCUMENTS = "documents"
    REPLAY = "replay"  # a claim that is used only once it was shown, or accepted in writing
    LOOK_UP = "look_up"  # the same
    RATE = "rate"  # documented, with a source of its own
    OURS = "ours"  # set here, whatever the provider says


@dataclass(frozen=True)
class Question:
    """A line of the contract: what is asked, what the provider documents, what Romulus does."""

    asks: str
    answer: str
    so: str
    rests_on: RestsOn = RestsOn.DOCUMENTS


@dataclass(frozen=True)
class Possible:
    """Why an operation may be held under a contract, and what settles it."""

    reason: str
    known: str
    settles: str

    @property
    def words(self) -> str:
        return reason_words(self.reason)


# --- the contract in questions ----------------------------------------------------------------


def questions(contract: Contract) -> tuple[Question, ...]:
    return (
        send_again(contract),
        ask(contract),
        proof(contract),
        no_effect(contract),
        undo(contract),
        patience(contract),
        result(contract),
    )


def send_again(contract: Contract) -> Question:
    asks = "Can we send again safely?"
    key, rule = contract.key, contract.replay
    if key is None:
        return Question(
            asks, "No: it keeps no key.", "Nothing whose outcome is unknown is repeated."
        )
    carried = f"{key.name}, in the {key.carrier}"
    if rule is None:
        return Question(
            asks,
            f"It takes a key ({carried}), and says nothing for how long it knows one.",
            "Nothing is repeated on the strength of the key alone.",
        )
    overlaps = (
        "also while the first is executing" if rule.overlaps else "not while the first may execute"
    )
    return Question(
        asks,
        f"Yes, with the same key ({carried}) for {span(rule.retention_floor_seconds)} from the "
        f"first send, {overlaps}.",
        f"The same bytes up to {contract.budget.transmissions} times, until "
        f"{span(rule.margin_seconds)} before the end; then it is held.",
        RestsOn.REPLAY,
    )


def ask(contract: Contract) -> Question:
    asks, rule = "Can we ask what happened?", contract.look_up
    if rule is None:
        return Question(asks, "No.", "Only the answer itself says what happened.")
    said = "; ".join(way_in_words(each) for each in (rule, *contract.other_look_ups))
    return Question(
        asks,
        f"Yes: {said}.",
        f"Asked up to {contract.budget.look_ups} times; a record counts when it carries our mark "
        "itself.",
        RestsOn.LOOK_UP,
    )


def way_in_words(rule: LookUpRule) -> str:
    by = f"by {rule.by}, " if rule.by else ""
    lag = rule.visibility_lag_seconds
    late = f"up to {span(lag)} late" if lag else "at once"
    rate = f", at most {rule.rate.per_second:g} times a second" if rule.rate else ""
    return f"{by}marked by {rule.marker}, {late}{rate}"


def pace(contract: Contract, own: float) -> Question:
    """How fast a provider is asked that may be asked `own` times a second, as is set here."""
    rate = rate_of(own, contract)
    return Question(
        "How fast do we ask?",
        f"At most {rate:g} look-ups a second, by all workers together.",
        "Each waits its turn; one whose protection ends before that is asked about in time.",
        RestsOn.OURS if rate == own else RestsOn.RATE,
    )


def proof(contract: Contract) -> Question:
    parts = [
        f"an answer of {rule.status}{naming(rule)} that names the resource"
        for rule in contract.answers
        if rule.means is Meaning.ACKNOWLEDGED
    ]
    if contract.look_up is not None:
        parts.append("a record that carries our mark and fits what was meant")
    return Question(
        "What proves that it happened?",
        sentence(parts) or "Nothing that is documented.",
        "Settled without a person." if parts else "Nothing is sent: there is no evidence path.",
        RestsOn.DOCUMENTS if contract.look_up is None else RestsOn.LOOK_UP,
    )


def no_effect(contract: Contract) -> Question:
    refusals = [rule for rule in contract.answers if rule.means is Meaning.REJECTED]
    parts = [f"one of {len(refusals)} documented refusals, for its own send"] if refusals else []
    if any(rule.resolves_earlier for rule in refusals):
        parts.append("some of them for the sends before it too")
    rule, rests_on = contract.look_up, RestsOn.DOCUMENTS
    if rule is not None and rule.absence_proof_after_seconds is not None:
        rests_on = RestsOn.LOOK_UP
        late = rule.absence_proof_after_seconds
        parts.append(
            "finding no record once nothing can be on its way"
            + (f", {span(late)} later" if late else "")
        )
    so = (
        "A refusal is final, or is sent again where it says so."
        if parts
        else "Every other answer leaves it unknown."
    )
    return Question("What proves that it did not?", sentence(parts) or "Nothing.", so, rests_on)


def undo(contract: Contract) -> Question:
    if contract.irreversible:
        return Question(
            "Can it be undone?", "No.", "A person is asked before anything is repeated."
        )
    return Question(
        "Can it be undone?",
        "The contract says nothing against it.",
        "By an operation of its own, which is linked to this one.",
    )


def patience(contract: Contract) -> Question:
    connect = contract.deadlines.connect_seconds
    first = f"{span(connect)} to connect, " if connect else ""
    return Question(
        "How long do we wait?",
        f"{first}{span(contract.timeout_seconds)} for the whole.",
        "Then the outcome is unknown, unless nothing has left.",
        RestsOn.OURS,
    )


def result(contract: Contract) -> Question:
    asks = "How do we check the result?"
    if not contract.verifies:
        return Question(asks, "Not at all.", "Proof of the effect is enough.", RestsOn.OURS)
    return Question(
        asks,
        "The resource is read again.",
        "If it is not as it should be, a person sees to it.",
        RestsOn.OURS,
    )


def naming(rule: AnswerRule) -> str:
    named = [text for text in (rule.error_type, rule.error_code) if text]
    return f" {' '.join(named)}" if named else ""


def sentence(parts: list[str]) -> str:
    if not parts:
        return ""
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"))


def span(seconds: float) -> str:
    """A length of time in the largest unit that it is whole in."""
    for size, unit in UNITS:
        if seconds >= size and seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:g} s"


# --- the runbook ------------------------------------------------------------------------------


def evidence_lines(contract: Contract) -> tuple[str, ...]:
    """What settles an unknown outcome under this contract, the cheapest first."""
    lines: list[str] = []
    rule = contract.look_up
    if rule is not None:
        lines.append(
            f"The provider's own record, marked by {rule.marker}. Romulus asks by itself; "
            "“Ask the provider again” asks at once, and proof closes the hold."
        )
        if rule.absence_proof_after_seconds is None:
            lines.append("Finding no record proves nothing: it may appear late, or have gone.")
    if contract.replay is not None:
        lines.append(
            "The answer to the same request under the same key, for "
            f"{span(contract.replay.retention_floor_seconds)} from the first send less "
            f"{span(contract.replay.margin_seconds)}. Romulus sends it by itself."
        )
    lines.append(
        "Somebody who sees the result at the provider: record what they saw, with its ID. "
        f"That it was not done is never taken on a word alone: {NEVER_ALONE}."
    )
    if any(rule.retry is Retry.SAME_KEY for rule in contract.answers):
        lines.append("Refusals that pass, such as a rate limit, are sent again by themselves.")
    return tuple(lines)


def possible_holds(contract: Contract) -> tuple[Possible, ...]:
    """Why an operation may come to a person under this contract."""
    return tuple(
        Possible(reason.value, HOLD_SENTENCES[reason].known, HOLD_SENTENCES[reason].settles)
        for reason in HoldReason
        if can_come(reason, contract)
    )


# Holds that come under every contract: of the provider, the network or the run.
ANY_MAY_HAVE = frozenset(
    {
        HoldReason.NOT_READY,
        HoldReason.BUDGET_SPENT,
        HoldReason.REFUSED_TOO_OFTEN,
        HoldReason.UNREACHABLE,
        HoldReason.CONFLICT,
        HoldReason.RUN_CANCELLED,
    }
)


# What a provider has to be able to say, so that the hold can come.
SAID_BY = {
    HoldReason.KEY_MISMATCH: Meaning.KEY_MISMATCH,
    HoldReason.ALREADY_EXISTS: Meaning.EXISTS,
    HoldReason.REFUSED_LATER: Meaning.REJECTED,
}


def can_come(reason: HoldReason, contract: Contract) -> bool:
    match reason:
        case HoldReason.UNGUARDED:
            return contract.replay is None
        case HoldReason.WINDOW_OVER | HoldReason.WINDOW_CLOSING | HoldReason.CONTRACT_CONTRADICTED:
            return contract.replay is not None
        case HoldReason.NOT_PROVEN:
            return contract.replay is not None or contract.look_up is not None
        case HoldReason.ABSENCE_NOT_PROOF | HoldReason.LOOK_UP_UNAVAILABLE:
            return contract.look_up is not None
        case HoldReason.WINDOW_OVER_UNASKED:
            return contract.replay is not None and contract.look_up is not None
        case HoldReason.TIME_SPENT:
            return contract.budget.elapsed_seconds is not None
        case HoldReason.KEY_MISMATCH | HoldReason.ALREADY_EXISTS | HoldReason.REFUSED_LATER:
            return any(rule.means is SAID_BY[reason] for rule in contract.answers)
        case HoldReason.POSTCONDITION_FAILED | HoldReason.NOT_VERIFIABLE:
            return contract.verifies
        case HoldReason.AUTHORISATION_LAPSED | HoldReason.PRECONDITION_GONE:
            return False  # of the write, whatever the provider
        case _:
            return True


def as_markdown(contract: Contract) -> str:
    """The contract and its runbook as a page of documentation."""
    sheet = "\n".join(
        f"| {line.asks} | {line.answer} | {line.so} |" for line in questions(contract)
    )
    evidence = "\n".join(f"- {line}" for line in evidence_lines(contract))
    own = (hold.reason for hold in possible_holds(contract) if hold.reason not in ANY_MAY_HAVE)
    holds = ", ".join(f"`{reason}`" for reason in own)
    sources = "\n".join(
        f"- {f'[{source.title}]({source.url})' if source.url else source.title}"
        f" ({source.evidence.replace('_', ' ')})"
        for source in contract.sources
    )
    unverified = "".join(f"- {text}\n" for text in contract.unverified)
    notes = "".join(f"- {text}\n" for text in contract.notes)
    return (
        f"# {contract.name}\n\n"
        f"`{contract.slug}` version {contract.version}, reviewed {contract.reviewed_on}, again by "
        f"{contract.review_again_on}. Keys count within: {', '.join(contract.scope)}.\n\n"
        f"| question | answer | so Romulus |\n|---|---|---|\n{sheet}\n\n"
        f"Evidence that settles it:\n\n{evidence}\n\n"
        f"Its own reasons for a hold: {holds}.\n\n"
        + (f"Nobody has found documented:\n\n{unverified}\n" if unverified else "")
        + (f"Beside that:\n\n{notes}\n" if notes else "")
        + f"Sources:\n\n{sources}\n"
    )
