"""The pages of rights, in the admin: for administrators and whoever may set an object up."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from romulus_site.rights.change import (
    Holder,
    RightsChangedMeanwhile,
    RightsRefused,
    holder_name,
    set_rights,
)
from romulus_site.rights.kinds import KINDS, Kind
from romulus_site.rights.pages import ChangePage, Choice
from romulus_site.rights.what import known, what_can
from romulus_site.rights.who import GIVEN, held_by, who_can
from workflows.rights import holds
from workflows.views.requests import SeeOther, SignedIn

View = Callable[..., HttpResponse]
WHOSE: dict[str, type[Any]] = {"person": User, "group": Group}


def staff(view: View) -> View:
    """As the admin's own pages: for staff alone, others are led to sign in."""
    guarded: View = admin.site.admin_view(view)
    return guarded


def known_or_404(request: SignedIn, kind: str, pk: UUID) -> tuple[Kind, Any]:
    found = known(kind, pk, request.user)
    if found is None:
        raise Http404
    return found


def named(request: HttpRequest, field: str) -> str:
    """What an address says; NUL is in no name, nor may the database be asked for it."""
    return request.GET.get(field, "").replace("\0", "").strip()


@staff
@require_safe
def rights(request: SignedIn, kind: str, pk: UUID) -> HttpResponse:
    """Who can do what with one object."""
    found, subject = known_or_404(request, kind, pk)
    if who := named(request, "who"):
        return to_holder(request, found, subject, who)
    page = who_can(
        found,
        subject,
        people=named(request, "people"),
        groups=named(request, "groups"),
    )
    return shown(request, "rights/who.html", page, f"Who can do what: {subject}")


def to_holder(request: SignedIn, kind: Kind, subject: Any, who: str) -> HttpResponse:
    """The way to whoever was named; the page again, with a sentence, where nobody is called so."""
    user = User.objects.filter(username=who).first()
    group = Group.objects.filter(name=who).first() if user is None else None
    holder = user or group
    if holder is None:
        page = who_can(kind, subject)
        wrong = f"Neither a person nor a group is called {who}. Give the username, or the group's."
        title = f"Who can do what: {subject}"
        return shown(request, "rights/who.html", page, title, wrong=wrong, who=who)
    whose = "person" if user else "group"
    return redirect("rights_change", kind.slug, subject.pk, whose, holder.pk)


@staff
@require_http_methods(["GET", "HEAD", "POST"])
def rights_change(request: SignedIn, kind: str, pk: UUID, whose: str, holder: int) -> HttpResponse:
    """What one person or group was given on one object; POST changes it."""
    found, subject = known_or_404(request, kind, pk)
    if whose not in WHOSE:
        raise Http404
    who: Holder = get_object_or_404(WHOSE[whose], pk=holder)
    if request.method != "POST":
        return asked(request, found, subject, who)
    wanted = set(request.POST.getlist("right"))
    seen = set(request.POST.get("seen", "").split())
    try:
        set_rights(subject, who, wanted, seen=seen, by=request.user)
    except RightsChangedMeanwhile as why:
        return asked(request, found, subject, who, why=why)
    except RightsRefused as why:
        return asked(request, found, subject, who, wanted, why)
    return SeeOther(reverse("rights", args=[found.slug, subject.pk]))


def asked(
    request: SignedIn,
    kind: Kind,
    subject: Any,
    who: Holder,
    wanted: set[str] | None = None,
    why: RightsRefused | None = None,
) -> HttpResponse:
    """The form, with the rights as they stand ticked, or as somebody `wanted` them in vain."""
    means = held_by(kind, subject, who)
    present = {codename for codename, how in means.items() if GIVEN in how}
    page = ChangePage(
        kind=kind,
        subject=subject,
        name=holder_name(who).partition(" ")[2],
        is_group=isinstance(who, Group),
        choices=[
            Choice(
                right=right,
                held=right.codename in (present if wanted is None else wanted),
                means=[each for each in means[right.codename] if each != GIVEN],
                not_yours=not holds(request.user, kind.full(right.codename), subject),
            )
            for right in kind.rights
        ],
        seen=" ".join(sorted(present)),
        back=reverse("rights", args=[kind.slug, subject.pk]),
        refused=str(why) if why else "",
    )
    status = HTTPStatus.OK
    if why is not None:
        overtaken = isinstance(why, RightsChangedMeanwhile)
        status = HTTPStatus.CONFLICT if overtaken else HTTPStatus.UNPROCESSABLE_ENTITY
    return shown(request, "rights/change.html", page, f"Rights of {page.name}", status=status)


@staff
@require_safe
def rights_of_person(request: SignedIn, pk: int) -> HttpResponse:
    return of_holder(request, get_object_or_404(User, pk=pk))


@staff
@require_safe
def rights_of_group(request: SignedIn, pk: int) -> HttpResponse:
    return of_holder(request, get_object_or_404(Group, pk=pk))


def of_holder(request: SignedIn, holder: Holder) -> HttpResponse:
    """What one person or group can do, with the objects whose rights the reader may know of."""
    after = {slug: named(request, slug) for slug in KINDS}
    page = what_can(holder, request.user, after)
    return shown(request, "rights/what.html", page, f"What {page.name} can do")


def shown(
    request: HttpRequest,
    template: str,
    page: Any,
    title: str,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    **more: Any,
) -> HttpResponse:
    context = {"page": page, "title": title}
    return render(request, template, context | more, status=status)
