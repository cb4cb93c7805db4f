"""Who can do what, shown per object and per person; given and taken, and by whom not."""

from __future__ import annotations

import re
from decimal import Decimal
from http import HTTPStatus
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from guardian.models import GroupObjectPermission, UserObjectPermission
from guardian.shortcuts import assign_perm, remove_perm

from reconciliation.core.errors import NotYoursToGive
from reconciliation.models import AuditEntry, Hold, Provider, ReviewQueue
from reconciliation.services.setup import make_owner, set_owners
from romulus_site.rights.change import (
    RightsChangedMeanwhile,
    RightsRefused,
    direct_rights,
    set_rights,
)
from romulus_site.rights.kinds import KINDS
from tests.console.posting import form_at, post, url_of
from tests.factories import administrator, many_held, person, ready_provider, tenant
from workflows.models import Tenant

pytestmark = pytest.mark.django_db


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(User.objects.get(pk=user.pk))
    return client


@pytest.fixture
def admin() -> Client:
    return signed_in(administrator())


@pytest.fixture
def queue() -> ReviewQueue:
    return ReviewQueue.objects.create(slug="refunds", name="Refunds", tenant=tenant())


@pytest.fixture
def deputy(queue: ReviewQueue) -> User:
    """Staff who may set the queue up, and see it, and decide nothing."""
    user: User = person("deputy_1", is_staff=True)
    for right in ("configure", "view_reviewqueue"):
        assign_perm(f"reconciliation.{right}", user, queue)
    return user


def test_every_right_that_is_held_on_an_object_can_be_given_there() -> None:
    for model in apps.get_models():
        own = {codename for codename, _ in model._meta.permissions}
        if own:
            (kind,) = (each for each in KINDS.values() if each.model is model)
            assert own <= set(kind.codenames)


def group(name: str, *members: Any) -> Group:
    made = Group.objects.create(name=name)
    made.user_set.set(members)
    return made


def rights_page(client: Client, subject: Any, kind: str = "queue", **query: str) -> Any:
    return client.get(reverse("rights", args=[kind, subject.pk]), query)


def change_url(subject: Any, holder: User | Group, kind: str = "queue") -> str:
    whose = "person" if isinstance(holder, User) else "group"
    return reverse("rights_change", args=[kind, subject.pk, whose, holder.pk])


def give(client: Client, subject: Any, holder: Any, *rights: str, kind: str = "queue") -> Any:
    """Through the form, as it is shown."""
    url = change_url(subject, holder, kind)
    seen = re.search(r'name="seen" value="([^"]*)"', client.get(url).content.decode())
    assert seen is not None
    return client.post(url, {"right": rights, "seen": seen[1]})


@pytest.mark.parametrize("field", ["who", "people", "groups"])
def test_what_no_name_can_be_is_nobody(admin: Client, queue: ReviewQueue, field: str) -> None:
    assert rights_page(admin, queue, **{field: "a\0b"}).status_code == HTTPStatus.OK
    about = reverse("rights_of_person", args=[administrator().pk])
    assert admin.get(about, {"queue": "\0"}).status_code == HTTPStatus.OK


# --- shown ------------------------------------------------------------------------------------


def held(answer: Any) -> dict[str, dict[str, list[str]]]:
    page = answer.context["page"]
    return {
        row.name: {cell.word: cell.means for cell in row.cells if cell.means}
        for row in (*page.people, *page.groups)
    }


def test_an_object_shows_everybody_who_can_do_something_and_how(
    admin: Client, queue: ReviewQueue
) -> None:
    make_owner(person("owner_1"), queue)
    team = group("On call", person("member_1"), person("closed_1", is_active=False))
    assign_perm("reconciliation.decide", team, queue)
    reader = person("reader_1")
    reader.user_permissions.add(Permission.objects.get(codename="view_reviewqueue"))
    person("nobody_1")
    answer = rights_page(admin, queue)
    found = held(answer)
    owns = ("View", "Decide", "Assign", "Second")
    assert found["owner_1"] == {right: ["given"] for right in owns}
    assert found["member_1"] == {"Decide": ["by On call"]}
    assert found["reader_1"] == {"View": ["on all of them"]}
    assert found["admin_1"].keys() == {"View", "Decide", "Assign", "Second", "Configure"}
    assert found["closed_1"] == {}
    assert found["On call"] == {"Decide": ["given"]}
    assert "nobody_1" not in found
    marks = {row.name: row.mark for row in answer.context["page"].people}
    assert (marks["owner_1"], marks["closed_1"]) == ("owner", "account closed: can do nothing")


def test_a_person_shows_what_they_can_do_and_by_what(admin: Client, queue: ReviewQueue) -> None:
    ada = person("ada")
    team = group("On call", ada)
    assign_perm("reconciliation.decide", team, queue)
    assign_perm("reconciliation.decide", ada, queue)
    assign_perm("workflows.view_tenant", ada, tenant("a"))
    page = admin.get(reverse("rights_of_person", args=[ada.pk])).context["page"]
    shown = {
        row.name: {cell.word: cell.means for cell in row.cells if cell.means}
        for section in page.sections
        for row in section.rows
    }
    assert shown == {"Refunds": {"Decide": ["given", "by On call"]}, "A": {"View": ["given"]}}
    of_team = admin.get(reverse("rights_of_group", args=[team.pk])).context["page"]
    assert [row.name for row in of_team.sections[0].rows] == ["Refunds"]


def test_pages_take_as_many_queries_for_many_as_for_few(admin: Client, queue: ReviewQueue) -> None:
    def queries(url: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            assert admin.get(url).status_code == HTTPStatus.OK
        return len(asked)

    ada = person("ada")
    make_owner(ada, queue)
    first = group("G0", ada, person("member_0"))
    for each, right in ((queue, "decide"), (queue, "view_reviewqueue"), (tenant(), "view_tenant")):
        assign_perm(f"{each._meta.app_label}.{right}", first, each)
    urls = [
        reverse("rights", args=["queue", queue.pk]),
        reverse("rights_of_person", args=[ada.pk]),
        change_url(queue, ada),
    ]
    for url in urls:
        queries(url)  # what is remembered from the first time on
    before = [queries(url) for url in urls]
    for place in range(1, 8):
        team = group(f"G{place}", ada, person(f"member_{place}"))
        assign_perm("reconciliation.decide", team, queue)
        another = ReviewQueue.objects.create(slug=f"q{place}", name=f"Q{place}")
        make_owner(ada, another)
        assign_perm("reconciliation.view_reviewqueue", team, another)
        assign_perm("workflows.view_tenant", team, tenant(f"t{place}"))
    assert [queries(url) for url in urls] == before
    assert max(before) <= 12


def test_lists_are_paged_by_name(admin: Client, queue: ReviewQueue) -> None:
    people = User.objects.bulk_create(User(username=f"p{n:03}") for n in range(60))
    team = group("All", *people)
    assign_perm("reconciliation.decide", team, queue)
    first = rights_page(admin, queue).context["page"]
    assert len(first.people) == 50
    second = rights_page(admin, queue, people=first.next_people).context["page"]
    assert [row.name for row in second.people] == [f"p{n:03}" for n in range(49, 60)]
    assert second.next_people == ""


# --- given and taken --------------------------------------------------------------------------


def test_rights_are_set_on_record_with_before_and_after(admin: Client, queue: ReviewQueue) -> None:
    ada = person("ada")
    assert give(admin, queue, ada, "view_reviewqueue", "decide").status_code == HTTPStatus.SEE_OTHER
    give(admin, queue, ada, "view_reviewqueue", "second")
    team = group("On call")
    give(admin, queue, team, "assign")
    assert direct_rights(queue, ada) == {"view_reviewqueue", "second"}
    entries = list(AuditEntry.objects.filter(verb="set rights").order_by("seq"))
    assert entries[1].detail == {
        "of": f"user:{ada.pk} ada",
        "before": ["decide", "view_reviewqueue"],
        "after": ["second", "view_reviewqueue"],
    }
    assert entries[2].detail["of"] == f"group:{team.pk} On call"
    assert {(entry.object, entry.actor[-7:]) for entry in entries} == {("queue:refunds", "admin_1")}


def test_somebody_is_found_by_name_and_nobody_is_said(admin: Client, queue: ReviewQueue) -> None:
    ada, team = person("ada"), group("On call")
    assert rights_page(admin, queue, who="ada")["Location"] == change_url(queue, ada)
    assert rights_page(admin, queue, who="On call")["Location"] == change_url(queue, team)
    text = rights_page(admin, queue, who="<b>").content.decode()
    assert "Neither a person nor a group is called &lt;b&gt;" in text


def test_what_changed_meanwhile_is_not_overwritten(queue: ReviewQueue, admin: Client) -> None:
    ada = person("ada")
    set_rights(queue, ada, {"decide"}, seen=set(), by=administrator())
    url = change_url(queue, ada)
    answer = admin.post(url, {"right": ["assign"], "seen": ""})
    assert answer.status_code == HTTPStatus.CONFLICT
    assert "Somebody else has changed these rights" in answer.content.decode()
    with pytest.raises(RightsChangedMeanwhile):
        set_rights(queue, ada, set(), seen=set(), by=administrator())
    assert direct_rights(queue, ada) == {"decide"}


def test_a_right_that_the_object_does_not_know_is_refused(queue: ReviewQueue) -> None:
    with pytest.raises(RightsRefused, match="no such right"):
        set_rights(queue, person("ada"), {"view_payloads"}, seen=set(), by=administrator())


# --- by whom ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["queue", "provider", "tenant", "source"])
def test_the_pages_are_for_those_who_may_set_the_object_up(kind: str, queue: ReviewQueue) -> None:
    """Others are answered as if there were no such object; who is no staff, as by the admin."""
    subject = queue if kind == "queue" else tenant()
    staff = signed_in(person("staff_1", is_staff=True))
    there = rights_page(staff, subject, kind)
    nowhere = staff.get(reverse("rights", args=[kind, "00000000-0000-7000-8000-000000000000"]))
    assert there.status_code == nowhere.status_code == HTTPStatus.NOT_FOUND
    posted = staff.post(change_url(subject, person("ada"), kind), {"right": ["decide"]})
    assert posted.status_code == HTTPStatus.NOT_FOUND
    plain = person("plain_1")
    assign_perm("reconciliation.configure", plain, queue)
    refused = rights_page(signed_in(plain), queue)
    assert refused.status_code in (HTTPStatus.FOUND, HTTPStatus.FORBIDDEN)


def test_whoever_only_sets_up_gives_nobody_a_right_that_they_lack(
    queue: ReviewQueue, deputy: User
) -> None:
    client, ada = signed_in(deputy), person("ada")
    answer = give(client, queue, ada, "decide")
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "Not yours: decide" in answer.content.decode()
    assert direct_rights(queue, ada) == set()
    assert give(client, queue, ada, "view_reviewqueue").status_code == HTTPStatus.SEE_OTHER
    assert direct_rights(queue, ada) == {"view_reviewqueue"}


def test_nor_do_they_take_one(queue: ReviewQueue, deputy: User) -> None:
    ada = person("ada")
    make_owner(ada, queue)
    assert give(signed_in(deputy), queue, ada).status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "decide" in direct_rights(queue, ada)


def test_nobody_changes_their_own_rights_nor_those_of_their_group(
    queue: ReviewQueue, deputy: User
) -> None:
    client, team = signed_in(deputy), group("Deputies", deputy)
    for holder in (deputy, team):
        answer = give(client, queue, holder, "configure")
        assert "for somebody else to change" in answer.content.decode()
    assert direct_rights(queue, deputy) == {"configure", "view_reviewqueue"}
    assert direct_rights(queue, team) == set()


def test_nor_by_making_themselves_an_owner(queue: ReviewQueue, deputy: User) -> None:
    url = reverse("admin:reconciliation_reviewqueue_change", args=[queue.pk])
    fields = {
        "name": "Refunds",
        "slug": "refunds",
        "tenant": str(tenant().pk),
        "provider": "",
        "action": "",
        "owners": [str(deputy.pk)],
    }
    client = signed_in(deputy)
    form = client.get(url).context["adminform"].form
    shown = {name: form.initial.get(name) for name in form.fields}
    fields = {name: "" if value is None else value for name, value in shown.items()} | fields
    text = client.post(url, fields).content.decode()
    assert "You cannot give that to yourself" in text
    with pytest.raises(NotYoursToGive):
        set_owners(queue, [person("ada")], by=deputy)
    assert not queue.owners.exists()
    # What is theirs to set up, they set up.
    assert client.post(url, fields | {"owners": [], "name": "New"})["Location"].endswith(
        "/reviewqueue/"
    )
    queue.refresh_from_db()
    assert queue.name == "New"


def test_nor_by_leading_a_queue_that_they_own_to_another_tenant(deputy: User) -> None:
    mine = ReviewQueue.objects.create(slug="mine", name="Mine")
    make_owner(deputy, mine)
    assign_perm("reconciliation.configure", deputy, mine)
    mine.tenant = tenant("secret")
    with pytest.raises(NotYoursToGive):
        set_owners(mine, [deputy], by=User.objects.get(pk=deputy.pk))


AMOUNT = Decimal(100)
LOOSER = [((2, None), (1, None)), ((1, AMOUNT), (1, None)), ((1, AMOUNT), (1, 10 * AMOUNT))]


@pytest.mark.parametrize(("before", "after"), LOOSER, ids=["two", "no amount", "a larger one"])
def test_nor_do_they_let_themselves_decide_alone_what_takes_two(
    queue: ReviewQueue, deputy: User, before: Any, after: Any
) -> None:
    """Else one person could propose, loosen the rule, and decide."""
    queue.approvals_needed, queue.second_from = before
    queue.save()
    assign_perm("reconciliation.decide", deputy, queue)
    client = signed_in(deputy)
    fields = {"approvals_needed": after[0], "second_from": after[1] or ""}
    text = save_queue_form(client, queue, **fields).content.decode()
    assert "it is for somebody else to say" in text
    assert people_asked(queue) == before
    # Stricter is theirs to make it, and looser for whoever decides nothing there.
    stricter = {"approvals_needed": 2, "second_from": ""}
    assert save_queue_form(client, queue, **stricter).status_code == HTTPStatus.FOUND
    remove_perm("reconciliation.decide", deputy, queue)
    assert save_queue_form(client, queue, **fields).status_code == HTTPStatus.FOUND
    assert people_asked(queue) == after


def save_queue_form(client: Client, queue: ReviewQueue, **fields: Any) -> Any:
    """Save the queue's form in the admin as it is shown, but for `fields`."""
    url = reverse("admin:reconciliation_reviewqueue_change", args=[queue.pk])
    form = client.get(url).context["adminform"].form
    shown = {name: form.initial.get(name) for name in form.fields} | fields
    return client.post(url, {name: "" if v is None else v for name, v in shown.items()})


def people_asked(queue: ReviewQueue) -> tuple[int, Decimal | None]:
    queue.refresh_from_db()
    return queue.approvals_needed, queue.second_from


def test_staff_find_in_the_admin_what_they_may_set_up_and_nothing_else(
    queue: ReviewQueue, deputy: User
) -> None:
    ReviewQueue.objects.create(slug="other", name="Other")
    client = signed_in(deputy)
    index = client.get(reverse("admin:index")).content.decode()
    assert "Review queues" in index
    assert "Tenants" not in index
    listed = client.get(reverse("admin:reconciliation_reviewqueue_changelist")).content.decode()
    assert "Refunds" in listed
    assert "Other" not in listed


# --- A23 --------------------------------------------------------------------------------------


@pytest.fixture
def hold() -> Hold:
    return many_held(1, ready_provider("payments"))[0]


def test_a_right_that_is_taken_away_is_gone_at_the_next_request(hold: Hold) -> None:
    """Case A23: in an open session, directly and by a group; only what is named goes."""
    queue, ada = hold.queue, person("ada")
    assert queue is not None
    team = group("On call", ada)
    for right in ("view_reviewqueue", "decide"):
        assign_perm(f"reconciliation.{right}", ada, queue)
        assign_perm(f"reconciliation.{right}", team, queue)
    assign_perm("workflows.view_tenant", ada, hold.run.tenant)
    client = signed_in(ada)
    form = form_at(client, url_of(hold.operation))
    set_rights(queue, ada, {"view_reviewqueue"}, seen=direct_rights(queue, ada), by=administrator())
    assert form_at(client, url_of(hold.operation))  # by the group still
    team.user_set.remove(ada)
    assert post(client, form, "abandon").status_code == HTTPStatus.FORBIDDEN
    page = client.get(url_of(hold.operation)).context["page"]
    assert page.decide is None
    assert client.get("/review/").context["page"].total == 1  # View was not named, and stays
    set_rights(queue, ada, set(), seen={"view_reviewqueue"}, by=administrator())
    assert client.get("/review/").context["page"].total == 0


@pytest.mark.parametrize("kind", ["tenant", "queue", "provider"])
def test_rights_leave_with_their_object_and_never_fit_another(kind: str) -> None:
    """Case A23: a new object with the same key is nobody's."""
    ada, team = person("ada"), group("On call")
    ada.groups.add(team)
    model: Any = {"tenant": Tenant, "queue": ReviewQueue, "provider": Provider}[kind]
    fields: dict[str, Any] = {"slug": "old", "name": "Old"}
    subject = model.objects.create(**fields)
    view = f"{model._meta.app_label}.view_{model._meta.model_name}"
    assign_perm(view, ada, subject)
    assign_perm(view, team, subject)
    kept = model.objects.create(slug="kept", name="Kept")
    assign_perm(view, ada, kept)
    key = subject.pk
    subject.delete()
    again = model.objects.create(pk=key, slug="new", name="New")
    assert not UserObjectPermission.objects.filter(object_pk=str(key)).exists()
    assert not GroupObjectPermission.objects.filter(object_pk=str(key)).exists()
    fresh = User.objects.get(pk=ada.pk)
    assert not fresh.has_perm(view, again)
    assert fresh.has_perm(view, kept)
