"""What the decision part of a case's page shows beside the form: a proposal that is open, and the
correction of a decision. Filled by selectors, read by `templates/reconciliation/`.

Addresses (`urls.py`), each for an operation and for a held run; all POST, and what they answer is
as for `operation_decide` in `reconciliation.pages`:

- `operation_second` and `held_run_second`: `verdict note code version token`.
- `operation_correct` and `held_run_correct`: `note code token`, of the hold that was decided last.
- `operation_draft` and `held_run_draft`: the fields of the decision form. 204 to a script, which
  says so by `X-Requested-With: draft`; 303 to the page + `#decide` otherwise. Decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


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
