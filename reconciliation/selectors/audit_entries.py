"""Entries of the audit record by who, what, to what and when; each way on an index."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import QuerySet

from reconciliation.core.audit_asked import AuditAsked, moment
from reconciliation.models import AuditEntry
from reconciliation.services.audit import actor_of
from workflows.selectors.paging import as_uuid

KINDS = ("operation", "run", "event", "tenant")
MOST_VERBS = 200

# The different verbs, each found by one step in the index however many entries there are.
VERBS = """
WITH RECURSIVE found (verb) AS (
    (SELECT verb FROM reconciliation_auditentry ORDER BY verb LIMIT 1)
    UNION ALL
    SELECT (SELECT verb FROM reconciliation_auditentry WHERE verb > found.verb
            ORDER BY verb LIMIT 1)
    FROM found WHERE found.verb IS NOT NULL
)
SELECT verb FROM found WHERE verb IS NOT NULL LIMIT %s
"""


def entries_asked(asked: AuditAsked) -> QuerySet[AuditEntry]:
    """The entries that are meant, whoever may see them, the newest first."""
    entries = AuditEntry.objects.order_by("-seq")
    if asked.object:
        entries = entries.filter(object__in=objects_named(asked.object))
    if asked.who:
        entries = entries.filter(actor__in=actors_named(asked.who))
    if asked.verb:
        entries = entries.filter(verb=asked.verb)
    if asked.before.isdecimal():
        entries = entries.filter(seq__lt=int(asked.before[:18]))
    return within(entries, asked)


def within(entries: QuerySet[AuditEntry], asked: AuditAsked) -> QuerySet[AuditEntry]:
    """Those of a stretch of time: by its numbers, since entries are in order of both."""
    since, until = moment(asked.since), moment(asked.until)
    if since is not None:
        first = AuditEntry.objects.filter(at__gte=since).order_by("at", "seq")
        entries = entries.filter(seq__gte=first.values("seq")[:1])
    if until is not None:
        last = AuditEntry.objects.filter(at__lt=until).order_by("-at", "-seq")
        entries = entries.filter(seq__lte=last.values("seq")[:1])
    return entries


def objects_named(text: str) -> list[str]:
    pk = as_uuid(text)
    return [f"{kind}:{pk}" for kind in KINDS] if pk is not None else [text]


def actors_named(text: str) -> list[str]:
    """How the record names whom a person types: an account by its username, else as typed."""
    found = User.objects.filter(username=text).first()
    return [text, f"command:{text}", *([actor_of(found)] if found else [])]


def known_verbs() -> list[str]:
    """What the record says that was done, each once."""
    with connection.cursor() as cursor:
        cursor.execute(VERBS, [MOST_VERBS])
        return [row[0] for row in cursor.fetchall()]
