"""How a small thing that is done to a case is asked for, done, refused, or found overtaken.

The same for every form: a dialog to htmx, a page of its own without. What was done brings the
reader back to where they were; with htmx the page they are on is read anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from reconciliation.core.errors import CaseMoved, InvalidRequest
from reconciliation.queue_pages import WorkForm
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn


def work(
    request: SignedIn, page: WorkForm, form: forms.Form, do: Callable[[], object]
) -> HttpResponse:
    """Show `form`; or, where it was posted, do what it asks, or say why it was not done."""
    if request.method != "POST":
        return shown(request, page, form)
    if not form.is_valid():
        errors = {name: str(texts[0]) for name, texts in form.errors.items()}
        return refused(request, page, form, errors)
    try:
        do()
    except InvalidRequest as error:
        return refused(request, page, form, {error.field: str(error)})
    except CaseMoved as error:
        return overtaken(request, replace(page, overtaken=str(error)), form)
    return done(request, page)


def act(request: SignedIn, page: WorkForm, do: Callable[[], object]) -> HttpResponse:
    """Do what a button asks for that needs no form."""
    return work(request, page, forms.Form(request.POST), do)


def shown(
    request: SignedIn, page: WorkForm, form: forms.Form, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    template = "reconciliation/_work.html" if request.htmx else "reconciliation/work.html"
    context = {"page": page, "form": form, "now": database_now()}
    return render(request, template, context, status=status)


def refused(
    request: SignedIn, page: WorkForm, form: forms.Form, errors: dict[str, str]
) -> HttpResponse:
    """422: nothing was changed; what was typed stays, with what to mend."""
    page = replace(
        page, errors={f"id_{name}" if name else "": said for name, said in errors.items()}
    )
    return shown(request, page, form, HTTPStatus.UNPROCESSABLE_ENTITY)


def overtaken(request: SignedIn, page: WorkForm, form: forms.Form) -> HttpResponse:
    """409: somebody was first."""
    return shown(request, page, form, HTTPStatus.CONFLICT)


def done(request: SignedIn, page: WorkForm) -> HttpResponse:
    messages.success(request, page.done)
    if not request.htmx:
        return SeeOther(page.back)
    return HttpResponse(status=HTTPStatus.NO_CONTENT, headers={"HX-Refresh": "true"})


def back_from(request: SignedIn, otherwise: str) -> str:
    """Where the reader came from, within this console; a form carries it on."""
    given = request.POST.get("back") or request.META.get("HTTP_REFERER", "")
    if not url_has_allowed_host_and_scheme(given, allowed_hosts={request.get_host()}):
        return otherwise
    parts = urlsplit(given)
    own = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return own if parts.path.startswith("/") and parts.path != request.path else otherwise
