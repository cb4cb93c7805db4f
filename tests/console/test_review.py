"""The review queue: what waits for a person, the most urgent first, and only what may be seen."""

from __future__ import annotations

import json
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.models import Hold, Provider, ReviewQueue
from reconciliation.selectors.queue_paging import ROWS
from reconciliation.services.audit import actor_of, add_entry
from tests.console.posting import HTMX, fragment
from tests.factories import (
    administrator,
    held_step_run,
    many_held,
    owner_of,
    person,
    reader,
    ready_provider,
    stranger,
    tenant,
)
from tests.statements import statements
from tests.tampering import tamper
from tests.telling import always_on_call
from workflows.models import Run, Tenant
from workflows.services.clock import database_now
from workflows.services.runs import STARTED

pytestmark = pytest.mark.django_db

REVIEW = "/review/"


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def owner(client: Client, provider: Provider) -> Client:
    client.force_login(person())
    return client


def page_at(client: Client, url: str = REVIEW) -> Any:
    answer = client.get(url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


# --- what it shows ----------------------------------------------------------------------------


def test_the_most_urgent_case_comes_first_with_its_owner_and_what_would_settle_it(
    owner: Client, provider: Provider
) -> None:
    first, second = many_held(2, provider)
    Hold.objects.filter(pk=second.pk).update(due_at=database_now() - timedelta(minutes=5))
    page = page_at(owner)
    assert [row.id for row in page.rows] == [second.operation_id, first.operation_id]
    late, soon = page.rows
    assert (late.is_late, late.is_soon, soon.is_late, soon.is_soon) == (True, False, False, True)
    assert late.owner.name == "reviewer_1"
    assert late.owner.you
    assert "may have happened once" in late.reason
    assert late.next_move == "Someone who can see the result at the provider."
    assert (page.total, page.rows[0].url) == (2, reverse("operation", args=[late.id]))


def test_a_queue_of_several_owners_is_named_as_a_group(owner: Client, provider: Provider) -> None:
    owner_of(provider.default_queue, "reviewer_2")
    many_held(1, provider)
    shown = page_at(owner).rows[0].owner
    assert (shown.name, shown.group, shown.you) == ("payments", True, True)


def test_a_held_step_leads_to_its_own_page(owner: Client) -> None:
    Provider.objects.all().delete()
    run = held_step_run()
    (row,) = page_at(owner).rows
    assert (row.id, row.url) == (run.pk, reverse("held_run", args=[run.pk]))
    assert "contract" in row.reason
    # It is about no operation, so nothing is said of a provider's key.
    assert "no key" not in owner.get(REVIEW).content.decode()


def test_an_empty_queue_says_what_that_means_and_who_decided_last(owner: Client) -> None:
    text = owner.get(REVIEW).content.decode()
    assert "Nothing is held" in text
    assert "The last decision" not in text


def test_markup_in_what_providers_and_people_wrote_is_shown_as_text(
    owner: Client, provider: Provider
) -> None:
    markup = '<img src=x onerror="document.title=1">'
    Provider.objects.filter(pk=provider.pk).update(name=markup)
    ReviewQueue.objects.update(name=markup)
    (hold,) = many_held(1, provider)
    Hold.objects.filter(pk=hold.pk).update(reason="of a later version", message=markup)
    text = owner.get(REVIEW).content.decode()
    assert markup not in text
    assert escape(markup) in text


def test_whoever_a_case_waits_for_and_may_not_decide_it_is_named_as_that(
    owner: Client, provider: Provider
) -> None:
    started, assigned, other = many_held(3, provider)
    queue = provider.default_queue
    lost, night = owner_of(queue, "lost_1"), always_on_call(queue, "night_1")
    Hold.objects.filter(pk=assigned.pk).update(assignee=lost)
    assert barred_in(owner) == {}
    remove_perm("reconciliation.decide", lost, queue)
    add_entry(actor_of(night), STARTED, f"run:{started.run_id}", {})
    assert barred_in(owner) == {
        assigned.pk: ("lost_1", "may not decide"),
        started.pk: ("night_1", "started it and may not decide"),
    }
    text = owner.get(reverse("operation", args=[started.operation_id])).content.decode()
    assert "night_1, who is on call, started it and may not decide here." in text
    # Somebody who may, on call as well, comes first.
    always_on_call(queue, "night_2")
    names = {row.hold: row.owner.name for row in page_at(owner).rows}
    assert names == {started.pk: "night_2", assigned.pk: "lost_1", other.pk: "night_1"}
    assert list(barred_in(owner)) == [assigned.pk]


def test_a_queue_of_several_owners_none_of_whom_may_decide_says_so_and_names_them(
    owner: Client, provider: Provider
) -> None:
    (hold,) = many_held(1, provider)
    queue = provider.default_queue
    others = [owner_of(queue, f"reviewer_{number}") for number in (2, 3, 4)]
    for each in others:
        remove_perm("reconciliation.decide", each, queue)
    assert barred_in(owner) == {}  # one of the four may
    remove_perm("reconciliation.decide", person(), queue)
    shown = page_at(owner).rows[0].owner
    assert (shown.name, shown.group, shown.you) == ("payments", True, True)
    said = "its owners may not decide: reviewer_1, reviewer_2 and 2 more"
    assert shown.barred == said
    assert said in owner.get(REVIEW).content.decode()
    text = owner.get(reverse("operation", args=[hold.operation_id])).content.decode()
    assert "None of the owners of payments may decide here. Assign the case to somebody" in text
    assert (
        "Nor may the owners of payments: it goes to somebody who may once it is assigned." in text
    )


def barred_in(client: Client) -> dict[Any, tuple[str, str]]:
    owners = {row.hold: row.owner for row in page_at(client).rows}
    return {hold: (one.name, one.barred) for hold, one in owners.items() if one.barred}


@pytest.mark.parametrize(
    "fields",
    [{"replay_trust": ""}, {"contradicted_at": "2026-03-10T03:00:00Z", "contradiction": "seen"}],
)
def test_a_key_that_is_not_relied_on_protects_nothing_in_the_list_and_its_file(
    owner: Client, provider: Provider, fields: dict[str, Any]
) -> None:
    (hold,) = many_held(1, provider)
    tamper(
        "reconciliation_operation",
        "first_sent_at = now(), replay_not_after = now() + interval '2 hours'",
        f"id = '{hold.operation_id}'",
    )
    (row,) = page_at(owner).rows
    assert row.window.relied_on
    assert "win-track" in owner.get(REVIEW).content.decode()
    assert protected_until(owner)
    Provider.objects.update(**fields)
    text = owner.get(REVIEW).content.decode()
    assert "not relied on" in text
    assert "win-track" not in text
    assert protected_until(owner) is None


def protected_until(client: Client) -> str | None:
    answer: Any = client.post(reverse("review_export"), {"as": "json"})
    (row,) = json.loads(b"".join(answer.streaming_content))
    until: str | None = row["protected_until"]
    return until


# --- only what may be seen --------------------------------------------------------------------


def test_cases_of_other_queues_and_tenants_are_in_no_list_and_no_count(
    owner: Client, provider: Provider
) -> None:
    many_held(1, provider)
    (other_queue,) = many_held(1, provider)
    queue = ReviewQueue.objects.create(slug="theirs", name="Theirs")
    Hold.objects.filter(pk=other_queue.pk).update(queue=queue)
    (no_queue,) = many_held(1, provider)
    Hold.objects.filter(pk=no_queue.pk).update(queue=None)
    elsewhere = Tenant.objects.create(slug="elsewhere", name="Elsewhere")
    (other_tenant,) = many_held(1, provider)
    Run.objects.filter(pk=other_tenant.run_id).update(tenant=elsewhere)
    page = page_at(owner)
    assert (len(page.rows), page.total) == (1, 1)
    assert owner.get(reverse("needs_you")).context["count"] == 1

    reads, knows_nothing, administers = Client(), Client(), Client()
    reads.force_login(reader(provider.default_queue))
    knows_nothing.force_login(stranger())
    administers.force_login(administrator())
    assert page_at(reads).total == 2  # their right came after the other tenant
    assert page_at(knows_nothing).total == 0
    assert page_at(administers).total == 4


def test_rights_that_a_group_holds_count(owner: Client, provider: Provider) -> None:
    many_held(1, provider)
    group = Group.objects.create(name="on-call")
    assign_perm("reconciliation.view_reviewqueue", group, provider.default_queue)
    assign_perm("workflows.view_tenant", group, tenant())
    member = person("member_1")
    member.groups.add(group)
    client = Client()
    client.force_login(get_user_model().objects.get(pk=member.pk))
    assert page_at(client).total == 1


def test_without_a_session_it_leads_to_the_login_page(client: Client) -> None:
    answer = client.get(REVIEW)
    assert answer["Location"] == f"{reverse('login')}?next={REVIEW}"
    polled = client.get(REVIEW, headers=HTMX | {"HX-Current-URL": f"http://testserver{REVIEW}"})
    assert polled.status_code == HTTPStatus.UNAUTHORIZED
    assert "next=%2Freview%2F" in polled["HX-Redirect"]


# --- as fragments -----------------------------------------------------------------------------


def test_htmx_gets_the_list_alone_and_history_the_whole_page(
    owner: Client, provider: Provider
) -> None:
    many_held(1, provider)
    alone = fragment(owner, REVIEW, "queue")
    assert "<html" not in alone.content.decode()
    restored = owner.get(
        REVIEW, headers=HTMX | {"HX-Target": "queue", "HX-History-Restore-Request": "true"}
    )
    assert "<html" in restored.content.decode()
    assert "HX-Request" in alone["Vary"]


def test_the_poll_tells_what_is_new_and_what_is_settled_and_then_ends(
    owner: Client, provider: Provider
) -> None:
    old, _ = many_held(2, provider)
    seen = page_at(owner).seen
    assert fragment(owner, f"{REVIEW}?seen={seen}", "news").status_code == HTTPStatus.NO_CONTENT
    many_held(3, provider)
    Hold.objects.filter(pk=old.pk).update(state="closed", closed_at=database_now())
    told = fragment(owner, f"{REVIEW}?seen={seen}", "news")
    assert told.status_code == 286
    assert "3 new, 1 settled." in told.content.decode()


def test_the_poll_tells_that_a_case_was_put_off(owner: Client, provider: Provider) -> None:
    (hold,) = many_held(1, provider)
    seen = page_at(owner).seen
    Hold.objects.filter(pk=hold.pk).update(version=2)
    assert "Something changed." in fragment(owner, f"{REVIEW}?seen={seen}", "news").content.decode()


@pytest.mark.parametrize("seen", ["", "nonsense", "0-0-0", "a-b-c-d", "---"])
def test_a_poll_with_anything_else_as_its_state_is_answered(
    owner: Client, provider: Provider, seen: str
) -> None:
    many_held(1, provider)
    assert fragment(owner, f"{REVIEW}?seen={seen}", "news").status_code == 286


def test_only_reading_is_possible(owner: Client) -> None:
    assert owner.head(REVIEW).status_code == HTTPStatus.OK
    assert owner.post(REVIEW).status_code == HTTPStatus.METHOD_NOT_ALLOWED


# --- many -------------------------------------------------------------------------------------


def test_its_queries_do_not_grow_with_its_rows(owner: Client, provider: Provider) -> None:
    def queries() -> int:
        with statements() as sent:
            page_at(owner)
        return len(sent)

    many_held(1, provider)
    queries()  # the first asks for content types that are remembered
    one = queries()
    many_held(ROWS, provider)
    always_on_call(provider.default_queue, "night_1")
    assert queries() == one <= 12


def test_pages_follow_each_other_by_key_and_lose_nothing(owner: Client, provider: Provider) -> None:
    holds = many_held(60, provider)
    # Of one due time: told apart by their ID.
    Hold.objects.filter(pk__in=[hold.pk for hold in holds[20:40]]).update(due_at=holds[20].due_at)
    pages = [page_at(owner)]
    while pages[-1].pager.older:
        pages.append(page_at(owner, pages[-1].pager.older))
    assert [len(page.rows) for page in pages] == [ROWS, ROWS, 10]
    shown = [row.id for page in pages for row in page.rows]
    expected = Hold.objects.order_by("due_at", "pk").values_list("operation_id", flat=True)
    assert shown == list(expected)
    back = page_at(owner, pages[2].pager.newer)
    assert [row.id for row in back.rows] == [row.id for row in pages[1].rows]
    assert pages[0].pager.newer == ""


@pytest.mark.parametrize("place", ["nonsense", "-", "20260101T000000.0-x", "99999999T9.9-00"])
def test_a_place_that_is_none_shows_the_beginning(
    owner: Client, provider: Provider, place: str
) -> None:
    many_held(1, provider)
    assert len(page_at(owner, f"{REVIEW}?after={place}").rows) == 1
    assert len(page_at(owner, f"{REVIEW}?before={place}").rows) == 1


def test_a_hold_that_was_decided_is_gone_from_it(owner: Client, provider: Provider) -> None:
    (hold,) = many_held(1, provider)
    Hold.objects.filter(pk=hold.pk).update(state="decided", closed_at=database_now())
    assert page_at(owner).rows == ()
