"""Channels and the rota in the admin: every save goes through a service, and is on record."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods

from reconciliation import access
from reconciliation.admin.notification_forms import ChannelForm, ShiftForm
from reconciliation.core.channels import MessageState
from reconciliation.core.rota import changes_at
from reconciliation.models import Channel, ReviewQueue, Shift
from reconciliation.selectors.letters import write
from reconciliation.selectors.words import clock, name_of
from reconciliation.services.channels import Typed, save_channel
from reconciliation.services.delivering import send_test
from reconciliation.services.rota import delete_shift, on_call_at, rota_of, save_shift
from workflows.admin.guarded import signed_in
from workflows.admin.kept import Kept
from workflows.admin.offering import Offering, SeenFilter
from workflows.core.words import listed
from workflows.services.clock import database_now

SET_UP_FIRST = "after it is saved"


def said_on_call(queue: ReviewQueue) -> str:
    """Who is on call for it now, and until when."""
    if queue._state.adding:
        return SET_UP_FIRST
    now = database_now()
    shifts = queue.shifts.select_related("person")
    people = listed([told_or_not(person, queue) for person in on_call_at(shifts, now)])
    until = changes_at(rota_of(shifts), now)
    ending = f", until {clock(until)}" if until else ""
    return f"{people or nobody_of(queue)}{ending}"


def nobody_of(queue: ReviewQueue) -> str:
    if queue.owners.exists():
        return "nobody: its owners answer for it"
    return "nobody, and it has no owner: for this queue alone nothing is sent, and nobody is told"


def told_or_not(person: User, queue: ReviewQueue) -> str:
    """Rights may have gone since the shift was saved: whoever lacks them hears nothing."""
    may = access.may_answer_for(person, queue)
    return name_of(person) if may else f"{name_of(person)} (passed over: lacks the rights)"


# --- channels ---------------------------------------------------------------------------------


@admin.register(Channel)
class ChannelAdmin(Kept):
    """Never deleted: what went through it is a history. It may be turned off."""

    form = ChannelForm
    instead = "Turn it off instead: nothing more goes through it."
    list_display = ("__str__", "address", "state", "used_at")
    list_filter = ("kind", ("queue", SeenFilter))
    list_select_related = ("queue", "person")
    readonly_fields = ("state", "test_link")
    fields = (
        *("state", "kind", "queue", "person", "target", "secret"),
        *("per_minute", "enabled", "test_link"),
    )

    def save_model(
        self,
        request: HttpRequest,
        obj: Channel,
        form: ModelForm[Channel],
        change: bool,  # noqa: ARG002 (Django's name)
    ) -> None:
        typed = Typed(form.cleaned_data["target"], form.cleaned_data["secret"])
        save_channel(obj, typed, by=signed_in(request))

    @admin.display(description="State")
    def state(self, channel: Channel) -> str:
        if channel.stopped_at is not None:
            return f"stopped {clock(channel.stopped_at)}: {channel.problem}"
        if channel.failing_since is not None:
            return f"failing since {clock(channel.failing_since)}: {channel.problem}"
        return "on" if channel.enabled else "off"

    @admin.display(description="Test")
    def test_link(self, channel: Channel) -> str:
        if channel._state.adding:
            return SET_UP_FIRST
        url = reverse("admin:reconciliation_channel_test", args=[channel.pk])
        return format_html('<a href="{}">Send a test message…</a>', url)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        # What is typed in beside the model's own fields is declared by the form itself.
        fields = {"fields": ChannelForm.Meta.fields}
        return super().get_form(request, obj, change, **(options | fields))

    def get_urls(self) -> list[URLPattern]:
        view = require_http_methods(["GET", "HEAD", "POST"])(self.test_view)
        test = path(
            "<uuid:channel>/test/",
            self.admin_site.admin_view(view),
            name="reconciliation_channel_test",
        )
        return [test, *super().get_urls()]

    def test_view(self, request: HttpRequest, channel: UUID) -> HttpResponse:
        """GET asks, POST sends; one that arrives starts a channel that had stopped."""
        found = get_object_or_404(Channel.objects.select_related("queue", "person"), pk=channel)
        if not self.has_view_permission(request, found):
            raise Http404
        if not self.has_change_permission(request, found):
            raise PermissionDenied
        back = reverse("admin:reconciliation_channel_change", args=[found.pk])
        if request.method == "POST":
            message = send_test(found, signed_in(request), write)
            if message.state == MessageState.SENT:
                messages.success(request, f"{found} took the test message.")
            else:
                messages.error(request, f"{found} did not take it. {message.problem}")
            return redirect(back)
        context = self.admin_site.each_context(request) | {
            "title": "Send a test message",
            "channel": found,
            "back": back,
        }
        return TemplateResponse(request, "admin/test_channel.html", context)


# --- the rota ---------------------------------------------------------------------------------


@admin.register(Shift)
class ShiftAdmin(Offering):
    """Who is on call for a queue, and when."""

    form = ShiftForm
    actions = None
    list_display = ("queue", "person", "when")
    list_filter = (("queue", SeenFilter),)
    list_select_related = ("queue", "person")
    fieldsets = (
        (None, {"fields": ("queue", "person")}),
        ("Of each week", {"fields": ("days", "starts", "ends", "zone")}),
        ("Or of certain dates", {"fields": ("starts_at", "ends_at")}),
    )

    def save_model(
        self,
        request: HttpRequest,
        obj: Shift,
        form: ModelForm[Shift],  # noqa: ARG002 (Django's name)
        change: bool,  # noqa: ARG002
    ) -> None:
        save_shift(obj, by=signed_in(request))

    def delete_model(self, request: HttpRequest, obj: Shift) -> None:
        delete_shift(obj, by=signed_in(request))

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        # Its `days` are no field of the model: the form itself declares them.
        fields = {"fields": ShiftForm.Meta.fields}
        return super().get_form(request, obj, change, **(options | fields))
