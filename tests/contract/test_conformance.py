"""What every adapter owes, whatever the provider: one suite, all that speak HTTP.

`test_email.py` asks the same of the one that does not.
"""

from __future__ import annotations

import base64
import time

import pytest

from reconciliation.adapters.registry import ADAPTERS
from reconciliation.core.classify import BEFORE_SEND, Phase
from reconciliation.core.contracts import Deadlines
from reconciliation.core.matching import Fit, compare
from reconciliation.core.states import TransmissionState
from tests.contract.far_side import FarSide, Said, Seen
from tests.contract.lanes import LANES, REQUEST_ID, SECRET, Lane
from tests.contract.sending import Sending
from tests.pooler import free_port

pytestmark = pytest.mark.parametrize("lane", LANES, ids=str)


# --- what is set up ---------------------------------------------------------------------------


def test_its_settings_and_contract_fit_each_other(lane: Lane, side: FarSide) -> None:
    assert lane.at(side.url).check() == []


def test_every_shipped_adapter_has_its_lane(lane: Lane) -> None:
    assert {each.adapter for each in LANES} | {"email"} == set(ADAPTERS)


# --- one request ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 301, 302, 307, 308, 401, 409, 429, 500, 502, 503])
def test_one_transmission_is_one_request_whatever_is_answered(
    lane: Lane, side: FarSide, status: int
) -> None:
    """A02: no retry, and no redirect is followed."""
    elsewhere = {"Location": f"{side.url}/elsewhere", "Retry-After": "0"}
    Sending(lane, side).answered(Said(status, elsewhere, b"{}"))
    assert (len(side.seen), side.connections) == (1, 1)


@pytest.mark.parametrize("fault", ["drop", "truncate"])
def test_one_transmission_is_one_request_also_when_it_breaks(
    lane: Lane, side: FarSide, fault: str
) -> None:
    sending = Sending(lane, side)
    outcome = sending.answered(Said(200, {}, b'{"id": "x"}', fault))
    assert sending.state(outcome) is TransmissionState.UNKNOWN
    assert outcome.report.phase is Phase.WAIT
    assert (len(side.seen), side.connections) == (1, 1)


def test_what_is_sent_again_is_what_was_sent(lane: Lane, side: FarSide) -> None:
    """A03: byte for byte, the key and the mark included; the signature alone is new."""
    sending = Sending(lane, side)
    sending.answered(Said(fault="drop"))
    sending.answered(Said(fault="drop"))
    first, second = side.seen
    assert (first.method, first.path, first.body) == (second.method, second.path, second.body)
    assert first.body == sending.prepared.body
    assert lane.marked(first) == lane.marked(second) == str(sending.operation)
    anew = {"authorization", "x-amz-date"}
    kept = [{k: v for k, v in each.headers.items() if k not in anew} for each in side.seen]
    assert kept[0] == kept[1]


def test_the_stored_request_holds_no_credential(lane: Lane, side: FarSide) -> None:
    """P9, A27."""
    sending = Sending(lane, side)
    stored = sending.prepared.to_bytes() + base64.b64decode(base64.b64encode(sending.prepared.body))
    assert SECRET.encode() not in stored
    assert "authorization" not in {name.lower() for name in sending.prepared.headers}
    assert SECRET not in repr(sending.adapter.connection)


# --- how far it came --------------------------------------------------------------------------


def test_what_could_not_connect_was_not_sent(lane: Lane, side: FarSide) -> None:
    sending = Sending(lane, side)
    sending.adapter = lane.at(f"http://127.0.0.1:{free_port()}")
    outcome = sending.send()
    assert outcome.report.phase in BEFORE_SEND
    assert sending.state(outcome) is TransmissionState.NOT_SENT


def test_what_is_too_late_does_not_leave(lane: Lane, side: FarSide) -> None:
    """A10: a worker that was frozen until its time was over sends nothing when it thaws."""
    sending = Sending(lane, side)
    outcome = sending.send(seconds=0.0)
    assert sending.state(outcome) is TransmissionState.NOT_SENT
    assert side.seen == []


@pytest.mark.parametrize("fault", ["hang", "trickle"])
def test_an_answer_that_does_not_end_is_not_waited_for(
    lane: Lane, side: FarSide, fault: str
) -> None:
    """The whole has an end, also where each single read comes in time."""
    sending = Sending(lane, side)
    side.answers = lambda _seen: Said(200, {"X-Long": "x" * 400}, b"{}", fault)
    began = time.monotonic()
    outcome = sending.send(seconds=0.5)
    assert time.monotonic() - began < 15  # the whole trickle takes 23
    assert sending.state(outcome) is TransmissionState.UNKNOWN
    assert len(side.seen) == 1


def test_a_read_has_its_own_end(lane: Lane, side: FarSide) -> None:
    sending = Sending(lane, side)
    sending.adapter = lane.at(side.url, deadlines=Deadlines(read_seconds=0.2))
    side.answers = lambda _seen: Said(fault="hang")
    began = time.monotonic()
    assert sending.state(sending.send(seconds=60)) is TransmissionState.UNKNOWN
    assert time.monotonic() - began < 30


# --- what is answered -------------------------------------------------------------------------


def test_the_documented_success_names_its_resource(lane: Lane, side: FarSide) -> None:
    sending = Sending(lane, side)
    side.answers = sending.accepted
    outcome = sending.send()
    assert sending.state(outcome) is TransmissionState.ACKNOWLEDGED
    assert outcome.record is not None
    assert outcome.record.resource
    match = compare(sending.intended(), outcome.record, marker_required=False)
    assert match.fit is Fit.MATCH, match


def test_a_documented_refusal_is_one_and_its_code_is_shown(lane: Lane, side: FarSide) -> None:
    """A05."""
    said, code = lane.refused
    sending = Sending(lane, side)
    outcome = sending.answered(said)
    assert code in outcome.detail
    documented = lane.with_contract().answers
    proves = sending.state(outcome)
    if any(rule.means == "rejected" for rule in documented):
        assert proves is TransmissionState.REJECTED
    else:
        assert proves is TransmissionState.UNKNOWN  # nothing proves it where nothing says so


@pytest.mark.parametrize("status", [200, 400, 403, 409, 412, 429, 502])
def test_a_page_from_something_in_between_proves_nothing(
    lane: Lane, side: FarSide, status: int
) -> None:
    sending = Sending(lane, side)
    page = b"<!DOCTYPE html><html><body>Bad gateway</body></html>"
    outcome = sending.answered(Said(status, {"Content-Type": "text/html"}, page))
    assert sending.state(outcome) is TransmissionState.UNKNOWN


def test_the_providers_request_id_is_kept(lane: Lane, side: FarSide) -> None:
    sending = Sending(lane, side)
    side.answers = sending.accepted
    wanted = "" if lane.adapter == "http" else REQUEST_ID  # its contract names none
    assert sending.send().request_id == wanted


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "9999999999"}, 86_400.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        (
            {
                "Retry-After": "Mon, 30 Nov 2026 12:00:30 GMT",
                "Date": "Mon, 30 Nov 2026 12:00:00 GMT",
            },
            30.0,
        ),
        ({"Retry-After": "Mon, 30 Nov 1999 12:00:30 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_and_as_a_date(
    lane: Lane, side: FarSide, headers: dict[str, str], seconds: float | None
) -> None:
    answer = Sending(lane, side).answered(Said(503, headers)).report.answer
    assert answer is not None
    assert answer.retry_after_seconds == seconds


def test_a_credential_that_is_echoed_is_kept_nowhere(lane: Lane, side: FarSide) -> None:
    """A27: in a code, an ID, a header, a record."""
    sending = Sending(lane, side)

    def echo(seen: Seen) -> Said:
        sent = " ".join([*seen.headers.values(), SECRET])
        said = sending.accepted(seen)
        headers = {name: f"{value} {SECRET}" for name, value in said.headers.items()}
        return Said(401, headers, said.body.replace(b"_1", SECRET.encode()) + sent.encode())

    side.answers = echo
    assert SECRET not in repr(sending.send())
    side.answers = lambda seen: Said(
        200,
        sending.accepted(seen).headers,
        sending.accepted(seen).body.replace(b"_1", SECRET.encode()),
    )
    assert SECRET not in repr(sending.send())


# --- addresses --------------------------------------------------------------------------------


def test_an_address_that_is_not_allowed_is_not_called_and_tells_no_port(
    lane: Lane, side: FarSide
) -> None:
    """A28: open and closed ports answer alike, since neither is asked."""
    open_port = Sending(lane, side)
    open_port.adapter = lane.at(side.url, allowed=())
    closed = Sending(lane, side)
    closed.adapter = lane.at(f"http://127.0.0.1:{free_port()}", allowed=())
    assert open_port.send() == closed.send()
    assert (side.seen, side.connections) == ([], 0)


def test_a_name_is_checked_where_it_leads(lane: Lane, side: FarSide) -> None:
    sending = Sending(lane, side)
    sending.adapter = lane.at(f"http://localhost:{side.port}", allowed=())
    assert sending.state(sending.send()) is TransmissionState.NOT_SENT
    assert side.connections == 0
