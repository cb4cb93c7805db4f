"""Case A08: a good signature is refused because the body was rebuilt before it was checked.

Over real HTTP, by the senders' own libraries: every genuine delivery is accepted and kept byte for
byte; each with one byte flipped, without its signature or with another tenant's is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from reconciliation.models import AuditEntry
from tests.acceptance.hooking import Hooks
from tests.delivering import source
from tests.factories import tenant
from tests.signing import SIGNED_BODIES, SIGNERS, secret_of
from workflows.core.sources import Scheme
from workflows.models import Event, EventSource, RefusalCount, SourceSecret
from workflows.services.clock import database_now

pytestmark = pytest.mark.processes

JSON = "application/json"


@dataclass(frozen=True)
class Genuine:
    """A body as a sender may send it, with what its event is for."""

    body: bytes
    correlation: str
    content_type: str = JSON


def event(text: str, correlation: str, **more: str) -> Genuine:
    return Genuine(text.encode(), correlation, **more)


GENUINE = {
    "odd key order and spacing": event(
        '{ "data" : {\t"order":"ORD-7008"} ,\n "type":"order.paid","id" :  "e" }', "ORD-7008"
    ),
    "upper-case escapes": event(
        r'{"id": "e", "type": "order.paid", "data": {"order": "\u00C9"}}', "É"
    ),
    "lower-case escapes": event(
        r'{"id": "e", "type": "order.paid", "data": {"order": "\u00c9"}}', "É"
    ),
    "raw emoji": event('{"id": "e", "type": "order.paid", "data": {"order": "🦊"}}', "🦊"),
    "escaped emoji": event(
        r'{"id": "e", "type": "order.paid", "data": {"order": "\ud83e\udd8a"}}', "🦊"
    ),
    "a trailing newline": event('{"id": "e", "type": "order.paid", "data": {"order": 1}}\n', "1"),
    "a 64-bit number": event(
        '{"id": "e", "type": "order.paid", "data": {"order": 9223372036854775807}}',
        "9223372036854775807",
    ),
    "a charset": event(
        '{"id": "e", "type": "order.paid", "data": {"order": "é"}}',
        "é",
        content_type=f"{JSON}; charset=utf-8",
    ),
    "a wrong charset": event(
        '{"id": "e", "type": "order.paid", "data": {"order": "é"}}',
        "é",
        content_type=f"{JSON}; charset=iso-8859-1",
    ),
}


@pytest.fixture(scope="module", params=SIGNED_BODIES)
def made(hooks: Hooks, request: pytest.FixtureRequest) -> EventSource:
    return source(request.param, slug=f"shop-{request.param}".replace("_", "-"))


@pytest.fixture(autouse=True)
def empty(made: EventSource) -> None:
    Event.objects.all().delete()
    RefusalCount.objects.all().delete()


def headers_of(made: EventSource, case: Genuine, *, other: bool = False) -> dict[str, str]:
    scheme = Scheme(made.scheme)
    signed = SIGNERS[scheme](secret_of(scheme, other=other), case.body, database_now())
    # Bytes that are no text in a header that nobody signs.
    return {"Content-Type": case.content_type, "X-Sender": "J\xf6rg"} | signed


@pytest.mark.parametrize("name", GENUINE)
def test_a_genuine_delivery_is_accepted_and_kept_byte_for_byte(
    hooks: Hooks, made: EventSource, name: str
) -> None:
    case = GENUINE[name]
    answer = hooks.post(made.slug, case.body, headers_of(made, case))
    assert answer.status == 202, answer.body
    kept = Event.objects.get()
    assert bytes(kept.body or b"") == case.body
    assert (kept.type, kept.correlation, kept.state) == ("order.paid", case.correlation, "stored")


def test_what_was_changed_on_the_way_is_refused(hooks: Hooks, made: EventSource) -> None:
    for case in GENUINE.values():
        headers = headers_of(made, case)
        for place in (0, len(case.body) // 2, len(case.body) - 1):
            flipped = bytearray(case.body)
            flipped[place] ^= 1
            assert hooks.post(made.slug, bytes(flipped), headers).status == 401
    assert not Event.objects.exists()
    refused = RefusalCount.objects.get()
    assert (refused.reason, refused.number) == ("signature", 3 * len(GENUINE))
    assert refused.note == "it fits no secret in force"


def test_without_a_signature_or_with_another_s_it_is_refused_and_an_operator_told_why(
    hooks: Hooks, made: EventSource
) -> None:
    case = GENUINE["raw emoji"]
    own = headers_of(made, case)
    signature = next(name for name in own if "signature" in name)
    none = {name: value for name, value in own.items() if name != signature}
    other_tenant = headers_of(made, case, other=True)
    for headers in (none, own | {signature: ""}, other_tenant):
        answer = hooks.post(made.slug, case.body, headers)
        assert answer.status == 401
        assert b"signature" not in answer.body
        note = RefusalCount.objects.get().note
        assert note in (f"it has no {signature} header", "it fits no secret in force")
        assert secret_of(Scheme(made.scheme)) not in hooks.log.read_text() + note
    assert not Event.objects.exists()


def test_a_signature_of_another_tenant_s_source_is_none(hooks: Hooks, made: EventSource) -> None:
    scheme = Scheme(made.scheme)
    theirs = source(scheme, slug=f"southbay-{made.slug}", tenant=tenant("southbay"))
    SourceSecret.objects.filter(source=theirs).delete()
    case = GENUINE["raw emoji"]
    assert hooks.post(theirs.slug, case.body, headers_of(made, case)).status == 401
    assert hooks.post(made.slug, case.body, headers_of(made, case)).status == 202
    assert AuditEntry.objects.filter(object=f"source:{theirs.slug}").exists()
