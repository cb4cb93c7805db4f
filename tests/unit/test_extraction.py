"""What is found in a payload: exact text, from the place that the source names, or a clear no."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.core.events import MAX_CORRELATION, MAX_EVENT_ID, MAX_PROBLEM
from workflows.core.extraction import Found, read_body, read_event
from workflows.core.json_text import NotJson
from workflows.core.schemes import Rules, challenge_of, rules_of, settings_of
from workflows.core.sources import Scheme

RULES = Rules(id_path="id", type_path="type", correlation_path="data.order")
PRIVATE = "ada@private.example"


def found(body: bytes | str, rules: Rules = RULES, headers: dict[str, str] | None = None) -> Found:
    data = body.encode() if isinstance(body, str) else body
    return read_event(rules, headers or {}, read_body(data, Scheme.HMAC))


def correlation(literal: str) -> str:
    """What is taken as the correlation where the body says `literal`."""
    read = found(f'{{"id": "e-1", "type": "paid", "data": {{"order": {literal}}}}}')
    assert not read.problem
    return read.correlation


def problem(literal: str) -> str:
    return found(f'{{"id": "e-1", "type": "paid", "data": {{"order": {literal}}}}}').problem


# --- exact text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ('"ORD-1"', "ORD-1"),
        ('" ORD-1 "', " ORD-1 "),  # nothing is trimmed
        ('"ord-1"', "ord-1"),  # nor folded
        (r'"\u00e9"', "é"),
        (r'"\u00E9"', "é"),
        (r'"e\u0301"', "e\u0301"),  # a letter with an accent after it stays what it is
        (r'"\ud83e\udd8a"', "🦊"),
        ('"🦊"', "🦊"),
        (r'"a\/b"', "a/b"),
        ("7", "7"),
        ("9007199254740993", "9007199254740993"),  # 2^53 + 1: no float holds it
        ("9223372036854775807", "9223372036854775807"),
        ("18446744073709551616", "18446744073709551616"),
        ("1" * 300, "1" * 300),
        ("-7", "-7"),
        ("1.50", "1.50"),
        ("1e3", "1e3"),
        ("1E+400", "1E+400"),
        ("0.1000", "0.1000"),
        ('"1.50"', "1.50"),
    ],
)
def test_a_correlation_is_the_exact_text(literal: str, text: str) -> None:
    assert correlation(literal) == text


@given(st.integers())
def test_every_integer_is_kept(number: int) -> None:
    text = str(number)
    if len(text) <= MAX_CORRELATION:
        assert correlation(text) == text


@given(
    st.text(
        st.characters(exclude_categories=("Cs",), exclude_characters="\x00"),
        min_size=1,
        max_size=MAX_CORRELATION,
    )
)
def test_every_text_is_kept_escaped_or_not(text: str) -> None:
    assert (
        correlation(json.dumps(text)) == correlation(json.dumps(text, ensure_ascii=False)) == text
    )


@pytest.mark.parametrize(
    ("literal", "told"),
    [
        ("null", "no correlation at data.order"),
        ("true", "is true or false, and has to be text or a number"),
        ('["ORD-1"]', "is a list"),
        ('{"id": 1}', "is an object"),
        ('""', "is empty"),
        (r'"ORD\u0000"', "a character that is no text, such as NUL"),
        (r'"\ud83e"', "a character that is no text, such as NUL"),  # half an emoji
        (json.dumps("x" * (MAX_CORRELATION + 1)), "is longer than 300 characters"),
        ("1" * 301, "is longer than 300 characters"),
    ],
)
def test_what_is_no_correlation_is_said_without_its_value(literal: str, told: str) -> None:
    assert told in problem(literal)


# --- JSON -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "it is no JSON at line 1, column 2"),
        (b'{"id": 1}\n{"id": 2}', "it is no JSON at line 2, column 1"),
        (b"id=1&type=paid", "it is no JSON at line 1, column 1"),
        (b'{"id": "\xe9"}', "it is not UTF-8 at byte 8"),
        ('{"id": "é"}'.encode("utf-16"), "it is not UTF-8"),
        (b'{"id": 1, "id": 2}', "an object in it has one name twice"),
        (b'{"a": {"b": 1, "b": 1}}', "an object in it has one name twice"),
        (b'{"a": NaN}', "NaN or Infinity"),
        (b'{"a": -Infinity}', "NaN or Infinity"),
        (b"[" * 200_000, "it is nested too deeply"),
        (b"1" * 5_000, "a number that is too long"),
    ],
)
def test_what_is_no_json_says_where(body: bytes, told: str) -> None:
    with pytest.raises(NotJson, match=told):
        read_body(body, Scheme.HMAC)


def test_a_byte_order_mark_and_a_trailing_newline_do_not_matter() -> None:
    body = b'\xef\xbb\xbf{"id": 1, "type": "paid", "data": {"order": "ORD-1"}}\n'
    assert found(body) == Found("1", "paid", "ORD-1")


@pytest.mark.parametrize("body", ["[]", '"text"', "7", "null", "{}", '{"data": []}'])
def test_json_of_another_shape_has_problems_and_is_no_error(body: str) -> None:
    read = found(body)
    assert read.event_id is None
    assert read.problem.startswith("no ID at id; no type at type; no correlation")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(NotJson):
        read_event(RULES, {}, read_body(body, Scheme.HMAC))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.sampled_from(["id", "length(@)", "@[0]", "to_number(id)", "sort(@)", "keys(@)", "a || id"]),
)
def test_any_path_meets_any_payload_without_an_error(payload: Any, path: str) -> None:
    body = json.dumps(payload).encode()
    try:
        parsed = read_body(body, Scheme.HMAC)
    except NotJson:
        return
    read = read_event(Rules(id_path=path, type_path=path, correlation_path=path), {}, parsed)
    assert bool(read.problem) or read.event_id == read.type == read.correlation != ""


# --- places -----------------------------------------------------------------------------------


def rules(scheme: Scheme, settings: dict[str, Any] | None = None, **paths: Any) -> Rules:
    fields = {"id_path": "", "type_path": "", "correlation_path": "", "schemas": {}} | paths
    return rules_of(scheme, settings_of(scheme, settings or {}), **fields)


def test_where_the_source_says_nothing_its_scheme_does() -> None:
    body = '{"id": "evt_1", "event_id": "Ev1", "type": "paid", "event": {"type": "message"}}'
    order = {"correlation_path": "id"}
    headers = {"webhook-id": "msg_1", "x-github-delivery": "d-1", "x-github-event": "push"}
    ids = {
        scheme: found(body, rules(scheme, **order), headers)
        for scheme in (Scheme.STANDARD_WEBHOOKS, Scheme.STRIPE, Scheme.GITHUB, Scheme.SLACK)
    }
    assert ids == {
        Scheme.STANDARD_WEBHOOKS: Found("msg_1", "paid", "evt_1"),
        Scheme.STRIPE: Found("evt_1", "paid", "evt_1"),
        Scheme.GITHUB: Found("d-1", "push", "evt_1"),
        Scheme.SLACK: Found("Ev1", "message", "evt_1"),
    }


def test_our_own_senders_need_say_nothing() -> None:
    body = '{"id": "1", "type": "paid", "correlation": "ORD-1", "data": {}}'
    for scheme in (Scheme.BEARER, Scheme.INTERNAL):
        assert found(body, rules(scheme)) == Found("1", "paid", "ORD-1")


def test_a_path_of_the_source_goes_before_a_header() -> None:
    named = rules(Scheme.GITHUB, id_path="data.id", correlation_path="data.id")
    body = '{"data": {"id": 5}}'
    assert found(body, named, {"x-github-delivery": "d-1", "x-github-event": "e"}).event_id == "5"


def test_headers_that_the_settings_name_are_read() -> None:
    settings = {"header": "X-Mac", "id_header": "X-Delivery", "type_header": "X-Topic"}
    named = rules(Scheme.HMAC, settings, correlation_path="order")
    headers = {"x-delivery": "d-1", "x-topic": "paid"}
    assert found('{"order": 7}', named, headers) == Found("d-1", "paid", "7")


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("", "there is no x-github-delivery header"),
        ("é", "is not ASCII"),
        ("x" * (MAX_EVENT_ID + 1), "is longer than 300 characters"),
        ("a\x00b", "a character that is no text"),
    ],
)
def test_a_header_that_cannot_be_an_id_is_said(value: str, told: str) -> None:
    headers = {"x-github-delivery": value, "x-github-event": "push"}
    read = found('{"id": 1}', rules(Scheme.GITHUB, correlation_path="id"), headers)
    assert told in read.problem
    assert (read.event_id, read.type, read.correlation) == (None, "push", "1")


def test_a_path_may_name_another_for_where_the_first_leads_nowhere() -> None:
    named = Rules(id_path="id", type_path="type", correlation_path="data.order || data.reference")
    body = '{"id": 1, "type": "paid", "data": {"reference": "R-1"}}'
    assert found(body, named).correlation == "R-1"


def test_what_is_found_beside_a_problem_is_kept() -> None:
    read = found('{"id": "e-1", "type": "paid", "data": {}}')
    assert (read.event_id, read.type, read.correlation) == ("e-1", "paid", "")
    assert read.problem == "no correlation at data.order"


def test_a_path_that_a_payload_cannot_be_asked_is_a_problem() -> None:
    named = Rules(id_path="id", type_path="type", correlation_path="join('-', data.parts)")
    body = '{"id": 1, "type": "paid", "data": {"parts": [1, 2]}}'
    assert "cannot be looked up in this payload" in found(body, named).problem


def test_problems_fit_their_column() -> None:
    long = "a." * 240 + "b"
    named = Rules(id_path=long, type_path=long, correlation_path=long)
    assert len(found("{}", named).problem) == MAX_PROBLEM


# --- schemas ----------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "required": ["data", "id"],
    "properties": {
        "data": {
            "type": "object",
            "required": ["order", "amount"],
            "properties": {
                "amount": {"type": "integer", "minimum": 1},
                "mail": {"type": "string", "pattern": "^[a-z]+$"},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
                "nothing": False,
            },
        }
    },
    "$defs": {"line": {"type": "object", "required": ["sku"]}},
}


def with_schema(data: dict[str, Any], its_type: str = "paid") -> Found:
    named = Rules(
        id_path="id",
        type_path="type",
        correlation_path="data.order",
        schemas={"paid": json.dumps(SCHEMA)},
    )
    given = {"order": "ORD-1", "amount": 5} | data
    fields = {name: value for name, value in given.items() if value is not None}
    return found(json.dumps({"id": 1, "type": its_type, "data": fields}), named)


def test_what_fits_its_schema_is_taken() -> None:
    assert not with_schema({"lines": [{"sku": "A"}]}).problem
    assert not with_schema({"amount": 2**70}).problem


def test_another_type_has_no_schema() -> None:
    assert not with_schema({"amount": "five"}, "refunded").problem


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"amount": "five"}, 'at $.data.amount: its schema asks for {"type": "integer"}'),
        ({"amount": 0}, 'at $.data.amount: its schema asks for {"minimum": 1}'),
        ({"amount": 1.5}, 'at $.data.amount: its schema asks for {"type": "integer"}'),
        ({"amount": None}, "at $.data: amount is missing"),
        ({"lines": [{"sku": 1}, {}]}, "at $.data.lines[1]: sku is missing"),
        ({"mail": PRIVATE}, 'at $.data.mail: its schema asks for {"pattern": "^[a-z]+$"}'),
        ({"nothing": PRIVATE}, "at $.data: its schema does not allow all that is there"),
    ],
)
def test_what_does_not_fit_is_said_with_its_place_and_without_its_value(
    data: dict[str, Any], told: str
) -> None:
    read = with_schema(data)
    assert read.problem == told
    assert read.correlation == "ORD-1"


def test_a_schema_that_refers_elsewhere_fetches_nothing() -> None:
    schema = json.dumps({"$ref": "https://schemas.example/paid.json"})
    named = Rules(id_path="id", type_path="type", correlation_path="id", schemas={"paid": schema})
    told = found('{"id": 1, "type": "paid"}', named).problem
    assert told == "its schema refers to something that is not in it"


def test_a_payload_that_is_too_deep_for_a_schema_is_a_problem() -> None:
    schema = json.dumps({"properties": {"a": {"$ref": "#"}}})
    named = Rules(id_path="id", type_path="type", correlation_path="id", schemas={"paid": schema})
    deep = '{"a":' * 900 + "1" + "}" * 900
    body = f'{{"id": 1, "type": "paid", "a": {deep}}}'
    assert "nested too deeply" in found(body, named).problem


# --- of some schemes --------------------------------------------------------------------------


def test_only_what_sns_has_signed_reaches_a_path() -> None:
    message = {
        "Type": "Notification",
        "MessageId": "m-1",
        "TopicArn": "arn",
        "Message": '{"detail": {"order": 9007199254740993}}',
        "Timestamp": "2026-11-30T00:00:00Z",
        "MessageAttributes": {"order": {"Value": "forged"}},
    }
    payload = read_body(json.dumps(message).encode(), Scheme.AWS_SNS)
    assert "MessageAttributes" not in payload
    named = rules(
        Scheme.AWS_SNS,
        {"topics": ["arn:aws:sns:eu-west-1:123456789012:orders"]},
        type_path="Type",
        correlation_path="Message.detail.order",
    )
    assert read_event(named, {}, payload) == Found("m-1", "Notification", "9007199254740993")
    message["Message"] = "plain text"
    plain = read_body(json.dumps(message).encode(), Scheme.AWS_SNS)
    assert plain["Message"] == "plain text"


def test_only_slack_is_given_back_its_challenge() -> None:
    asks = {"type": "url_verification", "challenge": "c-1"}
    assert challenge_of(Scheme.SLACK, asks) == "c-1"
    assert challenge_of(Scheme.GITHUB, asks) is None
    for other in (asks | {"challenge": 1}, asks | {"type": "message"}, [], "x", None):
        assert challenge_of(Scheme.SLACK, other) is None
