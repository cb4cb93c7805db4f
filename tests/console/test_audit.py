"""The page of the audit record: who did what, and only about what may be seen."""

from __future__ import annotations

from http import HTTPStatus
from io import StringIO
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from guardian.shortcuts import assign_perm

from reconciliation.core.audit_asked import AuditAsked
from reconciliation.models import AuditEntry
from reconciliation.selectors.audit_entries import entries_asked
from reconciliation.selectors.audit_page import STRETCH
from reconciliation.services.audit import actor_of, add_entry
from tests.factories import administrator, many_runs, person, stranger, tenant
from tests.tampering import tamper
from workflows.models import Run
from workflows.selectors.paging import PAGE_ROWS

pytestmark = pytest.mark.django_db

URL = "/audit/"


@pytest.fixture
def viewer(client: Client) -> Client:
    user = person("viewer_1")
    assign_perm("workflows.view_tenant", user, tenant())
    client.force_login(user)
    return client


def cancelled(run: Run, **detail: Any) -> None:
    add_entry("user:3 ada", "run cancelled", f"run:{run.pk}", {"reason": "Sent back."} | detail)


def page_at(client: Client, url: str = URL) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def test_an_entry_says_who_did_what_to_which_run_and_why(viewer: Client) -> None:
    (run,) = many_runs(1, "cancelled", start_key="ORD-7001")
    cancelled(run, before="held")
    (row,) = page_at(viewer).rows
    assert (row.actor, row.verb, row.reason) == ("ada", "run cancelled", "Sent back.")
    assert (row.object, row.object_url) == ("Run Refund, ORD-7001", f"/runs/{run.pk}/")
    assert [(fact.term, fact.text) for fact in row.facts] == [("Before", "held")]


def test_codes_of_the_record_are_said_in_words(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    add_entry(
        "system",
        "held",
        f"run:{run.pk}",
        {"reason": "unguarded", "kind": "applied", "state": "applied"},
    )
    (row,) = page_at(viewer).rows
    assert row.reason == "Sent, and nothing guards a repeat"
    assert [(fact.term, fact.text) for fact in row.facts] == [
        ("Kind", "It is done"),
        ("State", "applied"),
    ]


def test_what_may_not_be_seen_is_not_on_it(viewer: Client) -> None:
    (mine,) = many_runs(1, "cancelled")
    (other,) = many_runs(1, "cancelled")
    Run.objects.filter(pk=other.pk).update(tenant=tenant("southbay"))
    cancelled(mine)
    cancelled(other)
    add_entry("user:1 admin_1", "set up", "provider:payments", {})
    assert [row.object_url for row in page_at(viewer).rows] == [f"/runs/{mine.pk}/"]
    assert page_at(viewer, f"{URL}?object=run:{other.pk}").rows == ()
    assert page_at(viewer, f"{URL}?who=user:1 admin_1").rows == ()


def test_an_administrator_sees_set_up_as_well(client: Client) -> None:
    client.force_login(administrator())
    add_entry("user:1 admin_1", "set up", "provider:payments", {"fields": ["name"]})
    (row,) = page_at(client).rows
    assert (row.object, row.object_url) == ("provider:payments", "")


def test_it_is_narrowed_by_person_verb_object_and_time(viewer: Client) -> None:
    (mine,) = many_runs(1, "held")
    (other,) = many_runs(1, "held")
    ada = person("ada")
    early = add_entry(actor_of(ada), "run paused", f"run:{mine.pk}", {})
    late = add_entry("system", "held", f"run:{other.pk}", {})
    tamper("reconciliation_auditentry", "at = '2026-03-09T10:00Z'", f"seq = {early.seq}")
    tamper("reconciliation_auditentry", "at = '2026-03-10T10:00Z'", f"seq = {late.seq}")

    def numbers(**asked: str) -> list[int]:
        return [row.number for row in page_at(viewer, f"{URL}?{urlencode(asked)}").rows]

    assert numbers() == [late.seq, early.seq]
    assert numbers(who="ada") == numbers(verb="run paused") == [early.seq]
    assert numbers(object=str(other.pk)) == numbers(object=f"run:{other.pk}") == [late.seq]
    assert numbers(since="2026-03-09T10:00") == [late.seq, early.seq]
    assert numbers(since="2026-03-09T10:01") == [late.seq]
    assert numbers(until="2026-03-10T10:00") == [early.seq]
    assert numbers(since="2027-01-01") == numbers(until="2001-01-01") == []
    assert page_at(viewer).verbs == ["held", "run paused"]


def test_each_way_to_narrow_it_down_is_on_an_index(viewer: Client) -> None:
    asked = ({"who": "ada"}, {"verb": "held"}, {"object": "x"}, {"since": "2026-03-10"})
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    for each in asked:
        plan = entries_asked(AuditAsked(**each))[:STRETCH].explain()
        assert "Seq Scan" not in plan, each


def test_an_entry_that_was_changed_is_marked_where_it_stands(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    cancelled(run)
    add_entry("system", "held", f"run:{run.pk}", {})
    assert page_at(viewer).misfits == 0
    tamper("reconciliation_auditentry", "actor = 'user:9 mallory'", "verb = 'held'")
    page = page_at(viewer)
    assert [row.fits for row in page.rows] == [False, True]
    assert "was changed since it was written" in viewer.get(URL).content.decode()


def test_the_state_of_the_whole_chain_is_as_it_was_last_checked(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    cancelled(run)
    assert "was not checked yet" in viewer.get(URL).content.decode()
    said = StringIO()
    call_command("check_audit", stdout=said)
    last = AuditEntry.objects.latest("seq")
    assert f"Whole up to entry 1. It now ends with {last.seq}:{last.hash}" in said.getvalue()
    assert "The chain was whole up to entry 1" in viewer.get(URL).content.decode()
    tamper("reconciliation_auditentry", "actor = 'user:9 mallory'", "seq = 1")
    with pytest.raises(CommandError, match="entry 1 was changed"):
        call_command("check_audit")
    assert "The chain is broken at entry 1" in viewer.get(URL).content.decode()


def test_who_may_see_nothing_sees_no_entry(client: Client) -> None:
    cancelled(many_runs(1, "cancelled")[0])
    client.force_login(stranger())
    assert page_at(client).rows == ()


def test_pages_follow_each_other_and_lose_nothing(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    numbers = [add_entry("system", "held", f"run:{run.pk}", {}).seq for _ in range(PAGE_ROWS + 3)]
    first = page_at(viewer)
    rest = page_at(viewer, first.pager.older)
    assert [row.number for row in (*first.rows, *rest.rows)] == numbers[::-1]
    assert (rest.pager.older, rest.pager.newer) == ("", URL)


def test_a_long_stretch_of_what_may_not_be_seen_is_passed_over(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    cancelled(run)
    for _ in range(STRETCH):
        add_entry("system", "set up", "provider:payments", {})
    first = page_at(viewer)
    assert first.rows == ()
    assert [row.verb for row in page_at(viewer, first.pager.older).rows] == ["run cancelled"]


def test_markup_on_the_record_is_shown_as_text(viewer: Client) -> None:
    marker = "<img src=x onerror=alert(1)>"
    (run,) = many_runs(1, "held", start_key=marker)
    add_entry(marker, "noted", f"run:{run.pk}", {"reason": marker, marker: marker})
    text = viewer.get(URL).content.decode()
    assert marker not in text
    assert escape(marker) in text


def test_its_queries_do_not_grow_with_entries(viewer: Client) -> None:
    (run,) = many_runs(1, "held")
    cancelled(run)
    with CaptureQueriesContext(connection) as few:
        page_at(viewer)
    for each in many_runs(40, "held"):
        cancelled(each)
    with CaptureQueriesContext(connection) as many:
        page_at(viewer)
    assert len(many) == len(few) <= 12


def test_nonsense_in_the_address_is_no_error(viewer: Client) -> None:
    for query in ("before=x", "before=" + "9" * 40, "object=%00", "who=%00", "since=x"):
        assert page_at(viewer, f"{URL}?{query}").rows == ()
