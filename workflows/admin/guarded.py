"""What is set up here: never deleted, with rights per object, and on record."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from workflows.admin.kept import Kept
from workflows.rights import holds, holds_on_any, objects_with
from workflows.services import audit


def signed_in(request: HttpRequest) -> User:
    assert isinstance(request.user, User), "the admin is for those who are signed in"
    return request.user


def actor(request: HttpRequest) -> str:
    return audit.actor_of(signed_in(request))


class Guarded(Kept):
    """Set up by administrators, by staff who may change all of its kind, and by staff who hold
    the right `configure` on the very object. Who may do what with one is a page of its own."""

    kind = ""  # as addresses and the record call it
    change_form_template = "admin/guarded_form.html"

    @property
    def configure(self) -> str:
        return f"{self.opts.app_label}.configure"

    def configured(self, request: HttpRequest) -> QuerySet[Any]:
        return objects_with(signed_in(request), self.configure, self.model._base_manager.all())

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        if super().has_change_permission(request, obj):
            return True
        if obj is None:
            return holds_on_any(signed_in(request), self.configure, self.model)
        return holds(signed_in(request), self.configure, obj)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return super().has_view_permission(request, obj) or self.has_change_permission(request, obj)

    def has_module_permission(self, request: HttpRequest) -> bool:
        return super().has_module_permission(request) or self.has_change_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        if super().has_view_permission(request):
            return rows
        return rows.filter(pk__in=self.configured(request).values("pk"))

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        known = context | {"kind": self.kind}
        answer: HttpResponse = super().render_change_form(request, known, *args, **options)
        return answer

    def recorded_as(self, row: Any) -> str:
        return f"{self.kind}:{row.slug}"
