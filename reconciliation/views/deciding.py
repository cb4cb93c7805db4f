"""Posting a decision: the same for an operation and for a run that is held at a step.

Recorded, refused (422), or somebody was first (409): each answer is a fragment to htmx, and the
whole page, or the way to it, to a browser without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render

from reconciliation.core.errors import AlreadyDecided, InvalidDecision, NotAllowed
from reconciliation.forms import AnswerForm
from reconciliation.models import Hold
from reconciliation.selectors.forms_shown import NOTHING_ATTEMPTED, Attempted
from reconciliation.services.decisions import record_decision
from workflows.views.requests import SeeOther, SignedIn

Context = dict[str, Any]


@dataclass(frozen=True)
class DecidedCase:
    """How one kind of case is shown around its decision.

    Attributes:
        url: of its page.
        template: its whole page.
        decided: the fragment that answers a recorded decision.
        context: its page as it is now, for a form that was attempted.
    """

    url: str
    template: str
    decided: str
    context: Callable[[Attempted], Context]


def decide(
    request: SignedIn, case: DecidedCase, hold: Hold | None, form: AnswerForm
) -> HttpResponse:
    """Record what the form says of `hold`; None: the form was read from a hold of another case."""
    if not form.is_valid():
        return refused(request, case, form, form.sentences())
    if hold is None:
        raise Http404
    page = case.context(NOTHING_ATTEMPTED)["page"]
    answer = form.answer(page.decide.evidence if page.decide else ())
    try:
        record_decision(hold.pk, request.user, answer)
    except InvalidDecision as error:
        return refused(request, case, form, {form.shown_as(error.field): str(error)})
    except NotAllowed as error:
        return refused(request, case, form, {"kind": str(error)})
    except AlreadyDecided as error:
        return overtaken(request, case, Attempted(form.draft(), overtaken_by=error))
    if not request.htmx:
        return SeeOther(f"{case.url}#record")
    return render(request, case.decided, case.context(NOTHING_ATTEMPTED))


def refused(
    request: SignedIn, case: DecidedCase, form: AnswerForm, errors: dict[str, str]
) -> HttpResponse:
    """422: nothing was recorded; what was typed stays, with what to mend."""
    attempted = Attempted(form.draft(), errors)
    return answer_with(request, case, attempted, HTTPStatus.UNPROCESSABLE_ENTITY)


def overtaken(request: SignedIn, case: DecidedCase, attempted: Attempted) -> HttpResponse:
    """409: theirs is in force, shown beside what was typed."""
    return answer_with(request, case, attempted, HTTPStatus.CONFLICT)


def answer_with(
    request: SignedIn, case: DecidedCase, attempted: Attempted, status: HTTPStatus
) -> HttpResponse:
    template = "reconciliation/_decide.html" if request.htmx else case.template
    return render(request, template, case.context(attempted), status=status)
