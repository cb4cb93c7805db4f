"""`manage.py events` and what `explain`, `holds` and `decide` say of waits and events."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reconciliation.models import AuditEntry, Hold, ReviewQueue
from tests.events import TYPE, delivered, driven, source, wait_of, waiting
from tests.factories import administrator, tenant
from workflows.models import Event, Match, Tenant
from workflows.services.stopping import cancel_run

pytestmark = pytest.mark.django_db

WHY = ("--reason", "Seen at the provider.", "--by", "ada")


def run(*arguments: object) -> str:
    out = io.StringIO()
    call_command(*map(str, arguments), stdout=out)
    return out.getvalue()


def document(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json"))


def refusal(*arguments: object) -> tuple[int, str]:
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    return caught.value.returncode, str(caught.value)


def test_those_to_act_on_are_listed_and_all_when_asked_for() -> None:
    waiting()
    taken, stored = delivered().event, delivered("other").event
    assert [each["id"] for each in document("events", "list")] == [str(stored)]
    assert run("events", "list", "--all", "--ids").split() == [str(stored), str(taken)]
    assert [each["id"] for each in document("events", "list", "--state", "matched")] == [str(taken)]
    assert document("events", "list", "--source", "nothing") == []
    assert "stored" in run("events", "list")


def test_one_is_shown_with_why_and_what_it_came_close_to() -> None:
    waited = waiting(correlation="PO-10077")
    event = delivered("PO10077").event
    told = document("events", "show", event)
    assert told["came_close_to"] == [
        {"wait": str(wait_of(waited).pk), "run": str(waited.pk), "differs": "character"}
    ]
    text = run("events", "show", event, "--body")
    assert f"Came close to run {waited.pk}" in text
    assert '  "amount": 125' in text
    assert '"amount"' not in run("events", "show", event)


def test_an_event_is_sent_and_its_run_goes_on(tmp_path: Path) -> None:
    source()
    waited = waiting()
    data = tmp_path / "data.json"
    data.write_text('{"amount": 125.10}')
    given = ("events", "send", "payments", "--type", TYPE, "--correlation", "48213", "--by", "ada")
    told = document(*given, "--data", f"@{data}", "--id", "evt_1")
    assert told["outcome"] == "matched"
    assert document(*given, "--id", "evt_1") == {"id": told["id"], "outcome": "duplicate"}
    assert driven(waited).state == "completed"
    assert AuditEntry.objects.filter(actor="ada", verb="event sent").count() == 2
    assert b"125.10" in bytes(Event.objects.get().body or b"")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"scheme": "bearer"}, "source payments is not internal"),
        ({"enabled": False}, "source payments is switched off"),
        ({"id_path": "data.id"}, "reads ID, type or correlation from elsewhere"),
        ({"schemas": {TYPE: {"required": ["total"]}}}, "total is missing"),
        ({"max_bytes": 10}, "of 10 at most"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_not_stored(
    changes: dict[str, Any], sentence: str
) -> None:
    made = source()
    for name, value in changes.items():
        setattr(made, name, value)
    made.save()
    given = ("events", "send", "payments", "--type", TYPE, "--correlation", "a")
    code, said = refusal(*given, "--data", '{"id": "x"}')
    assert code == 1
    assert sentence in said
    assert not Event.objects.exists()


def test_data_cannot_pretend_to_be_more_than_data() -> None:
    source()
    given = ("events", "send", "payments", "--type", TYPE, "--correlation", "a", "--data")
    for data in ('1}, "correlation": "b", "x": {"y": 1', "1, 2", "", "NaN"):
        assert refusal(*given, data)[0] == 1
    assert not Event.objects.exists()


def test_an_event_is_attached_to_the_wait_of_a_run() -> None:
    waited = waiting(correlation="PO-10077")
    event = delivered("PO10077").event
    told = document("events", "attach", event, "--run", waited.pk, *WHY)
    assert (told["done"], told["state"]) == (True, "matched")
    assert (Match.objects.get().by, Match.objects.get().reason) == ("ada", "Seen at the provider.")
    assert "charge.refunded evt" in document("explain", waited.pk)["sentence"]
    assert driven(waited).state == "completed"
    # Twice is harmless; somebody else is told who was first.
    wait = wait_of(waited).pk
    assert document("events", "attach", event, "--wait", wait, *WHY)["changed"] is False
    code, said = refusal("events", "attach", event, "--wait", wait, *WHY[:3], "bo")
    assert code == 1
    assert "ada attached it" in said


def test_attaching_needs_one_wait_that_is_open_and_of_the_tenant() -> None:
    waited = waiting(correlation="a")
    event = delivered("b").event
    assert refusal("events", "attach", event, *WHY)[0] == 2
    other = Tenant.objects.create(slug="southbay", name="Southbay")
    foreign = delivered("b", of=source("bay", other)).event
    assert "there is no wait" in refusal("events", "attach", foreign, "--run", waited.pk, *WHY)[1]
    cancel_run(waited.pk, by="bo")
    assert refusal("events", "attach", event, "--run", waited.pk, *WHY)[0] == 1
    code, said = refusal("events", "attach", event, "--wait", wait_of(waited).pk, *WHY)
    assert code == 1
    assert said.startswith("The wait was cancelled at ")


def test_an_event_is_dismissed_restored_and_replayed() -> None:
    event = delivered().event
    assert document("events", "dismiss", event, *WHY)["shown_as"] == "dismissed"
    assert refusal("events", "replay", event, *WHY)[0] == 1
    assert document("events", "restore", event, *WHY)["shown_as"] == "stored"
    # Its body names neither ID nor type: it is not read anew, and stays what it is.
    code, said = refusal("events", "replay", event, *WHY)
    assert code == 1
    assert said.startswith("It stays as it is: ")
    assert Event.objects.get().state == "stored"


def test_what_does_not_exist_is_refused() -> None:
    unknown = "0197f000-0000-7000-8000-000000000000"
    assert refusal("events", "show", unknown) == (1, f"there is no event {unknown}")
    assert refusal("events", "send", "x", "--type", "t", "--correlation", "c")[0] == 1


def test_explain_says_what_a_run_waits_for_and_what_came_close() -> None:
    waited = waiting()
    delivered("48213 ", event_id="evt_space")
    told = document("explain", waited.pk)
    assert told["cause"] == "event"
    assert "1 event came close" in told["sentence"]
    assert told["facts"]["wait"]["correlation"] == "48213"
    assert told["facts"]["near_misses"][0]["event_id"] == "evt_space"
    assert "near misses: " in run("explain", waited.pk)


def test_the_hold_of_an_event_is_listed_and_not_decided() -> None:
    ReviewQueue.objects.create(slug="care", name="Care", tenant=tenant())
    waiting(), waiting()
    event = delivered().event
    (told,) = document("holds")
    assert (told["event"], told["run"], told["operation"]) == (str(event), None, None)
    assert told["summary"] == f"Event {TYPE}, “48213” from payments"
    assert f"Event {TYPE}" in run("holds")
    administrator()
    answer = ("--kind", "keep_holding", "--note", "x" * 30, "--code", "abcdef", "--by", "admin_1")
    code, said = refusal("decide", told["id"], *answer)
    assert code == 1
    assert "attach the event to a wait or dismiss it" in said
    assert Hold.objects.get().state == "open"
