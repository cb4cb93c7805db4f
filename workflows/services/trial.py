"""A request that somebody pasted, judged as a delivery would be: step by step, storing nothing.

Each step is taken even where an earlier one would have refused the request, as far as that makes
sense: whoever sets a source up wants to be told of everything at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from workflows.core import sns
from workflows.core.durations import age
from workflows.core.errors import DeliveryRefused
from workflows.core.extraction import Found, read_body, read_event
from workflows.core.json_text import NotJson
from workflows.core.schemes import SnsSettings, challenge_of
from workflows.core.signatures import Proof, ensure_fresh, prove
from workflows.core.sources import Scheme
from workflows.core.states import WaitState
from workflows.core.unpacking import encoding_of, too_large, unpacked
from workflows.models import Event, EventSource, Tenant, Wait
from workflows.services import ingress
from workflows.services.known_sources import Known, SourceUnready, read
from workflows.services.sns_certificates import CertificateAway

MAX_WAITS = 10
MAX_HEADERS = 200


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a delivery is looked at for."""

    name: str
    good: bool
    told: str


@dataclass(frozen=True, slots=True)
class WaitShown:
    """A wait that could take the event."""

    run: UUID
    step: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Trial:
    """What would become of a request."""

    steps: list[Step]
    found: Found
    waits: list[WaitShown]

    @property
    def good(self) -> bool:
        return all(step.good for step in self.steps)


def read_headers(text: str) -> dict[str, str]:
    """Headers as people copy them, by lower-case name. Raises `ValueError`: says which line."""
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or " " in name.strip():
            raise ValueError(f"Line {number} is no header: write Name: value.")
        if len(headers) >= MAX_HEADERS:
            raise ValueError(f"{MAX_HEADERS} headers at most.")
        headers[name.strip().lower()] = value.strip()
    return headers


def try_request(
    source: EventSource, headers: Mapping[str, str], body: bytes, visible: QuerySet[Tenant]
) -> Trial:
    """Judge a request for `source` without storing or counting anything.

    Args:
        visible: the tenants whose waits may be shown.
    """
    try:
        known = read(source)
    except SourceUnready:
        unready = Step("Source", False, "Its settings or secrets cannot be read: 503.")
        return Trial([unready], Found(), [])
    steps = [
        switched(known),
        content_type(known, headers),
        *signature(known, headers, body),
    ]
    plain, encoding = unpacking(known, headers, body)
    steps.append(encoding)
    if plain is None:
        return Trial(steps, Found(), [])
    found, shape = understanding(known, headers, plain)
    steps += shape
    waits: list[WaitShown] = []
    if all(step.good for step in shape) and found.event_id:
        steps.append(newness(known, found))
        matching, waits = waits_for(known, found, visible)
        steps.append(matching)
    return Trial(steps, found, waits)


def switched(source: Known) -> Step:
    told = "It is on." if source.enabled else "It is off: every delivery is answered 404."
    return Step("Source", source.enabled, told)


def content_type(source: Known, headers: Mapping[str, str]) -> Step:
    try:
        ingress.content_type_of(source, headers)
    except DeliveryRefused as refusal:
        return Step("Content type", False, f"Refused with 415: {refusal}.")
    return Step("Content type", True, "It is taken.")


def signature(source: Known, headers: Mapping[str, str], body: bytes) -> list[Step]:
    """Who signed it, and when: told apart, for a copied request is old by nature."""
    try:
        proof = proven(source, headers, body)
    except DeliveryRefused as refusal:
        return [Step("Signature", False, f"Refused with 401: {refusal}.")]
    except CertificateAway:
        return [Step("Signature", False, "Its certificate cannot be had from AWS now: 503.")]
    by = Step("Signature", True, f"Signed with {proof.label!r}, over these very bytes.")
    if proof.signed_at is None:
        told = "The scheme signs no time: a request that was once signed counts for ever."
        return [by, Step("Age", True, told)]
    return [by, freshness(source, proof)]


def proven(source: Known, headers: Mapping[str, str], body: bytes) -> Proof:
    secrets = source.secrets
    if isinstance(source.settings, SnsSettings) and not source.settings.certificates:
        secrets = (ingress.fetched_certificate(source.settings, body, source),)
    return prove(source.scheme, source.settings, secrets, headers, body, source.now())


def freshness(source: Known, proof: Proof) -> Step:
    assert proof.signed_at is not None
    try:
        ensure_fresh(proof, source.now(), source.tolerance)
    except DeliveryRefused as refusal:
        told = f"Refused with 401: {refusal}. When it was sent it may have counted."
        return Step("Age", False, told)
    passed = age(abs(source.now() - proof.signed_at))
    return Step("Age", True, f"Signed {passed} from now; {age(source.tolerance)} are taken.")


def unpacking(source: Known, headers: Mapping[str, str], body: bytes) -> tuple[bytes | None, Step]:
    try:
        if len(body) > source.max_bytes:
            raise too_large(source.max_bytes)
        encoding = encoding_of(headers.get("content-encoding", ""), source.encodings)
        plain = unpacked(body, encoding, source.max_bytes)
    except DeliveryRefused as refusal:
        return None, Step("Body", False, f"Refused: {refusal}.")
    as_sent = f"{len(body):,} bytes" + (f", {len(plain):,} unpacked" if encoding else "")
    return plain, Step("Body", True, f"{as_sent}.")


def understanding(
    source: Known, headers: Mapping[str, str], plain: bytes
) -> tuple[Found, list[Step]]:
    try:
        payload = read_body(plain, source.scheme)
    except NotJson as problem:
        return Found(), [Step("Shape", False, f"Rejected with 400: {problem}.")]
    if challenge_of(source.scheme, payload) is not None:
        return Found(), [Step("Shape", True, "A challenge: it is given back and nothing is kept.")]
    if source.scheme is Scheme.AWS_SNS and payload.get("Type") in sns.CONFIRMATIONS:
        return Found(), [Step("Shape", True, "Kept for an administrator, who may confirm it.")]
    found = read_event(source.rules, headers, payload)
    if found.problem:
        return found, [Step("Shape", False, f"Rejected with 422: {found.problem}.")]
    checked = (
        "It fits the schema of its type."
        if found.type in source.rules.schemas
        else ("Its type has no schema.")
    )
    return found, [Step("Shape", True, checked)]


def newness(source: Known, found: Found) -> Step:
    known = Event.objects.filter(source=source.id, event_id=found.event_id).exists()
    told = "An event of this ID was delivered before: it would be counted as a duplicate, and 200."
    return Step("ID", True, told if known else "No event of this ID was delivered before.")


def waits_for(
    source: Known, found: Found, visible: QuerySet[Tenant]
) -> tuple[Step, list[WaitShown]]:
    """The open waits that could take it, for those who may see the tenant."""
    if not visible.filter(pk=source.tenant).exists():
        return Step("Wait", True, "Its tenant's waits are not shown to you."), []
    rows = Wait.objects.filter(
        state=WaitState.WAITING,
        tenant=source.tenant,
        correlation=found.correlation,
        event_types__contains=[found.type],
    ).order_by("id")[: MAX_WAITS + 1]
    shown = [WaitShown(row.run_id, row.step, row.started_at) for row in rows][:MAX_WAITS]
    if not rows:
        return Step("Wait", True, "No open wait is for it: it would be kept for one to come."), []
    if len(rows) == 1 or all(row.shared for row in rows):
        return Step("Wait", True, "It would be given to:"), shown
    return Step("Wait", False, "More than one could take it, so a person would be asked:"), shown
