"""Any headers and any body: never a 500, nothing kept of what is not signed, no secret in a log.

Over real HTTP the same is done with raw bytes in tests/acceptance/test_hooks_server.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.delivering import deliver, signed, source
from tests.signing import SIGNED_BODIES, SIGNERS, secret_of
from workflows.core.sources import Scheme
from workflows.models import Event, EventSource
from workflows.services.clock import database_now

pytestmark = pytest.mark.django_db

SUPPRESSED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
fuzz = settings(max_examples=40, deadline=None, suppress_health_check=SUPPRESSED)

# As a server hands headers on: each byte one character.
VALUES = st.binary(max_size=80).map(lambda value: value.decode("latin-1"))
OTHERS = st.dictionaries(
    st.sampled_from(["content-type", "content-encoding", "expect", "cookie", "hx-request", "via"]),
    VALUES,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "type", "data", "order", "event", "a"]), inner)
    ),
    max_leaves=10,
)
BODIES = st.binary(max_size=200) | JSON.map(lambda payload: json.dumps(payload).encode())


def slug_of_source(scheme: Scheme) -> str:
    """The source of this scheme, made for the first example."""
    slug = scheme.value.replace("_", "-")
    if not EventSource.objects.filter(slug=slug).exists():
        source(scheme, slug=slug)
    return slug


def secret_free(text: str, scheme: Scheme) -> bool:
    return secret_of(scheme).removeprefix("whsec_") not in text


@pytest.mark.parametrize("scheme", SIGNERS)
@fuzz
@given(data=st.data(), body=BODIES, others=OTHERS)
def test_what_is_not_signed_is_answered_4xx_and_nothing_is_kept(
    scheme: Scheme,
    caplog: pytest.LogCaptureFixture,
    data: st.DataObject,
    body: bytes,
    others: dict[str, str],
) -> None:
    slug = slug_of_source(scheme)
    names = sorted(SIGNERS[scheme](secret_of(scheme), b"{}", database_now()))
    headers = {name: data.draw(VALUES) for name in names}
    given = {"content-type": "application/json"} | headers | others
    answer = deliver(Client(), body, given, slug=slug)
    assert 400 <= answer.status_code < 500, answer.status_code
    assert answer.json().keys() == {"error"}
    assert not Event.objects.exists()
    assert secret_free(caplog.text, scheme)


@pytest.mark.parametrize("scheme", SIGNED_BODIES)
@fuzz
@given(body=BODIES, others=OTHERS)
def test_whatever_is_signed_is_taken_or_refused_and_never_an_error(
    scheme: Scheme, caplog: pytest.LogCaptureFixture, body: bytes, others: dict[str, str]
) -> None:
    slug = slug_of_source(scheme)
    try:
        headers = signed(scheme, body)
    except UnicodeDecodeError:
        return  # the libraries sign text alone
    before = Event.objects.count()
    answer = deliver(Client(), body, headers | others, slug=slug)
    assert answer.status_code in (200, 202, 400, 415, 422), answer.content
    told: dict[str, Any] = answer.json()
    kept = Event.objects.count() - before
    assert kept == (told.get("outcome") in ("stored", "rejected"))
    if "event" in told:
        assert bytes(Event.objects.get(pk=told["event"]).body or b"") == body or not kept
    assert secret_free(caplog.text, scheme)
