"""The forms of channels and of the rota: what is typed, read and checked before it is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from reconciliation.core.channels import ChannelKind
from reconciliation.core.errors import InvalidChannel
from reconciliation.models import Channel, Shift
from reconciliation.models.notification import CHANNEL_NAMES
from reconciliation.models.rota import DAY_NAMES
from reconciliation.services.channels import Typed, check_channel
from reconciliation.services.profiles import zone_names
from reconciliation.services.rota import problem_of

if TYPE_CHECKING:
    ChannelFormBase = forms.ModelForm[Channel]
    ShiftFormBase = forms.ModelForm[Shift]
else:
    ChannelFormBase = ShiftFormBase = forms.ModelForm


def zones() -> list[tuple[str, str]]:
    return [(zone, zone) for zone in zone_names()]


class ChannelForm(ChannelFormBase):
    kind = forms.ChoiceField(choices=[(kind.value, CHANNEL_NAMES[kind]) for kind in ChannelKind])
    # Not `address`: that is what people see of it, and the admin would keep there what is typed.
    target = forms.CharField(
        label="Address",
        required=False,
        max_length=2000,
        widget=forms.TextInput(attrs={"class": "vTextField", "autocomplete": "off"}),
        help_text="E-mail: the mailbox; of a person, empty for that of their account. Webhook and "
        "Slack: where it is posted to, such as https://hooks.example.com/…, kept sealed and never "
        "shown whole; empty keeps the one there is. A private address has to be named in "
        "ROMULUS_ALLOWED_ADDRESSES for notifications.",
    )
    secret = forms.CharField(
        required=False,
        max_length=200,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Of a webhook, as its receiver has it: whsec_… (Standard Webhooks). Kept sealed "
        "and never shown. Empty keeps the one there is.",
    )

    class Meta:
        model = Channel
        fields = ("kind", "queue", "person", "per_minute", "enabled")
        help_texts = {
            "queue": "Its people are told by it of every case that comes, ends or gets late: name, "
            "amount and what is not known. Whoever reads it there reads that.",
            "person": "They hear only of what they may see.",
            "per_minute": "Messages a minute at most; what is more becomes a summary.",
            "enabled": "Off: nothing goes out by it, and nothing new is kept for it.",
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.kind == ChannelKind.EMAIL:
            self.fields["target"].initial = self.instance.address

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        for name in set(cleaned) - {"target", "secret"}:
            setattr(self.instance, name, cleaned[name])
        try:
            check_channel(self.instance, Typed(cleaned["target"], cleaned["secret"]))
        except InvalidChannel as error:
            self.add_error("target" if error.field == "address" else error.field, str(error))
        return cleaned


class ShiftForm(ShiftFormBase):
    days = forms.MultipleChoiceField(
        label="Weekdays",
        required=False,
        choices=[(str(number), name) for number, name in enumerate(DAY_NAMES)],
        widget=forms.CheckboxSelectMultiple,
        help_text="On which it begins.",
    )
    zone = forms.ChoiceField(choices=zones, initial="UTC")

    class Meta:
        model = Shift
        fields = ("queue", "person", "starts", "ends", "zone", "starts_at", "ends_at")
        help_texts = {
            "ends": "No later than it starts: on the next day. It follows the clocks of its zone "
            "when they change.",
            "starts_at": "UTC. While it lasts, the queue's weekly shifts do not count.",
            "ends_at": "UTC.",
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["days"].initial = list(self.instance.weekdays)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        weekly = (cleaned["days"], cleaned["starts"], cleaned["ends"])
        dated = (cleaned["starts_at"], cleaned["ends_at"])
        given = [value not in (None, []) for value in (*weekly, *dated)]
        if given not in ([True] * 3 + [False] * 2, [False] * 3 + [True] * 2):
            raise forms.ValidationError(
                "Give weekdays with both local times, or both dates: one of the two, whole."
            )
        if cleaned["starts_at"] and cleaned["starts_at"] >= cleaned["ends_at"]:
            raise forms.ValidationError("It ends before it begins.")
        self.instance.weekdays = "".join(sorted(cleaned["days"]))
        problem = problem_of(Shift(queue=cleaned["queue"], person=cleaned["person"]))
        if problem:
            self.add_error("person", problem)
        return cleaned
