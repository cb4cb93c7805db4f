"""The chain of audit entries: whatever is changed in it behind the ledger's back is found."""

from __future__ import annotations

import pytest
from django.db import connection

from reconciliation.models import AuditEntry, Hold
from reconciliation.services.audit import add_entry, first_broken_entry, hash_of
from tests.deciding import ABANDON, KEEP_HOLDING, decide
from tests.tampering import tamper

pytestmark = pytest.mark.django_db


def five_entries() -> None:
    for number in range(1, 6):
        add_entry("user:1 ada", "decided", f"operation:{number}", {"kind": "applied"})


def test_an_untouched_chain_has_no_broken_entry() -> None:
    assert first_broken_entry() is None
    five_entries()
    assert first_broken_entry() is None
    assert [entry.seq for entry in AuditEntry.objects.order_by("seq")] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "assignment",
    [
        "actor = 'user:2 mallory'",
        "verb = 'looked at'",
        "object = 'operation:9'",
        """detail = '{"kind": "abandon"}'""",
        "previous_hash = repeat('0', 64)",
        "skip_hash = repeat('0', 64)",
        "salt = ''",
        "hash = repeat('0', 64)",
        "seq = 33",
        pytest.param(
            "at = '2001-01-01'",
        ),
    ],
)
def test_a_changed_entry_is_found(assignment: str) -> None:
    five_entries()
    tamper("reconciliation_auditentry", assignment, "seq = 3")
    assert first_broken_entry() == 3


def test_a_changed_entry_with_a_hash_made_to_fit_is_found_at_the_one_after() -> None:
    five_entries()
    entry = AuditEntry.objects.get(seq=3)
    entry.actor = "user:2 mallory"
    made_to_fit = f"actor = '{entry.actor}', hash = '{hash_of(entry)}'"
    tamper("reconciliation_auditentry", made_to_fit, "seq = 3")
    assert first_broken_entry() == 4


@pytest.mark.parametrize(("missing", "found"), [(1, 1), (3, 3), (4, 4)])
def test_a_missing_entry_is_found(missing: int, found: int) -> None:
    five_entries()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reconciliation_auditentry DISABLE TRIGGER USER")
        cursor.execute("DELETE FROM reconciliation_auditentry WHERE seq = %s", [missing])
        cursor.execute("ALTER TABLE reconciliation_auditentry ENABLE TRIGGER USER")
    assert first_broken_entry() == found


def test_an_entry_that_was_made_up_in_between_is_found() -> None:
    five_entries()
    tamper("reconciliation_auditentry", "seq = seq + 1", "seq = 5")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO reconciliation_auditentry "
            "(seq, at, actor, verb, object, detail, salt, previous_hash, skip_hash, hash) "
            "SELECT 5, at, 'user:2 mallory', verb, object, detail, salt, previous_hash, "
            "skip_hash, hash FROM reconciliation_auditentry WHERE seq = 6"
        )
    assert first_broken_entry() == 5


def test_holding_and_deciding_add_to_one_chain(hold: Hold) -> None:
    decide(hold, KEEP_HOLDING)
    hold.refresh_from_db()
    decide(hold, ABANDON)
    verbs = list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))
    assert verbs == ["held", "decided", "decided"]
    assert first_broken_entry() is None
