"""Approvals: the list, one proposal, its answer. What is refused, the service refuses."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from workflows import access
from workflows.approval_pages import Outcome
from workflows.core.errors import NotEntitled, ProposalIsOver, UsageError
from workflows.core.proposals import Answer
from workflows.models import Proposal
from workflows.selectors.approvals import approvals_page, url_of
from workflows.selectors.paging import as_uuid
from workflows.selectors.proposal_page import proposal_page
from workflows.services.answers import Given, answer
from workflows.services.asking_again import ask_again
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn

MOST_AT_ONCE = 50
CHOOSE = "answer: Choose what you answer."
INCOMPLETE = "This form is incomplete. Load the page again: what is on record stays."

asks_or_does = require_http_methods(["GET", "HEAD", "POST"])


@login_required
@asks_or_does
def approvals(request: SignedIn) -> HttpResponse:
    """The list; POST approves those that were picked, each by itself."""
    outcomes = list(approved_together(request)) if request.method == "POST" else []
    page = approvals_page(
        request.user,
        access.visible_proposals(request.user),
        access.approving_tenants(request.user),
        show=request.GET.get("show", ""),
        before=request.GET.get("before", ""),
        after=request.GET.get("after", ""),
        outcomes=outcomes,
    )
    context = {"page": page, "now": database_now()}
    return render(request, "workflows/approvals.html", context)


def approved_together(request: SignedIn) -> Iterator[Outcome]:
    """Approve each that was picked; one that is refused stops none of the others. Where one is not
    there, none is approved: the answer would not tell of the others."""
    picks = request.POST.getlist("pick")[:MOST_AT_ONCE]
    for proposal, given in [picked(request, pick) for pick in picks]:
        yield outcome_of(request, proposal, given)


def picked(request: SignedIn, pick: str) -> tuple[Proposal, Given]:
    """Raises `Http404` for what is no proposal that this person may see."""
    name, _, rest = pick.partition(" ")
    digest, _, token = rest.partition(" ")
    proposal_id, form = as_uuid(name), as_uuid(token)
    if proposal_id is None or form is None:
        raise Http404
    proposal = access.proposal_for(request.user, proposal_id)
    return proposal, Given(Answer.APPROVE, digest, form, request.POST.get("note", ""))


def outcome_of(request: SignedIn, proposal: Proposal, given: Given) -> Outcome:
    try:
        answer(proposal.pk, request.user, given)
    except (NotEntitled, ProposalIsOver, UsageError) as error:
        return Outcome(proposal.summary, url_of(proposal), False, sentence(error))
    return Outcome(proposal.summary, url_of(proposal), True, "Your approval is on record.")


def sentence(error: Exception) -> str:
    """The message without the field that it begins with."""
    field, _, rest = str(error).partition(": ")
    return rest if field in ("note", "digest", "token", "answer") else str(error)


@login_required
@asks_or_does
def approval(request: SignedIn, proposal: UUID) -> HttpResponse:
    """One proposal; POST answers it, or says why nothing was recorded."""
    found = access.proposal_for(request.user, proposal)
    if request.method != "POST":
        return shown(request, found)
    try:
        answer(found.pk, request.user, given_in(request))
    except NotEntitled as error:
        return shown(request, found, HTTPStatus.FORBIDDEN, overtaken=str(error))
    except ProposalIsOver as error:
        return shown(request, found, HTTPStatus.CONFLICT, overtaken=str(error))
    except UsageError as error:
        field = str(error).partition(": ")[0]
        field = field if field in ("note", "answer") else ""
        errors = {field: sentence(error)}
        return shown(request, found, HTTPStatus.UNPROCESSABLE_ENTITY, errors=errors)
    return see(request, f"{url_of(found)}#answers")


def given_in(request: SignedIn) -> Given:
    """What was filled in. Raises `UsageError`: nothing was chosen, or the form is cut off."""
    kind = request.POST.get("answer", "")
    token = as_uuid(request.POST.get("token", ""))
    if kind not in list(Answer):
        raise UsageError(CHOOSE)
    if token is None:
        raise UsageError(INCOMPLETE)
    digest = request.POST.get("digest", "")
    return Given(Answer(kind), digest, token, request.POST.get("note", ""))


def shown(
    request: SignedIn,
    proposal: Proposal,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    errors: dict[str, str] | None = None,
    overtaken: str = "",
) -> HttpResponse:
    typed = {name: request.POST.get(name, "") for name in ("answer", "note")}
    if overtaken:
        proposal = access.proposal_for(request.user, proposal.pk)
    now = proposal.read_at
    rights = access.rights_on(request.user, proposal.tenant)
    page = proposal_page(
        proposal,
        request.user,
        now,
        rights=rights,
        typed=typed,
        errors=errors,
        overtaken=overtaken,
    )
    fragment = request.htmx and request.method == "POST"
    template = "workflows/_answer.html" if fragment else "workflows/approval.html"
    return render(request, template, {"page": page, "now": now}, status=status)


@login_required
@require_POST
def ask_anew(request: SignedIn, proposal: UUID) -> HttpResponse:
    """Ask for the same again, after its approval lapsed before the write."""
    found = access.proposal_for(request.user, proposal)
    try:
        made = ask_again(found.pk, request.user)
    except NotEntitled as error:
        return shown(request, found, HTTPStatus.FORBIDDEN, overtaken=str(error))
    except ProposalIsOver as error:
        return shown(request, found, HTTPStatus.CONFLICT, overtaken=str(error))
    return see(request, reverse("approval", args=[made.pk]))


def see(request: SignedIn, url: str) -> HttpResponse:
    if not request.htmx:
        return SeeOther(url)
    # Of the page itself a place on it would be gone to without the page being read anew.
    page = url.partition("#")[0]
    return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": page})
