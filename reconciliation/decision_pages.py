"""What the decision part of a case's page shows: the form with its options, an open proposal, and
the correction of a decision. Filled by selectors, read by `templates/reconciliation/`.

Addresses (`urls.py`), each for an operation and for a held run; all POST, and what they answer is
as for `operation_decide` in `reconciliation.pages`:

- `operation_second` and `held_run_second`: `verdict note code version token`.
- `operation_correct` and `held_run_correct`: `note code token`, of the hold that was decided last.
- `operation_draft` and `held_run_draft`: the fields of the decision form. 204 to a script, which
  says so by `X-Requested-With: draft`; 303 to the page + `#decide` otherwise. Decides nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal

NOTE_AT_LEAST = 20  # characters: less says nothing to whoever reads the record later


@dataclass(frozen=True, slots=True)
class Need:
    """Something the decision needs; the server says whether it is there."""

    text: str
    met: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class DecisionOption:
    """One of the six decisions. All six are shown; those not allowed say why.

    Attributes:
        kind: `applied send_again replace undo abandon keep_holding`; of a run that is held
            itself `try_again fail_run keep_holding`.
        button: names the outcome, "Record: it is done".
        then: what starts when it is recorded, in order.
        warning: what cannot be called back, or how it can be corrected.
    """

    kind: str
    title: str
    consequence: str
    allowed: bool
    button: str = ""
    why_not: str = ""
    what_would_help: str = ""
    needs: tuple[Need, ...] = ()
    then: tuple[str, ...] = ()
    warning: str = ""
    needs_resource: bool = False
    needs_until: bool = False
    takes_two: bool = False  # somebody else confirms it before anything moves


@dataclass(frozen=True, slots=True)
class EvidenceChoice:
    """A record that a decision may rest on; `value` is what the form posts as `evidence`."""

    value: str
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What was typed, kept as it was."""

    kind: str = ""
    note: str = ""
    resource: str = ""
    evidence: str = ""
    code: str = ""
    until: str = ""
    zone: str = ""  # by whose clocks `until` was typed

    @property
    def typed(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProposalEnded:
    """What was proposed last and came to nothing, and why: read before anybody decides anew."""

    says: str
    note: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DecisionForm:
    """The form of a case that the reader may decide.

    `url` takes the decision, `draft_url` what is typed; `page_url` is the page of the case.
    `draft_saved_at`: when what `draft` holds was kept, where it was typed earlier.
    """

    url: str
    page_url: str
    subject: Literal["operation", "run"]
    options: tuple[DecisionOption, ...]
    code: str  # the last six characters of the subject's ID, to be typed
    version: int  # of the hold as it was read
    token: str  # posted once: a repeat gets the first answer
    basis: str  # what is known, in short: the form decides nothing once that has changed
    read_at: datetime
    zone: str = "UTC"  # by whose clocks a time is typed, and how they are ahead
    zone_said: str = "UTC"
    evidence: tuple[EvidenceChoice, ...] = ()
    draft: Draft = field(default=Draft())
    errors: dict[str, str] = field(default_factory=dict)
    draft_url: str = ""
    draft_saved_at: datetime | None = None
    ended: ProposalEnded | None = None  # what was proposed before

    @property
    def takes_two(self) -> bool:
        return any(option.takes_two for option in self.offered)

    @property
    def offered(self) -> tuple[DecisionOption, ...]:
        return tuple(option for option in self.options if option.allowed)

    @property
    def not_offered(self) -> tuple[DecisionOption, ...]:
        return tuple(option for option in self.options if not option.allowed)

    @property
    def note_at_least(self) -> int:
        return NOTE_AT_LEAST


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision on the record; `state` as in the vocabulary of decisions."""

    title: str
    note: str
    by: str
    at: datetime
    state: str = "recorded"


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Somebody decided first, or proof arrived (`theirs` is None): ours had no effect."""

    message: str  # who or what was first
    theirs: Recorded | None
    title: str  # what was chosen
    note: str  # what was typed
    at: datetime
    is_kept: bool = True  # as a draft


@dataclass(frozen=True, slots=True)
class VerdictForm:
    """What the reader may do with an open proposal.

    `may`: `settle` (confirm or refuse) or `withdraw`. `button` names the outcome.
    """

    url: str
    may: Literal["settle", "withdraw"]
    code: str
    version: int
    token: str
    button: str = ""
    note: str = ""
    typed_code: str = ""
    errors: dict[str, str] = field(default_factory=dict)
    note_at_least: int = NOTE_AT_LEAST


@dataclass(frozen=True, slots=True)
class ProposalShown:
    """A decision that one person proposed and nobody has confirmed yet.

    Attributes:
        then: what starts when it is confirmed, in order.
        since: what has changed meanwhile, in one sentence.
        is_void: it cannot be confirmed any more.
        not_yours: why the reader can neither confirm nor take it back.
        seconds: who may confirm it, by name.
    """

    title: str
    consequence: str
    then: tuple[str, ...]
    warning: str
    note: str
    resource: str
    by: str
    at: datetime
    since: str
    is_void: bool = False
    is_yours: bool = False
    not_yours: str = ""
    seconds: tuple[str, ...] = ()
    form: VerdictForm | None = None

    @property
    def may_settle(self) -> bool:
        """Whether the reader may confirm or refuse it."""
        return self.form is not None and self.form.may == "settle"


@dataclass(frozen=True, slots=True)
class CorrectionForm:
    """Adding a correction to the decision in force; it moves nothing."""

    url: str
    code: str
    token: str
    subject: Literal["operation", "run"]
    what_helps: str  # what can still be done, beside saying it
    note: str = ""
    typed_code: str = ""
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Linked:
    """Another operation that a decision has linked to this one; `how`: "Replaces", "Undone by"."""

    how: str
    summary: str
    state: str
    url: str
