"""The kinds of object that rights are held on, and what each right lets somebody do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from reconciliation.models import Provider, ReviewQueue
from workflows.models import EventSource, Tenant


@dataclass(frozen=True, slots=True)
class Right:
    """Attributes:
    codename: as Django knows it; with the kind's app it is `workflows.view_tenant`.
    word: over its column.
    told: what it lets somebody do, as a sentence goes on.
    """

    codename: str
    word: str
    told: str

    @property
    def shows(self) -> bool:
        """Whether it is about seeing; held on all of a kind, it counts for each of them."""
        return self.codename.startswith("view_") and self.codename != "view_payloads"


@dataclass(frozen=True, slots=True)
class Kind:
    """Attributes:
    slug: in addresses, and before the object's own slug in the audit record.
    note: who else can do something, whom no table of rights knows.
    """

    slug: str
    noun: str
    model: type[Any]
    rights: tuple[Right, ...]
    note: str = ""

    @property
    def plural(self) -> str:
        return "sources of events" if self.slug == "source" else f"{self.noun}s"

    @property
    def app(self) -> str:
        return str(self.model._meta.app_label)

    @property
    def codenames(self) -> tuple[str, ...]:
        return tuple(right.codename for right in self.rights)

    def full(self, codename: str) -> str:
        return f"{self.app}.{codename}"

    @property
    def configure(self) -> str:
        return self.full(CONFIGURE)


CONFIGURE = "configure"
SET_UP = Right(CONFIGURE, "Configure", "set it up in the admin, and give the rights that they hold")

KINDS = {
    kind.slug: kind
    for kind in (
        Kind(
            "queue",
            "review queue",
            ReviewQueue,
            (
                Right("view_reviewqueue", "View", "see it and what is held in it"),
                Right("decide", "Decide", "decide what is held in it"),
                Right("assign", "Assign", "hand its cases over, and remind"),
                Right("second", "Second", "confirm or refuse what others have proposed"),
                SET_UP,
            ),
            "A case is shown to those alone who may see its tenant too. Owners get View, "
            "Decide, Assign and Second, and lose them when they are owners no more.",
        ),
        Kind(
            "provider",
            "provider",
            Provider,
            (
                Right("view_provider", "View", "see it, its contract and its rehearsals"),
                Right("pause_dispatch", "Pause dispatch", "stop new writes to it, and resume them"),
                SET_UP,
            ),
            "Whoever may see one of its review queues sees it too.",
        ),
        Kind(
            "tenant",
            "tenant",
            Tenant,
            (
                Right("view_tenant", "View", "see its runs, operations and events"),
                Right("view_payloads", "View payloads", "see inputs, outputs and what was sent"),
                Right("control_runs", "Control runs", "cancel, pause and resume its runs"),
                Right("approve_actions", "Approve", "answer what is proposed for it"),
                SET_UP,
            ),
            "Owners of a review queue of this tenant get View, View payloads and Control runs, and "
            "keep them when they are owners no more.",
        ),
        Kind(
            "source",
            "source of events",
            EventSource,
            (Right("send_event", "Send events", "send events of it by hand"), SET_UP),
            "To send takes the right to see its tenant too.",
        ),
    )
}


def kind_of(subject: Model) -> Kind:
    return next(kind for kind in KINDS.values() if isinstance(subject, kind.model))


def name_of(subject: Any) -> str:
    """What the audit record calls it."""
    return f"{kind_of(subject).slug}:{subject.slug}"
