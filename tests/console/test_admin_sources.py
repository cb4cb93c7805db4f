"""Sources in the admin: checked by field, on record, tried without storing, no secret shown."""

from __future__ import annotations

import gzip
import json
import re
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.models import AuditEntry
from tests.delivering import deliver, paid, refusals, signed, source
from tests.factories import administrator, person, started_run, tenant
from tests.signing import OTHER_STANDARD_SECRET, STANDARD_SECRET, TOPIC, secret_of, sns_signer
from workflows.core.errors import InvalidSource
from workflows.core.sources import Scheme
from workflows.models import Event, EventSource, RefusalCount, SourceSecret, Wait
from workflows.sealing import unseal
from workflows.services import known_sources
from workflows.services.clock import database_now
from workflows.services.known_sources import PURPOSE
from workflows.services.sources import MAX_LABEL, add_secret, end_secret, save_source

pytestmark = pytest.mark.django_db

BY = "command:tests"


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(administrator())
    return client


def url(made: EventSource, name: str = "change", *more: Any) -> str:
    return reverse(f"admin:workflows_eventsource_{name}", args=[made.pk, *more])


def errors(answer: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = answer.context["adminform"].form.errors
    return found


def fields(**changes: Any) -> dict[str, Any]:
    """What the admin's form posts of a new source."""
    given = {
        "name": "Shop",
        "slug": "shop",
        "tenant": str(tenant().pk),
        "enabled": "on",
        "scheme": "standard_webhooks",
        "settings": "{}",
        "tolerance": "00:05:00",
        "id_path": "",
        "type_path": "",
        "correlation_path": "data.order",
        "schemas": "{}",
        "max_bytes": "1048576",
        "per_minute": "",
        "content_types": '["application/json"]',
        "encodings": '["gzip"]',
        "retain": "",
        "secrets-TOTAL_FORMS": "0",
        "secrets-INITIAL_FORMS": "0",
    }
    return given | changes


def add(admin: Client, **changes: Any) -> Any:
    return admin.post(reverse("admin:workflows_eventsource_add"), fields(**changes))


# --- setting up -------------------------------------------------------------------------------


def test_a_source_is_set_up_on_record_and_then_takes_deliveries(admin: Client) -> None:
    answer = add(admin)
    assert answer.status_code == HTTPStatus.FOUND, errors(answer)
    made = EventSource.objects.get()
    entry = AuditEntry.objects.get(verb="set up")
    assert (entry.object, entry.actor[-7:]) == ("source:shop", "admin_1")
    page = admin.get(url(made)).content.decode()
    assert "/hooks/shop/" in page
    assert "Last accepted: never" in page
    added = admin.post(url(made, "add_secret"), {"label": "first", "value": STANDARD_SECRET})
    assert added.status_code == HTTPStatus.FOUND
    assert deliver(Client(), paid()).status_code == HTTPStatus.ACCEPTED


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"scheme": "path"}, "scheme", "not one of the available choices"),
        ({"scheme": "hmac"}, "settings", "header: Field required"),
        ({"correlation_path": "data["}, "correlation_path", "This is no JMESPath"),
        ({"correlation_path": ""}, "correlation_path", "Say where it stands"),
        ({"schemas": '{"paid": {"type": "text"}}'}, "schemas", "this is no JSON Schema"),
        ({"schemas": "{"}, "schemas", "no JSON from line 1, character 2 on"),
        ({"max_bytes": "0"}, "max_bytes", "Between 1 and"),
        ({"per_minute": "0"}, "per_minute", "greater than or equal to 1"),
        ({"encodings": '["br"]'}, "encodings", "deflate, gzip"),
        ({"slug": "a shop"}, "slug", "valid “slug”"),
        ({"tolerance": "00:00:00"}, "tolerance", "More than nothing"),
    ],
)
def test_what_cannot_work_is_refused_by_its_field(
    admin: Client, changes: dict[str, str], field: str, told: str
) -> None:
    answer = add(admin, **changes)
    assert answer.status_code == HTTPStatus.OK
    assert told in " ".join(errors(answer)[field])
    assert not EventSource.objects.exists()
    assert not AuditEntry.objects.filter(verb="set up").exists()


def test_secrets_that_are_posted_of_a_source_that_is_being_added_are_none(admin: Client) -> None:
    made_up = {"secrets-TOTAL_FORMS": "3", "secrets-0-label": "x"}
    answer = add(admin, correlation_path="", **made_up)
    assert answer.status_code == HTTPStatus.OK
    assert "correlation_path" in errors(answer)
    assert add(admin, **made_up).status_code == HTTPStatus.FOUND
    assert not SourceSecret.objects.exists()


def test_code_that_saves_a_source_is_told_the_same() -> None:
    with pytest.raises(InvalidSource, match="correlation_path: Say where it stands"):
        source(correlation_path="")
    made = source()
    made.schemas = {"paid": {"$ref": "https://example.com/s.json"}}
    with pytest.raises(InvalidSource, match="may only refer to its own parts"):
        save_source(made, by=BY, changed=["schemas"])
    with pytest.raises(InvalidSource, match="per_minute: Ensure this value is greater"):
        source(slug="other", per_minute=0)
    with pytest.raises(InvalidSource, match="slug: "):
        source(slug="shop")


def test_a_scheme_is_not_changed_under_secrets_of_another() -> None:
    made = source(Scheme.BEARER)
    made.scheme = Scheme.STANDARD_WEBHOOKS
    with pytest.raises(InvalidSource, match="scheme: The source has secrets of the scheme"):
        save_source(made, by=BY, changed=["scheme"])
    end_secret(made.secrets.get(), by=BY)
    save_source(made, by=BY, changed=["scheme"])
    known_sources.forget()
    assert deliver(Client(), paid()).status_code == HTTPStatus.UNAUTHORIZED


def test_a_source_stays_with_its_tenant(admin: Client) -> None:
    made = source()
    other = tenant("other")
    made.tenant = other
    with pytest.raises(InvalidSource, match="tenant: A source stays with its tenant"):
        save_source(made, by=BY, changed=["tenant"])
    answer = admin.post(url(made), fields(tenant=str(other.pk)))
    assert answer.status_code == HTTPStatus.FOUND
    assert EventSource.objects.get().tenant == tenant()


def test_a_source_is_never_deleted_and_only_by_whoever_may_changed(admin: Client) -> None:
    made = source()
    assert admin.post(url(made, "delete"), {"post": "yes"}).status_code == HTTPStatus.FORBIDDEN
    staff = person("staff_1", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_eventsource"))
    reader = Client()
    reader.force_login(get_user_model().objects.get(pk=staff.pk))
    assert reader.get(url(made)).status_code == HTTPStatus.OK
    assert reader.get(url(made, "try")).status_code == HTTPStatus.OK
    for name in ("add_secret",):
        assert reader.get(url(made, name)).status_code == HTTPStatus.FORBIDDEN
    secret = made.secrets.get()
    ending = url(made, "end_secret", secret.pk)
    assert reader.post(ending, {"at": ""}).status_code == HTTPStatus.FORBIDDEN
    assert Client().get(url(made)).status_code == HTTPStatus.FOUND


def test_a_right_on_a_source_is_on_record(admin: Client) -> None:
    made, someone = source(), person("sender_1")
    give = reverse("rights_change", args=["source", made.pk, "person", someone.pk])
    admin.post(give, {"right": ["send_event"]})
    assert get_user_model().objects.get(pk=someone.pk).has_perm("workflows.send_event", made)
    entry = AuditEntry.objects.get(verb="set rights")
    assert entry.object == "source:shop"
    assert entry.detail["after"] == ["send_event"]


# --- secrets ----------------------------------------------------------------------------------


def test_a_secret_is_sealed_on_record_and_never_shown(admin: Client) -> None:
    made = source()
    answer = admin.post(url(made, "add_secret"), {"label": "new", "value": OTHER_STANDARD_SECRET})
    assert answer.status_code == HTTPStatus.FOUND
    row = SourceSecret.objects.get(label="new")
    assert unseal(row.sealed, PURPOSE).decode() == OTHER_STANDARD_SECRET
    entries = AuditEntry.objects.filter(verb="added secret").order_by("seq")
    assert entries[1].detail["label"] == "new"
    pages = [url(made), url(made, "history"), url(made, "add_secret"), url(made, "try")]
    for page in pages:
        text = admin.get(page).content.decode()
        assert OTHER_STANDARD_SECRET[6:] not in text
        assert STANDARD_SECRET[6:] not in text
    assert OTHER_STANDARD_SECRET[6:] not in json.dumps([entry.detail for entry in entries])


def test_a_secret_that_is_made_here_is_shown_once_and_works(admin: Client) -> None:
    made = source()
    SourceSecret.objects.all().delete()
    answer = admin.post(url(made, "add_secret"), {"label": "made", "value": ""})
    assert answer.status_code == HTTPStatus.OK
    assert "no-store" in answer.headers["Cache-Control"]
    shown = re.search(r'id="made-secret">([^<]+)<', answer.content.decode())
    assert shown is not None
    assert shown[1].startswith("whsec_")
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid(), secret=shown[1])
    assert deliver(Client(), paid(), headers).status_code == HTTPStatus.ACCEPTED
    assert shown[1] not in admin.get(url(made)).content.decode()


def test_stripe_gives_out_the_secret_itself(admin: Client) -> None:
    made = source(Scheme.STRIPE)
    answer = admin.post(url(made, "add_secret"), {"label": "made", "value": ""})
    assert answer.context["form"].errors["value"]


def test_while_a_secret_is_rotated_both_count_until_the_old_one_ends(admin: Client) -> None:
    made = source()
    end = database_now() + timedelta(days=1)
    given = {
        "label": "new",
        "value": OTHER_STANDARD_SECRET,
        "old_ones_end": f"{end:%Y-%m-%d %H:%M:%S}",
    }
    assert admin.post(url(made, "add_secret"), given).status_code == HTTPStatus.FOUND
    for number, secret in enumerate((STANDARD_SECRET, OTHER_STANDARD_SECRET)):
        headers = signed(Scheme.STANDARD_WEBHOOKS, paid(), secret=secret, id=f"m-{number}")
        assert deliver(Client(), paid(), headers).status_code == HTTPStatus.ACCEPTED
    old = SourceSecret.objects.get(label="first")
    assert old.valid_until == end.replace(microsecond=0)
    assert admin.post(url(made, "end_secret", old.pk), {"at": ""}).status_code == HTTPStatus.FOUND
    known_sources.forget()
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid())
    assert deliver(Client(), paid(), headers).status_code == HTTPStatus.UNAUTHORIZED
    note = "signed with the secret 'first', which counts no more"
    assert refusals() == {"signature": (1, note)}
    assert AuditEntry.objects.filter(verb="ended secret").count() == 1
    again = admin.post(url(made, "end_secret", old.pk), {"at": ""}, follow=True)
    assert "had ended already" in again.content.decode()


@pytest.mark.parametrize(
    ("given", "field", "told"),
    [
        ({"label": "", "value": STANDARD_SECRET}, "label", "required"),
        ({"label": "first", "value": STANDARD_SECRET}, "label", "a secret of this name"),
        ({"label": "new", "value": "t00brief"}, "value", "between 16 and 500"),
        ({"label": "new", "value": "no base64, this one!"}, "value", "is base64"),
        (
            {"label": "new", "value": STANDARD_SECRET, "old_ones_end": "2020-01-01 00:00"},
            "old_ones_end",
            "It is past",
        ),
        ({"label": "x" * (MAX_LABEL + 1), "value": STANDARD_SECRET}, "label", "at most"),
    ],
)
def test_a_secret_that_cannot_be_one_is_refused_and_not_shown_again(
    admin: Client, given: dict[str, str], field: str, told: str
) -> None:
    made = source()
    answer = admin.post(url(made, "add_secret"), given)
    assert told in " ".join(answer.context["form"].errors[field])
    assert given["value"] not in answer.content.decode()
    assert made.secrets.count() == 1


def test_no_more_secrets_than_can_be_tried_for_each_request() -> None:
    made = source()
    for number in range(4):
        add_secret(made, f"more {number}", by=BY)
    with pytest.raises(InvalidSource, match="5 are in force or to come"):
        add_secret(made, "one more", by=BY)
    end_secret(made.secrets.get(label="first"), by=BY)
    assert add_secret(made, "one more", by=BY).made


def test_a_secret_does_not_end_before_it_begins() -> None:
    made = source()
    later = database_now() + timedelta(days=1)
    added = add_secret(made, "later", by=BY, valid_from=later)
    with pytest.raises(InvalidSource, match="It has not begun by then"):
        end_secret(added.secret, by=BY)
    assert end_secret(added.secret, later + timedelta(days=1), by=BY)


def test_aws_sns_has_no_secret() -> None:
    with pytest.raises(InvalidSource, match="has no secret"):
        add_secret(source(Scheme.AWS_SNS), "one", by=BY)


# --- health -----------------------------------------------------------------------------------


def test_the_page_says_how_a_source_is_doing(
    admin: Client, django_assert_max_num_queries: Any
) -> None:
    made = source(per_minute=None)
    deliver(Client(), paid())
    deliver(Client(), paid())
    deliver(Client(), paid(), {"content-type": "application/json"})
    deliver(Client(), paid(), content_type="text/plain")
    with django_assert_max_num_queries(14):
        text = admin.get(url(made)).content.decode()
    assert "1 accepted, 0 rejected for their shape, 1 delivered again" in text
    assert "1 refused (signature), last " in text
    assert "it has no webhook-id header" in text
    assert "1 refused (content type), last " in text


def test_a_subscription_is_shown_to_an_administrator_as_a_link_to_aws_alone(
    admin: Client,
) -> None:
    made = source(Scheme.AWS_SNS)
    for address, shown in (
        ("https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t", True),
        ("https://evil.example/?Token=t", False),
    ):
        Event.objects.all().delete()
        body = sns_signer().body(
            "Subscribe?",
            database_now(),
            Type="SubscriptionConfirmation",
            SubscribeURL=address,
            Token="t",
        )
        deliver(Client(), body, {"content-type": "text/plain"})
        text = admin.get(url(made)).content.decode()
        assert (address.replace("&", "&amp;") in text) is shown


# --- trying -----------------------------------------------------------------------------------


def pasted(headers: dict[str, str]) -> str:
    return "\r\n".join(f"{name.title()}: {value}" for name, value in headers.items())


def tried(client: Client, made: EventSource, headers: dict[str, str], body: bytes) -> Any:
    """Post the form as a browser does: its text fields have carriage returns."""
    text = body.decode().replace("\n", "\r\n")
    return client.post(url(made, "try"), {"headers": pasted(headers), "body": text})


def told(answer: Any) -> dict[str, tuple[bool, str]]:
    return {step.name: (step.good, step.told) for step in answer.context["trial"].steps}


def nothing_was_stored() -> bool:
    return not Event.objects.exists() and not RefusalCount.objects.exists()


def test_a_genuine_request_is_told_what_would_become_of_it(admin: Client) -> None:
    made = source(schemas={"order.paid": {"type": "object"}})
    body = b'{\n "type": "order.paid",\n "data": {"order": "ORD-1"}\n}\n'
    answer = tried(admin, made, signed(Scheme.STANDARD_WEBHOOKS, body), body)
    trial = answer.context["trial"]
    assert trial.good, trial.steps
    assert (trial.found.event_id, trial.found.correlation) == ("msg_1", "ORD-1")
    steps = told(answer)
    assert steps["Signature"][1] == "Signed with 'first', over these very bytes."
    assert steps["Shape"][1] == "It fits the schema of its type."
    assert steps["Wait"][1].startswith("No open wait is for it")
    assert nothing_was_stored()
    assert "It would be taken." in answer.content.decode()


def test_an_old_request_is_told_apart_from_a_forged_one(admin: Client) -> None:
    made = source()
    at = database_now() - timedelta(days=3)
    steps = told(tried(admin, made, signed(Scheme.STANDARD_WEBHOOKS, paid(), at), paid()))
    assert steps["Signature"][0]
    assert not steps["Age"][0]
    assert "signed 3 d ago" in steps["Age"][1]
    assert steps["Shape"][0]
    forged = tried(admin, made, signed(Scheme.STANDARD_WEBHOOKS, paid(), at), paid() + b" ")
    assert "it fits no secret in force" in told(forged)["Signature"][1]
    assert nothing_was_stored()


def test_every_mistake_is_told_at_once(admin: Client) -> None:
    made = source(enabled=False)
    headers = {"content-type": "text/plain"}
    steps = told(tried(admin, made, headers, b'{"type": "order.paid"}'))
    assert {name for name, (good, _) in steps.items() if not good} == {
        "Source",
        "Content type",
        "Signature",
        "Shape",
    }
    assert "no correlation at data.order" in steps["Shape"][1]


def test_a_packed_body_is_given_as_a_file(admin: Client) -> None:
    made = source(Scheme.GITHUB)
    body = gzip.compress(paid())
    headers = signed(Scheme.GITHUB, body) | {"content-encoding": "gzip"}
    file = SimpleUploadedFile("body.gz", body)
    answer = admin.post(url(made, "try"), {"headers": pasted(headers), "body_file": file})
    assert answer.context["trial"].good, answer.context["trial"].steps
    assert "unpacked" in told(answer)["Body"][1]
    assert nothing_was_stored()


def open_wait(correlation: str = "ORD-1", **fields: Any) -> Wait:
    return Wait.objects.create(
        run=started_run(),
        step="paid",
        visit=1,
        tenant=tenant(),
        event_types=["order.paid"],
        correlation=correlation,
        **fields,
    )


def test_the_wait_that_it_is_for_is_shown_to_whoever_may_see_the_tenant(admin: Client) -> None:
    made, wait = source(), open_wait()
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid())
    answer = tried(admin, made, headers, paid())
    assert told(answer)["Wait"] == (True, "It would be given to:")
    assert reverse("run", args=[wait.run_id]) in answer.content.decode()
    staff = person("staff_1", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_eventsource"))
    reader = Client()
    reader.force_login(get_user_model().objects.get(pk=staff.pk))
    hidden = tried(reader, made, headers, paid())
    assert told(hidden)["Wait"][1] == "Its tenant's waits are not shown to you."
    assert str(wait.run_id) not in hidden.content.decode()
    assign_perm("workflows.view_tenant", staff, tenant())
    reader.force_login(get_user_model().objects.get(pk=staff.pk))
    assert str(wait.run_id) in tried(reader, made, headers, paid()).content.decode()
    wait.refresh_from_db()
    assert wait.state == "waiting"


def test_that_more_than_one_wait_could_take_it_is_told(admin: Client) -> None:
    made = source()
    open_wait()
    open_wait()
    steps = told(tried(admin, made, signed(Scheme.STANDARD_WEBHOOKS, paid()), paid()))
    assert steps["Wait"] == (False, "More than one could take it, so a person would be asked:")


def test_a_repeat_is_told(admin: Client) -> None:
    made = source()
    deliver(Client(), paid())
    steps = told(tried(admin, made, signed(Scheme.STANDARD_WEBHOOKS, paid()), paid()))
    assert "counted as a duplicate" in steps["ID"][1]


@pytest.mark.parametrize("text", ["no header", ": value", "a b: c"])
def test_lines_that_are_no_headers_are_told(admin: Client, text: str) -> None:
    answer = admin.post(url(source(), "try"), {"headers": text, "body": "{}"})
    assert "Line 1 is no header" in " ".join(answer.context["form"].errors["headers"])


def test_what_is_pasted_is_shown_as_text_and_never_as_markup(admin: Client) -> None:
    made = source(Scheme.BEARER)
    markup = "<img src=x onerror=alert(1)>"
    body = paid(order=markup)
    text = tried(admin, made, signed(Scheme.BEARER, body), body).content.decode()
    assert markup not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_a_message_of_sns_can_be_tried(admin: Client) -> None:
    made = source(Scheme.AWS_SNS)
    text = '{"type": "order.paid", "data": {"order": "ORD-1"}}'
    body = sns_signer().body(text, database_now(), TopicArn=TOPIC)
    answer = tried(admin, made, {"content-type": "text/plain"}, body)
    assert answer.context["trial"].good, answer.context["trial"].steps
    assert secret_of(Scheme.BEARER) not in answer.content.decode()
