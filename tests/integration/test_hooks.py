"""Deliveries to a source's address: what is taken, what is refused, and what is kept of either."""

from __future__ import annotations

import gzip
import json
import zlib
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import pytest
from django.core.cache import caches
from django.db import OperationalError
from django.test import Client
from pytest_django import Settings

from tests.delivering import deliver, paid, refusals, signed, source
from tests.signing import SIGNERS, TOPIC, secret_of, sns_signer, standard
from workflows.core.sources import Scheme
from workflows.models import Event, SourceSecret
from workflows.services import ingress, known_sources, sns_certificates
from workflows.services.clock import database_now
from workflows.services.sources import save_source

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(hours=2)
LONG_MINUTE = 10**9  # no test is to see a minute end


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    caches["deliveries"].clear()


def only_event() -> Event:
    return Event.objects.get()


# --- what is taken ----------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SIGNERS)
def test_a_genuine_delivery_is_kept_byte_for_byte(client: Client, scheme: Scheme) -> None:
    source(scheme)
    body = b'{ "id":"d-1", "type":"order.paid",\n "data": {"order": 9007199254740993} }\n'
    answer = deliver(client, body, scheme=scheme)
    event = only_event()
    assert (answer.status_code, answer.json()) == (
        HTTPStatus.ACCEPTED,
        {"event": str(event.pk), "outcome": "stored"},
    )
    assert bytes(event.body or b"") == body
    ids = {Scheme.STANDARD_WEBHOOKS: "msg_1"}
    assert event.event_id == ids.get(scheme, "d-1")
    assert (event.type, event.correlation) == ("order.paid", "9007199254740993")
    assert (event.state, event.content_type, event.encoding) == ("stored", "application/json", "")


def test_a_message_of_sns_is_kept(client: Client) -> None:
    source(Scheme.AWS_SNS)
    text = '{"type": "order.paid", "data": {"order": "ORD-1"}}'
    body = sns_signer().body(text, database_now())
    answer = deliver(client, body, {"content-type": "text/plain; charset=UTF-8"})
    assert answer.status_code == HTTPStatus.ACCEPTED, answer.content
    event = only_event()
    assert (event.type, event.correlation) == ("order.paid", "ORD-1")
    assert event.event_id == "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324"


def test_the_same_event_again_is_answered_200_and_counted(client: Client) -> None:
    source()
    first = deliver(client, paid())
    again = deliver(client, paid())
    assert again.status_code == HTTPStatus.OK
    assert again.json() == {"event": first.json()["event"], "outcome": "duplicate"}
    assert only_event().duplicates == 1


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=iso-8859-1",
        "application/json; charset=nonsense",
        "Application/JSON; profile=x",
        "application/json; charset=utf-16",
    ],
)
def test_what_the_content_type_says_of_characters_does_not_matter(
    client: Client, content_type: str
) -> None:
    source()
    body = '{"type": "order.paid", "data": {"order": "é🦊"}}'.encode()
    answer = deliver(client, body, content_type=content_type)
    assert answer.status_code == HTTPStatus.ACCEPTED
    assert (only_event().correlation, bytes(only_event().body or b"")) == ("é🦊", body)


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_packed_body_is_signed_and_kept_as_it_came(
    client: Client, encoding: str, pack: Any
) -> None:
    source(Scheme.GITHUB, encodings=["gzip", "deflate"])
    body = pack(paid())
    headers = signed(Scheme.GITHUB, body) | {"content-encoding": encoding}
    assert deliver(client, body, headers).status_code == HTTPStatus.ACCEPTED
    event = only_event()
    assert (bytes(event.body or b""), event.encoding) == (body, encoding)
    assert event.correlation == "ORD-1"


def test_slack_is_given_back_its_challenge_and_nothing_is_kept(client: Client) -> None:
    source(Scheme.SLACK)
    body = b'{"type": "url_verification", "challenge": "c-1"}'
    answer = deliver(client, body, scheme=Scheme.SLACK)
    assert (answer.status_code, answer.json()) == (HTTPStatus.OK, {"challenge": "c-1"})
    assert not Event.objects.exists()
    unsigned = deliver(client, body, {"content-type": "application/json"})
    assert unsigned.status_code == HTTPStatus.UNAUTHORIZED


def test_no_session_is_begun_and_no_cookie_set(client: Client) -> None:
    source()
    answer = deliver(client, paid())
    assert not answer.cookies
    strict = Client(enforce_csrf_checks=True)
    assert deliver(strict, paid()).status_code == HTTPStatus.OK


def test_no_session_and_no_person_is_looked_for_and_what_protects_stays(client: Client) -> None:
    source()
    answer = deliver(client, paid())
    assert not {"session", "user", "htmx"} & vars(answer.wsgi_request).keys()
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    # Else the server would send it in chunks, a packet more each time.
    assert answer.headers["Content-Length"] == str(len(answer.content))
    elsewhere = signed(Scheme.STANDARD_WEBHOOKS, paid()) | {"host": "elsewhere.example"}
    assert deliver(client, paid(), elsewhere).status_code == HTTPStatus.BAD_REQUEST
    assert client.get("/hooks/shop/more/").status_code == HTTPStatus.NOT_FOUND


def test_without_the_last_slash_nobody_is_sent_elsewhere(client: Client) -> None:
    source()
    body = paid()
    headers = signed(Scheme.STANDARD_WEBHOOKS, body)
    content_type = headers.pop("content-type")
    answer = client.generic("POST", "/hooks/shop", body, content_type=content_type, headers=headers)
    assert answer.status_code == HTTPStatus.ACCEPTED


# --- who it is --------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SIGNERS)
def test_what_is_not_signed_is_refused_and_only_counted(client: Client, scheme: Scheme) -> None:
    source(scheme)
    body = paid(id="the-private-id")
    unsigned = {"content-type": "application/json"}
    theirs = signed(scheme, body, secret=secret_of(scheme, other=True))
    for headers in (unsigned, theirs):
        answer = deliver(client, body, headers)
        assert answer.status_code == HTTPStatus.UNAUTHORIZED
        assert answer.json() == {"error": "it is not signed as this source signs, or not lately"}
    assert not Event.objects.exists()
    assert refusals() == {"signature": (2, "it fits no secret in force")}


def test_another_source_s_signature_is_none_here(client: Client) -> None:
    source(slug="shop")
    source(slug="other", settings={})
    SourceSecret.objects.filter(source__slug="other").delete()
    known_sources.forget()
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid())
    assert deliver(client, paid(), headers, slug="shop").status_code == HTTPStatus.ACCEPTED
    assert deliver(client, paid(), headers, slug="other").status_code == HTTPStatus.UNAUTHORIZED
    assert refusals("other") == {"signature": (1, "the source has no secret in force")}


def test_an_old_delivery_is_stale(client: Client) -> None:
    source()
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid(), database_now() - LONG_AGO)
    assert deliver(client, paid(), headers).status_code == HTTPStatus.UNAUTHORIZED
    assert refusals() == {"stale": (1, "signed 2 h ago; 5 min is the most that is taken")}


def test_a_source_that_is_off_answers_as_one_that_is_not_there(client: Client) -> None:
    off = source(enabled=False)
    answers = [deliver(client, paid(), slug=slug) for slug in ("shop", "nowhere")]
    assert {answer.status_code for answer in answers} == {HTTPStatus.NOT_FOUND}
    assert answers[0].content == answers[1].content
    assert refusals() == {"disabled": (1, "the source is switched off")}
    off.enabled = True
    save_source(off, by="command:tests", changed=["enabled"])
    known_sources.forget()
    assert deliver(client, paid()).status_code == HTTPStatus.ACCEPTED


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_but_post_is_answered(client: Client, method: str) -> None:
    source()
    for slug in ("shop", "nowhere"):
        answer = client.generic(method, f"/hooks/{slug}/")
        assert (answer.status_code, answer.content) == (HTTPStatus.METHOD_NOT_ALLOWED, b"")


# --- what it is -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", HTTPStatus.BAD_REQUEST, "the body cannot be read: it is empty"),
        (
            b"{",
            HTTPStatus.BAD_REQUEST,
            "the body cannot be read: it is no JSON at line 1, column 2",
        ),
        (b"\xff", HTTPStatus.BAD_REQUEST, "the body cannot be read: it is not UTF-8 at byte 0"),
        (b"[]", HTTPStatus.UNPROCESSABLE_ENTITY, "no ID at id; no type at type"),
        (b'{"id": 1, "id": 2}', HTTPStatus.BAD_REQUEST, "one name twice"),
        (paid(order=None), HTTPStatus.UNPROCESSABLE_ENTITY, "no correlation at data.order"),
        (paid(order="a\x00b"), HTTPStatus.UNPROCESSABLE_ENTITY, "such as NUL"),
        (paid(order="x" * 301), HTTPStatus.UNPROCESSABLE_ENTITY, "longer than 300 characters"),
        (paid(amount="five"), HTTPStatus.UNPROCESSABLE_ENTITY, "at $.data.amount: its schema asks"),
    ],
)
def test_what_is_genuine_and_of_the_wrong_shape_is_kept_as_rejected(
    client: Client, body: bytes, status: HTTPStatus, told: str
) -> None:
    schema = {"properties": {"data": {"properties": {"amount": {"type": "integer"}}}}}
    source(Scheme.HMAC, schemas={"order.paid": schema})
    answer = deliver(client, body, scheme=Scheme.HMAC)
    event = only_event()
    assert answer.status_code == status
    assert (answer.json()["event"], answer.json()["outcome"]) == (str(event.pk), "rejected")
    assert told in answer.json()["error"]
    assert (event.state, bytes(event.body or b"")) == ("rejected", body)
    assert told in event.problem
    assert refusals()["shape"][0] == 1


def test_a_body_that_cannot_be_read_is_one_event_by_the_id_in_its_header(client: Client) -> None:
    source()
    first = deliver(client, b"{")
    assert first.status_code == HTTPStatus.BAD_REQUEST
    again = deliver(client, b"{")
    assert again.status_code == HTTPStatus.BAD_REQUEST
    assert (again.json()["event"], again.json()["outcome"]) == (first.json()["event"], "duplicate")
    event = only_event()
    assert (event.event_id, event.state, event.duplicates) == ("msg_1", "rejected", 1)
    assert event.problem == "the body cannot be read: it is no JSON at line 1, column 2"


def test_what_was_rejected_is_taken_when_it_comes_again_and_is_understood(client: Client) -> None:
    """The source was mended meanwhile: a callback is never lost to its own first delivery."""
    made = source(Scheme.HMAC, correlation_path="data.reference")
    first = deliver(client, paid(), scheme=Scheme.HMAC)
    assert first.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    made.correlation_path = "data.order"
    save_source(made, by="command:tests", changed=["correlation_path"])
    known_sources.forget()
    again = deliver(client, paid(), scheme=Scheme.HMAC)
    assert again.status_code == HTTPStatus.ACCEPTED
    assert again.json() == {"event": first.json()["event"], "outcome": "stored"}
    event = only_event()
    assert (event.state, event.correlation, event.problem) == ("stored", "ORD-1", "")
    assert deliver(client, paid(), scheme=Scheme.HMAC).status_code == HTTPStatus.OK


def test_what_a_person_has_dismissed_stays_dismissed(client: Client) -> None:
    made = source(Scheme.HMAC, correlation_path="data.reference")
    deliver(client, paid(), scheme=Scheme.HMAC)
    Event.objects.update(dismissed_at=database_now(), dismissed_by="user:1 ada")
    made.correlation_path = "data.order"
    save_source(made, by="command:tests", changed=["correlation_path"])
    known_sources.forget()
    assert deliver(client, paid(), scheme=Scheme.HMAC).status_code == HTTPStatus.OK
    assert only_event().state == "rejected"


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"content_type": "text/plain"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content_type"),
        ({"content_type": ""}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content_type"),
        ({"content_type": "é"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content_type"),
        ({"content_encoding": "br"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "encoding"),
        ({"content_encoding": "deflate"}, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "encoding"),
        ({"content_encoding": "gzip"}, HTTPStatus.BAD_REQUEST, "encoding"),
        ({"content_length": "9"}, HTTPStatus.UNAUTHORIZED, "signature"),
    ],
)
def test_what_is_not_taken_is_refused_by_its_reason(
    client: Client, changes: dict[str, str], status: HTTPStatus, reason: str
) -> None:
    source()
    answer = deliver(client, paid(), **changes)
    assert answer.status_code == status
    assert list(refusals()) == [reason]
    assert not Event.objects.exists()


def test_what_is_too_large_is_refused(client: Client) -> None:
    source(max_bytes=500)
    assert deliver(client, paid(more="x" * 600)).status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert refusals() == {"size": (1, "it is larger than the 500 bytes that are taken")}


def test_what_unpacks_to_too_much_is_refused(client: Client) -> None:
    source(Scheme.BEARER, max_bytes=500)
    body = gzip.compress(paid(more="x" * 600))
    headers = signed(Scheme.BEARER, body) | {"content-encoding": "gzip"}
    assert deliver(client, body, headers).status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert refusals() == {"size": (1, "it is larger than the 500 bytes that are taken")}


def test_more_than_the_source_takes_in_a_minute_is_put_off(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingress, "WINDOW_SECONDS", LONG_MINUTE)
    source(per_minute=2)
    unsigned = {"content-type": "application/json"}
    codes = [deliver(client, paid(), unsigned).status_code for _ in range(3)]
    assert codes == [401] * 3  # who cannot sign takes nothing of the sender's share
    answers = [
        deliver(client, paid(), signed(Scheme.STANDARD_WEBHOOKS, paid(), id=f"msg_{number}"))
        for number in range(3)
    ]
    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= LONG_MINUTE
    assert refusals()["rate"] == (1, "more came in this minute than is taken")


# --- AWS SNS ----------------------------------------------------------------------------------


def test_a_subscription_waits_for_an_administrator_and_is_not_followed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sns_certificates, "download", lambda _address: pytest.fail("fetched"))
    source(Scheme.AWS_SNS)
    url = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t"
    body = sns_signer().body(
        "You have chosen to subscribe",
        database_now(),
        Type="SubscriptionConfirmation",
        SubscribeURL=url,
        Token="t",
    )
    answer = deliver(client, body, {"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["outcome"]) == (HTTPStatus.ACCEPTED, "rejected")
    event = only_event()
    assert (event.state, event.type) == ("rejected", "SubscriptionConfirmation")
    assert "open the SubscribeURL" in event.problem


@pytest.mark.parametrize(
    "address",
    [
        "http://sns.eu-west-1.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com.evil.example/x.pem",
        "https://evil.example/sns.eu-west-1.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com@evil.example/x.pem",
        "https://sns.eu-west-1.amazonaws.com:8443/x.pem",
        "https://sns.eu-west-1.amazonaws.com/x.txt",
        "https://[sns",
        "file:///etc/passwd",
        "",
    ],
)
def test_a_certificate_is_fetched_from_aws_alone(
    client: Client, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setattr(sns_certificates, "download", lambda _address: pytest.fail("fetched"))
    source(Scheme.AWS_SNS, settings={"topics": [TOPIC]})
    body = sns_signer().body("{}", database_now(), SigningCertURL=address)
    answer = deliver(client, body, {"content-type": "text/plain"})
    assert answer.status_code == HTTPStatus.UNAUTHORIZED


def test_a_certificate_is_fetched_once_and_kept(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(sns_certificates, "_kept", {})
    monkeypatch.setattr(
        sns_certificates, "download", lambda address: fetched.append(address) or sns_signer().pem
    )
    source(Scheme.AWS_SNS, settings={"topics": [TOPIC]})
    for number in range(2):
        text = '{"type": "order.paid", "data": {"order": "ORD-1"}}'
        body = sns_signer().body(text, database_now(), MessageId=f"m-{number}")
        answer = deliver(client, body, {"content-type": "text/plain"})
        assert answer.status_code == HTTPStatus.ACCEPTED
    assert fetched == ["https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"]


@pytest.mark.parametrize("came", ["", "no certificate", b"\xff"])
def test_without_its_certificate_the_sender_is_asked_to_come_again(
    client: Client, monkeypatch: pytest.MonkeyPatch, came: Any
) -> None:
    monkeypatch.setattr(sns_certificates, "_kept", {})
    monkeypatch.setattr(
        sns_certificates, "download", lambda _: came if isinstance(came, str) else came.decode()
    )
    source(Scheme.AWS_SNS, settings={"topics": [TOPIC]})
    body = sns_signer().body("{}", database_now())
    answer = deliver(client, body, {"content-type": "text/plain"})
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert answer.headers["Retry-After"] == "5"


# --- what is away -----------------------------------------------------------------------------


def test_while_the_database_is_away_the_sender_is_asked_to_come_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    source()
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid())

    def away(_incoming: object, **_: object) -> None:
        raise OperationalError("the connection to 10.0.0.7 was closed")

    monkeypatch.setattr(ingress.inbox, "receive", away)
    answer = deliver(client, paid(), headers)
    assert answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert answer.headers["Retry-After"] == "5"
    assert b"10.0.0.7" not in answer.content


def test_a_source_whose_secret_no_key_opens_judges_nobody(
    client: Client, settings: Settings
) -> None:
    source()
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid())
    settings.ROMULUS_KEYS = ["a-key-that-has-sealed-nothing"]
    known_sources.forget()
    assert deliver(client, paid(), headers).status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert refusals() == {}


def test_a_delivery_costs_few_questions(client: Client, django_assert_max_num_queries: Any) -> None:
    source()
    headers = signed(Scheme.STANDARD_WEBHOOKS, paid(), id="msg_2")
    deliver(client, paid())
    with django_assert_max_num_queries(6):
        assert deliver(client, paid(), headers).status_code == HTTPStatus.ACCEPTED


# --- what is told -----------------------------------------------------------------------------


def test_no_log_holds_a_secret_a_payload_or_a_header(
    client: Client, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    source(max_bytes=2000)
    private = "the-private-words-of-a-customer"
    body = paid(id=private, order=private, text=private)
    good = standard(secret_of(Scheme.STANDARD_WEBHOOKS), body, database_now(), private)
    headers = {"content-type": "application/json", "x-note": private} | good
    deliver(client, body, headers)
    deliver(client, body, headers)
    deliver(client, body, headers | {"webhook-signature": "v1," + "A" * 44})
    deliver(client, json.dumps({"type": private}).encode(), headers)
    deliver(client, body, headers, content_type=f"text/{private}")
    deliver(client, body, headers, content_encoding=private)
    deliver(client, body * 30, headers)
    said = caplog.text + capfd.readouterr().err
    assert "event.refused" in said
    for secret in (private, good["webhook-signature"][3:], secret_of(Scheme.STANDARD_WEBHOOKS)[6:]):
        assert secret not in said
    assert private not in str(refusals())
