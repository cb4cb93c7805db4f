"""The small forms around a held case: whom, until when, what. The rules are in the services."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet

from reconciliation.core.review_work import BulkKind
from reconciliation.forms import INCOMPLETE
from reconciliation.local_times import InOwnZone, LocalTimeField
from reconciliation.models import ReviewQueue
from reconciliation.selectors.words import name_of
from reconciliation.services.bulk import Wanted
from workflows.selectors.paging import as_uuid

if TYPE_CHECKING:  # Django's own class takes no type when it runs
    PersonChoice = forms.ModelChoiceField[User]
    QueueChoice = forms.ModelChoiceField[ReviewQueue]
else:
    PersonChoice = QueueChoice = forms.ModelChoiceField

AT, TOMORROW = "at", "tomorrow"
TOMORROW_AT = time(8)
BY_CLOCKS = {AT: "until", TOMORROW: "within"}  # choices, by the field that a problem stands at


class PersonField(PersonChoice):
    def label_from_instance(self, obj: Any) -> str:
        return name_of(obj)


def person_field(label: str, missing: str) -> PersonField:
    return PersonField(
        User.objects.none(),
        label=label,
        empty_label="Choose somebody",
        error_messages={"required": missing, "invalid_choice": missing},
        widget=forms.Select(attrs={"class": "select"}),
    )


MISSING = "Write what the others should know."


def text_field(
    label: str, help_text: str, *, required: bool = True, missing: str = MISSING
) -> forms.CharField:
    """What is missing is said by the service, in its words."""
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=required,
        strip=False,
        widget=forms.Textarea(attrs={"class": "area", "maxlength": 4000, "rows": 3}),
        error_messages={
            "required": missing,
            "null_characters_not_allowed": "Write plain text.",
        },
    )


def token_field() -> forms.UUIDField:
    return forms.UUIDField(
        widget=forms.HiddenInput, error_messages={"required": INCOMPLETE, "invalid": INCOMPLETE}
    )


class PeopleForm(forms.Form):
    """A form whose field `to` takes one of `people`."""

    def __init__(self, data: Any, people: QuerySet[User], **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["to"].queryset = people  # type: ignore[attr-defined]


class AssignForm(PeopleForm):
    """`seen`: whose the case was when the form was shown; empty for nobody's."""

    to = person_field("To whom?", "Choose one of those who may decide it.")
    note = text_field(
        "What should they know?",
        "Kept in the thread of the case with your name. Needed when you hand over a case of yours.",
        required=False,
    )
    seen = forms.IntegerField(required=False, widget=forms.HiddenInput)
    token = token_field()


class WhomForm(PeopleForm):
    to = person_field("To whom?", "Choose one of those who may decide cases of these queues.")


class AskForm(PeopleForm):
    to = person_field("Whom?", "Choose one of those who may see the case.")
    text = text_field(
        "What do you need to know?",
        "The case shows it until it is answered.",
        missing="Write what you need to know.",
    )
    token = token_field()


class TextForm(forms.Form):
    text = text_field("What do you say?", "Kept with your name, and never changed.")
    token = token_field()


class UntilForm(InOwnZone):
    """Until when: one of a few, or a time; by the clocks of its reader."""

    within = forms.ChoiceField(
        label="Until when?",
        choices=[
            ("1h", "In 1 hour"),
            ("4h", "In 4 hours"),
            (TOMORROW, "Tomorrow, 08:00"),
            ("3d", "In 3 days"),
            (AT, "At the time below"),
        ],
        widget=forms.Select(attrs={"class": "select"}),
        error_messages={
            "required": "Say until when.",
            "invalid_choice": "Choose one of these.",
        },
    )
    until = LocalTimeField(required=False, help_text="Only for the last choice above.")

    def __init__(self, data: Any, zone: tzinfo, now: datetime, **options: Any) -> None:
        super().__init__(data, zone, **options)
        said = self.zone_said(now)
        self.fields["until"].label = f"Date and time ({said})"
        within: Any = self.fields["within"]
        within.choices = [
            (value, f"{text} ({said})" if value == TOMORROW else text)
            for value, text in within.choices
        ]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if given.get("within") not in (AT, None):
            self.leave_out("until")
        missing = given.get("within") == AT and not given.get("until")
        if missing and "until" not in self.errors:
            self.add_error("until", "Say until when.")
        if given.get("within") in BY_CLOCKS:
            self.ensure_same_zone(BY_CLOCKS[given["within"]])
        return given

    def at(self, now: datetime) -> datetime:
        """The time that was chosen, of a valid form."""
        within = self.cleaned_data["within"]
        if within == AT:
            at: datetime = self.cleaned_data["until"]
            return at
        if within == TOMORROW:
            day = now.astimezone(self.own_zone).date() + timedelta(days=1)
            return datetime.combine(day, TOMORROW_AT, self.own_zone).astimezone(UTC)
        spans = {"1h": timedelta(hours=1), "4h": timedelta(hours=4), "3d": timedelta(days=3)}
        return now + spans[within]


class QueueField(QueueChoice):
    def label_from_instance(self, obj: Any) -> str:
        return f"For the owners of {obj.name}"


class SaveForm(forms.Form):
    """A name for the way the queue is looked at now, for oneself or the owners of a queue."""

    name = forms.CharField(
        label="Name",
        max_length=60,
        widget=forms.TextInput(attrs={"class": "input"}),
        error_messages={
            "required": "Give it a name.",
            "null_characters_not_allowed": "Write plain text.",
        },
    )
    queue = QueueField(
        ReviewQueue.objects.none(),
        label="For whom?",
        to_field_name="slug",
        required=False,
        empty_label="Only for me",
        widget=forms.Select(attrs={"class": "select"}),
        error_messages={"invalid_choice": "Choose one of your own queues."},
    )

    def __init__(self, data: Any, queues: Any, **options: Any) -> None:
        super().__init__(data, **options)
        self.fields["queue"].queryset = queues  # type: ignore[attr-defined]


class BulkForm(PeopleForm):
    """What is confirmed of a plan: the cases that it listed, and what is done to each."""

    do = forms.ChoiceField(choices=[(kind.value, kind.value) for kind in BulkKind])
    holds = forms.CharField(required=False)
    to = forms.ModelChoiceField(User.objects.none(), required=False)
    until = forms.DateTimeField(required=False, input_formats=["%Y-%m-%dT%H:%M:%S%z"])
    token = forms.UUIDField()

    def clean_holds(self) -> dict[UUID, int | None]:
        """The cases that the plan listed, in its order, each with whose it was then."""
        pairs = [text.partition(":") for text in self.cleaned_data["holds"].split(",")]
        found = [(as_uuid(hold), whose) for hold, _, whose in pairs]
        return {
            hold: int(whose) if whose.isdecimal() and len(whose) < 10 else None  # noqa: PLR2004
            for hold, whose in found
            if hold is not None
        }

    def wanted(self) -> Wanted:
        given = self.cleaned_data
        return Wanted(BulkKind(given["do"]), given["to"], given["until"])
