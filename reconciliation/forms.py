"""The decision form: what was posted, read and cleaned. The rules are in `services.decisions`."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django import forms

from reconciliation.core.states import DecisionKind
from reconciliation.pages import Draft, EvidenceChoice
from reconciliation.services.answers import MIN_NOTE, Answer

INCOMPLETE = "This form is incomplete. Reload the page: what is on record stays."

# What a browser's datetime-local field posts; it is read as UTC.
TIME_FORMATS = ("%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")


class TokenField(forms.Field):
    """The one-time token of a form: the hold that it was read from, and the form's own ID."""

    def to_python(self, value: object) -> tuple[UUID, UUID] | None:
        hold, _, form = str(value or "").partition("-")
        try:
            return UUID(hold), UUID(form)
        except ValueError:
            return None


class AnswerForm(forms.Form):
    """A decision as a person filled it in."""

    kind = forms.ChoiceField(
        choices=[(kind.value, kind.value) for kind in DecisionKind],
        error_messages={
            "required": "Choose what you decide.",
            "invalid_choice": "Choose one of the decisions that are offered.",
        },
    )
    note = forms.CharField(required=False)
    resource = forms.CharField(required=False)
    evidence = forms.CharField(required=False)
    code = forms.CharField(required=False)
    version = forms.IntegerField(error_messages={"required": INCOMPLETE, "invalid": INCOMPLETE})
    token = TokenField(error_messages={"required": INCOMPLETE})
    until = forms.DateTimeField(
        required=False,
        input_formats=TIME_FORMATS,
        error_messages={"invalid": "Give date and time, such as 2026-03-10 18:00, in UTC."},
    )

    # What stands for the whole form, since no field that people see holds it.
    HIDDEN = frozenset({"version", "token"})

    @property
    def hold(self) -> UUID:
        """The hold that the form was read from; only of a valid form."""
        hold: UUID = self.cleaned_data["token"][0]
        return hold

    def answer(self, evidence: Iterable[EvidenceChoice]) -> Answer:
        """What was filled in, for the service; `evidence` is what could be chosen."""
        cleaned = self.cleaned_data
        return Answer(
            kind=DecisionKind(cleaned["kind"]),
            note=with_basis(cleaned["note"], cleaned["evidence"], evidence),
            version=cleaned["version"],
            token=cleaned["token"][1],
            code=cleaned["code"],
            resource=cleaned["resource"],
            until=cleaned["until"],
        )

    def draft(self) -> Draft:
        """What was typed, as it was, so that nothing is lost."""
        return Draft(
            **{
                name: str(self.data.get(name, ""))
                for name in ("kind", "note", "resource", "evidence", "code", "until")
            }
        )

    def sentences(self) -> dict[str, str]:
        """What does not fit, by the field that people see."""
        return {self.shown_as(name): str(problems[0]) for name, problems in self.errors.items()}

    def shown_as(self, field: str) -> str:
        """The field that people see for `field`; "" stands for the whole form."""
        return "" if field in self.HIDDEN else field


def with_basis(note: str, chosen: str, evidence: Iterable[EvidenceChoice]) -> str:
    """The note, and below it what it rests on.

    A note that is too short stays so: what was merely chosen must not make up for it.
    """
    basis = next((choice.text for choice in evidence if choice.value == chosen), "")
    long_enough = len(note.strip()) >= MIN_NOTE
    return f"{note.strip()}\n\nRests on: {basis}." if basis and long_enough else note
