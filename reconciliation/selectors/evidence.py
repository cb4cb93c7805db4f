"""What the provider says: one card for each thing that it or a person said, the newest first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciliation.core.states import EvidenceKind
from reconciliation.decision_pages import EvidenceChoice
from reconciliation.models import Evidence
from reconciliation.pages import EvidenceCard
from reconciliation.selectors.case import Case
from reconciliation.selectors.words import clock
from workflows.core.words import listed
from workflows.pages import Fact
from workflows.selectors.words import counted

LOOK_UP, CHECK = "look-up", "result check"  # the sources that can be asked
TITLES = {LOOK_UP: "Look-up by our operation ID", CHECK: "Check of the result"}
STALE_AFTER = timedelta(minutes=15)
CARDS_SHOWN = 12
# Beside the time that the provider has for each question.
SPARE = timedelta(seconds=10)

Group = tuple[str, str, str]


def cards_of(case: Case) -> tuple[EvidenceCard, ...]:
    """A card for the latest of each: twenty times "could not look" is one card that says so."""
    groups: dict[Group, list[Evidence]] = {}
    for row in case.evidence:
        groups.setdefault((row.kind, row.source, row.resource), []).append(row)
    latest = sorted(groups.values(), key=lambda rows: rows[-1].observed_at, reverse=True)
    asking = asked_source(case)
    newest = next((rows for rows in latest if rows[-1].source == asking), None)
    return tuple(card(case, rows, asking=rows is newest) for rows in latest[:CARDS_SHOWN])


def card(case: Case, rows: list[Evidence], *, asking: bool) -> EvidenceCard:
    row = rows[-1]
    said_by_person = row.kind == EvidenceKind.OPERATOR
    return EvidenceCard(
        id=row.pk,
        kind=kind_of(row),
        title=title_of(row),
        source=row.source if said_by_person else case.provider,
        text=text_of(row),
        observed_at=row.observed_at,
        can_settle=can_settle(case, row),
        stale=is_stale(case, row),
        asking=asking,
        facts=tuple(facts_of(case, rows)),
        # What the provider wrote, so for those alone who may see payloads.
        raw=row.detail_redacted if case.payloads and row.kind != EvidenceKind.UNAVAILABLE else "",
    )


def kind_of(row: Evidence) -> str:
    """A result check that found the result wrong is no match, whatever its row's kind says."""
    return EvidenceKind.CONFLICT if row.postcondition is False else row.kind


def asked_source(case: Case) -> str:
    """The source that somebody has asked and that has not answered yet; empty for none.

    One question asks the look-up and then, of the record that it finds, for the result.
    """
    if not case.asked or case.now >= gives_up_at(case):
        return ""
    since = [row for row in case.evidence if row.recorded_at >= case.asked[-1].at]
    looked = [row for row in since if row.source == LOOK_UP]
    if not looked:
        return LOOK_UP
    found = any(row.completes for row in looked) and case.contract.verifies
    checked = any(row.source == CHECK for row in since)
    return CHECK if found and not checked and not case.state.is_settled else ""


def gives_up_at(case: Case) -> datetime:
    """When nobody waits any more for an answer to what was asked last."""
    questions = 2 if case.contract.verifies else 1
    return case.asked[-1].at + questions * case.contract.timeout + SPARE


def first_asked(case: Case) -> str:
    """What is asked of a source that has said nothing yet, and so has no card; empty for none."""
    asking = asked_source(case)
    said = any(row.source == asking for row in case.evidence)
    return "" if said else TITLES.get(asking, "")


def is_stale(case: Case, row: Evidence) -> bool:
    """Only of what can change by itself: an answer to a send stays what it was."""
    looked = row.source in TITLES
    return looked and not case.state.is_settled and case.now - row.observed_at > STALE_AFTER


def title_of(row: Evidence) -> str:
    if row.kind == EvidenceKind.OPERATOR:
        return f"What {row.source} states"
    return TITLES.get(row.source) or row.source.capitalize()


def text_of(row: Evidence) -> str:
    match EvidenceKind(row.kind):
        case EvidenceKind.OPERATOR:
            return "It was done." if row.completes else "It was not done."
        case EvidenceKind.LOOKUP if row.postcondition is not None:
            return "The result is as it should be." if row.postcondition else "It is not as meant."
        case EvidenceKind.LOOKUP:
            return "A record that carries our ID fits what was intended."
        case EvidenceKind.RECEIPT:
            return "It answered yes and names the record."
        case EvidenceKind.REJECTION:
            return "It refused the request. That send changed nothing."
        case EvidenceKind.ABSENCE:
            return "No record carries our ID."
        case EvidenceKind.UNAVAILABLE:
            why = f": {row.detail_redacted}" if row.detail_redacted else ""
            return f"Our question got no usable answer{why}."
        case EvidenceKind.CONFLICT:
            return conflict_text(row)


def conflict_text(row: Evidence) -> str:
    fields = [str(each.get("field", "")) for each in row.differences]
    if fields:
        verb = "differs" if len(fields) == 1 else "differ"
        return f"A record came that is not what was intended: {listed(fields)} {verb}."
    if not row.resource:
        return "A record carries our ID, and has none of its own where the settings look for it."
    return "It shows more than one record for this one operation."


def facts_of(case: Case, rows: list[Evidence]) -> list[Fact]:
    row = rows[-1]
    facts = [Fact("Record", row.resource, code=True)] if row.resource else []
    for each in row.differences:
        field = str(each.get("field", ""))
        values = f"meant {each.get('intended')}, found {each.get('found')}"
        facts.append(Fact(field, values if case.payloads else "differs"))
    if len(rows) > 1:
        since = clock(rows[0].observed_at, case.now.tzinfo)
        facts.append(Fact("Seen", f"{counted(len(rows), 'time')} since {since}"))
    if row.retry_after_at is not None and row.retry_after_at > case.now:
        until = clock(row.retry_after_at, case.now.tzinfo)
        facts.append(Fact("Asks for a pause", f"until {until}"))
    return facts


def can_settle(case: Case, row: Evidence) -> str:
    """What this source is able to prove, whatever it said."""
    match EvidenceKind(row.kind):
        case EvidenceKind.OPERATOR:
            return "what the person stands for with their name"
        case EvidenceKind.LOOKUP if row.postcondition is not None:
            return "whether the result is as it should be"
        case EvidenceKind.RECEIPT | EvidenceKind.LOOKUP:
            return "that it took effect"
        case EvidenceKind.REJECTION:
            return "that this one send had no effect"
        case EvidenceKind.ABSENCE:
            return absence_settles(case)
        case EvidenceKind.UNAVAILABLE:
            return "nothing until it answers"
        case EvidenceKind.CONFLICT:
            return "that something is there; not that it is what was meant"


def absence_settles(case: Case) -> str:
    rule = case.contract.look_up
    if rule is None or rule.absence_proof_after_seconds is None:
        return "nothing alone: a record can appear late"
    return f"that it did not happen, from {rule.absence_proof_after_seconds} s after the last send"


# --- what it comes to -------------------------------------------------------------------------


def says(case: Case) -> str:
    """What the evidence comes to, in one sentence."""
    if not case.evidence:
        return nothing_said(case)
    kinds = {EvidenceKind(row.kind) for row in case.evidence}
    proofs = [row for row in case.evidence if row.completes]
    if any(row.postcondition is False for row in case.evidence[-1:]):
        return "It took effect, and its result is not as it should be."
    if proofs and EvidenceKind.CONFLICT in kinds:
        return "It took effect, and another record disagrees: compare the cards."
    if proofs:
        return f"It took effect{as_record(proofs[-1])}."
    return unproven(case, kinds)


def nothing_said(case: Case) -> str:
    if not case.transmissions:
        return "Nothing: nothing was sent yet."
    if case.contract.look_up is None:
        return (
            f"Nothing yet, and {case.provider} cannot be asked: its contract has no way to look a "
            "write up."
        )
    return f"Nothing yet: {case.provider} was not asked, and no answer came."


def as_record(proof: Evidence) -> str:
    word = " as " if proof.kind != EvidenceKind.OPERATOR else ", as a person states: "
    return f"{word}{proof.resource}" if proof.resource else ""


def unproven(case: Case, kinds: set[EvidenceKind]) -> str:
    if EvidenceKind.CONFLICT in kinds:
        return "What it shows does not fit what was intended. Nobody can yet say which is right."
    if EvidenceKind.ABSENCE in kinds:
        return f"{case.provider} shows no record of it. That alone proves nothing."
    if EvidenceKind.UNAVAILABLE in kinds:
        return f"{case.provider} could not be asked."
    if EvidenceKind.REJECTION in kinds:
        return f"{case.provider} refused it. That says nothing about any earlier send."
    return "A person has said what happened."


# --- what a decision may rest on --------------------------------------------------------------

SEEN, TOLD = "seen", "told"


def choices_of(case: Case) -> tuple[EvidenceChoice, ...]:
    """Records to point at, the newest first, then a person's own eyes or another's word."""
    shown = [row for row in reversed(case.evidence) if row.kind != EvidenceKind.OPERATOR]
    return (
        *(EvidenceChoice(str(row.pk), choice_text(row)) for row in shown[:CARDS_SHOWN]),
        EvidenceChoice(SEEN, f"I have seen it at {case.provider}"),
        EvidenceChoice(TOLD, f"Somebody at {case.provider} told me: see the note"),
    )


def choice_text(row: Evidence) -> str:
    record = f", {row.resource}" if row.resource else ""
    return f"{title_of(row)}{record}, {clock(row.observed_at)}"


def basis_of(choices: Iterable[EvidenceChoice], value: str) -> str:
    """The words of what was chosen; empty for nothing."""
    return next((choice.text for choice in choices if choice.value == value), "")
