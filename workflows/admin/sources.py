"""Sources of events in the admin: every save goes through `services.sources`, no secret is shown.

Beside the form: how the source is doing, its secrets by name, and a page that judges a pasted
request without storing anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from workflows import access
from workflows.admin.forms import EndForm, SecretForm, SourceForm, TrialForm
from workflows.admin.guarded import Guarded, actor, signed_in
from workflows.core.errors import InvalidSource
from workflows.core.json_text import NotJson, parse
from workflows.core.sns import HOST
from workflows.core.sources import LABELS, Scheme
from workflows.models import Event, EventSource, SourceSecret
from workflows.selectors.source_health import DAYS, Refused, source_health
from workflows.services.clock import database_now
from workflows.services.sources import add_secret, end_secret, save_source
from workflows.services.trial import try_request

if TYPE_CHECKING:
    SecretInlineBase = admin.TabularInline[SourceSecret, EventSource]
else:
    SecretInlineBase = admin.TabularInline

NOT_YET = "Save the source first."


class SecretInline(SecretInlineBase):
    """The secrets by name; what they are is never read again."""

    model = SourceSecret
    fields = readonly_fields = ("label", "valid_from", "valid_until", "ending")
    extra = 0
    can_delete = False
    verbose_name_plural = "secrets"

    def has_add_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return False

    def has_view_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        return True

    @admin.display(description="")
    def ending(self, secret: SourceSecret) -> str:
        if secret.valid_until is not None and secret.valid_until <= database_now():
            return "ended"
        url = reverse("admin:workflows_eventsource_end_secret", args=[secret.source_id, secret.pk])
        return format_html('<a href="{}">Let it end…</a>', url)


@admin.register(EventSource)
class SourceAdmin(Guarded):
    form = SourceForm
    kind = "source"
    list_display = ("name", "slug", "tenant", "scheme", "enabled")
    list_filter = ("enabled", "scheme")
    list_select_related = ("tenant",)
    search_fields = ("name", "slug")
    readonly_fields = ("address", "health", "doing")
    fieldsets = (
        (None, {"fields": ("name", "slug", "tenant", "enabled", "address", "health", "doing")}),
        ("Who it is", {"fields": ("scheme", "settings", "tolerance")}),
        ("What it says", {"fields": ("id_path", "type_path", "correlation_path", "schemas")}),
        (
            "What is taken",
            {"fields": ("max_bytes", "per_minute", "content_types", "encodings", "retain")},
        ),
    )

    def get_inlines(self, _request: HttpRequest, obj: EventSource | None) -> list[Any]:
        """One that is only being added has no secrets, whatever is posted of some."""
        return [] if obj is None else [SecretInline]

    def get_readonly_fields(
        self, _request: HttpRequest, obj: EventSource | None = None
    ) -> tuple[str, ...]:
        return self.readonly_fields if obj is None else ("tenant", *self.readonly_fields)

    def save_model(
        self,
        request: HttpRequest,
        obj: EventSource,
        form: ModelForm[EventSource],
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        save_source(obj, by=actor(request), changed=form.changed_data)

    # --- what is shown ------------------------------------------------------------------------

    @admin.display(description="Address")
    def address(self, source: EventSource) -> str:
        return NOT_YET if source._state.adding else reverse("hook", args=[source.slug])

    @admin.display(description="What you can do")
    def doing(self, source: EventSource) -> str:
        if source._state.adding:
            return NOT_YET
        links = [(reverse(f"{NAMES}_try", args=[source.pk]), "Try a request…")]
        if source.scheme != Scheme.AWS_SNS:
            links.insert(0, (reverse(f"{NAMES}_add_secret", args=[source.pk]), "Add a secret…"))
        return format_html_join(" · ", '<a href="{}">{}</a>', links)

    @admin.display(description="Health")
    def health(self, source: EventSource) -> str:
        """What came last, what came twice, and what was refused and why."""
        if source._state.adding:
            return NOT_YET
        found = source_health(source)
        last = f"{found.last_accepted:%Y-%m-%d %H:%M:%S} UTC" if found.last_accepted else "never"
        more = " or more" if found.or_more else ""
        lines: list[str | SafeString] = [
            f"Last accepted: {last}. In the last {DAYS} days {found.accepted}{more} accepted, "
            f"{found.rejected} rejected for their shape, {found.duplicates} delivered again.",
            *map(refused_line, found.refused),
        ]
        if found.confirmation is not None:
            lines.append(confirmation_line(found.confirmation))
        return format_html_join(SafeString("<br>"), "{}", ((line,) for line in lines))

    # --- what is done -------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("<uuid:source>/secrets/", view(self.add_secret_view), name=f"{NAME}_add_secret"),
            path(
                "<uuid:source>/secrets/<uuid:secret>/end/",
                view(self.end_secret_view),
                name=f"{NAME}_end_secret",
            ),
            path("<uuid:source>/try/", view(self.try_view), name=f"{NAME}_try"),
        ]
        return [*own, *super().get_urls()]

    def changeable(self, request: HttpRequest, source: UUID) -> EventSource:
        found = get_object_or_404(EventSource, pk=source)
        if not self.has_view_permission(request, found):
            raise Http404
        if not self.has_change_permission(request, found):
            raise PermissionDenied
        return found

    def add_secret_view(self, request: HttpRequest, source: UUID) -> HttpResponse:
        """Add a secret; one that was made here is in this answer and in no other."""
        found = self.changeable(request, source)
        form = SecretForm(found, request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                added = add_secret(found, by=actor(request), **form.cleaned_data)
            except InvalidSource as error:
                told(form, error)
            else:
                if added.made is None:
                    messages.success(request, f"The secret {added.secret.label!r} is added.")
                    return redirect(self.page_of(found))
                return self.page(
                    request, found, "admin/made_secret.html", "A new secret", made=added.made
                )
        return self.page(request, found, "admin/secret.html", "Add a secret", form=form)

    def end_secret_view(self, request: HttpRequest, source: UUID, secret: UUID) -> HttpResponse:
        found = self.changeable(request, source)
        row = get_object_or_404(SourceSecret, pk=secret, source=found)
        form = EndForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                ended = end_secret(row, form.cleaned_data["at"], by=actor(request))
            except InvalidSource as error:
                told(form, error)
            else:
                done = "ends as you said" if ended else "had ended already"
                messages.success(request, f"The secret {row.label!r} {done}.")
                return redirect(self.page_of(found))
        title = f"Let the secret {row.label!r} end"
        return self.page(request, found, "admin/secret.html", title, form=form)

    def try_view(self, request: HttpRequest, source: UUID) -> HttpResponse:
        """Judge a pasted request; nothing is stored, counted or sent."""
        found = get_object_or_404(EventSource.objects.select_related("tenant"), pk=source)
        if not self.has_view_permission(request, found):
            raise Http404
        form = TrialForm(request.POST or None, request.FILES or None)
        trial = None
        if request.method == "POST" and form.is_valid():
            visible = access.visible_tenants(signed_in(request))
            body = form.request_body()
            trial = try_request(found, form.cleaned_data["headers"], body, visible)
        return self.page(
            request, found, "admin/try_source.html", "Try a request", form=form, trial=trial
        )

    def page(
        self,
        request: HttpRequest,
        source: EventSource,
        template: str,
        title: str,
        **context: Any,
    ) -> HttpResponse:
        known = {
            "title": title,
            "source": source,
            "back": self.page_of(source),
            "scheme": LABELS[Scheme(source.scheme)],
        }
        shared = self.admin_site.each_context(request)
        answer = TemplateResponse(request, template, shared | known | context)
        add_never_cache_headers(answer)
        return answer

    def page_of(self, source: EventSource) -> str:
        return reverse(f"{NAMES}_change", args=[source.pk])


NAME = "workflows_eventsource"
NAMES = f"admin:{NAME}"


def told(form: forms.Form, error: InvalidSource) -> None:
    for field, problems in error.problems.items():
        for problem in problems:
            form.add_error(field if field in form.fields else None, problem)


def refused_line(refused: Refused) -> str:
    return (
        f"{refused.number} refused ({refused.reason.replace('_', ' ')}), last "
        f"{refused.last_at:%Y-%m-%d %H:%M:%S} UTC: {refused.note}"
    )


def confirmation_line(event: Event) -> str | SafeString:
    """Where an administrator may confirm a subscription at AWS; nothing is followed by itself."""
    address = subscribe_address(bytes(event.body or b""))
    if not address:
        return "AWS SNS asked to confirm a subscription; the address that it gave is none of AWS."
    return format_html(
        "AWS SNS asks whether this source wants a subscription. If it does: "
        '<a href="{}" rel="noreferrer noopener" target="_blank">confirm it at AWS</a>.',
        address,
    )


def subscribe_address(body: bytes) -> str:
    try:
        address = parse(body).get("SubscribeURL", "")
    except (NotJson, AttributeError):
        return ""
    host = str(address).removeprefix("https://").partition("/")[0]
    return str(address) if str(address).startswith("https://") and HOST.fullmatch(host) else ""
