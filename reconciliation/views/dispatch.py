"""What nothing is sent of, and the switches that say so."""

from __future__ import annotations

from http import HTTPStatus

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from reconciliation import access
from reconciliation.core.errors import InvalidDecision
from reconciliation.core.facts import Dispatch
from reconciliation.dispatch_form import SwitchForm
from reconciliation.models import Provider
from reconciliation.selectors.dispatch_page import change_page, dispatch_page, switchable
from reconciliation.services.dispatch import Scope, may_switch, set_dispatch
from workflows.access import visible_tenants
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn


@login_required
@require_safe
def dispatch(request: SignedIn) -> HttpResponse:
    """The switches that concern what this person may see."""
    context = {"page": dispatch_page(request.user), "now": database_now()}
    return render(request, "reconciliation/dispatch.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def dispatch_change(request: SignedIn) -> HttpResponse:
    """GET asks and changes nothing; POST throws the switch, or says why it was not thrown."""
    if not switchable(request.user):
        raise PermissionDenied("You may look at what is stopped, and others stop it.")
    form = form_for(request)
    if request.method != "POST":
        form.is_valid()
        return shown(request, form)
    if form.is_valid() and thrown(request, form):
        return SeeOther(reverse("dispatch"))
    return shown(request, form, HTTPStatus.UNPROCESSABLE_ENTITY)


def form_for(request: SignedIn) -> SwitchForm:
    data = request.POST if request.method == "POST" else request.GET
    user = request.user
    everything = may_switch(user, Scope())
    providers = Provider.objects.all() if everything else access.switchable_providers(user)
    tenants = visible_tenants(user).order_by("name")
    form = SwitchForm(data, request.profile.zone, providers.order_by("name"), tenants)
    if not everything:
        form.fields["provider"].required = True
    return form


def thrown(request: SignedIn, form: SwitchForm) -> bool:
    cleaned = form.cleaned_data
    try:
        set_dispatch(
            form.scope(),
            Dispatch(cleaned["state"]),
            request.user,
            cleaned["reason"],
            until=cleaned["until"],
            seen=cleaned["seen"],
        )
    except InvalidDecision as error:
        form.add_error(error.field, str(error))
        return False
    return True


def shown(request: SignedIn, form: SwitchForm, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    asked, now = request.method == "POST", database_now()
    errors = {name: texts[0] for name, texts in form.errors.items()} if asked else {}
    context = {
        "page": change_page(form.scope(), request.user),
        "form": form,
        "errors": errors,
        "zone": form.zone_said(now),
        "now": now,
    }
    return render(request, "reconciliation/dispatch_change.html", context, status=status)
