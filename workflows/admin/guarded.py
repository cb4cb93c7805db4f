"""What is set up here: never deleted, with rights per object, and on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from guardian.admin import GuardedModelAdmin

from workflows.services import audit

if TYPE_CHECKING:
    GuardedBase = admin.ModelAdmin[Any]
else:
    GuardedBase = GuardedModelAdmin


def signed_in(request: HttpRequest) -> User:
    assert isinstance(request.user, User), "the admin is for those who are signed in"
    return request.user


def actor(request: HttpRequest) -> str:
    return audit.actor_of(signed_in(request))


class Guarded(GuardedBase):
    """Who may do what with it is set under "Object permissions"; a change of that is on record."""

    actions = None
    kind = ""  # as the record calls it

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False

    @transaction.atomic
    def obj_perms_manage_user_view(
        self, request: HttpRequest, object_pk: str, user_id: str
    ) -> HttpResponse:
        parent: Any = super()
        answer: HttpResponse = parent.obj_perms_manage_user_view(request, object_pk, user_id)
        self.note_rights(request, object_pk, f"user:{user_id}")
        return answer

    @transaction.atomic
    def obj_perms_manage_group_view(
        self, request: HttpRequest, object_pk: str, group_id: str
    ) -> HttpResponse:
        parent: Any = super()
        answer: HttpResponse = parent.obj_perms_manage_group_view(request, object_pk, group_id)
        self.note_rights(request, object_pk, f"group:{group_id}")
        return answer

    def note_rights(self, request: HttpRequest, object_pk: str, whose: str) -> None:
        if request.method == "POST" and self.has_change_permission(request):
            subject: Any = self.model.objects.get(pk=object_pk)
            audit.record(actor(request), "set rights", f"{self.kind}:{subject.slug}", of=whose)
