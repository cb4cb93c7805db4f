"""Search over all that a person may see."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from reconciliation.selectors.search import only_hit, search_page
from workflows.services.clock import database_now
from workflows.views.requests import SignedIn


@login_required
@require_safe
def search(request: SignedIn) -> HttpResponse:
    """What fits; a whole ID from the search box leads straight to what it names."""
    typed = request.GET.get("q", "")
    if request.GET.get("go") and (url := only_hit(request.user, typed)):
        return redirect(url)
    kind, after = request.GET.get("kind", ""), request.GET.get("after", "")
    page = search_page(request.user, typed, kind=kind, after=after)
    return render(request, "reconciliation/search.html", {"page": page, "now": database_now()})
