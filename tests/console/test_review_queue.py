"""The ways to look at the review queue: tabs, views, filters, orders, saved views, previews."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from reconciliation.core.queue_views import Sort
from reconciliation.models import Hold, Provider, Reminder, SavedView
from reconciliation.selectors.queue_paging import KEYS
from reconciliation.services.escalating import escalate_holds
from reconciliation.services.notes import ask, comment
from reconciliation.services.saved_views import MOST, save_view
from reconciliation.services.snoozing import remind, snooze
from tests.console.posting import HTMX, fragment
from tests.deciding import ABANDON, learnt, propose, two_needed
from tests.factories import many_held, owner_of, person, reader, ready_provider, stranger
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

REVIEW = "/review/"


@pytest.fixture
def provider() -> Provider:
    return ready_provider("payments")


@pytest.fixture
def owner(client: Client, provider: Provider) -> Client:
    client.force_login(person())
    return client


def me() -> Any:
    return get_user_model().objects.get(username="reviewer_1")


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def page_at(client: Client, query: str = "", url: str = REVIEW) -> Any:
    answer = client.get(f"{url}?{query}" if query else url)
    assert answer.status_code == HTTPStatus.OK
    return answer.context["page"]


def shown(client: Client, query: str = "") -> set[Any]:
    return {row.hold for row in page_at(client, query).rows}


def changed(hold: Hold, **fields: Any) -> Hold:
    Hold.objects.filter(pk=hold.pk).update(**fields)
    return Hold.objects.get(pk=hold.pk)


def counts(views: Any) -> dict[str, str]:
    return {view.text: view.count for view in views}


# --- tabs and views ---------------------------------------------------------------------------


def test_mine_is_what_is_assigned_to_me_and_team_what_i_own_or_may_decide(
    owner: Client, provider: Provider
) -> None:
    mine, team = many_held(2, provider)
    changed(mine, assignee=me())
    other = ready_provider("machines")
    (seen_only,) = many_held(1, other)
    assert other.default_queue is not None
    reads = signed_in(reader(other.default_queue))
    assert shown(owner, "tab=mine") == {mine.pk}
    assert shown(owner, "tab=team") == {mine.pk, team.pk, seen_only.pk}
    # Whoever may only look has no team there.
    assert shown(reads) == {seen_only.pk}
    assert shown(reads, "tab=team") == set()
    assert counts(page_at(owner).tabs) == {"Mine": "1", "Team": "3", "All held": "3"}


def test_each_view_shows_its_own_and_says_how_many(owner: Client, provider: Provider) -> None:
    now = database_now()
    plain, late, closing, known, snoozed, asked, reminded = many_held(7, provider)
    changed(late, due_at=now - timedelta(minutes=1), assignee=me())
    changed(closing, window_ends_at=now + timedelta(minutes=30))
    changed(plain, window_ends_at=now - timedelta(minutes=1))  # over is not closing
    changed(known, reason="unreachable")
    changed(snoozed, snoozed_until=now + timedelta(hours=1))
    ask(asked, me(), me(), "Which card?", uuid4())
    Reminder.objects.create(hold=reminded, person=me(), at=now)
    Reminder.objects.create(hold=plain, person=me(), at=now + timedelta(hours=1))
    every = {plain.pk, late.pk, closing.pk, known.pk, snoozed.pk, asked.pk, reminded.pk}
    expected = {
        "unknown": every - {known.pk},
        "closing": {closing.pk},
        "overdue": {late.pk},
        "unassigned": every - {late.pk},
        "asked": {asked.pk},
        "reminded": {reminded.pk},
        "second": set(),
        "snoozed": {snoozed.pk},
    }
    assert {view: shown(owner, f"view={view}") for view in expected} == expected
    page = page_at(owner)
    assert [view.count for view in page.views] == [str(len(each)) for each in expected.values()]
    rows = {row.hold: row for row in page.rows}
    assert (rows[asked.pk].asks, rows[reminded.pk].reminded) == (True, True)
    assert rows[snoozed.pk].snoozed_until is not None


NOT_RELIED_ON = [
    {"replay_trust": ""},
    {"contradicted_at": "2026-03-10T03:00:00Z", "contradiction": "seen"},
]


@pytest.mark.parametrize("fields", NOT_RELIED_ON, ids=["never shown", "contradicted"])
def test_no_window_closes_where_the_key_is_not_relied_on(
    owner: Client, provider: Provider, fields: dict[str, Any]
) -> None:
    other = ready_provider("machines")
    (hold,), (kept,) = many_held(1, provider), many_held(1, other)
    soon = database_now() + timedelta(minutes=30)
    Hold.objects.update(window_ends_at=soon)

    def told() -> tuple[Any, ...]:
        page = page_at(owner)
        beside = {view.text: view.count for view in shell_of(owner).views}
        return (shown(owner, "view=closing"), counts(page.views)["Window closing"], beside)

    assert told() == ({hold.pk, kept.pk}, "2", {"Mine": "0", "Window closing": "2"})
    Provider.objects.filter(pk=provider.pk).update(**fields)
    assert told() == ({kept.pk}, "1", {"Mine": "0", "Window closing": "1"})


def shell_of(client: Client) -> Any:
    return client.get(REVIEW).context["shell"]


def test_what_is_proposed_and_void_needs_a_decision_and_no_second_person(
    owner: Client, provider: Provider
) -> None:
    void, kept = (two_needed(hold) for hold in many_held(2, provider))
    propose(void, ABANDON)
    propose(kept, ABANDON)
    assert shown(owner, "view=second") == {void.pk, kept.pk}
    assert void.operation is not None
    learnt(void.operation, "conflict")
    escalate_holds()
    assert shown(owner, "view=second") == {kept.pk}
    assert counts(page_at(owner).views)["Waiting for a second person"] == "1"


def test_what_is_snoozed_leaves_ones_own_lists_comes_back_and_is_never_hidden_from_all(
    owner: Client, provider: Provider
) -> None:
    (hold,) = many_held(1, provider)
    now = database_now()
    due = now - timedelta(minutes=5)
    changed(hold, assignee=me(), due_at=due)
    snooze(hold.pk, me(), now + timedelta(hours=1))
    assert (shown(owner, "tab=mine"), shown(owner, "tab=team")) == (set(), set())
    for query in ("", "view=overdue", "tab=mine&view=overdue", "tab=team&view=snoozed"):
        assert shown(owner, query) == {hold.pk}, query
    assert Hold.objects.get(pk=hold.pk).due_at == due
    changed(hold, snoozed_until=now)
    assert shown(owner, "tab=mine") == {hold.pk}


def test_a_count_says_no_more_than_anybody_needs(
    owner: Client, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciliation.selectors.queue_tabs.COUNTED_TO", 2)
    many_held(3, provider)
    assert counts(page_at(owner).tabs)["All held"] == "2+"


# --- filters ----------------------------------------------------------------------------------


def test_filters_narrow_the_list_and_its_counts_and_stand_in_every_link(
    owner: Client, provider: Provider
) -> None:
    now = database_now()
    large, old, other = many_held(3, provider)
    machines = ready_provider("machines")
    (elsewhere,) = many_held(1, machines)
    changed(large, amount=Decimal("1240.00"))
    changed(old, opened_at=now - timedelta(hours=5), assignee=me())
    changed(other, reason="conflict")
    cases = {
        "amount=1,000": {large.pk},
        "amount=1240": {large.pk},
        "amount=1241": set(),
        "age=4h": {old.pk},
        "assignee=me": {old.pk},
        f"assignee={me().pk}": {old.pk},
        "assignee=nobody": {large.pk, other.pk, elsewhere.pk},
        "reason=conflict": {other.pk},
        "provider=machines": {elsewhere.pk},
        "queue=payments": {large.pk, old.pk, other.pk},
        "tenant=northwind": {large.pk, old.pk, other.pk, elsewhere.pk},
        "tenant=nowhere": set(),
        "queue=payments&assignee=nobody&reason=conflict": {other.pk},
    }
    assert {query: shown(owner, query) for query in cases} == cases
    page = page_at(owner, "queue=payments&age=4h&sort=age")
    assert counts(page.tabs) == {"Mine": "1", "Team": "1", "All held": "1"}
    assert (page.total, page.all_total) == (1, 4)
    for link in (*page.tabs, *page.views, *page.sorts):
        assert "queue=payments" in link.url
        assert "age=4h" in link.url
    values = {chip.name: chip.value for chip in page.chips if chip.value}
    assert values == {"queue": "payments", "age": "4 h or longer"}
    assert page.clear_url == f"{REVIEW}?sort=age"


def test_the_file_of_a_list_has_what_the_list_shows(owner: Client, provider: Provider) -> None:
    large, _ = many_held(2, provider)
    changed(large, amount=Decimal(2000))
    url = page_at(owner, "amount=1000&view=unknown").export.url
    rows = json.loads(b"".join(owner.post(url, {"as": "json"})))
    assert [row["case"] for row in rows] == [str(large.operation_id)]


def test_options_are_what_somebody_may_see(owner: Client, provider: Provider) -> None:
    (hold,) = many_held(1, provider)
    changed(hold, assignee=owner_of(provider.default_queue, "reviewer_2"))
    nobody = signed_in(stranger())
    for name, texts in {
        "provider": ["Payments"],
        "queue": ["payments"],
        "tenant": ["Northwind"],
        "assignee": ["me", "nobody", "reviewer_2"],
        "age": None,
    }.items():
        url = reverse("review_choices", args=[name])
        options = page_at(owner, "view=unknown", url).options
        assert texts is None or [option.text for option in options] == texts
        assert all("view=unknown" in option.url for option in options)
        alone = owner.get(url, headers=HTMX).content.decode()
        assert "<html" not in alone
        if name not in ("age", "assignee"):
            assert page_at(nobody, "", url).options == ()
    assert owner.get(reverse("review_choices", args=["colour"])).status_code == 404
    # A name that is not theirs to know is not told by its number either.
    theirs = page_at(nobody, f"assignee={me().pk}").chips
    assert [chip.value for chip in theirs if chip.value] == ["somebody else"]


def test_the_focus_goes_back_to_the_filter_that_was_used(owner: Client, provider: Provider) -> None:
    many_held(1, provider)
    url = f"{REVIEW}?provider=payments"
    headers = HTMX | {"HX-Target": "queue", "HX-Trigger": "option-provider-1"}
    text = owner.get(url, headers=headers).content.decode()
    chip = text[text.index('id="chip-provider"') :]
    assert "data-focus" in chip[: chip.index(">")]


def test_the_poll_is_about_the_list_that_is_shown(owner: Client, provider: Provider) -> None:
    (mine,) = many_held(1, provider)
    changed(mine, assignee=me())
    seen = page_at(owner, "tab=mine").seen
    many_held(1, provider)
    url = f"{REVIEW}?tab=mine&seen={seen}"
    assert fragment(owner, url, "news").status_code == HTTPStatus.NO_CONTENT
    changed(mine, state="closed", closed_at=database_now())
    told = fragment(owner, url, "news")
    assert "1 settled." in told.content.decode()
    assert "/review/?tab=mine" in told.content.decode()


# --- orders -----------------------------------------------------------------------------------


def with_values(provider: Provider) -> list[Hold]:
    """Holds of which some have the same value, and some none."""
    holds = many_held(12, provider)
    now = database_now()
    for place, hold in enumerate(holds):
        changed(
            hold,
            amount=None if place % 3 == 0 else Decimal(place // 2),
            window_ends_at=None if place % 4 == 0 else now + timedelta(hours=place // 2),
            opened_at=now - timedelta(hours=place // 3),
        )
    return list(Hold.objects.all())


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("due", lambda hold: (hold.due_at, hold.pk)),
        ("amount", lambda hold: (hold.amount is None, -(hold.amount or 0), hold.pk)),
        (
            "window",
            lambda hold: (hold.window_ends_at is None, hold.window_ends_at or 0, hold.pk),
        ),
        ("age", lambda hold: (hold.opened_at, hold.pk)),
    ],
)
def test_each_order_pages_by_its_own_key_and_loses_nothing(
    owner: Client, provider: Provider, sort: str, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [hold.pk for hold in sorted(with_values(provider), key=key)]
    monkeypatch.setattr("reconciliation.selectors.queue_paging.ROWS", 5)
    pages = [page_at(owner, f"sort={sort}")]
    while pages[-1].pager.older:
        pages.append(page_at(owner, "", pages[-1].pager.older))
    assert [row.hold for page in pages for row in page.rows] == expected
    assert [len(page.rows) for page in pages] == [5, 5, 2]
    for later, earlier in zip(pages[:0:-1], pages[-2::-1], strict=True):
        back = page_at(owner, "", later.pager.newer)
        assert [row.hold for row in back.rows] == [row.hold for row in earlier.rows]


@pytest.mark.parametrize("sort", ["amount", "window", "age"])
@pytest.mark.parametrize(
    "place", ["nonsense", "none-", f"1e999999-{'0' * 32}", f"NaN-{'0' * 32}", "-1-2-3"]
)
def test_a_place_of_another_order_shows_the_beginning(
    owner: Client, provider: Provider, sort: str, place: str
) -> None:
    many_held(1, provider)
    assert len(page_at(owner, f"sort={sort}&after={place}").rows) == 1


def test_each_order_reads_its_own_index(provider: Provider) -> None:
    """Of open holds alone, whatever the history: asked of the planner, without the sort it would
    prefer for a handful of rows."""
    indexes = {
        Sort.DUE: "hold_open_due",
        Sort.AMOUNT: "hold_open_amount",
        Sort.WINDOW: "hold_open_window",
        Sort.AGE: "hold_open_age",
    }
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    for sort, index in indexes.items():
        for backwards in (False, True):
            rows = Hold.objects.filter(state="open").order_by(
                *KEYS[sort].order(backwards=backwards)
            )
            assert index in rows[:50].explain(), (sort, backwards)


# --- rows -------------------------------------------------------------------------------------


def test_a_row_tells_how_many_notes_it_has_and_how_the_latest_begins(
    owner: Client, provider: Provider
) -> None:
    (hold,) = many_held(1, provider)
    comment(hold, me(), "First.", uuid4())
    comment(hold, me(), "<b>Second</b>\n" + "word " * 60, uuid4())
    (row,) = page_at(owner).rows
    assert row.notes == 2
    assert row.last_note.startswith("<b>Second</b> word")
    assert len(row.last_note) <= 80
    assert "<b>Second" not in owner.get(REVIEW).content.decode()


def test_a_preview_tells_what_was_intended_sent_and_said(owner: Client, provider: Provider) -> None:
    (hold,) = many_held(1, provider)
    url = reverse("review_preview", args=[hold.pk])
    page = page_at(owner, "", url)
    assert page.intended == "Refund order 0."
    assert (page.sent_none, page.said_none) == ("Nothing was sent.", "Nobody was asked yet.")
    assert (page.may_claim, page.may_assign, page.may_snooze) == (True, False, True)
    cells = owner.get(f"{url}?columns=8", headers=HTMX).content.decode()
    assert cells.lstrip().startswith("<td")
    assert 'colspan="8"' in cells
    assert signed_in(stranger()).get(url).status_code == HTTPStatus.NOT_FOUND


# --- saved views ------------------------------------------------------------------------------


def test_a_saved_view_is_there_next_time_with_its_count(owner: Client, provider: Provider) -> None:
    large, _ = many_held(2, provider)
    changed(large, amount=Decimal(2000))
    url = page_at(owner, "amount=1000&sort=amount").save_url
    assert owner.get(url).status_code == HTTPStatus.OK
    assert not SavedView.objects.exists()
    answer = owner.post(url, {"name": "Large ones"})
    assert answer["Location"] == f"{REVIEW}?amount=1000&sort=amount"
    owner.post(url, {"name": "Large ones"})  # again keeps one
    (view,) = page_at(owner).saved
    assert (view.text, view.count, view.current) == ("Large ones", "1", False)
    assert [row.hold for row in page_at(owner, "", view.url).rows] == [large.pk]
    assert page_at(owner, "", view.url).saved[0].current
    assert page_at(signed_in(owner_of(provider.default_queue, "reviewer_2"))).saved == ()


def test_a_view_of_a_team_is_seen_and_removed_by_the_owners_of_its_queue(
    owner: Client, provider: Provider
) -> None:
    url = reverse("review_save") + "?view=overdue"
    reads = signed_in(reader(provider.default_queue))
    refused = reads.post(url, {"name": "Ours", "queue": "payments"})
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    owner.post(url, {"name": "Ours", "queue": "payments"})
    colleague = signed_in(owner_of(provider.default_queue, "reviewer_2"))
    assert [view.text for view in page_at(colleague).saved] == ["Ours"]
    assert page_at(reads).saved == ()
    view = SavedView.objects.get()
    remove = reverse("review_unsave", args=[view.pk])
    assert reads.post(remove).status_code == HTTPStatus.NOT_FOUND
    assert owner.get(remove).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert "Ours" in colleague.get(reverse("review_saved")).content.decode()
    assert colleague.post(remove).status_code == HTTPStatus.SEE_OTHER
    assert not SavedView.objects.exists()


def test_a_colleague_s_view_of_a_team_is_not_replaced_unseen(
    owner: Client, provider: Provider
) -> None:
    save = reverse("review_save")
    ours = {"name": "Ours", "queue": "payments"}
    colleague = signed_in(owner_of(provider.default_queue, "reviewer_2"))
    owner.post(f"{save}?view=overdue", ours)
    refused = colleague.post(f"{save}?view=unknown", ours)
    assert refused.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "reviewer_1 has kept another view under this name" in refused.content.decode()
    assert SavedView.objects.get().query == "view=overdue"
    # The very same view is no conflict, and one's own is changed.
    assert colleague.post(f"{save}?view=overdue", ours).status_code == HTTPStatus.SEE_OTHER
    assert owner.post(f"{save}?view=unknown", ours).status_code == HTTPStatus.SEE_OTHER
    assert SavedView.objects.get().query == "view=unknown"


@pytest.mark.parametrize("name", ["", " ", "\u200b", "x" * 61, "a\x00b"])
def test_a_view_needs_a_name_that_can_be_read(owner: Client, name: str) -> None:
    answer = owner.post(reverse("review_save"), {"name": name})
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert not SavedView.objects.exists()


def test_nobody_keeps_more_views_than_can_be_counted(owner: Client) -> None:
    for number in range(MOST):
        save_view(me(), f"View {number}", "")
    answer = owner.post(reverse("review_save"), {"name": "One more"})
    assert "Remove one first" in answer.content.decode()
    assert SavedView.objects.count() == MOST


# --- many -------------------------------------------------------------------------------------


def test_a_page_takes_twelve_queries_at_most_for_any_number_of_rows_views_and_people(
    owner: Client, provider: Provider
) -> None:
    assert provider.default_queue is not None
    query = "tab=team&queue=payments&provider=payments&tenant=northwind&reason=unguarded"

    def queries() -> list[int]:
        found = []
        for url in (REVIEW, f"{REVIEW}?{query}", reverse("review_choices", args=["assignee"])):
            with CaptureQueriesContext(connection) as captured:
                assert owner.get(url).status_code == HTTPStatus.OK
            found.append(len(captured))
        return found

    many_held(1, provider)
    save_view(me(), "One", "view=overdue")
    queries()  # the first asks for content types that are remembered
    few = queries()
    for name in ("reviewer_2", "reviewer_3"):
        owner_of(provider.default_queue, name)
    for number in range(5):
        save_view(me(), f"View {number}", "provider=payments&amount=10")
    for each in many_held(30, provider):
        comment(each, me(), "Seen.", uuid4())
        remind(each.pk, me(), database_now() + timedelta(hours=1))
    assert queries() == few
    assert max(few) <= 12, few
