"""What came of a form that was sent and not recorded, and the tokens that forms are sent with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from uuid import uuid4

from reconciliation.core.errors import AlreadyDecided
from reconciliation.decision_pages import Draft
from reconciliation.models import Hold

Subject = Literal["operation", "run"]
PAGES = {"operation": "operation", "run": "held_run"}  # names of addresses


@dataclass(frozen=True)
class Attempted:
    """What was typed, and why it was not recorded.

    `of`: which of the forms it was: the decision's, the second person's, or the correction's.
    """

    draft: Draft = field(default=Draft())
    errors: dict[str, str] = field(default_factory=dict)
    overtaken_by: AlreadyDecided | None = None
    of: Literal["decide", "second", "correct"] = "decide"

    @property
    def is_kept(self) -> bool:
        """Whether what was typed is kept as a draft; an answer without a note leaves nothing."""
        return self.of != "second" or bool(self.draft.note.strip())


NOTHING_ATTEMPTED = Attempted()


def subject_of(hold: Hold) -> Subject:
    return "run" if hold.operation_id is None else "operation"


def new_token(hold: Hold) -> str:
    """Of the very hold that was read, so that it cannot decide a later one of the same case."""
    return f"{hold.pk.hex}-{uuid4().hex}"
