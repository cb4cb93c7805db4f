"""The same small thing done to many cases: the plan, its confirmation, and what came of each."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from reconciliation import access
from reconciliation.core.errors import InvalidRequest
from reconciliation.core.queue_views import looked_at
from reconciliation.core.review_work import BulkKind
from reconciliation.queue_pages import BulkPlan
from reconciliation.review_forms import BulkForm, UntilForm, WhomForm
from reconciliation.selectors.bulk_page import action_for, bulk_page, latest_actions
from reconciliation.selectors.bulk_plan import Chosen, plan_of
from reconciliation.services.bulk import Wanted, confirm
from reconciliation.services.snoozing import ensure_soon
from workflows.selectors.paging import as_uuid
from workflows.services.clock import database_now
from workflows.views.requests import STOP_POLLING, SeeOther, SignedIn, asks_for, nothing_new


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def review_bulk(request: SignedIn) -> HttpResponse:
    """GET shows what would be hit and what not, and changes nothing; POST confirms that set."""
    if request.method == "POST":
        return confirmed(request)
    kind = request.GET.get("do", "")
    chosen = chosen_in(request)
    if kind not in set(BulkKind) or not (chosen.holds or chosen.all):
        context = {
            "rows": latest_actions(request.user, request.profile.zone),
            "now": database_now(),
        }
        return render(request, "reconciliation/bulk_actions.html", context)
    return planned(request, BulkKind(kind), chosen)


def chosen_in(request: SignedIn) -> Chosen:
    ticked = [as_uuid(text) for text in request.GET.getlist("hold")]
    return Chosen(
        looked=looked_at(request.GET.dict()),
        holds=tuple(hold for hold in dict.fromkeys(ticked) if hold is not None),
        all=request.GET.get("all") == "1",
    )


def planned(request: SignedIn, kind: BulkKind, chosen: Chosen) -> HttpResponse:
    now = database_now()
    plan = plan_of(Wanted(kind), chosen, request.user, now)
    form = form_for(request, plan, now)
    errors: dict[str, str] = {}
    wanted = Wanted(kind)
    if form is not None and asked(request, plan):
        if form.is_valid() and is_soon(form, now):
            wanted = wanted_by(form, kind, now)
            plan = plan_of(wanted, chosen, request.user, now)
        errors = {f"id_{name}": str(texts[0]) for name, texts in form.errors.items()}
    return shown(request, plan, wanted, form, errors)


def form_for(request: SignedIn, plan: BulkPlan, now: datetime) -> UntilForm | WhomForm | None:
    """What has to be said beside the cases; nothing is wrong with it before it is sent."""
    data = request.GET if asked(request, plan) else None
    if plan.needs == "to":
        return WhomForm(data, access.deciders_in(plan.queues))
    if not plan.needs:
        return None
    form = UntilForm(data, request.profile.zone, now)
    if plan.kind == BulkKind.REMIND:
        form.fields["within"].label = "When?"
    return form


def is_soon(form: UntilForm | WhomForm, now: datetime) -> bool:
    """A time that would be refused when the plan is confirmed makes no plan."""
    if isinstance(form, UntilForm):
        try:
            ensure_soon(form.at(now))
        except InvalidRequest as refused:
            form.add_error(refused.field, str(refused))
    return form.is_valid()


def asked(request: SignedIn, plan: BulkPlan) -> bool:
    return {"to": "to", "until": "within"}.get(plan.needs, "") in request.GET


def wanted_by(form: UntilForm | WhomForm, kind: BulkKind, now: datetime) -> Wanted:
    if isinstance(form, WhomForm):
        return Wanted(kind, to=form.cleaned_data["to"])
    return Wanted(kind, until=form.at(now).replace(microsecond=0))


def shown(
    request: SignedIn,
    plan: BulkPlan,
    wanted: Wanted,
    form: UntilForm | WhomForm | None,
    errors: dict[str, str],
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    context = {
        "page": plan,
        "wanted": wanted,
        "form": form,
        "errors": errors,
        "looked": looked_at(request.GET.dict()).query(),
        "all": request.GET.get("all") == "1",
        "now": database_now(),
    }
    return render(request, "reconciliation/bulk_plan.html", context, status=status)


def confirmed(request: SignedIn) -> HttpResponse:
    # Nobody else's name is told by what a form was made to say.
    queues = access.visible_queues(request.user).values_list("pk", flat=True)
    form = BulkForm(request.POST, access.deciders_in(queues))
    error = "This form is incomplete. Make the plan anew: nothing was done."
    if form.is_valid():
        given = form.cleaned_data
        try:
            whose = given["holds"]
            action = confirm(form.wanted(), list(whose), request.user, given["token"], seen=whose)
            return SeeOther(reverse("review_bulk_action", args=[action.pk]))
        except InvalidRequest as refused:
            error = str(refused)
    context = {"error": error, "now": database_now()}
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return render(request, "reconciliation/bulk_refused.html", context, status=status)


@login_required
@require_safe
def review_bulk_action(request: SignedIn, action: UUID) -> HttpResponse:
    """How far it is, and what came of each case."""
    found = action_for(request.user, action)
    page = bulk_page(found, request.user, request.profile.zone, request.GET.get("after", ""))
    context = {"page": page, "now": database_now()}
    if asks_for(request, "progress"):
        status = STOP_POLLING if page.ended_at else HTTPStatus.OK
        return nothing_new(request, page.seen) or render(
            request, "reconciliation/_bulk_progress.html", context, status=status
        )
    return render(request, "reconciliation/bulk.html", context)
