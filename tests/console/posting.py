"""How tests use the console: as a browser with htmx or without, through the forms that it shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client
from django.urls import reverse

from reconciliation.decision_pages import DecisionForm
from reconciliation.models import Operation
from tests.factories import NOTE

HTMX = {"HX-Request": "true"}
# As a browser posts it; one moment for all that is done in a test.
IN_A_MONTH = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%dT%H:%M}"


def url_of(operation: Operation) -> str:
    return reverse("operation", args=[operation.pk])


def fragment(client: Client, url: str, target: str) -> Any:
    """GET as htmx does for the element with the ID `target`."""
    return client.get(url, headers=HTMX | {"HX-Target": target})


def form_at(client: Client, url: str) -> DecisionForm:
    """The decision form as the page at `url` shows it."""
    form = client.get(url).context["page"].decide
    assert form is not None, "the page shows no form"
    shown: DecisionForm = form
    return shown


def filled(form: DecisionForm, kind: str, **fields: Any) -> dict[str, Any]:
    """What a browser posts of `form` when everything that `kind` needs is filled in."""
    given = {
        "kind": kind,
        "note": NOTE,
        "code": form.code,
        "version": form.version,
        "token": form.token,
        "basis": form.basis,
    }
    needs = {
        "applied": {"resource": "c_1"},
        "keep_holding": {"until": IN_A_MONTH},
    }
    return given | needs.get(kind, {}) | fields


def post(
    client: Client, form: DecisionForm, kind: str, *, htmx: bool = False, **fields: Any
) -> Any:
    """Post `form` filled in; with `htmx` as htmx does."""
    return client.post(form.url, filled(form, kind, **fields), headers=HTMX if htmx else {})
