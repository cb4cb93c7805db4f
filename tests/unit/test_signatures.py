"""What counts as signed: by each library's own signer, over the exact bytes, lately."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import stripe
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.signature import SignatureVerifier
from standardwebhooks import Webhook, WebhookVerificationError

from tests.signing import (
    HMAC_SETTINGS,
    OTHER_SECRET,
    SECRET,
    SIGNED_BODIES,
    SIGNERS,
    STANDARD_SECRET,
    TIMED,
    TOPIC,
    SnsSigner,
    bearer,
    github,
    seconds,
    secret_of,
    slack,
    sns_signer,
    standard,
    stripes,
)
from workflows.core.errors import DeliveryRefused
from workflows.core.schemes import settings_of
from workflows.core.signatures import Proof, Secret, verify
from workflows.core.sources import Scheme

NOW = datetime(2026, 11, 4, 3, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=365)
TOLERANCE = timedelta(minutes=5)
A_SECOND = timedelta(seconds=1)

BODIES = {
    "odd order and spacing": b'{ "z":1 ,\t"a" : [ 1,2 ]\r\n}',
    "lower-case escapes": rb'{"name": "\u00e9\u2028"}',
    "upper-case escapes": rb'{"name": "\u00E9\u2028"}',
    "emoji": '{"name": "🦊"}'.encode(),
    "escaped emoji": rb'{"name": "\ud83e\udd8a"}',
    "a trailing newline": b'{"a": 1}\n',
    "a line break of another kind": b'{"a": 1}\r\n',
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "escaped slashes": rb'{"a": "x\/y"}',
    "a number with zeros": b'{"a": 1.50, "b": 1e3, "c": 12345678901234567890}',
    "nothing": b"",
    "no JSON": b"amount=1&currency=EUR",
}


def secret(value: str = SECRET, label: str = "now", **fields: Any) -> Secret:
    return Secret(label, value, **({"valid_from": LONG_AGO} | fields))


def settings_for(scheme: Scheme) -> dict[str, Any]:
    return HMAC_SETTINGS if scheme is Scheme.HMAC else {}


def checked(
    scheme: Scheme,
    headers: dict[str, str],
    body: bytes,
    *,
    secrets: list[Secret] | None = None,
    settings: dict[str, Any] | None = None,
    now: datetime = NOW,
    tolerance: timedelta = TOLERANCE,
) -> Proof:
    given = settings_for(scheme) if settings is None else settings
    known = [secret(secret_of(scheme))] if secrets is None else secrets
    return verify(scheme, settings_of(scheme, given), known, headers, body, now, tolerance)


def refusal(*args: Any, **options: Any) -> DeliveryRefused:
    with pytest.raises(DeliveryRefused) as caught:
        checked(*args, **options)
    return caught.value


# --- the bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SIGNERS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_the_sender_s_own_library_has_signed_is_proven(scheme: Scheme, body: bytes) -> None:
    headers = SIGNERS[scheme](secret_of(scheme), body, NOW)
    proof = checked(scheme, headers, body)
    assert proof == Proof("now", NOW if scheme in TIMED else None)


@pytest.mark.parametrize("scheme", SIGNED_BODIES)
@pytest.mark.parametrize("body", [body for body in BODIES.values() if body])
def test_one_byte_that_is_flipped_is_found(scheme: Scheme, body: bytes) -> None:
    headers = SIGNERS[scheme](secret_of(scheme), body, NOW)
    for place in {0, len(body) // 2, len(body) - 1}:
        flipped = bytearray(body)
        flipped[place] ^= 1
        assert refusal(scheme, headers, bytes(flipped)).reason == "signature"
    assert refusal(scheme, headers, body + b"\n").reason == "signature"
    assert refusal(scheme, headers, body[:-1]).reason == "signature"


@pytest.mark.parametrize("scheme", SIGNED_BODIES)
def test_bytes_that_are_no_text_are_signed_like_any_other(scheme: Scheme) -> None:
    """A compressed body, say. The libraries decode a body before they check it, and cannot."""
    body, other = b"\x1f\x8b\x00\xff\xfe", b"\x1f\x8b\x00\xff\xff"
    key = (
        base64.b64decode(STANDARD_SECRET[6:])
        if scheme is Scheme.STANDARD_WEBHOOKS
        else SECRET.encode()
    )
    at = str(seconds(NOW))
    digest = hmac.new(key, digestmod="sha512" if scheme is Scheme.HMAC else "sha256")
    prefixes = {
        Scheme.STANDARD_WEBHOOKS: f"msg_1.{at}.",
        Scheme.STRIPE: f"{at}.",
        Scheme.SLACK: f"v0:{at}:",
        Scheme.HMAC: f"{at}.",
    }
    digest.update(prefixes.get(scheme, "").encode() + body)
    as_base64, as_hex = base64.b64encode(digest.digest()).decode(), digest.hexdigest()
    headers = {
        Scheme.STANDARD_WEBHOOKS: {
            "webhook-id": "msg_1",
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{as_base64}",
        },
        Scheme.STRIPE: {"stripe-signature": f"t={at},v1={as_hex}"},
        Scheme.GITHUB: {"x-hub-signature-256": f"sha256={as_hex}"},
        Scheme.SLACK: {"x-slack-request-timestamp": at, "x-slack-signature": f"v0={as_hex}"},
        Scheme.HMAC: {"x-signature": f"v2={as_base64}", "x-signed-at": at},
    }[scheme]
    assert checked(scheme, headers, body)
    assert refusal(scheme, headers, other).reason == "signature"


# Not the empty one, which is no event: Standard Webhooks' own library refuses it.
@given(
    body=st.text(min_size=1).map(str.encode), flip=st.integers(min_value=0), as_sent=st.booleans()
)
def test_we_and_the_libraries_agree_on_every_text(body: bytes, flip: int, as_sent: bool) -> None:
    # The libraries ask this machine's clock; so what they are to accept is signed by it.
    now = datetime.now(UTC).replace(microsecond=0)
    came = bytearray(body)
    if body and not as_sent:
        came[flip % len(body)] ^= 0x02
    try:
        text = bytes(came).decode()
    except UnicodeDecodeError:
        return  # the libraries take no such bytes
    for scheme, accepts in {
        Scheme.STANDARD_WEBHOOKS: standard_accepts,
        Scheme.STRIPE: stripe_accepts,
        Scheme.SLACK: slack_accepts,
    }.items():
        headers = SIGNERS[scheme](secret_of(scheme), body, now)
        try:
            ours = bool(checked(scheme, headers, bytes(came), now=now))
        except DeliveryRefused:
            ours = False
        assert ours == accepts(headers, text) == (bytes(came) == body)


def standard_accepts(headers: dict[str, str], text: str) -> bool:
    try:
        Webhook(STANDARD_SECRET).verify(text, headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


def stripe_accepts(headers: dict[str, str], text: str) -> bool:
    try:
        stripe.WebhookSignature.verify_header(text, headers["stripe-signature"], SECRET)  # type: ignore[attr-defined]
    except stripe.SignatureVerificationError:
        return False
    return True


def slack_accepts(headers: dict[str, str], text: str) -> bool:
    return SignatureVerifier(SECRET).is_valid_request(text, headers)


def test_github_s_own_example_is_proven() -> None:
    """From its documentation, "Validating webhook deliveries"."""
    told = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = {"x-hub-signature-256": f"sha256={told}"}
    known = [secret("It's a Secret to Everybody")]
    assert checked(Scheme.GITHUB, headers, b"Hello, World!", secrets=known)


# --- time -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("skew", [-TOLERANCE, timedelta(0), TOLERANCE])
def test_within_the_tolerance_either_way_it_counts(scheme: Scheme, skew: timedelta) -> None:
    headers = SIGNERS[scheme](secret_of(scheme), b"{}", NOW + skew)
    assert checked(scheme, headers, b"{}").signed_at == NOW + skew


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize(
    ("skew", "told"),
    [
        (-TOLERANCE - A_SECOND, "signed 5 min ago; 5 min is the most that is taken"),
        (TOLERANCE + A_SECOND, "signed 5 min in the future; 5 min is the most that is taken"),
        (-timedelta(days=3), "signed 3 d ago; 5 min is the most that is taken"),
    ],
)
def test_a_replay_outside_the_tolerance_is_stale(
    scheme: Scheme, skew: timedelta, told: str
) -> None:
    headers = SIGNERS[scheme](secret_of(scheme), b"{}", NOW + skew)
    refused = refusal(scheme, headers, b"{}")
    assert (refused.reason, str(refused)) == ("stale", told)


@pytest.mark.parametrize("scheme", TIMED)
def test_a_time_that_was_put_in_later_is_found(scheme: Scheme) -> None:
    headers = SIGNERS[scheme](secret_of(scheme), b"{}", NOW - timedelta(days=3))
    old, new = str(seconds(NOW - timedelta(days=3))), str(seconds(NOW))
    forged = {name: value.replace(old, new) for name, value in headers.items()}
    assert forged != headers
    assert refusal(scheme, forged, b"{}").reason == "signature"


def test_a_time_in_milliseconds_is_read_as_one() -> None:
    at = str(seconds(NOW) * 1000 + 250)
    digest = hmac.digest(SECRET.encode(), f"{at}.{{}}".encode(), "sha512")
    headers = {"x-signature": "v2=" + base64.b64encode(digest).decode(), "x-signed-at": at}
    assert checked(Scheme.HMAC, headers, b"{}").signed_at == NOW + timedelta(milliseconds=250)


# --- secrets ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SIGNERS)
def test_while_a_secret_is_replaced_both_count(scheme: Scheme) -> None:
    known = [secret(secret_of(scheme), "old"), secret(secret_of(scheme, other=True), "new")]
    for label, other in (("old", False), ("new", True)):
        headers = SIGNERS[scheme](secret_of(scheme, other=other), b"{}", NOW)
        assert checked(scheme, headers, b"{}", secrets=known).label == label


@pytest.mark.parametrize("scheme", SIGNERS)
@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"valid_until": NOW}, "signed with the secret 'its', which counts no more"),
        ({"valid_from": NOW + A_SECOND}, "signed with the secret 'its', which does not count yet"),
    ],
)
def test_a_secret_that_is_not_in_force_proves_nothing(
    scheme: Scheme, limits: dict[str, datetime], told: str
) -> None:
    its = secret(secret_of(scheme), "its", **limits)
    known = [its, secret(secret_of(scheme, other=True), "other")]
    headers = SIGNERS[scheme](secret_of(scheme), b"{}", NOW)
    refused = refusal(scheme, headers, b"{}", secrets=known)
    assert (refused.reason, str(refused)) == ("signature", told)
    before_its_end = {"now": NOW - A_SECOND} if "valid_until" in limits else {"now": NOW + A_SECOND}
    assert checked(scheme, headers, b"{}", secrets=known, **before_its_end).label == "its"


@pytest.mark.parametrize("scheme", SIGNERS)
def test_another_source_s_secret_proves_nothing(scheme: Scheme) -> None:
    headers = SIGNERS[scheme](secret_of(scheme, other=True), b"{}", NOW)
    assert str(refusal(scheme, headers, b"{}")) == "it fits no secret in force"
    assert str(refusal(scheme, headers, b"{}", secrets=[])) == "the source has no secret in force"


def test_several_signatures_in_one_header_count_by_the_one_that_fits() -> None:
    """As senders do while they replace a secret."""
    ours, theirs = standard(STANDARD_SECRET, b"{}", NOW), stripes(SECRET, b"{}", NOW)
    other = standard(secret_of(Scheme.STANDARD_WEBHOOKS, other=True), b"{}", NOW)
    joined = f"v1a,zzz {other['webhook-signature']} {ours['webhook-signature']}"
    assert checked(Scheme.STANDARD_WEBHOOKS, ours | {"webhook-signature": joined}, b"{}")
    stripe_joined = f"{theirs['stripe-signature']},v1={'0' * 64},v0={'1' * 64}"
    assert checked(Scheme.STRIPE, {"stripe-signature": stripe_joined}, b"{}")


def test_a_secret_of_another_scheme_fits_nothing_and_is_no_error() -> None:
    headers = standard(STANDARD_SECRET, b"{}", NOW)
    known = [secret("no base64, of a bearer"), secret("whsec_")]
    assert refusal(Scheme.STANDARD_WEBHOOKS, headers, b"{}", secrets=known)


@pytest.mark.parametrize(
    "text", [STANDARD_SECRET, STANDARD_SECRET[6:], STANDARD_SECRET.rstrip("=")]
)
def test_a_standard_secret_counts_with_and_without_prefix_and_padding(text: str) -> None:
    headers = standard(STANDARD_SECRET, b"{}", NOW)
    assert checked(Scheme.STANDARD_WEBHOOKS, headers, b"{}", secrets=[secret(text)])


# --- what is no signature ---------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SIGNERS)
def test_without_a_signature_or_with_an_empty_one_nothing_is_proven(scheme: Scheme) -> None:
    assert refusal(scheme, {}, b"{}").reason == "signature"
    for name, value in SIGNERS[scheme](secret_of(scheme), b"{}", NOW).items():
        if name in ("x-github-delivery", "x-github-event"):
            continue
        headers = SIGNERS[scheme](secret_of(scheme), b"{}", NOW)
        for other in ("", "   ", value[:-4], value[4:], "é", "=", ",", "v1,", f"{value}\x00", "-1"):
            assert refusal(scheme, headers | {name: other}, b"{}").reason == "signature", other


@pytest.mark.parametrize("scheme", SIGNERS)
@given(values=st.lists(st.text(max_size=200), min_size=4, max_size=4))
def test_whatever_stands_in_the_headers_is_refused_and_never_an_error(
    scheme: Scheme, values: list[str]
) -> None:
    names = SIGNERS[scheme](secret_of(scheme), b"{}", NOW)
    said = str(refusal(scheme, dict(zip(names, values, strict=False)), b"{}"))
    assert not any(len(value) > 3 and value in said for value in values)


def test_a_note_tells_nothing_of_secret_or_signature() -> None:
    headers = github(OTHER_SECRET, b"{}", NOW)
    said = str(refusal(Scheme.GITHUB, headers, b"{}"))
    assert SECRET not in said
    assert headers["x-hub-signature-256"][7:] not in said


@pytest.mark.parametrize("kind", ["Bearer", "bearer", "BEARER"])
def test_the_word_bearer_is_read_in_any_case_and_the_token_is_not(kind: str) -> None:
    assert checked(Scheme.BEARER, {"authorization": f"{kind} {SECRET}"}, b"")
    assert refusal(Scheme.BEARER, {"authorization": f"{kind} {SECRET.upper()}"}, b"")
    assert refusal(Scheme.BEARER, {"authorization": f"Basic {SECRET}"}, b"")
    assert refusal(Scheme.BEARER, bearer("", b"", NOW), b"")


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "sha1"])
@pytest.mark.parametrize("encoding", ["hex", "base64"])
@pytest.mark.parametrize("prefix", ["", "sha="])
def test_a_plain_hmac_is_read_as_the_source_says(
    algorithm: str, encoding: str, prefix: str
) -> None:
    settings = {
        "header": "X-Mac",
        "algorithm": algorithm,
        "encoding": encoding,
        "prefix": prefix,
    }
    digest = hmac.digest(SECRET.encode(), b"{}", algorithm)
    text = digest.hex() if encoding == "hex" else base64.b64encode(digest).decode()
    assert checked(Scheme.HMAC, {"x-mac": prefix + text}, b"{}", settings=settings)
    if encoding == "hex":
        assert checked(Scheme.HMAC, {"x-mac": prefix + text.upper()}, b"{}", settings=settings)
    other = hashlib.new(algorithm, b"{}").hexdigest()
    assert refusal(Scheme.HMAC, {"x-mac": prefix + other}, b"{}", settings=settings)


def test_slack_signs_with_its_own_words() -> None:
    headers = slack(SECRET, b"payload=1", NOW)
    assert checked(Scheme.SLACK, headers, b"payload=1")


# --- AWS SNS ----------------------------------------------------------------------------------

ALLOWED = {"topics": [TOPIC]}


def sns(body: bytes, pem: str | None = None, **options: Any) -> Proof:
    known = [secret(sns_signer().pem if pem is None else pem, "certificate 1")]
    return checked(Scheme.AWS_SNS, {}, body, secrets=known, settings=ALLOWED, **options)


def sns_refusal(*args: Any, **options: Any) -> str:
    with pytest.raises(DeliveryRefused) as caught:
        sns(*args, **options)
    assert caught.value.reason == "signature"
    return str(caught.value)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("fields", [{}, {"Subject": "Paid é🦊"}])
def test_a_message_of_sns_is_proven_by_its_certificate(
    version: str, fields: dict[str, str]
) -> None:
    body = sns_signer().body('{"order": "ORD-1"}\n', NOW, version, **fields)
    assert sns(body) == Proof("certificate 1", NOW)


def test_what_sns_has_signed_cannot_be_changed() -> None:
    message = sns_signer().message("paid", NOW, Subject="An order")
    for name in ("Message", "MessageId", "Subject", "Timestamp"):
        changed = message | {name: message[name].replace("1", "2").replace("d", "b")}
        assert changed != message
        assert sns_refusal(as_body(changed)) == "it fits no secret in force"
    assert sns_refusal(as_body({**message, "Subject": None}))
    assert sns_refusal(as_body({k: v for k, v in message.items() if k != "Subject"}))


def as_body(message: dict[str, Any]) -> bytes:
    import json

    return json.dumps(message).encode()


def test_a_message_of_another_topic_is_refused_although_aws_has_signed_it() -> None:
    other = TOPIC.replace("orders", "somebody-else")
    assert "its topic" in sns_refusal(sns_signer().body("paid", NOW, TopicArn=other))


def test_another_certificate_proves_nothing_nor_does_one_that_has_run_out() -> None:
    body = sns_signer().body("paid", NOW)
    assert sns_refusal(body, SnsSigner().pem) == "it fits no secret in force"
    expired = SnsSigner(until=NOW - timedelta(days=1))
    assert sns_refusal(expired.body("paid", NOW), expired.pem) == "it fits no secret in force"


def test_an_old_message_of_sns_is_stale() -> None:
    with pytest.raises(DeliveryRefused, match="signed 3 d ago"):
        sns(sns_signer().body("paid", NOW - timedelta(days=3)))


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"Notification"', b'{"Type": "Notification"}', b'{"Type": ["x"]}', b"\xff"],
)
def test_what_is_no_message_of_sns_is_refused(body: bytes) -> None:
    assert sns_refusal(body)
