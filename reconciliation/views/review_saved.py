"""Saved views of the queue: keep one, see them all, remove one."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reconciliation import access
from reconciliation.core.queue_views import looked_at
from reconciliation.queue_pages import WorkForm
from reconciliation.review_forms import SaveForm
from reconciliation.selectors.queue import url_at
from reconciliation.selectors.queue_tabs import saved_for, saved_rows
from reconciliation.services.saved_views import remove_view, save_view
from reconciliation.views.working import work
from workflows.selectors.paging import address
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def review_save(request: SignedIn) -> HttpResponse:
    """Keep the way the queue is looked at, which lies in the address."""
    looked = looked_at(request.GET.dict())
    form = SaveForm(request.POST or None, access.owned_queues(request.user))
    page = WorkForm(
        title="Save this view",
        subject="Tab, view, filters and order are kept; the cases in it are those of the moment.",
        url=address(reverse("review_save"), looked.query()),
        button="Save it",
        done="The view is saved",
        back=url_at(looked),
    )

    def do() -> None:
        given = form.cleaned_data
        save_view(request.user, given["name"], urlencode(looked.query()), given["queue"])

    return work(request, page, form, do)


@login_required
@require_safe
def review_saved(request: SignedIn) -> HttpResponse:
    context = {"rows": saved_rows(request.user), "now": database_now()}
    return render(request, "reconciliation/saved_views.html", context)


@login_required
@require_POST
def review_unsave(request: SignedIn, view: UUID) -> HttpResponse:
    found = saved_for(request.user).filter(pk=view).select_related("queue").first()
    if found is None:
        raise Http404
    remove_view(found, request.user)
    return SeeOther(reverse("review_saved"))
