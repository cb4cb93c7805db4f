"""The forms of a held case: what was posted, read and cleaned. The rules are in the services."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any
from uuid import UUID

from django import forms

from reconciliation.core.states import DecisionKind
from reconciliation.decision_pages import Draft, EvidenceChoice
from reconciliation.local_times import InOwnZone, LocalTimeField
from reconciliation.services.answers import MIN_NOTE, Answer, Verdict, VerdictGiven
from reconciliation.services.corrections import CorrectionGiven
from workflows.core.words import read_length

INCOMPLETE = "This form is incomplete. Reload the page: what is on record stays."


class TokenField(forms.Field):
    """The one-time token of a form: the hold that it was read from, and the form's own ID."""

    def to_python(self, value: object) -> tuple[UUID, UUID] | None:
        hold, _, form = str(value or "").partition("-")
        try:
            return UUID(hold), UUID(form)
        except ValueError:
            return None


class CaseForm(forms.Form):
    """What a form of a case has in common: it was read from one hold, and is posted once."""

    note = forms.CharField(required=False)
    code = forms.CharField(required=False)
    token = TokenField(error_messages={"required": INCOMPLETE})

    # What stands for the whole form, since no field that people see holds it.
    HIDDEN = frozenset({"version", "token", "basis", "zone"})

    @property
    def hold(self) -> UUID:
        """The hold that the form was read from; only of a valid form."""
        hold: UUID = self.cleaned_data["token"][0]
        return hold

    @property
    def once(self) -> UUID:
        """The form's own ID; only of a valid form."""
        form: UUID = self.cleaned_data["token"][1]
        return form

    def draft(self) -> Draft:
        """What was typed, as it was, so that nothing is lost."""
        typed = {each.name: str(self.data.get(each.name, "")) for each in fields(Draft)}
        return Draft(**typed | {"zone": typed["zone"] if typed["until"] else ""})

    def sentences(self) -> dict[str, str]:
        """What does not fit, by the field that people see."""
        return {self.shown_as(name): str(problems[0]) for name, problems in self.errors.items()}

    def shown_as(self, field: str) -> str:
        """The field that people see for `field`; "" stands for the whole form."""
        return "" if field in self.HIDDEN else field


class VerdictForm(CaseForm):
    """What becomes of a proposal, as a person filled it in."""

    verdict = forms.ChoiceField(
        choices=[(each.value, each.value) for each in Verdict],
        error_messages={"required": "Confirm it, or refuse it.", "invalid_choice": INCOMPLETE},
    )
    version = forms.IntegerField(error_messages={"required": INCOMPLETE, "invalid": INCOMPLETE})

    def given(self) -> VerdictGiven:
        cleaned = self.cleaned_data
        return VerdictGiven(
            verdict=Verdict(cleaned["verdict"]),
            version=cleaned["version"],
            token=self.once,
            note=cleaned["note"],
            code=cleaned["code"],
        )


class CorrectionForm(CaseForm):
    """What was wrong with a decision, as a person filled it in."""

    def given(self) -> CorrectionGiven:
        cleaned = self.cleaned_data
        return CorrectionGiven(cleaned["note"], self.once, cleaned["code"])


class AnswerForm(InOwnZone, CaseForm):
    """A decision as a person filled it in."""

    kind = forms.ChoiceField(
        choices=[(kind.value, kind.value) for kind in DecisionKind],
        error_messages={
            "required": "Choose what you decide.",
            "invalid_choice": "Choose one of the decisions that are offered.",
        },
    )
    resource = forms.CharField(required=False)
    evidence = forms.CharField(required=False)
    version = forms.IntegerField(error_messages={"required": INCOMPLETE, "invalid": INCOMPLETE})
    basis = forms.CharField(error_messages={"required": INCOMPLETE})
    until = LocalTimeField(required=False)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        if given.get("kind") == DecisionKind.KEEP_HOLDING:
            self.ensure_same_zone("until")
        else:
            self.leave_out("until")
        return given

    def answer(self, evidence: Iterable[EvidenceChoice]) -> Answer:
        """What was filled in, for the service; `evidence` is what could be chosen."""
        cleaned = self.cleaned_data
        return Answer(
            kind=DecisionKind(cleaned["kind"]),
            note=with_basis(cleaned["note"], cleaned["evidence"], evidence),
            version=cleaned["version"],
            token=self.once,
            code=cleaned["code"],
            resource=cleaned["resource"],
            until=cleaned["until"],
            basis=cleaned["basis"],
        )


def with_basis(note: str, chosen: str, evidence: Iterable[EvidenceChoice]) -> str:
    """The note, and below it what it rests on.

    A note that is too short stays so: what was merely chosen must not make up for it.
    """
    basis = next((choice.text for choice in evidence if choice.value == chosen), "")
    long_enough = read_length(note) >= MIN_NOTE
    return f"{note.strip()}\n\nRests on: {basis}." if basis and long_enough else note
