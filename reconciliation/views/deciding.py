"""Posting what is decided: the same for an operation and for a run that is held at a step.

Recorded, refused (422), or somebody was first (409): each answer is a fragment to htmx, and the
whole page, or the way to it, to a browser without. What was typed and not recorded is kept as the
person's draft.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render

from reconciliation.core.errors import (
    AlreadyDecided,
    InvalidDecision,
    NotAllowed,
    ProposalVoid,
)
from reconciliation.forms import AnswerForm, CaseForm, CorrectionForm, VerdictForm
from reconciliation.models import Hold
from reconciliation.selectors.attempts import NOTHING_ATTEMPTED, Attempted
from reconciliation.services import drafts
from reconciliation.services.confirming import settle_proposal
from reconciliation.services.corrections import correct
from reconciliation.services.decisions import record_decision
from workflows.views.requests import SeeOther, SignedIn

Context = dict[str, Any]


@dataclass(frozen=True)
class DecidedCase:
    """How one kind of case is shown around its decision.

    Attributes:
        id: of the operation or run.
        url: of its page.
        template: its whole page.
        form: the fragment that answers what was refused.
        decided: the fragment that answers a recorded decision, or one that came first.
        context: its page as it is now, for a form that was attempted.
        hold: the hold of this case with an ID, None where it is another's.
    """

    id: UUID
    url: str
    template: str
    form: str
    decided: str
    context: Callable[[Attempted], Context]
    hold: Callable[[UUID], Hold | None]


@dataclass(frozen=True)
class Posted:
    """A form of a case, and what it records.

    Attributes:
        of: which of the page's forms it is.
        record: records it on the hold that it was read from.
        choice: the field that people see for what is not offered.
    """

    form: CaseForm
    of: Literal["decide", "second", "correct"]
    record: Callable[[Hold], object]
    choice: str = ""


def decide(request: SignedIn, case: DecidedCase) -> HttpResponse:
    """Record, or propose, the decision that the form says."""
    form = AnswerForm(request.POST, request.profile.zone)

    def record(hold: Hold) -> object:
        page = case.context(NOTHING_ATTEMPTED)["page"]
        answer = form.answer(page.decide.evidence if page.decide else ())
        return record_decision(hold.pk, request.user, answer)

    return answered(request, case, Posted(form, "decide", record, choice="kind"))


def second(request: SignedIn, case: DecidedCase) -> HttpResponse:
    """Confirm, refuse or take back what is proposed."""
    form = VerdictForm(request.POST)

    def record(hold: Hold) -> object:
        return settle_proposal(hold.pk, request.user, form.given())

    return answered(request, case, Posted(form, "second", record))


def add_correction(request: SignedIn, case: DecidedCase) -> HttpResponse:
    """Record what was wrong with the decision in force."""
    form = CorrectionForm(request.POST)

    def record(hold: Hold) -> object:
        return correct(hold.pk, request.user, form.given())

    return answered(request, case, Posted(form, "correct", record))


def keep_draft(request: SignedIn, case: DecidedCase) -> HttpResponse:
    """Keep what is typed, or throw it away; nothing is decided by it."""
    if "discard" in request.POST:
        drafts.forget(request.user, case.id)
    else:
        drafts.keep(request.user, case.id, request.POST.dict())
    if request.headers.get("X-Requested-With") == "draft":
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    return SeeOther(f"{case.url}#decide")


def answered(request: SignedIn, case: DecidedCase, posted: Posted) -> HttpResponse:
    form = posted.form
    if not form.is_valid():
        return refused(request, case, posted, form.sentences())
    hold = case.hold(form.hold)
    if hold is None:
        raise Http404
    try:
        posted.record(hold)
    except InvalidDecision as error:
        return refused(request, case, posted, {form.shown_as(error.field): str(error)})
    except NotAllowed as error:
        return refused(request, case, posted, {posted.choice: str(error)})
    except ProposalVoid as error:
        return overtaken(request, case, posted, AlreadyDecided(str(error)))
    except AlreadyDecided as error:
        return overtaken(request, case, posted, error)
    if not request.htmx:
        return SeeOther(f"{case.url}#record")
    context = case.context(NOTHING_ATTEMPTED) | {"recorded": True}
    return render(request, case.decided, context)


def refused(
    request: SignedIn, case: DecidedCase, posted: Posted, errors: dict[str, str]
) -> HttpResponse:
    """422: nothing was recorded; what was typed stays, with what to mend."""
    attempted = Attempted(posted.form.draft(), errors, of=posted.of)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return answer_with(request, case, attempted, case.form, status)


def overtaken(
    request: SignedIn, case: DecidedCase, posted: Posted, first: AlreadyDecided
) -> HttpResponse:
    """409: theirs is in force, shown beside what was typed, with all that moved by it."""
    attempted = Attempted(posted.form.draft(), overtaken_by=first, of=posted.of)
    return answer_with(request, case, attempted, case.decided, HTTPStatus.CONFLICT)


def answer_with(
    request: SignedIn, case: DecidedCase, attempted: Attempted, fragment: str, status: HTTPStatus
) -> HttpResponse:
    drafts.keep(request.user, case.id, attempted.draft.typed)
    template = fragment if request.htmx else case.template
    return render(request, template, case.context(attempted), status=status)
