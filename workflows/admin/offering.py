"""What forms and filters of the admin offer: of objects that rights are held on, those alone that
their reader may see. The others do not exist for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import JSONField, Model, Q, QuerySet
from django.http import HttpRequest

from workflows.admin.json_field import TypedJson
from workflows.rights import objects_with

if TYPE_CHECKING:
    AdminBase = admin.ModelAdmin[Any]
else:
    AdminBase = admin.ModelAdmin

CONFIGURE = "configure"


def has_rights(model: type[Model]) -> bool:
    return any(codename == CONFIGURE for codename, _ in model._meta.permissions)


def seen_of(request: HttpRequest, model: type[Model]) -> QuerySet[Any]:
    """The rows that somebody may see or set up."""
    rights = [
        f"{model._meta.app_label}.{right}"
        for right in (f"view_{model._meta.model_name}", CONFIGURE)
    ]
    rows: QuerySet[Any] = model._base_manager.all()
    return objects_with(request.user, rights, rows)  # type: ignore[arg-type]  # staff are signed in


def named(offered: Any) -> str:
    """What an address calls a filter: a field, a field with how it is shown, or one of its own."""
    if isinstance(offered, tuple):
        return str(offered[0])
    return offered if isinstance(offered, str) else str(offered.parameter_name)


class Offering(AdminBase):
    formfield_overrides: ClassVar[Any] = {JSONField: {"form_class": TypedJson}}

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Rows are narrowed down by what is offered alone. Django lets an address ask for any
        column of a row, with any comparison: so what is shown to nobody would be guessed, letter
        by letter, from the number of rows. NUL is in no value."""
        name = lookup.partition("__")[0]
        offered = name in map(named, self.get_list_filter(request))
        return offered and "\0" not in value and super().lookup_allowed(lookup, value, request)

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Relations that cannot be followed back are called "+", and are no fields: Django would
        take an address that names one for a fault of ours."""
        return to_field.isidentifier() and super().to_field_allowed(request, to_field)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **options: Any) -> Any:
        """What stands there already is offered too: saving the rest of a form keeps it."""
        model = db_field.related_model
        if has_rights(model):
            found = request.resolver_match
            here = self.model._base_manager.filter(
                pk=found.kwargs.get("object_id") if found else None
            )
            among = options.get("queryset", model._default_manager.all())
            present = Q(pk__in=here.values(db_field.attname))
            options["queryset"] = among.filter(present | Q(pk__in=seen_of(request, model)))
        return super().formfield_for_foreignkey(db_field, request, **options)


class SeenFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> list[Any]:
        seen = seen_of(request, field.related_model)
        choices: list[Any] = field.get_choices(
            include_blank=False,
            ordering=self.field_admin_ordering(field, request, model_admin),
            limit_choices_to={"pk__in": seen.values("pk")},
        )
        return choices
