"""Seeded mistakes in reading what came back: answers taken for what they are not, and records."""

from __future__ import annotations

from dataclasses import replace

from reconciliation.core.classify import Classification, Phase, Report, classify
from reconciliation.core.contracts import Contract, Meaning, Retry
from reconciliation.core.matching import Comparison, Fit, Found, Intended, compare
from reconciliation.core.model_nodes import Rules
from reconciliation.core.states import TransmissionState

T = TransmissionState
BAD_GATEWAY = 502

MISREADINGS: dict[str, Rules] = {}


# --- answers ----------------------------------------------------------------------------------


def bad_gateway_is_a_rejection(report: Report, contract: Contract) -> Classification:
    if report.answer is not None and report.answer.status == BAD_GATEWAY:
        return Classification(T.REJECTED, Meaning.REJECTED, retry=Retry.SAME_KEY)
    return classify(report, contract)


def time_out_is_not_sent(report: Report, contract: Contract) -> Classification:
    lost = report.phase is Phase.WAIT and report.answer is None
    return Classification(T.NOT_SENT, Meaning.UNKNOWN) if lost else classify(report, contract)


def still_running_is_a_rejection(report: Report, contract: Contract) -> Classification:
    return rejected_if(Meaning.IN_FLIGHT, report, contract)


def exists_is_a_rejection(report: Report, contract: Contract) -> Classification:
    return rejected_if(Meaning.EXISTS, report, contract)


def other_body_is_a_rejection(report: Report, contract: Contract) -> Classification:
    return rejected_if(Meaning.KEY_MISMATCH, report, contract)


def rejected_if(meaning: Meaning, report: Report, contract: Contract) -> Classification:
    found = classify(report, contract)
    refused = Classification(T.REJECTED, Meaning.REJECTED, resolves_earlier=True)
    return refused if found.meaning is meaning else found


def cut_answer_is_an_answer(report: Report, contract: Contract) -> Classification:
    if report.answer is not None and not report.answer.complete:
        return Classification(T.REJECTED, Meaning.REJECTED)
    return classify(report, contract)


def anybodys_word_is_the_providers(report: Report, contract: Contract) -> Classification:
    return classify(answering(report, authentic=True), contract)


def yes_that_names_nothing_is_a_success(report: Report, contract: Contract) -> Classification:
    named = report.answer.resource if report.answer else None
    return classify(answering(report, resource=named or "something"), contract)


def proxy_knows_that_nothing_left(report: Report, contract: Contract) -> Classification:
    return classify(replace(report, intermediary=False), contract)


def answering(report: Report, **changes: object) -> Report:
    if report.answer is None:
        return report
    return replace(report, answer=replace(report.answer, **changes))  # type: ignore[arg-type]


for function in (
    bad_gateway_is_a_rejection,
    time_out_is_not_sent,
    still_running_is_a_rejection,
    exists_is_a_rejection,
    other_body_is_a_rejection,
    cut_answer_is_an_answer,
    anybodys_word_is_the_providers,
    yes_that_names_nothing_is_a_success,
    proxy_knows_that_nothing_left,
):
    MISREADINGS[function.__name__] = Rules(classify=function)
MISREADINGS["dead_worker_taken_as_not_sent"] = Rules(given_up=T.NOT_SENT)


# --- records ----------------------------------------------------------------------------------


def hit_without_our_marker(
    intended: Intended, found: Found, *, marker_required: bool
) -> Comparison:
    return compare(intended, found, marker_required=marker_required and False)


def anothers_marker_is_ours(
    intended: Intended, found: Found, *, marker_required: bool
) -> Comparison:
    marked = replace(found, operation=intended.operation) if found.operation else found
    return compare(intended, marked, marker_required=marker_required)


def differences_do_not_matter(
    intended: Intended, found: Found, *, marker_required: bool
) -> Comparison:
    compared = compare(intended, found, marker_required=marker_required)
    return Comparison(Fit.MATCH) if compared.fit is Fit.CONFLICT else compared


for comparing in (hit_without_our_marker, anothers_marker_is_ours, differences_do_not_matter):
    MISREADINGS[comparing.__name__] = Rules(compare=comparing)
