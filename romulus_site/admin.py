"""People and groups in the admin: for administrators alone, on record, and nobody is deleted.

What allauth would show there is not: secrets of second factors, sessions, tokens.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress, EmailConfirmation
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from romulus_site.accounts.people import (
    delete_group,
    leaves_no_administrator,
    note_password,
    note_relations,
    relations_of,
    remove_factors,
    save_account,
)
from workflows.admin import ReadOnly
from workflows.admin.guarded import signed_in
from workflows.admin.kept import Kept

for model in (
    *(EmailAddress, EmailConfirmation, Authenticator, UserSession),
    *(SocialAccount, SocialApp, SocialToken),
):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
admin.site.unregister(User)
admin.site.unregister(Group)

if TYPE_CHECKING:
    PersonFormBase = UserChangeForm[User]
    PersonBase = UserAdmin[User]
else:
    PersonFormBase, PersonBase = UserChangeForm, UserAdmin

# The first is held on one tenant alone; the second is the administrators'.
HELD_OTHERWISE = ("view_payloads", "view_auditentry")
LAST = "This is the last active administrator: make another one first."
MAILBOX = (
    "Where they are told of cases, and where the link for a forgotten password goes. Empty: no "
    "such link, and they hear of cases by channels of their own alone."
)


def of_all() -> QuerySet[Permission]:
    """What may be held on all of a kind: seeing it, and for what is set up here adding and
    changing it. The rest is held on one object, on its page of rights."""
    registered = admin.site._registry
    shown = {model._meta.model_name for model in registered}
    read = {
        model._meta.model_name for model, each in registered.items() if isinstance(each, ReadOnly)
    }
    ours = Permission.objects.filter(content_type__app_label__in=["workflows", "reconciliation"])
    seeing = Q(codename__startswith="view_", content_type__model__in=shown)
    setting_up = Q(content_type__model__in=shown - read) & (
        Q(codename__startswith="add_") | Q(codename__startswith="change_")
    )
    found = ours.filter(seeing | setting_up | Q(codename="add_contractversion"))
    return found.exclude(codename__in=HELD_OTHERWISE).select_related("content_type")


class ForAdministrators(Kept):
    """Whoever may change accounts and groups could give themselves anything."""

    def has_add_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return bool(request.user.is_active and request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return self.has_add_permission(request)

    def has_view_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return self.has_add_permission(request)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:  # noqa: ARG002
        save_account(obj, by=signed_in(request), changed=form.changed_data)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        before = relations_of(form.instance)
        super().save_related(request, form, formsets, change)
        note_relations(form.instance, before, by=signed_in(request))

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest | None = None, **options: Any
    ) -> Any:
        if db_field.name in ("permissions", "user_permissions"):
            options["queryset"] = of_all()
        return super().formfield_for_manytomany(db_field, request, **options)  # type: ignore[arg-type]


class PersonForm(PersonFormBase):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.fields["email"].help_text = MAILBOX

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        # Without "staff" nobody comes into the admin, whatever else they are.
        stays = all(cleaned.get(name) for name in ("is_active", "is_superuser", "is_staff"))
        if not stays and leaves_no_administrator(self.instance):
            raise forms.ValidationError(LAST)
        return cleaned


@admin.register(User)
class PersonAdmin(ForAdministrators, PersonBase):
    form = PersonForm
    change_form_template = "admin/person_form.html"
    list_display = ("username", "first_name", "last_name", "email", "is_active", "is_staff")
    instead = (
        "Close the account instead: take the tick off Active. It can do nothing more, at once, and "
        "the record still tells who it was."
    )

    def recorded_as(self, row: Any) -> str:
        return f"user:{row.pk}"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """A username stays: policies, proposals and the record name people by it, and somebody
        with another one could approve what they proposed."""
        fixed = ("username",) if obj else ()
        return (*super().get_readonly_fields(request, obj), *fixed)

    @transaction.atomic
    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        answer: HttpResponse = super().user_change_password(request, id, form_url)
        if request.method == "POST" and answer.status_code == HTTPStatus.FOUND:
            note_password(get_object_or_404(User, pk=id), by=signed_in(request))
        return answer

    def get_urls(self) -> list[URLPattern]:
        own = path(
            "<int:pk>/factors/", self.admin_site.admin_view(self.factors_view), name="auth_factors"
        )
        return [own, *super().get_urls()]

    def factors_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask, then remove the second factors of somebody who has lost them."""
        person = get_object_or_404(User, pk=pk)
        if not self.has_change_permission(request, person):
            raise Http404
        back = reverse("admin:auth_user_change", args=[person.pk])
        if request.method == "POST":
            number = remove_factors(person, by=signed_in(request))
            said = "are removed" if number else "were none"
            messages.success(request, f"The second factors of {person} {said}.")
            return redirect(back)
        context = self.admin_site.each_context(request) | {
            "title": f"Second factors of {person}",
            "person": person,
            "factors": Authenticator.objects.filter(user=person).order_by("type", "pk"),
            "back": back,
        }
        return TemplateResponse(request, "admin/factors.html", context)


@admin.register(Group)
class TeamAdmin(ForAdministrators, GroupAdmin):
    change_form_template = "admin/team_form.html"

    def recorded_as(self, row: Any) -> str:
        return f"group:{row.pk}"

    def has_delete_permission(self, request: HttpRequest, _obj: Model | None = None) -> bool:
        return self.has_add_permission(request)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """No history hangs on a group: it goes, after what goes with it was read."""
        answer: HttpResponse = admin.ModelAdmin.delete_view(self, request, object_id, extra_context)
        return answer

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        delete_group(obj, by=signed_in(request))
