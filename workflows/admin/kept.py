"""What the admin never deletes, and says why: history hangs on it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from workflows.admin.offering import Offering

MOST = 1000  # rows of one kind that are counted: it is told that there are many, not how many


@dataclass(frozen=True, slots=True)
class Dependent:
    """Rows of one kind that would have gone along, or stood in the way."""

    noun: str
    number: int
    or_more: bool


class Kept(Offering):
    """Rows stay. Whoever would delete one is told what would have gone with it."""

    actions = None
    show_facets = admin.ShowFacets.NEVER  # a count of the whole table for each choice
    instead = ""  # what to do in its place, as a sentence

    def has_delete_permission(self, _request: HttpRequest, _obj: Model | None = None) -> bool:
        return False

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """403, to every method, with what hangs on the row."""
        found = self.get_object(request, object_id)
        if found is None or not self.has_view_permission(request, found):
            raise Http404
        context = self.admin_site.each_context(request) | {
            "title": f"{found} is not deleted",
            "opts": self.opts,
            "object": found,
            "dependents": dependents_of(found),
            "instead": self.instead,
        }
        context |= extra_context or {}
        return render(request, "admin/kept.html", context, status=HTTPStatus.FORBIDDEN)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The record knows what happened by whatever way; the admin's own log only by this one."""
        found = self.get_object(request, object_id)
        if found is None or not self.has_view_permission(request, found):
            raise Http404
        if not (name := self.recorded_as(found)):
            answer: HttpResponse = super().history_view(request, object_id, extra_context)
            return answer
        return redirect(reverse("audit", query={"object": name}))

    def recorded_as(self, _row: Any) -> str:
        """What the audit record calls the row; empty where it has no entries of its own."""
        return ""


def dependents_of(row: Model) -> list[Dependent]:
    """What refers to `row`, as far as it is counted; one query for each kind."""
    found = []
    for relation in row._meta.related_objects:
        if relation.related_model._meta.auto_created:
            continue
        rows = relation.related_model._base_manager.filter(**{relation.field.name: row})
        number = len(rows.values_list("pk")[: MOST + 1])
        if number:
            noun = noun_of(relation.related_model, number)
            found.append(Dependent(noun, min(number, MOST), number > MOST))
    return sorted(found, key=lambda each: each.noun)


def noun_of(model: type[Model], number: int) -> str:
    """What so many rows of `model` are called; Django knows but one way to make a plural."""
    one, many = str(model._meta.verbose_name), str(model._meta.verbose_name_plural)
    if number == 1:
        return one
    return f"{one[:-1]}ies" if one.endswith("y") and many == f"{one}s" else many
