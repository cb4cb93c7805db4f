"""Providers: what each documents, whether it may send, who answers, and the runbook."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.core.facts import HoldReason
from reconciliation.models import (
    ContractVersion,
    DispatchStop,
    Profile,
    Provider,
    Rehearsal,
    ReviewQueue,
)
from reconciliation.selectors.provider_stamp import STAMP
from reconciliation.services.providers import readiness_of
from tests.console.polling import STATEMENTS, TABLE, is_told
from tests.console.posting import fragment
from tests.factories import (
    administrator,
    owner_of,
    person,
    quick_contract,
    ready_provider,
    stranger,
    switched,
)
from tests.statements import statements
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db


def console(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_of(provider: Provider, user: Any) -> Any:
    answer = console(user).get(reverse("provider", args=[provider.slug]))
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def text_of(url: str, user: Any) -> str:
    answer = console(user).get(url)
    assert answer.status_code == HTTPStatus.OK
    return str(answer.content.decode())


def test_the_page_has_contract_readiness_runbook_and_dispatch() -> None:
    provider = ready_provider("payments")
    page = page_of(provider, person("reviewer_1"))
    assert page.ready == 3
    assert page.dispatch == "on"
    assert page.dispatch_url == ""  # it is for those who may
    assert page.contract.version.startswith("rehearsal-keyed v")
    assert {line.asks for line in page.contract.questions} >= {"Can we send again safely?"}
    assert [owner.name for owner in page.queues[0].owners] == ["reviewer_1"]
    assert HoldReason.WINDOW_OVER in {hold.reason for hold in page.runbook.holds}
    text = text_of(reverse("provider", args=["payments"]), person("reviewer_1"))
    for said in ("The operation record", "The evidence that settles it", "The owner who handles"):
        assert said in text
    assert "Protection is over" in text
    assert "window_over" not in text
    assert "Idempotency-Key" in text
    assert "personalities.py" in text


def test_a_poll_tells_of_readiness_and_dispatch_and_leaves_the_switch_alone() -> None:
    provider = ready_provider("payments")
    client, url = console(person("reviewer_1")), reverse("provider", args=["payments"])
    seen = client.get(url).context["seen"]
    assert fragment(client, f"{url}?seen={seen}", "live").status_code == HTTPStatus.NO_CONTENT
    switched(provider, "paused")
    text = fragment(client, f"{url}?seen={seen}", "live").content.decode()
    assert "Paused" in text
    assert "<form" not in text


def lose_the_owner() -> None:
    ReviewQueue.objects.get().owners.clear()


def lose_the_right_to_decide() -> None:
    remove_perm("reconciliation.decide", person("reviewer_1"), ReviewQueue.objects.get())


def go_away() -> None:
    User.objects.filter(username="reviewer_2").update(is_active=False)


def decide_by_a_group() -> None:
    group = Group.objects.create(name="a team")
    assign_perm("reconciliation.decide", group, ReviewQueue.objects.get())


def stop() -> None:
    DispatchStop.objects.create(provider=None, state="off", by="system", reason="-")


def live_elsewhere() -> None:
    user = person("reviewer_1")
    Profile.objects.update_or_create(user=user, defaults={"time_zone": "Asia/Tokyo"})


@pytest.mark.parametrize(
    "change",
    [
        lambda: Provider.objects.update(base_url="http://10.0.0.1"),
        lose_the_owner,
        lose_the_right_to_decide,
        go_away,
        decide_by_a_group,
        stop,
        live_elsewhere,
        lambda: ReviewQueue.objects.create(slug="x", provider=Provider.objects.get()),
    ],
)
def test_a_poll_asks_for_a_stamp_that_changes_with_what_is_shown(
    change: Callable[[], object],
) -> None:
    ready_provider("payments")
    owner_of(ReviewQueue.objects.get(), "reviewer_2")
    client, url = console(person("reviewer_1")), reverse("provider", args=["payments"])
    polled = f"{url}?seen={client.get(url).context['seen']}"
    assert is_told(client, polled, "live", change)
    with statements() as sent:
        assert fragment(client, polled, "live").status_code == HTTPStatus.NO_CONTENT
    assert len(sent) == STATEMENTS


def test_its_stamp_is_made_of_all_that_readiness_reads() -> None:
    provider = ready_provider("payments")
    with statements() as sent:
        readiness_of(provider)
    read = {table for text in sent for table in TABLE.findall(text)}
    assert "reconciliation_reviewqueue" in read
    assert read - set(TABLE.findall(STAMP)) <= {"auth_permission", "auth_group"}


@pytest.mark.parametrize(
    ("changes", "part", "said"),
    [
        ({"contract_version": None}, "Evidence path", "a contract"),
        ({"settings": {"actions": {"x": {}}}}, "Operation record", "Field required"),
        ({"base_url": "http://10.0.0.1"}, "Operation record", "private network"),
        ({"default_queue": None}, "Owner", "a review queue"),
    ],
)
def test_each_missing_part_is_said_and_nothing_is_sent(
    changes: dict[str, Any], part: str, said: str
) -> None:
    provider = ready_provider("payments", **changes)
    page = page_of(provider, administrator())
    lacking = {each.title: " ".join(each.lacks) for each in page.parts if each.lacks}
    assert set(lacking) == {part}
    assert said in lacking[part]
    assert "If one is missing, nothing is sent" in text_of(
        reverse("provider", args=["payments"]), administrator()
    )


def test_a_contract_that_nothing_could_settle_is_no_evidence_path() -> None:
    provider = ready_provider("desk", contract_version=quick_contract("blind", answers=[]))
    (evidence,) = [each for each in page_of(provider, administrator()).parts if each.lacks]
    assert evidence.title == "Evidence path"


def test_an_overdue_review_warns_on_page_list_and_admin() -> None:
    dates = {"reviewed_on": "2020-01-01", "review_again_on": "2020-06-01"}
    provider = ready_provider("payments", contract_version=quick_contract("keyed", **dates))
    user = administrator()
    assert page_of(provider, user).contract.overdue
    pages = (
        reverse("provider", args=["payments"]),
        reverse("providers"),
        reverse("admin:reconciliation_provider_change", args=[provider.pk]),
    )
    assert all("overdue" in text_of(url, user) for url in pages)


def test_a_contract_that_was_contradicted_says_so() -> None:
    provider = ready_provider("payments")
    Provider.objects.update(
        contradicted_at=provider.contract_version.created_at,  # type: ignore[union-attr]
        contradiction="it made two for one key",
    )
    url = reverse("provider", args=["payments"])
    assert "it made two for one key" in text_of(url, administrator())


def test_nobody_sees_a_provider_without_a_right_on_it_or_its_queue() -> None:
    ready_provider("payments")
    for url in (reverse("provider", args=["payments"]), reverse("provider", args=["none"])):
        assert console(stranger()).get(url).status_code == HTTPStatus.NOT_FOUND
    assert console(stranger()).get(reverse("providers")).context["page"].rows == ()
    assert Client().get(reverse("providers")).status_code == HTTPStatus.FOUND


def test_who_may_turn_dispatch_is_led_there() -> None:
    provider = ready_provider("payments")
    user = person("operator_1")
    assign_perm("reconciliation.pause_dispatch", user, provider)
    page = page_of(provider, user)
    assert page.dispatch_url.endswith("?provider=payments")
    assert page.queues == ()  # and sees no queue that is not theirs


# --- rehearsals, rights, the switch -----------------------------------------------------------


def rehearsed(provider: Provider, *states: str, **fields: Any) -> None:
    """A rehearsal in which each case ended in one of `states`."""
    cases = [
        {
            "what": f"case {place}",
            "destination": {"effects": ["re_1"] * fields.get("effects", 1)},
            "ledger": {"state": state, "transmissions": ["first: unknown"]},
        }
        for place, state in enumerate(states)
    ]
    now = database_now()
    Rehearsal.objects.create(
        provider=provider,
        contract_version=fields.get("contract", provider.contract_version),
        started_at=now,
        complete=True,
        claims={"look_up": "confirmed"},
        cases=cases,
        breaches=0,
    )


def test_what_was_staged_stands_beside_how_it_ended() -> None:
    provider = ready_provider("payments")
    rehearsed(provider, "verified", "held")
    rehearsed(provider, "verified", "verified")
    rehearsed(provider, "held", "held", contract=quick_contract("keyed"))  # of another contract
    matrix = page_of(provider, administrator()).matrix
    assert matrix.columns == (
        "Known at once",
        "Settled by look-up",
        "Settled by replay",
        "Held for a person",
    )
    counts = {row.what: [cell.count for cell in row.cells] for row in matrix.rows}
    assert counts == {"Case 0": [0, 2, 0, 0], "Case 1": [0, 1, 0, 1]}
    assert [cell.shade for cell in matrix.rows[1].cells] == ["z", "h2", "z", "h2"]
    assert (matrix.totals, matrix.played, matrix.rehearsals) == ((0, 3, 0, 1), 4, 2)
    assert matrix.twice == 0


def test_a_second_effect_in_a_rehearsal_is_said_in_words_and_icon() -> None:
    provider = ready_provider("payments")
    rehearsed(provider, "verified", effects=2)
    assert page_of(provider, administrator()).matrix.twice == 1
    assert 'class="r bad"' in text_of(reverse("provider", args=["payments"]), administrator())


def test_who_may_do_what_is_shown_for_the_queues_that_the_reader_may_see() -> None:
    provider = ready_provider("payments")
    group = Group.objects.create(name="Payments platform")
    group.user_set.add(person("ada"), person("gone", is_active=False))
    assign_perm("reconciliation.configure", group, provider)
    hidden = ReviewQueue.objects.create(slug="other", name="Other", provider=provider)
    assign_perm("reconciliation.second", person("unseen"), hidden)
    page = page_of(provider, person("reviewer_1"))
    may = {
        row.owner.name: dict(zip(page.right_columns, row.may, strict=True)) for row in page.holders
    }
    assert set(may) == {"Payments platform", "reviewer_1"}
    assert [name for name, has in may["reviewer_1"].items() if has] == ["See", "Decide, ask"]
    assert [name for name, has in may["Payments platform"].items() if has] == ["Set up"]
    assert [row.members for row in page.holders] == [1, None]


def test_the_switch_is_thrown_from_its_page_by_who_may() -> None:
    provider = ready_provider("payments")
    operator = person("operator_1")
    assign_perm("reconciliation.pause_dispatch", operator, provider)
    switch = page_of(provider, operator).switch
    assert (switch.state, switch.url, switch.stops) == ("on", "/dispatch/change/", ())
    given = {"provider": "payments", "state": "paused", "reason": "They are down since 03:00."}
    answer = console(operator).post(switch.url, given)
    assert answer.status_code == HTTPStatus.SEE_OTHER
    assert page_of(provider, operator).dispatch == "paused"
    assert page_of(provider, person("reviewer_1")).switch.url == ""


def test_a_wider_stop_is_said_on_its_page_too() -> None:
    provider = ready_provider("payments")
    DispatchStop.objects.create(state="paused", by="user:1 ada", reason="All of it rests.")
    (stop,) = page_of(provider, person("reviewer_1")).switch.stops
    assert (stop.covers, stop.by) == ("everything", "ada")


def test_the_list_says_who_sends_nothing_and_why() -> None:
    ready_provider("payments")
    ready_provider("machines", contract_version=None)
    rows = console(administrator()).get(reverse("providers")).context["page"].rows
    assert [(row.provider.text, list(row.lacks)) for row in rows] == [
        ("Machines", ["Evidence path"]),
        ("Payments", []),
    ]


def test_a_page_costs_the_same_whatever_its_queues() -> None:
    provider = ready_provider("payments")
    user = person("reviewer_1")
    url = reverse("provider", args=["payments"])
    client = console(user)
    client.get(url)
    with statements() as before:
        client.get(url)
    for number in range(8):
        queue = ReviewQueue.objects.create(slug=f"q{number}", name="q", provider=provider)
        assign_perm("reconciliation.view_reviewqueue", user, queue)
        queue.owners.add(person(f"owner_{number}"))
    with statements() as after:
        client.get(url)
    assert len(after) <= len(before) + 2
    assert len(after) <= 17  # those of the session and of the frame among them


# --- the command ------------------------------------------------------------------------------


def test_the_runbook_is_printed_as_it_is_set_up() -> None:
    ready_provider("payments", default_queue=None)
    said = StringIO()
    call_command("runbook", "payments", stdout=said)
    assert "Nothing is sent. It lacks:" in said.getvalue()
    assert "Evidence that settles it" in said.getvalue()
    ready_provider("machines")
    said = StringIO()
    call_command("runbook", "--all", "--json", stdout=said)
    documents = json.loads(said.getvalue())
    assert [document["provider"] for document in documents] == ["machines", "payments"]
    assert documents[0]["owners"] == {"machines": ["reviewer_1"]}
    with pytest.raises(CommandError, match="no provider 'none'"):
        call_command("runbook", "none")


def test_the_page_says_how_fast_the_provider_is_asked_and_why() -> None:
    machines = ready_provider("machines", look_ups_per_second=15)

    def pace() -> tuple[str, str]:
        lines = page_of(machines, person()).contract.questions
        (line,) = (line for line in lines if line.asks == "How fast do we ask?")
        return line.answer, line.known

    said = "At most 15 look-ups a second, by all workers together."
    assert pace() == (said, "our own setting")
    rule = ContractVersion.objects.get(slug="rehearsal-lookup", version=1).document["look_up"]
    rate = {"per_second": 5, "source": {"title": "Rate limits", "evidence": "primary"}}
    slower = quick_contract("lookup", look_up=rule | {"rate": rate})
    Provider.objects.update(contract_version=slower)
    machines.refresh_from_db()
    assert pace() == (said.replace("15", "5"), "read at the provider")
    cannot_be_asked = page_of(ready_provider("desk"), person()).contract.questions
    assert "How fast do we ask?" not in {line.asks for line in cannot_be_asked}


def test_each_answer_of_the_contract_says_how_it_is_known() -> None:
    provider = ready_provider("payments", replay_trust="Rehearsed on 2 March 2026.")
    known = {line.asks: line.known for line in page_of(provider, person()).contract.questions}
    assert known["Can we send again safely?"] == "Rehearsed on 2 March 2026."
    assert known["How long do we wait?"] == "our own setting"
    assert known["Can it be undone?"] == "seen in a run"
    Provider.objects.filter(pk=provider.pk).update(replay_trust="")
    known = {line.asks: line.known for line in page_of(provider, person()).contract.questions}
    assert known["Can we send again safely?"].endswith("not used: never shown here, nor accepted")
